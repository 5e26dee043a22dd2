/* SPDX-License-Identifier: Apache-2.0 */
/* What is replaced in strings, what is left alone, and what is too hard to know. SEC-53 */
#include "policy/sanitize.h"

#include "base/unit_test.h"
#include "policy/pattern.h"

static struct redact_counts counts;

static void add(struct redact_rules *rules, const char *expression)
{
	struct error err;

	assert_int_equal(redact_add(rules, slice_str(expression), &err), 0);
}

static struct redact_pace pace;

/* Caller owns; NULL: nothing was changed. */
static char *redact(const struct redact_rules *rules, struct slice text)
{
	struct buf out = { 0 };
	bool is_changed;

	counts = (struct redact_counts){ 0 };
	is_changed = redact_text(rules, text, (struct slices){ NULL, 0 }, &pace, &out, &counts);
	assert_int_equal(is_changed, counts.found + counts.too_hard > 0);
	assert_int_equal(is_changed, out.len > 0);
	if (is_changed)
		buf_terminate(&out);
	return out.data;
}

static void places_are_replaced(void **state)
{
	static const struct {
		const char *text;
		const char *expected; /* NULL: it stays */
		uint64_t found;
	} rows[] = {
		{ "\"key sk-abc1 and sk-b2.\"", "\"key [redacted] and [redacted].\"", 2 },
		{ "\"sk-a\"", "\"[redacted]\"", 1 },
		{ "{\"a\":[\"x\",\"sk-a\"],\"b\":\"y\"}",
		  "{\"a\":[\"x\",\"[redacted]\"],\"b\":\"y\"}", 1 },
		{ "\"\\u0073k\\u002da\"", "\"[redacted]\"", 1 }, /* escapes mean what they mean */
		{ "\"\\\"sk-a\\\"\\n\"", "\"\\\"[redacted]\\\"\\n\"", 1 },
		{ "\"\u00e9sk-a\u00e9\"", "\"\u00e9[redacted]\u00e9\"", 1 },
		{ "\"\\ud83d sk-a \\ud83d\\ude00\"", "\"\ufffd [redacted] \U0001f600\"", 1 },
		{ "{\"text\":\"{\\\"k\\\":\\\"sk-a\\\"}\"}",
		  "{\"text\":\"{\\\"k\\\":\\\"[redacted]\\\"}\"}", 1 },
		{ " [ \"sk-a\" , \"b\" ] ", " [ \"[redacted]\" , \"b\" ] ", 1 },
		{ "\"4111 1111\"", "\"[redacted]\"", 1 },                /* the second pattern */
		{ "\"sk-a 41111111\"", "\"[redacted] [redacted]\"", 2 }, /* both */
		{ "{\"sk-a\":1, \"sk-b\" : \"x\"}", NULL, 0 },           /* names */
		{ "{\"a\":4111,\"b\":\"sk-\"}", NULL, 0 },
		{ "{\"nextCursor\":\"sk-a\",\"requestState\" : \"sk-b\"}", NULL, 0 },
		{ "[{\"nextCursor\":\"sk-a\"},\"sk-b\"]",
		  "[{\"nextCursor\":\"sk-a\"},\"[redacted]\"]", 1 },
		{ "{\"nextCursor\":[\"sk-a\"]}", "{\"nextCursor\":[\"[redacted]\"]}", 1 },
		{ "{\"data\":\"sk-a\"}", "{\"data\":\"[redacted]\"}",
		  1 }, /* too short for an image */
		{ "[]", NULL, 0 },
		{ "\"\"", NULL, 0 },
	};
	struct redact_rules rules = { 0 };

	add(&rules, "sk-[a-z0-9]+");
	add(&rules, "\\b\\d{4} ?\\d{4}\\b");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *is = redact(&rules, slice_str(rows[i].text));

		if ((is == NULL) != (rows[i].expected == NULL) ||
		    (is != NULL && strcmp(is, rows[i].expected) != 0))
			fail_msg("%s: %s", rows[i].text, is);
		assert_int_equal(counts.found, rows[i].found);
		assert_int_equal(counts.too_hard, 0);
		free(is);
	}
	redact_free(&rules);
	assert_int_equal(rules.count, 0);
	assert_null(redact(&rules, SLICE_LIT("\"sk-a\"")));
}

/* The quick look at the whole text clears no string that may fit when it is read. */
static void what_only_reading_finds_is_found(void **state)
{
	struct redact_rules rules = { 0 };
	struct buf text = { 0 };
	char *is;

	add(&rules, "sk-[a-z]+");
	add(&rules, "pw=");
	assert_null(redact(&rules, SLICE_LIT("{\"a\":\"s\",\"b\":[\"k-a\",\"p\\nw\"]}")));
	is = redact(&rules, SLICE_LIT("[\"s\\u006b-a\"]"));
	assert_string_equal(is, "[\"[redacted]\"]");
	free(is);
	is = redact(&rules, SLICE_LIT("[\"pw=\"]")); /* the second pattern */
	assert_string_equal(is, "[\"[redacted]\"]");
	free(is);
	buf_append_char(&text, '"');
	memset(buf_reserve(&text, PATTERN_TEXT_MAX + 1), 'a', PATTERN_TEXT_MAX + 1);
	text.len += PATTERN_TEXT_MAX + 1;
	buf_append_char(&text, '"');
	is = redact(&rules, buf_slice(&text));
	assert_string_equal(is, "\"[redacted]\"");
	assert_int_equal(counts.too_hard, 1);
	free(is);
	buf_fini(&text);
	redact_free(&rules);
}

static void encoded_bytes_are_no_text(void **state)
{
	struct redact_rules rules = { 0 };
	struct buf text = { 0 };
	char *is;

	add(&rules, "A+");
	buf_append_str(&text, "{\"type\":\"image\",\"data\":\"");
	memset(buf_reserve(&text, PATTERN_TEXT_MAX + 4), 'A', PATTERN_TEXT_MAX + 4);
	text.len += PATTERN_TEXT_MAX + 4;
	buf_append_str(&text, "==\"}");
	assert_null(redact(&rules, buf_slice(&text)));
	text.data[30] = ' '; /* that is text */
	is = redact(&rules, buf_slice(&text));
	assert_string_equal(is, "{\"type\":\"image\",\"data\":\"[redacted]\"}");
	assert_int_equal(counts.too_hard, 1);
	free(is);
	buf_fini(&text);
	redact_free(&rules);
}

/* Nobody knows whether they fit: they go as a whole, others stay. */
static void what_is_too_hard_goes_as_a_whole(void **state)
{
	struct redact_rules rules = { 0 };
	char *is;

	add(&rules, "(a+)+$");
	add(&rules, "zz"); /* what the next one says does not matter */
	is = redact(&rules, SLICE_LIT("[\"x aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\",\"yes\"]"));
	assert_string_equal(is, "[\"[redacted]\",\"yes\"]");
	assert_int_equal(counts.too_hard, 1);
	assert_int_equal(counts.found, 0);
	free(is);
	redact_free(&rules);
	add(&rules, "s\\Kecret|a\\K");
	is = redact(&rules, SLICE_LIT("[\"secret\",\"xa\"]")); /* a place of no bytes */
	assert_string_equal(is, "[\"s[redacted]\",\"[redacted]\"]");
	assert_int_equal(counts.too_hard, 1);
	free(is);
	redact_free(&rules);
}

/* The second message of this kind in a second costs less, and so on; what takes no time is looked at as ever. */
static void a_bad_expression_does_not_cost_its_time_for_each_message(void **state)
{
	static const uint64_t most_ns[] = { PATTERN_WORK_MAX_NS / 4, PATTERN_WORK_MAX_NS / 16,
					    PATTERN_WORK_MAX_NS / 64, REDACT_LEAST_NS,
					    REDACT_LEAST_NS };
	struct redact_rules rules = { 0 };
	struct buf text = { 0 };

	add(&rules, "\\s+[bc]");
	add(&rules, "sk-[a-z]+");
	buf_append_char(&text, '"');
	memset(buf_reserve(&text, PATTERN_TEXT_MAX / 4), ' ', PATTERN_TEXT_MAX / 4);
	text.len += PATTERN_TEXT_MAX / 4;
	buf_append_char(&text, '"');
	pace = (struct redact_pace){ .now_ms = 1000 };
	for (size_t i = 0; i < ARRAY_LEN(most_ns); i++) {
		free(redact(&rules, buf_slice(&text)));
		assert_int_equal(counts.too_hard, 1);
		assert_int_equal(pace.most_ns, most_ns[i]);
		free(redact(&rules, SLICE_LIT("[\"sk-a\",\"fine\"]")));
		assert_int_equal(counts.found, 1);
		assert_int_equal(counts.too_hard, 0);
		assert_int_equal(pace.most_ns, most_ns[i]);
		pace.now_ms += 999;
	}
	pace.now_ms++; /* a second later */
	free(redact(&rules, buf_slice(&text)));
	assert_int_equal(pace.most_ns, PATTERN_WORK_MAX_NS / 4);
	pace = (struct redact_pace){ 0 };
	buf_fini(&text);
	redact_free(&rules);
}

static void bad_patterns_are_refused(void **state)
{
	struct redact_rules rules = { 0 };
	struct error err = { .kind = ERROR_NONE };

	assert_int_equal(redact_add(&rules, SLICE_LIT("a("), &err), -1);
	assert_non_null(strstr(err.text, "at byte 2"));
	assert_int_equal(rules.count, 0);
	redact_free(&rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_replaced),
		cmocka_unit_test(what_only_reading_finds_is_found),
		cmocka_unit_test(encoded_bytes_are_no_text),
		cmocka_unit_test(what_is_too_hard_goes_as_a_whole),
		cmocka_unit_test(a_bad_expression_does_not_cost_its_time_for_each_message),
		cmocka_unit_test(bad_patterns_are_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
