/* SPDX-License-Identifier: Apache-2.0 */
/* The letters that an expression begins with: some by hand, and many beside PCRE2 itself. */
#include "policy/pattern.c"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/unit_test.h"

static void begins_with(void **state)
{
	static const struct {
		const char *expression;
		const char *literal;
		bool is_caseless;
	} rows[] = {
		{ "", "", false },
		{ "password", "password", false },
		{ "sk-[a-z0-9]{20,}", "sk-", false },
		{ "AKIA[0-9A-Z]{16}", "AKIA", false },
		{ "(?i)Drop\\s+table", "drop", true },
		{ "(?i)password", "pa", true },
		{ "(?i)secret", "", true },
		{ "ab+", "a", false },
		{ "ab{2}", "a", false },
		{ "ab.", "ab", false },
		{ "ab$", "a", false },
		{ "ab(?#c)*", "a", false },
		{ "ab\\E*", "a", false },
		{ "ab(?i)c", "a", false },
		{ "ab|c", "", false },
		{ "(ab)", "", false },
		{ "(?x)a b", "", false },
		{ "^ab", "", false },
		{ "\\bab", "", false },
		{ "caf\u00e9", "ca", false },
		{ "0123456789abcdefgh", "0123456789abcdef", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct literal literal;
		size_t n = strlen(rows[i].literal);

		literal_read(&literal, slice_str(rows[i].expression));
		if (literal.length != n || memcmp(literal.text, rows[i].literal, n) != 0)
			fail_msg("%s: %.*s", rows[i].expression, (int)literal.length, literal.text);
		assert_int_equal(literal.is_caseless, rows[i].is_caseless);
	}
}

static void is_found_in_its_case(void **state)
{
	static const struct {
		const char *expression;
		const char *text;
		int from;
		int at; /* -1: absent */
	} rows[] = {
		{ "ab", "xabab", 0, 1 },     { "ab", "xabab", 2, 3 },
		{ "ab", "xabab", 4, -1 },    { "ab", "", 0, -1 },
		{ "ab", "AB a", 0, -1 },     { "(?i)ab", "a xAB", 0, 3 },
		{ "(?i)ab", "AaAAb", 0, 3 }, { "(?i)ab", "Aa", 0, -1 },
		{ "(?i)-a", "--A", 0, 1 },   { "[ab]", "nothing known", 4, 4 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct literal literal;
		size_t from = (size_t)rows[i].from;
		bool is_there;

		literal_read(&literal, slice_str(rows[i].expression));
		is_there = literal_find(&literal, slice_str(rows[i].text), &from);
		if (is_there != (rows[i].at >= 0) || (is_there && (int)from != rows[i].at))
			fail_msg("%s in %s: %d, %zu", rows[i].expression, rows[i].text, is_there,
				 from);
	}
}

/* ---- beside PCRE2 ---- */

static void append_some(struct buf *out, const char *const *pieces, size_t count, int most)
{
	for (int i = rand() % most; i >= 0; i--)
		buf_append_str(out, pieces[(size_t)rand() % count]);
}

/* Where the first place that fits begins; -1: nowhere. */
static long search(pcre2_code *code, pcre2_match_data *match, struct slice text, size_t from)
{
	int rc = pcre2_match(code, (PCRE2_SPTR)text.p, text.n, from, PCRE2_NO_UTF_CHECK, match,
			     NULL);

	return rc >= 0 ? (long)pcre2_get_ovector_pointer(match)[0] : -1;
}

static void changes_nothing(void **state)
{
	static const char *const pieces[] = {
		"a",    "b",     "k",    "S",   "i", "-",    "a",   "b",      "+",     "*",     "?",
		"{2}",  "\\s",   "\\E",  "\\Q", ".", "[ab]", "^",   "$",      "(",     ")",     "|",
		"(?i)", "(?#x)", "(?x)", " ",   "#", "\\d",  "\\b", "\u017f", "(?=a)", "(?<=a)"
	};
	static const char *const letters[] = { "a", "b", "A",      "B",      "k",     "K", "s",
					       "S", "i", "I",      "-",      " ",     "#", "1",
					       "a", "b", "\u017f", "\u212a", "\u0130" };
	unsigned int compiled = 0, found = 0;

	srand(7);
	for (int round = 0; round < 60000; round++) {
		struct buf expression = { 0 }, text = { 0 };
		struct literal literal;
		pcre2_match_data *match;
		PCRE2_SIZE offset;
		pcre2_code *code;
		int error;

		if (round % 3 == 0)
			buf_append_str(&expression, "(?i)");
		append_some(&expression, pieces, ARRAY_LEN(pieces), 6);
		append_some(&text, letters, ARRAY_LEN(letters), 24);
		code = pcre2_compile((PCRE2_SPTR)expression.data, expression.len,
				     PCRE2_UTF | PCRE2_UCP, &error, &offset, NULL);
		if (code != NULL) {
			size_t from = 0;
			long at, with;

			match = pcre2_match_data_create(1, NULL);
			literal_read(&literal, buf_slice(&expression));
			at = search(code, match, buf_slice(&text), 0);
			with = literal_find(&literal, buf_slice(&text), &from) ?
				       search(code, match, buf_slice(&text), from) :
				       -1;
			if (at != with)
				fail_msg("%.*s in %.*s: %ld, not %ld",
					 SLICE_ARG(buf_slice(&expression)),
					 SLICE_ARG(buf_slice(&text)), with, at);
			compiled += literal.length > 0;
			found += literal.length > 0 && at >= 0;
			pcre2_match_data_free(match);
			pcre2_code_free(code);
		}
		buf_fini(&expression);
		buf_fini(&text);
	}
	/* It was not all about nothing. */
	assert_true(compiled > 5000 && found > 1000);
}

/* Texts are looked at a block at a time. */
static void is_found_wherever_it_stands(void **state)
{
	static const char letters[] = "abABcC-1";
	size_t found = 0;

	srand(11);
	for (int round = 0; round < 40000; round++) {
		bool is_caseless = round % 2 == 0;
		size_t n = (size_t)rand() % 300, length = 1 + (size_t)rand() % 5, from, at;
		char text[300], words[20] = "(?i)", *word = words + (is_caseless ? 4 : 0);
		struct literal literal;

		for (size_t i = 0; i < n; i++)
			text[i] = letters[(size_t)rand() % (i % 70 < 50 ? 2 : 8)];
		for (size_t i = 0; i < length; i++)
			word[i] = letters[(size_t)rand() % 8];
		word[length] = '\0';
		literal_read(&literal, slice_str(words));
		assert_int_equal(literal.length, length);
		from = at = n > 0 ? (size_t)rand() % n : 0;
		while (at + length <= n && (is_caseless ? strncasecmp(text + at, word, length) :
							  strncmp(text + at, word, length)) != 0)
			at++;
		if (literal_find(&literal, slice_of(text, n), &from)) {
			assert_int_equal(from, at);
			found++;
		} else {
			assert_true(at + length > n);
		}
	}
	assert_in_range(found, 5000, 35000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begins_with),
		cmocka_unit_test(is_found_in_its_case),
		cmocka_unit_test(is_found_wherever_it_stands),
		cmocka_unit_test(changes_nothing),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
