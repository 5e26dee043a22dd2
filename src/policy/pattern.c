/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCRE2 counts its limits anew at each place of a text, and does not count what a possessive or an unambiguous repeat
 * reads: `[a-z]+@` over a long run of letters takes quadratic time within all limits. So a text is searched in windows of
 * places, and the time is looked at between them. What one window can take is bounded by PATTERN_TEXT_MAX.
 *
 * There is no just-in-time compiler: the gateway may not make memory executable (keeper/confine.c), and the limits of
 * depth and heap would not hold in its code.
 */
#include "policy/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"

#define WINDOW 512 /* places at which a match may begin */

struct pattern {
	pcre2_code *code;
	pcre2_match_context *limits;
	pcre2_match_data *match;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int refuse(struct error *err, int code, size_t offset)
{
	PCRE2_UCHAR text[160];

	pcre2_get_error_message(code, text, sizeof(text));
	return error_set(err, ERROR_SYNTAX, "%s, at byte %zu", (const char *)text, offset);
}

static pcre2_code *compile(struct slice expression, struct error *err)
{
	const uint32_t options =
		PCRE2_UTF | PCRE2_UCP | PCRE2_USE_OFFSET_LIMIT | PCRE2_NEVER_BACKSLASH_C;
	uint32_t fits_empty = 0;
	size_t offset = 0;
	int error = 0;
	pcre2_code *code = pcre2_compile((PCRE2_SPTR)expression.p, expression.n, options, &error,
					 &offset, NULL);

	if (code == NULL) {
		refuse(err, error, offset);
		return NULL;
	}
	CHECK(pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &fits_empty) == 0);
	if (!fits_empty)
		return code;
	error_set(err, ERROR_INVALID, "it fits the empty text, which is in every text, at byte 0");
	pcre2_code_free(code);
	return NULL;
}

struct pattern *pattern_new(struct slice expression, struct error *err)
{
	pcre2_code *code = compile(expression, err);
	struct pattern *pattern;

	if (code == NULL)
		return NULL;
	pattern = mem_alloc(sizeof(*pattern));
	pattern->code = code;
	pattern->limits = pcre2_match_context_create(NULL);
	pattern->match = pcre2_match_data_create(1, NULL);
	CHECK(pattern->limits != NULL && pattern->match != NULL);
	pcre2_set_match_limit(pattern->limits, PATTERN_STEPS_MAX);
	pcre2_set_depth_limit(pattern->limits, PATTERN_DEPTH_MAX);
	pcre2_set_heap_limit(pattern->limits, PATTERN_HEAP_MAX_KIB);
	return pattern;
}

void pattern_free(struct pattern **pattern)
{
	if (*pattern == NULL)
		return;
	pcre2_match_data_free((*pattern)->match);
	pcre2_match_context_free((*pattern)->limits);
	pcre2_code_free((*pattern)->code);
	free(*pattern);
	*pattern = NULL;
}

/* A match may begin from `from` to `last`. */
static enum pattern_verdict find_between(struct pattern *pattern, struct slice text, size_t from,
					 size_t last)
{
	int rc;

	pcre2_set_offset_limit(pattern->limits, last);
	rc = pcre2_match(pattern->code, (PCRE2_SPTR)(text.n > 0 ? text.p : ""), text.n, from,
			 PCRE2_NO_UTF_CHECK, pattern->match, pattern->limits);
	if (rc == PCRE2_ERROR_NOMATCH)
		return PATTERN_ABSENT;
	return rc >= 0 ? PATTERN_FOUND : PATTERN_TOO_HARD;
}

static size_t next_character(struct slice text, size_t at)
{
	do
		at++;
	while (at < text.n && ((unsigned char)text.p[at] & 0xC0) == 0x80);
	return at;
}

enum pattern_verdict pattern_find(struct pattern *pattern, struct slice text, size_t from,
				  struct pattern_work *work, struct slice *found_r)
{
	enum pattern_verdict verdict = PATTERN_ABSENT;
	const size_t *place = pcre2_get_ovector_pointer(pattern->match);

	CHECK(from <= text.n);
	if (text.n > PATTERN_TEXT_MAX)
		return PATTERN_TOO_HARD;
	while (verdict == PATTERN_ABSENT && from <= text.n) {
		size_t last = text.n - from > WINDOW ? from + WINDOW : text.n;
		uint64_t begin_ns = now_ns();

		if (work->spent_ns >= PATTERN_WORK_MAX_NS)
			return PATTERN_TOO_HARD;
		verdict = find_between(pattern, text, from, last);
		work->spent_ns += now_ns() - begin_ns;
		from = next_character(text, last);
	}
	if (verdict != PATTERN_FOUND)
		return verdict;
	if (place[0] > place[1] || place[1] > text.n)
		return PATTERN_TOO_HARD;
	if (found_r != NULL)
		*found_r = slice_of(text.p + place[0], place[1] - place[0]);
	return PATTERN_FOUND;
}
