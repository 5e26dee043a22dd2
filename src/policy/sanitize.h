/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done to the output of servers before anything else reads it. Sanitizing removes or marks
 * characters that readers should not get: those that control a terminal, and those that are
 * invisible to people but not to the model. Then redacting (below) replaces what the operator's
 * patterns fit. All strings are checked, names of members included, raw or escaped.
 *
 * Controls: C0 except tab, LF and CR; DEL; C1; a terminal escape sequence counts as one.
 *
 * Invisible: what unicode_is_hidden says, except controls, U+2028, U+2029 and visible format
 * characters (Arabic number signs). They are kept where writing needs them, one at a time: ZWJ and
 * ZWNJ next to a letter of a joining script (Arabic, Indic), ZWJ between the parts of an emoji, the
 * variation selector of an emoji, an ideograph or a Mongolian letter, and the three flags that
 * consist of tags. SEC-52
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

/* ---- characters of JSON strings ---- */

/*
 * Iterates over the characters of strings in JSON text that was scanned as valid, as written. Does
 * not allocate.
 */

/*
 * Reads the character at `p`, which is inside a string and not its closing quote: a raw character,
 * an escape or a pair of escapes. A lone surrogate counts as a character. Returns the number of
 * bytes.
 */
size_t characters_read(const char *p, uint32_t *code_r);
/* From the byte after the opening quote of a string, finds its closing quote. */
const char *characters_find_end(const char *p);

/* ---- sanitizing ---- */

#define SANITIZE_MARKS_MAX 4096 /* per text; characters beyond that are removed */

enum sanitize_mode {
	SANITIZE_KEEP,
	SANITIZE_STRIP, /* removed; an escape sequence as a whole */
	SANITIZE_MARK,  /* replaced by the code point, e.g. \u{200b} */
};

struct sanitize_rules {
	enum sanitize_mode controls;
	enum sanitize_mode invisible;
};

struct sanitize_counts {
	uint64_t controls; /* removed or marked */
	uint64_t invisible;
};

/*
 * text    one JSON value that was scanned as valid
 * out     empty; receives the changed text: valid JSON of the same structure, else unchanged
 * counts  are increased
 *
 * Returns false if there is nothing to change; `out` is then empty. Takes linear time; the text
 * grows by at most 12 bytes per mark.
 */
bool sanitize_text(const struct sanitize_rules *rules, struct slice text, struct buf *out,
		   struct sanitize_counts *counts);

/* ---- redacting ---- */

/*
 * Redacts secrets in the output of servers by the operator's patterns: matches within strings are
 * not passed to clients. SEC-53
 *
 * Only string values are checked, not member names; each one separately, with its escapes decoded.
 * Skipped are `data` and `blob` of 1 KiB of base64 and more (images, files), and the cursor and
 * state that a client sends back (nextCursor, requestState).
 */

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
