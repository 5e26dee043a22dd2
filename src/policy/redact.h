/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redacts secrets in the output of servers by the operator's patterns: matches within strings are
 * not passed to clients. SEC-53
 *
 * Only string values are checked, not member names; each one separately, with its escapes decoded.
 * Skipped are `data` and `blob` of 1 KiB of base64 and more (images, files), and the cursor and
 * state that a client sends back (nextCursor, requestState).
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
	size_t count; /* 0: redaction is off */
};

/*
 * Time budget for the messages of one server. A message that exhausts its time cuts that of the
 * messages of the following second to a quarter, down to REDACT_LEAST_NS. So an expression that is
 * slow on a server's output costs about 130 ms per second, not its full budget on each message. All
 * zeros initially.
 */
struct redact_pace {
	uint64_t now_ms; /* set by the caller before each use */
	uint64_t slow_until_ms;
	uint64_t most_ns; /* per message, until then */
};

struct redact_counts {
	uint64_t found; /* matches */
	/* strings replaced as a whole because a limit of policy/pattern.h was exceeded */
	uint64_t too_hard;
};

/* Adds a pattern. Returns 0 or -1; err says why it is invalid, and at which byte. */
int redact_add(struct redact_rules *rules, struct slice expression, struct error *err) must_check;
/* Frees all patterns; the rules are empty afterwards. */
void redact_free(struct redact_rules *rules);

/*
 * text    one JSON value that was scanned as valid
 * kept    parts of it whose strings are left alone
 * out     empty; receives the text with `[redacted]` for each match. A string with a match is
 *         written anew, and a lone surrogate in it becomes U+FFFD
 * pace    of the server
 * counts  are increased
 *
 * Returns false if nothing matches; `out` is then empty.
 */
bool redact_text(const struct redact_rules *rules, struct slice text, struct slices kept,
		 struct redact_pace *pace, struct buf *out, struct redact_counts *counts);

#endif
