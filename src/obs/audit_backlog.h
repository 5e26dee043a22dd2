/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that wait because their pipe is full, in bounded memory. Calls of tools and prompts, other
 * requests, and refusals before admission have separate room, so that what costs nothing cannot
 * displace the records of calls. Where the room of a share is used up, the caller that has most of
 * it loses its newest records, so that nobody displaces those of others. SEC-63
 */
#ifndef MCPGATED_OBS_AUDIT_BACKLOG_H
#define MCPGATED_OBS_AUDIT_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "base/ranking.h"
#include "base/slice.h"

enum audit_share { AUDIT_CALLS, AUDIT_OTHERS, AUDIT_REFUSALS, AUDIT_SHARES };

/* In bytes. Calls: room for the records of as many as a session may have, and some more. */
#define AUDIT_CALLS_WAITING_MAX (4 * 1024 * 1024)
#define AUDIT_OTHERS_WAITING_MAX (1024 * 1024)
#define AUDIT_REFUSALS_WAITING_MAX (1024 * 1024)

/* All zeros is an empty backlog. */
struct audit_backlog {
	struct audit_backlog_share {
		struct list records; /* oldest first */
		size_t count;
		size_t bytes;
		struct map callers; /* that have records here */
		struct ranking ranking;
	} shares[AUDIT_SHARES];
};

/*
 * Appends a line, of this caller. Returns how many lines are lost for that: newest ones of the
 * caller that has most, or this one.
 */
size_t audit_backlog_add(struct audit_backlog *backlog, enum audit_share share, uint64_t caller,
			 struct slice line) must_check;
bool audit_backlog_is_empty(const struct audit_backlog *backlog, enum audit_share share);
/*
 * Copies the oldest lines of a share: as many as fit, but no more than bytes_max. Returns their
 * length, and their number.
 */
size_t audit_backlog_copy(const struct audit_backlog *backlog, enum audit_share share, char *lines,
			  size_t bytes_max, size_t *count_r);
/* Removes the `count` oldest lines of a share. */
void audit_backlog_drop(struct audit_backlog *backlog, enum audit_share share, size_t count);

#endif
