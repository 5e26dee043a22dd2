/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions on untrusted texts: PCRE2 with limits. The operator's expressions are trusted
 * not to be malicious, but may be bad: a harmless one can take quadratic time on a text made for
 * that. Expressions of servers are not trusted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

#define PATTERN_TEXT_MAX (256 * 1024)           /* bytes of text; beyond: PATTERN_TOO_HARD */
#define PATTERN_WORK_MAX_NS (100 * 1000 * 1000) /* per message of a server, or per request body */
#define PATTERN_STEPS_MAX (100 * 1000)          /* backtracking steps at each position of a text */
#define PATTERN_ECMA_MAX 2048                   /* bytes of an expression of a server */
#define PATTERN_ECMA_STEPS_MAX (10 * 1000)
#define PATTERN_DEPTH_MAX (25 * 1000)
#define PATTERN_HEAP_MAX_KIB (4 * 1024)

struct pattern;

/*
 * The cost so far of one message or body: all zeros at its beginning, except most_ns. It must be
 * processed without interruption.
 */
struct pattern_work {
	uint64_t most_ns;  /* limit; 0: PATTERN_WORK_MAX_NS */
	uint64_t begun_ns; /* CPU time when it was first measured; 0: not yet */
	size_t unmeasured; /* bytes processed since the time was last measured */
	size_t at;         /* position in the text at the last callout */
	bool is_spent;
};

enum pattern_verdict {
	PATTERN_ABSENT,
	PATTERN_FOUND,
	/* a limit was exceeded: the result is unknown. Must never be treated as PATTERN_ABSENT */
	PATTERN_TOO_HARD,
};

/*
 * Compiles an expression in PCRE2 syntax. Texts are Unicode, also for \w, \d, \s and \b. Rejects
 * expressions that match the empty string, since that is in every text, and those that are too
 * large (about 8,000 characters).
 *
 * The caller owns the result. Returns NULL on failure; err says why, and at which byte.
 */
struct pattern *pattern_new(struct slice expression, struct error *err) must_check;
/*
 * Like pattern_new, for an expression of a schema in ECMA-262 syntax with the flag u. It may match
 * the empty string; \w, \d, \s and \b are ASCII only. Each position of a text gets fewer steps.
 * Remaining differences to ECMA-262: \s matches U+0085 and U+180E but not U+FEFF; a dot matches
 * U+2028 and U+2029; a group keeps its capture from the previous iteration; property names (\p)
 * are those of PCRE2.
 */
struct pattern *pattern_new_ecma(struct slice expression, struct error *err) must_check;
/* Approximate memory use in bytes. */
size_t pattern_size(const struct pattern *pattern);
/* Accepts a pointer to NULL; sets it to NULL. */
void pattern_free(struct pattern **pattern);

/*
 * Whether a quick check shows that `text` contains no match, nor does any part of it. False: it may
 * contain one, or the text is too long.
 */
bool pattern_is_absent(const struct pattern *pattern, struct slice text) must_check;
/*
 * Finds the first match in `text` that begins at or after byte `from`.
 *
 * text     valid UTF-8; `from` is the start of a character, or the end
 * work     is updated; once it is spent, every result is PATTERN_TOO_HARD
 * found_r  the match, a slice of text; may be empty if the expression has \K. May be NULL
 */
enum pattern_verdict pattern_find(struct pattern *pattern, struct slice text, size_t from,
				  struct pattern_work *work, struct slice *found_r) must_check;
