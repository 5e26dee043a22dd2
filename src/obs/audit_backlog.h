/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that wait because their pipe is full, in bounded memory. Records of calls and of refusals
 * before admission have separate room, so that strangers cannot displace the records of calls.
 * SEC-63
 */
#ifndef MCPGATED_OBS_AUDIT_BACKLOG_H
#define MCPGATED_OBS_AUDIT_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"

enum audit_share { AUDIT_CALLS, AUDIT_REFUSALS, AUDIT_SHARES };

/* In bytes. Calls: room for the records of as many as a session may have, and some more. */
#define AUDIT_CALLS_WAITING_MAX (4 * 1024 * 1024)
#define AUDIT_REFUSALS_WAITING_MAX (1024 * 1024)

/* All zeros is an empty backlog. */
struct audit_backlog {
	struct {
		struct buf lines;
		size_t taken; /* how many of these bytes were dropped */
	} shares[AUDIT_SHARES];
};

/* Appends whole lines to their share. Returns false if there is no room for them. */
bool audit_backlog_add(struct audit_backlog *backlog, enum audit_share share, struct slice lines)
	must_check;
bool audit_backlog_is_empty(const struct audit_backlog *backlog, enum audit_share share);
/*
 * The oldest lines of a share: as many whole lines as fit into bytes_max, which must hold at least
 * the first. Empty if none wait. Borrowed until the next change of the backlog.
 */
struct slice audit_backlog_peek(const struct audit_backlog *backlog, enum audit_share share,
				size_t bytes_max);
/* Removes the first `bytes` bytes of a share after they were written. */
void audit_backlog_drop(struct audit_backlog *backlog, enum audit_share share, size_t bytes);

#endif
