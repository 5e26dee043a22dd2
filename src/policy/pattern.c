/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCRE2 counts its limits anew at each place of a text, and does not count what a possessive or an unambiguous repeat
 * reads: `.*\s+b` over a long run of spaces takes quadratic time in one step after the other. So it calls us before each
 * item of an expression, and the time is looked at there. What one item can take is linear, and bounded by PATTERN_TEXT_MAX.
 *
 * Most texts have not even the letters that an expression begins with: those are looked for first (literal.h).
 *
 * There is no just-in-time compiler: the gateway may not make memory executable (keeper/confine.c), and the limits of
 * depth and heap would not hold in its code.
 */
#include "policy/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/mem.h"
#include "policy/ecma_pattern.h"
#include "policy/literal.h"

#define UNMEASURED 8192 /* bytes between looks at the time: that is a system call */
#define ITEM 16         /* what an item costs beside the bytes that it reads, in those */
#define LITERAL_SPEED 8 /* how much quicker literals are looked for */

struct pattern {
	pcre2_code *code;
	pcre2_match_context *limits;
	pcre2_match_data *match;
	struct literal begin; /* of all that fits */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool is_spent(struct pattern_work *work, size_t size)
{
	work->unmeasured += size;
	if (work->unmeasured < UNMEASURED || work->is_spent)
		return work->is_spent;
	work->unmeasured = 0;
	if (work->begun_ns == 0)
		work->begun_ns = now_ns();
	work->is_spent = now_ns() - work->begun_ns >
			 (work->most_ns > 0 ? work->most_ns : PATTERN_WORK_MAX_NS);
	return work->is_spent;
}

/* Before an item is tried. Otherwise it ends the match. */
static int on_item(pcre2_callout_block *item, void *arg)
{
	struct pattern_work *work = arg;
	size_t at = item->current_position;
	size_t read = at > work->at ? at - work->at : work->at - at;

	work->at = at;
	return is_spent(work, read + ITEM) ? PCRE2_ERROR_CALLOUT : 0;
}

static int refuse(struct error *err, int code, size_t offset)
{
	PCRE2_UCHAR text[160];

	pcre2_get_error_message(code, text, sizeof(text));
	return error_set(err, ERROR_SYNTAX, "%s, at byte %zu", (const char *)text, offset);
}

static pcre2_code *compile(struct slice expression, uint32_t options,
			   pcre2_compile_context *context, struct error *err)
{
	const uint32_t always = PCRE2_UTF | PCRE2_AUTO_CALLOUT | PCRE2_NEVER_BACKSLASH_C;
	size_t offset = 0;
	int error = 0;
	pcre2_code *code = pcre2_compile((PCRE2_SPTR)(expression.n > 0 ? expression.p : ""),
					 expression.n, always | options, &error, &offset, context);

	if (code == NULL)
		refuse(err, error, offset);
	return code;
}

static pcre2_code *compile_pcre2(struct slice expression, struct error *err)
{
	pcre2_code *code = compile(expression, PCRE2_UCP, NULL, err);
	uint32_t fits_empty = 0;

	if (code == NULL)
		return NULL;
	CHECK(pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &fits_empty) == 0);
	if (!fits_empty)
		return code;
	error_set(err, ERROR_INVALID, "it matches the empty text, and so every text, at byte 0");
	pcre2_code_free(code);
	return NULL;
}

/*
 * A dot fits neither CR nor LF. The alternative that never fits names them: else PCRE2 would not look for a match that
 * begins between the two.
 */
static pcre2_code *compile_ecma(struct slice expression, struct error *err)
{
	const uint32_t options = PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX | PCRE2_ALLOW_EMPTY_CLASS |
				 PCRE2_MATCH_UNSET_BACKREF;
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	struct buf text = { 0 };
	const char *foreign = ecma_pattern_translate(expression, &text);
	pcre2_code *code = NULL;

	CHECK(context != NULL);
	CHECK(pcre2_set_newline(context, PCRE2_NEWLINE_ANYCRLF) == 0);
	CHECK(pcre2_set_max_pattern_length(context, PATTERN_ECMA_MAX) == 0);
	CHECK(pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALT_BSUX) == 0);
	buf_append_str(&text, "|(?!)\\r\\n");
	if (foreign == NULL)
		code = compile(buf_slice(&text), options, context, err);
	else
		error_set(err, ERROR_SYNTAX, "it has %s", foreign);
	pcre2_compile_context_free(context);
	buf_fini(&text);
	return code;
}

static struct pattern *pattern_of(pcre2_code *code, uint32_t steps_max)
{
	struct pattern *pattern;

	if (code == NULL)
		return NULL;
	pattern = mem_zalloc(sizeof(*pattern));
	pattern->code = code;
	pattern->limits = pcre2_match_context_create(NULL);
	pattern->match = pcre2_match_data_create(1, NULL);
	CHECK(pattern->limits != NULL && pattern->match != NULL);
	pcre2_set_match_limit(pattern->limits, steps_max);
	pcre2_set_depth_limit(pattern->limits, PATTERN_DEPTH_MAX);
	pcre2_set_heap_limit(pattern->limits, PATTERN_HEAP_MAX_KIB);
	return pattern;
}

struct pattern *pattern_new(struct slice expression, struct error *err)
{
	struct pattern *pattern = pattern_of(compile_pcre2(expression, err), PATTERN_STEPS_MAX);

	if (pattern != NULL)
		literal_read(&pattern->begin, expression);
	return pattern;
}

struct pattern *pattern_new_ecma(struct slice expression, struct error *err)
{
	return pattern_of(compile_ecma(expression, err), PATTERN_ECMA_STEPS_MAX);
}

size_t pattern_size(const struct pattern *pattern)
{
	size_t size = 0;

	CHECK(pcre2_pattern_info(pattern->code, PCRE2_INFO_SIZE, &size) == 0);
	return size + sizeof(*pattern);
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

bool pattern_is_absent(const struct pattern *pattern, struct slice text)
{
	size_t from = 0;

	return text.n <= PATTERN_TEXT_MAX && !literal_find(&pattern->begin, text, &from);
}

enum pattern_verdict pattern_find(struct pattern *pattern, struct slice text, size_t from,
				  struct pattern_work *work, struct slice *found_r)
{
	const size_t *place = pcre2_get_ovector_pointer(pattern->match);
	int rc;

	CHECK(from <= text.n);
	if (text.n > PATTERN_TEXT_MAX || is_spent(work, text.n / LITERAL_SPEED + 1))
		return PATTERN_TOO_HARD;
	if (!literal_find(&pattern->begin, text, &from))
		return PATTERN_ABSENT;
	if (is_spent(work, (text.n < UNMEASURED ? text.n : 0) + ITEM))
		return PATTERN_TOO_HARD;
	work->at = from;
	CHECK(pcre2_set_callout(pattern->limits, on_item, work) == 0);
	rc = pcre2_match(pattern->code, (PCRE2_SPTR)(text.n > 0 ? text.p : ""), text.n, from,
			 PCRE2_NO_UTF_CHECK, pattern->match, pattern->limits);
	if (rc == PCRE2_ERROR_NOMATCH)
		return PATTERN_ABSENT;
	if (rc < 0 || place[0] > place[1] || place[1] > text.n)
		return PATTERN_TOO_HARD;
	if (found_r != NULL)
		*found_r = slice_of(text.p + place[0], place[1] - place[0]);
	return PATTERN_FOUND;
}
