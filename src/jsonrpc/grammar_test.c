/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the grammar: tables of values that are JSON and of texts that are not, each read as the
 * result of a response and copied into a block of exactly its size, so that AddressSanitizer sees a
 * read beyond the end. FRONT-HTTP-10, SEC-40, SEC-43.
 */
#include "jsonrpc/grammar.h"

#include "base/buf.h"
#include "base/unit_test.h"

#define BEFORE "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"
#define AFTER "}"

static const struct scan_limits limits = { .depth_max = 64, .id_max = 64 };

/* Reads an exact copy; *result_r is the length of the result found. */
static enum error_kind read_copy(struct slice text, const struct scan_limits *with,
				 size_t *result_r)
{
	char *copy = malloc(text.n > 0 ? text.n : 1);
	struct envelope envelope;
	struct error err = { .kind = ERROR_NONE };
	int rc;

	memcpy(copy, text.p, text.n);
	rc = scan_envelope(slice_of(copy, text.n), with, 0, &envelope, &err);
	assert_int_equal(rc, err.kind == ERROR_NONE ? 0 : -1);
	*result_r = envelope.result.text.n;
	free(copy);
	return err.kind;
}

static enum error_kind read_value(struct slice value)
{
	struct buf text = { NULL, 0, 0 };
	enum error_kind kind;
	size_t length;

	buf_append_str(&text, BEFORE);
	buf_append_slice(&text, value);
	buf_append_str(&text, AFTER);
	kind = read_copy(buf_slice(&text), &limits, &length);
	if (kind == ERROR_NONE && length != value.n)
		fail_msg("%.*s: the result has %zu bytes", SLICE_ARG(value), length);
	buf_fini(&text);
	return kind;
}

static const struct slice good_values[] = {
	SLICE("null"),
	SLICE("true"),
	SLICE("false"),
	SLICE("0"),
	SLICE("-0"),
	SLICE("7"),
	SLICE("-7"),
	SLICE("10"),
	SLICE("0.0"),
	SLICE("-0.5"),
	SLICE("1.0"),
	SLICE("1E2"),
	SLICE("1e+2"),
	SLICE("1e-2"),
	SLICE("0e0"),
	SLICE("0E+00"),
	SLICE("1.25e10"),
	SLICE("9007199254740993"),
	SLICE("123456789012345678901234567890"),
	SLICE("1e400"),
	SLICE("-1e-400"),
	SLICE("0.1000000000000000055511151231257827"),
	SLICE("\"\""),
	SLICE("\"a\""),
	SLICE("\" \""),
	SLICE("\"/\""),
	SLICE("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""),
	SLICE("\"\\u0000\""),
	SLICE("\"\\u00e9\\u00E9\\uABCD\\uabcd\""),
	SLICE("\"\\uD834\\uDD1E\""),
	SLICE("\"\\uD800\""),        /* half of a pair: legal, Node writes it */
	SLICE("\"\\uDC00\\uD800\""), /* the wrong way round */
	SLICE("\"\\uD800x\""),
	SLICE("\"\\\\u12\""),  /* an escaped backslash, not \u */
	SLICE("\"\x7F\""),     /* DEL is no control character for JSON */
	SLICE("\"\xC2\x80\""), /* smallest and largest of each length */
	SLICE("\"\xDF\xBF\""),
	SLICE("\"\xE0\xA0\x80\""),
	SLICE("\"\xED\x9F\xBF\""),
	SLICE("\"\xEE\x80\x80\""),
	SLICE("\"\xEF\xBF\xBF\""),
	SLICE("\"\xF0\x90\x80\x80\""),
	SLICE("\"\xF4\x8F\xBF\xBF\""),
	SLICE("\"\xEF\xBB\xBF\""), /* U+FEFF inside a string is a character */
	SLICE("\"\xD0\x96\xE6\x97\xA5\xF0\x9F\x98\x80 mixed\""),
	SLICE("[]"),
	SLICE("[ ]"),
	SLICE("[1]"),
	SLICE("[1,2]"),
	SLICE("[ 1 ,\t2\r\n, 3 ]"),
	SLICE("[[],[[]],{}]"),
	SLICE("[\"]\",\"[\"]"),
	SLICE("[null,true,false]"),
	SLICE("{}"),
	SLICE("{ }"),
	SLICE("{\"\":0}"),
	SLICE("{\"a\":1}"),
	SLICE("{\"a\" : 1 , \"b\" : [ ] }"),
	SLICE("{\"a\":{\"b\":{\"c\":[{\"d\":{}}]}}}"),
	SLICE("{\"a\":1,\"a\":2}"), /* repeated below the three objects we read: passes */
	SLICE("{\"\\u0061\":1}"),
	SLICE("{\"a\\u0000b\":1}"),
	SLICE("{\"}\":\"{\"}"),
};

static void good_values_pass(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(good_values); i++) {
		if (read_value(good_values[i]) != ERROR_NONE)
			fail_msg("refused: %.*s", SLICE_ARG(good_values[i]));
	}
}

static const struct slice bad_values[] = {
	SLICE(""),
	SLICE(" "),
	SLICE(","),
	SLICE("nul"),
	SLICE("nulL"),
	SLICE("nullx"),
	SLICE("True"),
	SLICE("tru"),
	SLICE("fals"),
	SLICE("undefined"),
	SLICE("NaN"),
	SLICE("-NaN"),
	SLICE("Infinity"),
	SLICE("-Infinity"),
	SLICE("00"),
	SLICE("01"),
	SLICE("-01"),
	SLICE("-"),
	SLICE("+1"),
	SLICE("--1"),
	SLICE(".5"),
	SLICE("1."),
	SLICE("1.e1"),
	SLICE("1.5."),
	SLICE("1e"),
	SLICE("1e+"),
	SLICE("1E-"),
	SLICE("1e1.5"),
	SLICE("1ee1"),
	SLICE("0x10"),
	SLICE("1_000"),
	SLICE("1a"),
	SLICE("1 2"),
	SLICE("1\0"), /* a reader in C may stop here */
	SLICE("null\0"),
	SLICE("\0"),
	SLICE("\0001"),
	SLICE("'a'"),
	SLICE("a"),
	SLICE("\""),
	SLICE("\"a"),
	SLICE("\"a\\\""),
	SLICE("\"a\"b"),
	SLICE("\"a\"\"b\""),
	SLICE("\"\\\""),
	SLICE("\"\\x41\""),
	SLICE("\"\\a\""),
	SLICE("\"\\'\""),
	SLICE("\"\\U0041\""),
	SLICE("\"\\0\""),
	SLICE("\"\\\0\""),
	SLICE("\"\\\n\""),
	SLICE("\"\\u\""),
	SLICE("\"\\u1\""),
	SLICE("\"\\u12\""),
	SLICE("\"\\u123\""),
	SLICE("\"\\u123g\""),
	SLICE("\"\\uG123\""),
	SLICE("\"\\u 123\""),
	SLICE("\"\\u00e\xC3\xA9\""),
	SLICE("\"\0\""),
	SLICE("\"a\0b\""),
	SLICE("\"\t\""),
	SLICE("\"\n\""),
	SLICE("\"\r\""),
	SLICE("\"\x1F\""),
	SLICE("\"\x80\""), /* UTF-8: continuation alone */
	SLICE("\"\xBF\""),
	SLICE("\"\xC0\x80\""), /* NUL in two bytes */
	SLICE("\"\xC1\xBF\""),
	SLICE("\"\xC2\""), /* cut short by the quote */
	SLICE("\"\xC2\x41\""),
	SLICE("\"\xC2\xC2\x80\""),
	SLICE("\"\xE0\x80\x80\""),
	SLICE("\"\xE0\x9F\xBF\""),
	SLICE("\"\xE2\x82\""),
	SLICE("\"\xED\xA0\x80\""), /* surrogates */
	SLICE("\"\xED\xBF\xBF\""),
	SLICE("\"\xED\xA0\x80\xED\xB0\x80\""),
	SLICE("\"\xF0\x80\x80\x80\""),
	SLICE("\"\xF0\x8F\xBF\xBF\""),
	SLICE("\"\xF0\x9F\x98\""),
	SLICE("\"\xF4\x90\x80\x80\""), /* beyond U+10FFFF */
	SLICE("\"\xF5\x80\x80\x80\""),
	SLICE("\"\xF8\x88\x80\x80\x80\""),
	SLICE("\"\xFE\""),
	SLICE("\"\xFF\""),
	SLICE("\"caf\xE9\""), /* Latin-1 */
	SLICE("\xC2\xA0"
	      "1"), /* no-break space is no JSON space */
	SLICE("\xEF\xBB\xBF"
	      "1"),
	SLICE("\xE2\x80\xA8"
	      "1"),
	SLICE("\f1"),
	SLICE("\v1"),
	SLICE("1\f"),
	SLICE("["),
	SLICE("]"),
	SLICE("[1"),
	SLICE("[1,"),
	SLICE("[1,]"),
	SLICE("[,1]"),
	SLICE("[,]"),
	SLICE("[1,,2]"),
	SLICE("[1 2]"),
	SLICE("[1;2]"),
	SLICE("[1:2]"),
	SLICE("[\"a\":1]"),
	SLICE("[1}"),
	SLICE("[1]]"),
	SLICE("[[1]"),
	SLICE("[\"a]"),
	SLICE("{"),
	SLICE("{]"),
	SLICE("{1:1}"),
	SLICE("{a:1}"),
	SLICE("{'a':1}"),
	SLICE("{null:1}"),
	SLICE("{[]:1}"),
	SLICE("{\"a\"}"),
	SLICE("{\"a\":}"),
	SLICE("{\"a\":1"),
	SLICE("{\"a\":1,"),
	SLICE("{\"a\":1,}"),
	SLICE("{,\"a\":1}"),
	SLICE("{\"a\":1,,\"b\":2}"),
	SLICE("{\"a\" 1}"),
	SLICE("{\"a\",1}"),
	SLICE("{\"a\"::1}"),
	SLICE("{\"a\":1:2}"),
	SLICE("{\"a\":1 \"b\":2}"),
	SLICE("{\"a\":1]"),
	SLICE("{\"a\":[1}]"),
	SLICE("{\"a\n\":1}"),
	SLICE("{\"\xFF\":1}"),
	SLICE("1}"),
	SLICE("1}{"),
	SLICE("1 // no"),
	SLICE("/* no */ 1"),
	SLICE("# no\n1"),
	SLICE("<1>"),
};

static void bad_values_are_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(bad_values); i++) {
		if (read_value(bad_values[i]) != ERROR_SYNTAX)
			fail_msg("not refused as syntax: case %zu: %.*s", i,
				 SLICE_ARG(bad_values[i]));
	}
}

/* A string is read eight bytes at a time: every byte at every place of such a word. */
static void every_byte_at_every_place_of_a_string(void **state)
{
	for (size_t length = 1; length <= 26; length++) {
		for (size_t at = 0; at < length; at++) {
			for (unsigned int byte = 0; byte < 0x80; byte++) {
				char value[32] = "\"";
				bool is_good = byte >= 0x20 && byte != '"' && byte != '\\';

				memset(value + 1, 'x', length);
				value[length + 1] = '"';
				value[1 + at] = (char)byte;
				if ((read_value(slice_of(value, length + 2)) == ERROR_NONE) !=
				    is_good)
					fail_msg("byte %u at %zu of %zu", byte, at, length);
			}
		}
	}
}

static void long_text_beyond_ascii_at_every_place(void **state)
{
	static const char character[] = "\xE2\x82\xAC";

	for (size_t at = 0; at <= 20; at++) {
		char value[32] = "\"";

		memset(value + 1, 'x', 24);
		value[25] = '"';
		memcpy(value + 1 + at, character, 3);
		assert_int_equal(read_value(slice_of(value, 26)), ERROR_NONE);
		value[1 + at + 1] = 'x';
		assert_int_equal(read_value(slice_of(value, 26)), ERROR_SYNTAX);
	}
}

static void every_cut_is_refused(void **state)
{
	static const char text[] =
		"{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0041\xC3\xA9\",\"method\":\"m\","
		"\"params\":{\"_meta\":{\"progressToken\":-1.5e+3},\"name\":\"n\","
		"\"l\":[true,false,null,{},[]]}}";
	size_t unused;

	assert_int_equal(read_copy(slice_str(text), &limits, &unused), ERROR_NONE);
	for (size_t n = 0; n + 1 < sizeof(text) - 1; n++) {
		if (read_copy(slice_of(text, n), &limits, &unused) != ERROR_SYNTAX)
			fail_msg("%.*s", (int)n, text);
	}
}

static enum error_kind read_nested(size_t outer, const char *open, const char *close,
				   size_t depth_max)
{
	const struct scan_limits with = { .depth_max = depth_max, .id_max = 64 };
	struct buf text = { NULL, 0, 0 };
	enum error_kind kind;
	size_t unused;

	buf_append_str(&text, BEFORE);
	for (size_t i = 0; i < outer; i++)
		buf_append_str(&text, open);
	buf_append_str(&text, "0");
	for (size_t i = 0; i < outer; i++)
		buf_append_str(&text, close);
	buf_append_str(&text, AFTER);
	kind = read_copy(buf_slice(&text), &with, &unused);
	buf_fini(&text);
	return kind;
}

/* FRONT-HTTP-09: the message itself is the first level. */
static void depth_is_limited(void **state)
{
	assert_int_equal(read_nested(0, "[", "]", 1), ERROR_NONE);
	assert_int_equal(read_nested(1, "[", "]", 1), ERROR_LIMIT);
	assert_int_equal(read_nested(63, "[", "]", 64), ERROR_NONE);
	assert_int_equal(read_nested(64, "[", "]", 64), ERROR_LIMIT);
	assert_int_equal(read_nested(63, "{\"a\":", "}", 64), ERROR_NONE);
	assert_int_equal(read_nested(64, "{\"a\":", "}", 64), ERROR_LIMIT);
	assert_int_equal(read_nested(SCAN_DEPTH_MAX - 1, "[", "]", SCAN_DEPTH_MAX), ERROR_NONE);
	assert_int_equal(read_nested(SCAN_DEPTH_MAX, "[", "]", SCAN_DEPTH_MAX), ERROR_LIMIT);
	assert_int_equal(read_nested(1000000, "[", "]", SCAN_DEPTH_MAX), ERROR_LIMIT);
	assert_int_equal(read_nested(63, "[{\"a\":", "}]", 127), ERROR_NONE);
	assert_int_equal(read_nested(63, "[{\"a\":", "}]", 126), ERROR_LIMIT);
}

static void mixed_closers_are_told_apart(void **state)
{
	assert_int_equal(read_nested(10, "[{\"a\":", "]}", 64), ERROR_SYNTAX);
}

static void whole_texts(void **state)
{
	static const struct {
		struct slice text;
		enum error_kind kind;
		const char *says;
	} cases[] = {
		{ SLICE(""), ERROR_SYNTAX,
		  "not JSON: the end where a value should begin, at byte 0" },
		{ SLICE(" \n"), ERROR_SYNTAX,
		  "not JSON: the end where a value should begin, at byte 2" },
		{ SLICE("1"), ERROR_INVALID, "the message is not a JSON object" },
		{ SLICE(" \"x\" "), ERROR_INVALID, "the message is not a JSON object" },
		{ SLICE("[1]"), ERROR_INVALID, "the message is not a JSON object" },
		{ SLICE("[1"), ERROR_SYNTAX,
		  "not JSON: neither a comma nor ']' after an element, at byte 2" },
		{ SLICE("{} {}"), ERROR_SYNTAX,
		  "not JSON: more text after the end of the message, at byte 2" },
		{ SLICE("{}\0"), ERROR_SYNTAX,
		  "not JSON: more text after the end of the message, at byte 2" },
		{ SLICE("  {\"a\":\"b\n\"}"), ERROR_SYNTAX,
		  "not JSON: a raw control character in a string, at byte 9" },
		{ SLICE("\xEF\xBB\xBF{}"), ERROR_SYNTAX,
		  "not JSON: it begins with a byte order mark" },
		{ SLICE("\xFF\xFE{\0}\0"), ERROR_SYNTAX,
		  "not JSON: no value where one should begin, at byte 0" },
		{ SLICE("{\0\"\0a\0"), ERROR_SYNTAX,
		  "not JSON: no name in quotes where a member should begin, at byte 1" },
		{ SLICE("Listening on 3000"), ERROR_SYNTAX,
		  "not JSON: no value where one should begin, at byte 0" },
		{ SLICE("{}"), ERROR_INVALID, "the member \"jsonrpc\" is missing" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct envelope envelope;
		struct error err;

		assert_int_equal(scan_envelope(cases[i].text, &limits, 0, &envelope, &err), -1);
		assert_string_equal(err.text, cases[i].says);
		assert_int_equal(err.kind, cases[i].kind);
	}
}

static void slice_of_nothing_is_refused(void **state)
{
	struct envelope envelope;
	struct error err;

	assert_int_equal(scan_envelope(slice_of(NULL, 0), &limits, 0, &envelope, &err), -1);
	assert_int_equal(err.kind, ERROR_SYNTAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_values_pass),
		cmocka_unit_test(bad_values_are_refused),
		cmocka_unit_test(every_byte_at_every_place_of_a_string),
		cmocka_unit_test(long_text_beyond_ascii_at_every_place),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(mixed_closers_are_told_apart),
		cmocka_unit_test(whole_texts),
		cmocka_unit_test(slice_of_nothing_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
