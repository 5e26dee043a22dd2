/* SPDX-License-Identifier: Apache-2.0 */
#include "obs/audit_backlog.h"

#include <string.h>

bool audit_backlog_add(struct audit_backlog *backlog, enum audit_share share, struct slice lines)
{
	static const size_t bytes_max[] = {
		[AUDIT_CALLS] = AUDIT_CALLS_WAITING_MAX,
		[AUDIT_REFUSALS] = AUDIT_REFUSALS_WAITING_MAX,
	};
	struct buf *waiting = &backlog->shares[share].lines;

	CHECK(lines.n > 0 && lines.p[lines.n - 1] == '\n');
	if (waiting->len - backlog->shares[share].taken + lines.n > bytes_max[share])
		return false;
	buf_append_slice(waiting, lines);
	return true;
}

bool audit_backlog_is_empty(const struct audit_backlog *backlog, enum audit_share share)
{
	return backlog->shares[share].lines.len == 0;
}

struct slice audit_backlog_peek(const struct audit_backlog *backlog, enum audit_share share,
				size_t bytes_max)
{
	struct slice waiting = buf_slice(&backlog->shares[share].lines);
	size_t taken = backlog->shares[share].taken;
	struct slice rest = slice_of(waiting.p + taken, waiting.n - taken);
	const char *end;

	CHECK(taken <= waiting.n);
	if (rest.n <= bytes_max)
		return rest;
	end = memrchr(rest.p, '\n', bytes_max);
	CHECK(end != NULL);
	return slice_between(rest.p, end + 1);
}

/*
 * Dropped bytes are removed once they make up half of the buffer: each byte is moved at most once.
 */
void audit_backlog_drop(struct audit_backlog *backlog, enum audit_share share, size_t bytes)
{
	struct buf *lines = &backlog->shares[share].lines;
	size_t *taken = &backlog->shares[share].taken;

	*taken += bytes;
	CHECK(*taken <= lines->len);
	if (*taken == lines->len) {
		buf_fini(lines);
		*taken = 0;
	} else if (*taken > lines->len / 2) {
		buf_consume(lines, *taken);
		*taken = 0;
	}
}
