/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions over texts of strangers: PCRE2 under limits. One of the operator is trusted not to be malicious, but
 * not to be good: a harmless one may take quadratic time of a text made for that. One of a server is not trusted.
 */
#ifndef MCPGATED_POLICY_PATTERN_H
#define MCPGATED_POLICY_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

#define PATTERN_TEXT_MAX (256 * 1024)           /* bytes of a text; a longer one is too hard */
#define PATTERN_WORK_MAX_NS (100 * 1000 * 1000) /* for one message of a server, or all of a body */
#define PATTERN_STEPS_MAX (100 * 1000)          /* of backtracking, at each place of a text */
#define PATTERN_ECMA_MAX 2048                   /* bytes of one of a server */
#define PATTERN_ECMA_STEPS_MAX (10 * 1000)
#define PATTERN_DEPTH_MAX (25 * 1000)
#define PATTERN_HEAP_MAX_KIB (4 * 1024)

struct pattern;

/* What one message, or body, has cost so far: all zeros at its beginning, but for most_ns. It is looked at in one go. */
struct pattern_work {
	uint64_t most_ns;  /* that it may cost; 0: PATTERN_WORK_MAX_NS */
	uint64_t begun_ns; /* the processor's time, when it was looked at first; 0: never yet */
	size_t unmeasured; /* bytes, since the time was looked at */
	size_t at;         /* in the text, when we were called last */
	bool is_spent;
};

enum pattern_verdict {
	PATTERN_ABSENT,
	PATTERN_FOUND,
	PATTERN_TOO_HARD, /* beyond a limit: nobody knows. Never to be taken for PATTERN_ABSENT */
};

/*
 * Compiles an expression in PCRE2's syntax; texts are Unicode, and \w, \d, \s and \b know of it. Refused is one that fits
 * the empty text, which is in every text, and one that is too large (some 8,000 letters).
 *
 * Caller owns. NULL: err says why, and at which byte.
 */
struct pattern *pattern_new(struct slice expression, struct error *err) must_check;
/*
 * The same for one in the syntax of ECMA-262, of a schema (ecma_pattern.h), which may fit the empty text: \w, \d, \s and \b
 * know of ASCII alone. Each place of a text gets fewer steps.
 */
struct pattern *pattern_new_ecma(struct slice expression, struct error *err) must_check;
/* Of memory, about. */
size_t pattern_size(const struct pattern *pattern);
/* Accepts a pointer to NULL; sets it to NULL. */
void pattern_free(struct pattern **pattern);

/* Whether nothing in `text` fits, nor in any part of it, as one quick look shows. False: it may, or the text is too long. */
bool pattern_is_absent(const struct pattern *pattern, struct slice text) must_check;
/*
 * Looks for the first place in `text` that fits, not before the byte `from`.
 *
 * text     valid UTF-8; `from` is where a character begins, or the end
 * work     is counted on; when it is spent all is too hard
 * found_r  the place, inside text; may be empty where the expression has \K. NULL: of no interest
 */
enum pattern_verdict pattern_find(struct pattern *pattern, struct slice text, size_t from,
				  struct pattern_work *work, struct slice *found_r) must_check;

#endif
