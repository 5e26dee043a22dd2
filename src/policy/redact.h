/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets that a server lets slip, in the operator's patterns: what fits one, in a string, is not for clients. SEC-53
 *
 * Only the values of strings are looked at, not names of members, each by itself, its escapes decoded. Not looked at are
 * `data` and `blob` of 1 KiB of base64 and more (images, files), and the cursor and the state that a client brings back
 * (nextCursor, requestState).
 */
#ifndef MCPGATED_POLICY_REDACT_H
#define MCPGATED_POLICY_REDACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

#define REDACT_LEAST_NS (1000 * 1000)

struct pattern;

struct redact_rules {
	struct pattern **patterns;
	size_t count; /* 0: nothing is redacted */
};

/*
 * How long the messages of one server may be looked at. One that has taken all its time leaves a quarter of that to those
 * of the second after it, down to REDACT_LEAST_NS: so an expression that is bad for what a server writes costs some 130 ms in
 * a second, not as much for each message. All zeros at first.
 */
struct redact_pace {
	uint64_t now_ms; /* set by the caller, each time */
	uint64_t slow_until_ms;
	uint64_t most_ns; /* of a message, until then */
};

struct redact_counts {
	uint64_t found; /* places that fit a pattern */
	uint64_t
		too_hard; /* strings replaced as a whole, because a limit of policy/pattern.h was broken */
};

/* Adds a pattern; -1: err says why it is none, and at which byte. */
int redact_add(struct redact_rules *rules, struct slice expression, struct error *err) must_check;
/* Empty afterwards. */
void redact_free(struct redact_rules *rules);

/*
 * text    one JSON value that was scanned as valid
 * kept    parts of it whose strings stay
 * out     empty; the text with `[redacted]` for each place is appended. A string that had one is written anew, and half a
 *         surrogate pair in it becomes U+FFFD
 * pace    of the server
 * counts  are added to
 *
 * Returns false if nothing fits; `out` is then empty.
 */
bool redact_text(const struct redact_rules *rules, struct slice text, struct slices kept,
		 struct redact_pace *pace, struct buf *out, struct redact_counts *counts);

#endif
