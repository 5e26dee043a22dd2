/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that wait because their pipe is full, in bounded memory: those of calls, and those of what was
 * refused at the door, each with room of their own, so that strangers cannot push out what has happened. SEC-63
 */
#ifndef MCPGATED_OBS_AUDIT_BACKLOG_H
#define MCPGATED_OBS_AUDIT_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"

enum audit_share { AUDIT_CALLS, AUDIT_REFUSALS, AUDIT_SHARES };

#define AUDIT_CALLS_WAITING_MAX \
	(4 * 1024 * 1024) /* bytes: of as many calls as a session may have, and some more */
#define AUDIT_REFUSALS_WAITING_MAX (1024 * 1024)

/* All zeros: nothing waits. */
struct audit_backlog {
	struct {
		struct buf lines;
		size_t taken; /* of their bytes */
	} shares[AUDIT_SHARES];
};

/* Puts whole lines behind the others of their share. False: there is no room for them. */
bool audit_backlog_add(struct audit_backlog *backlog, enum audit_share share, struct slice lines)
	must_check;
bool audit_backlog_is_empty(const struct audit_backlog *backlog, enum audit_share share);
/* The oldest lines of a share, as many as have room in bytes_max, which is not less than one; empty, if none waits. */
struct slice audit_backlog_peek(const struct audit_backlog *backlog, enum audit_share share,
				size_t bytes_max);
/* They were written: so many bytes. */
void audit_backlog_drop(struct audit_backlog *backlog, enum audit_share share, size_t bytes);

#endif
