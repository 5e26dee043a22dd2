/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions that are refused, what is found, and what is too hard to know. */
#include "policy/pattern.h"

#include <stdlib.h>
#include <time.h>

#include "base/unit_test.h"

static struct pattern *must_new(const char *expression)
{
	struct error err = { .kind = ERROR_NONE };
	struct pattern *pattern = pattern_new(slice_str(expression), &err);

	if (pattern == NULL)
		fail_msg("%s: %s", expression, err.text);
	return pattern;
}

static enum pattern_verdict find(const char *expression, struct slice text, struct slice *found_r)
{
	struct pattern *pattern = must_new(expression);
	struct pattern_work work = { 0 };
	enum pattern_verdict verdict = pattern_find(pattern, text, 0, &work, found_r);

	pattern_free(&pattern);
	assert_null(pattern);
	pattern_free(&pattern);
	return verdict;
}

static void errors_have_a_reason_and_a_place(void **state)
{
	static const struct {
		const char *expression;
		const char *place;
	} rows[] = {
		{ "a(b", ", at byte 3" },   { "a)", ", at byte 1" },
		{ "[z-a]", ", at byte 3" }, { "a\\", ", at byte 2" },
		{ "*", ", at byte 0" },     { "a\\C", ", at byte 3" },
		{ "(?<n", ", at byte 4" },  { "\\p{Nothing}", ", at byte 11" },
		{ "\xff", ", at byte 0" },  { "a*", ", at byte 0" },
		{ "", ", at byte 0" },      { "x|", ", at byte 0" },
		{ "^", ", at byte 0" },     { "(?=a)", ", at byte 0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct error err = { .kind = ERROR_NONE };

		assert_null(pattern_new(slice_str(rows[i].expression), &err));
		if (strstr(err.text, rows[i].place) == NULL)
			fail_msg("%s: %s", rows[i].expression, err.text);
		assert_true(err.text[0] != ',');
	}
}

static void finds_the_first_place(void **state)
{
	static const struct {
		const char *expression;
		const char *text;
		int at; /* -1: absent */
		size_t n;
	} rows[] = {
		{ "b+", "abbcb", 1, 2 },     { "B+", "abbcb", -1, 0 },
		{ "(?i)B+", "abbcb", 1, 2 }, { "^b", "ab", -1, 0 },
		{ "b$", "ab", 1, 1 },        { "a", "", -1, 0 },
		{ "(?<=a)b", "ab", 1, 1 },   { "a\\Kb", "ab", 1, 1 },
		{ "\\w", "\u00e9", 0, 2 }, /* knows letters of all scripts */
		{ ".", "\U0001f600", 0, 4 }, { "x.z", "\u00e9x\u00e9z", 2, 4 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slice found = { NULL, 0 };
		struct slice text = slice_str(rows[i].text);
		enum pattern_verdict verdict = find(rows[i].expression, text, &found);

		assert_int_equal(verdict, rows[i].at < 0 ? PATTERN_ABSENT : PATTERN_FOUND);
		if (rows[i].at >= 0) {
			assert_ptr_equal(found.p, text.p + rows[i].at);
			assert_int_equal(found.n, rows[i].n);
		}
	}
}

/* Wherever it stands, and whatever characters are before it. */
static void finds_it_anywhere_in_a_long_text(void **state)
{
	char text[2100];
	struct pattern *pattern = must_new("x+y");

	for (size_t at = 0; at + 2 <= sizeof(text); at++) {
		struct pattern_work work = { 0 };
		struct slice found;

		for (size_t i = 0; i < sizeof(text); i++)
			text[i] = i % 2 == at % 2 ? '\xc3' : '\xa9';
		if (at % 2 == 1)
			text[0] = 'a';
		if ((sizeof(text) - at) % 2 == 1)
			text[sizeof(text) - 1] = 'a';
		memcpy(text + at, "xy", 2);
		assert_int_equal(pattern_find(pattern, slice_of(text, sizeof(text)), 0, &work,
					      &found),
				 PATTERN_FOUND);
		assert_ptr_equal(found.p, text + at);
		assert_int_equal(found.n, 2);
		assert_int_equal(pattern_find(pattern, slice_of(text, sizeof(text)), at + 2, &work,
					      NULL),
				 PATTERN_ABSENT);
	}
	pattern_free(&pattern);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 2 == 0 ? '\xc3' : '\xa9';
	assert_int_equal(find("[^\u00e9]", slice_of(text, sizeof(text)), NULL), PATTERN_ABSENT);
}

/* Each breaks another limit. */
static void what_breaks_a_limit_is_too_hard(void **state)
{
	static char text[PATTERN_TEXT_MAX + 1];

	memset(text, 'a', sizeof(text));
	memcpy(text + PATTERN_TEXT_MAX - 3, " @c", 3); /* a text without would be absent at once */
	assert_int_equal(find("(a+)+$", SLICE_LIT("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"), NULL),
			 PATTERN_TOO_HARD);
	assert_int_equal(find("(?:(a)|b)+c", slice_of(text, PATTERN_TEXT_MAX), NULL),
			 PATTERN_TOO_HARD); /* heap or depth */
	assert_int_equal(find("[a-z]+@", slice_of(text, PATTERN_TEXT_MAX), NULL),
			 PATTERN_TOO_HARD); /* time */
	assert_int_equal(find("b", slice_of(text, PATTERN_TEXT_MAX), NULL), PATTERN_ABSENT);
	assert_int_equal(find("b", slice_of(text, PATTERN_TEXT_MAX + 1), NULL), PATTERN_TOO_HARD);
	assert_int_equal(find("a", slice_of(text, PATTERN_TEXT_MAX + 1), NULL), PATTERN_TOO_HARD);
}

/* Few steps, but each reads on to the end: nothing that PCRE2 would count. */
static void what_a_step_reads_is_counted(void **state)
{
	static const char *const expressions[] = { "union.*\\s+select", "union.*?\\s*+[:;]",
						   "union(?:(?! *:).)*t" };
	static char text[90 * 1000]; /* so many steps are allowed */
	struct timespec began, ended;

	memset(text, ' ', sizeof(text));
	memcpy(text, "union", 5);
	memcpy(text + sizeof(text) - 7, "selec t", 7);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
	for (size_t i = 0; i < ARRAY_LEN(expressions); i++)
		assert_int_equal(find(expressions[i], slice_of(text, sizeof(text)), NULL),
				 PATTERN_TOO_HARD);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
	assert_true(ended.tv_sec - began.tv_sec < 3);
}

/* What a message may cost is for all of its texts and patterns. */
static void work_is_for_a_whole_message(void **state)
{
	struct pattern *pattern = must_new("b");
	struct pattern_work work = { 0 };

	for (int i = 0; i < 1000 && work.begun_ns == 0; i++)
		assert_int_equal(pattern_find(pattern, SLICE_LIT("ab"), 0, &work, NULL),
				 PATTERN_FOUND);
	assert_true(work.begun_ns > 0 && !work.is_spent);
	work.begun_ns -= PATTERN_WORK_MAX_NS;
	for (int i = 0; i < 1000 && !work.is_spent; i++)
		assert_int_not_equal(pattern_find(pattern, SLICE_LIT("ab"), 0, &work, NULL),
				     PATTERN_ABSENT);
	assert_int_equal(pattern_find(pattern, SLICE_LIT("ab"), 0, &work, NULL), PATTERN_TOO_HARD);
	pattern_free(&pattern);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_have_a_reason_and_a_place),
		cmocka_unit_test(finds_the_first_place),
		cmocka_unit_test(finds_it_anywhere_in_a_long_text),
		cmocka_unit_test(what_breaks_a_limit_is_too_hard),
		cmocka_unit_test(what_a_step_reads_is_counted),
		cmocka_unit_test(work_is_for_a_whole_message),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
