/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the lookups: types, members, paths, integers, plain strings, elements of arrays. Texts
 * lie in blocks of exactly their size. BACK-FRAME-04 (array lines), SEC-42.
 */
#include "jsonrpc/scan.h"

#include "base/buf.h"
#include "base/unit_test.h"

static void assert_slice(struct slice have, const char *want)
{
	if (!slice_is_equal(have, slice_str(want)))
		fail_msg("have <%.*s>, want <%s>", SLICE_ARG(have), want);
}

static void types(void **state)
{
	static const struct {
		const char *text;
		enum json_type type;
	} cases[] = {
		{ "", JSON_ABSENT },
		{ " \t\r\n", JSON_ABSENT },
		{ "x", JSON_ABSENT },
		{ "]", JSON_ABSENT },
		{ "\xEF\xBB\xBF{}", JSON_ABSENT },
		{ "+1", JSON_ABSENT },
		{ "null", JSON_NULL },
		{ " true", JSON_TRUE },
		{ "false", JSON_FALSE },
		{ "-1", JSON_NUMBER },
		{ "0", JSON_NUMBER },
		{ "9", JSON_NUMBER },
		{ "\n\"a\"", JSON_STRING },
		{ "[", JSON_ARRAY },
		{ "\t{", JSON_OBJECT },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(scan_type(slice_str(cases[i].text)), cases[i].type);
	assert_int_equal(scan_type(slice_of(NULL, 0)), JSON_ABSENT);
}

static void values_have_escapes(void **state)
{
	static const struct {
		const char *text;
		enum json_type type;
		bool has_escape;
	} cases[] = {
		{ "\"a\"", JSON_STRING, false },
		{ "\"\\u0061\"", JSON_STRING, true },
		{ "\"corp\\\\alice\"", JSON_STRING, true },
		{ "[\"\\\\\"]", JSON_ARRAY, false },
		{ "7", JSON_NUMBER, false },
		{ "", JSON_ABSENT, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct json value = scan_value(slice_str(cases[i].text));

		assert_int_equal(value.type, cases[i].type);
		assert_int_equal(value.has_escape, cases[i].has_escape);
		assert_slice(value.text, cases[i].text);
	}
	assert_int_equal(scan_value(slice_of(NULL, 0)).type, JSON_ABSENT);
}

static struct json member(const char *object, const char *name)
{
	return scan_member(slice_str(object), slice_str(name));
}

static void members_are_found(void **state)
{
	static const char object[] =
		" { \"s\\\\\" : 0, \"x\":{\"a\":[\"]}\",{}],\"n\":5},\"a\" :\t[1,{\"a\":2}] ,\"e\":\"q\\\"\\\\\","
		"\"t\":true,\"f\":false,\"z\":null,\"n\":-1.5e3,\"a\":9,\"\":7,\"n\\u006e\":1, \"last\":\"x\" }\n";

	assert_slice(member(object, "x").text, "{\"a\":[\"]}\",{}],\"n\":5}");
	assert_slice(member(object, "a").text, "[1,{\"a\":2}]");
	assert_int_equal(member(object, "a").type, JSON_ARRAY);
	assert_slice(member(object, "e").text, "\"q\\\"\\\\\"");
	assert_true(member(object, "e").has_escape);
	assert_int_equal(member(object, "t").type, JSON_TRUE);
	assert_int_equal(member(object, "f").type, JSON_FALSE);
	assert_int_equal(member(object, "z").type, JSON_NULL);
	assert_slice(member(object, "z").text, "null");
	assert_slice(member(object, "n").text, "-1.5e3");
	assert_slice(member(object, "").text, "7");
	assert_slice(member(object, "last").text, "\"x\"");
	assert_false(member(object, "last").has_escape);
}

static void members_that_are_not_there(void **state)
{
	static const char *const texts[] = {
		"", "{}", "{ }", "[\"a\",1]", "\"a\"", "1", "null", "{\"aa\":1}", "{\"A\":1}",
		"{\"b\":{\"a\":1}}", "{\"b\":[\"a\",1]}", "{\"\\u0061\":1}",
		/* not valid, so anything but a crash will do; none is found */
		"{", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":[", "{\"a\":\"", "{a:1}", "{\"a\":}",
		"{\"a\" 1}"
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		size_t n = strlen(texts[i]);
		char *copy = malloc(n > 0 ? n : 1);

		memcpy(copy, texts[i], n);
		if (scan_member(slice_of(copy, n), SLICE_LIT("a")).type != JSON_ABSENT)
			fail_msg("found in %s", texts[i]);
		free(copy);
	}
	assert_int_equal(scan_member(slice_of(NULL, 0), SLICE_LIT("a")).type, JSON_ABSENT);
	/* A name with a backslash is written with an escape, so it never matches. */
	assert_int_equal(member("{\"a\\\\b\":1}", "a\\\\b").type, JSON_ABSENT);
	assert_int_equal(member("{\"a\\\\b\":1}", "a\\b").type, JSON_ABSENT);
}

static void names_carry_their_length(void **state)
{
	struct slice object = SLICE_LIT("{\"a\":1}");

	assert_int_equal(scan_member(object, SLICE_LIT("a\0b")).type, JSON_ABSENT);
	assert_int_equal(scan_member(object, slice_of(NULL, 0)).type, JSON_ABSENT);
}

static void paths(void **state)
{
	static const char *const path[] = { "a", "b", "c" };
	struct slice object = SLICE_LIT("{\"a\":{\"x\":{},\"b\":{\"c\":\"deep\"}}}");

	assert_slice(scan_path(object, path, 3).text, "\"deep\"");
	assert_slice(scan_path(object, path, 2).text, "{\"c\":\"deep\"}");
	assert_slice(scan_path(object, path, 0).text, "{\"a\":{\"x\":{},\"b\":{\"c\":\"deep\"}}}");
	assert_int_equal(scan_path(object, path + 1, 2).type, JSON_ABSENT);
	assert_int_equal(scan_path(SLICE_LIT("{\"a\":[\"b\"]}"), path, 2).type, JSON_ABSENT);
	assert_int_equal(scan_path(slice_of(NULL, 0), path, 1).type, JSON_ABSENT);
}

static void integers(void **state)
{
	static const struct {
		const char *text;
		int rc;
		long long number;
	} cases[] = {
		{ "0", 0, 0 },
		{ "-0", 0, 0 },
		{ "42", 0, 42 },
		{ "-32700", 0, -32700 },
		{ "9223372036854775807", 0, INT64_MAX },
		{ "-9223372036854775808", 0, INT64_MIN },
		{ "9223372036854775808", -1, 0 },
		{ "-9223372036854775809", -1, 0 },
		{ "1.0", -1, 0 },
		{ "1e2", -1, 0 },
		{ "-", -1, 0 },
	};
	long long number;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct json value = { JSON_NUMBER, false, slice_str(cases[i].text) };

		number = 77;
		assert_int_equal(scan_int(value, &number), cases[i].rc);
		assert_true(number == (cases[i].rc == 0 ? cases[i].number : 77));
	}
	assert_int_equal(scan_int((struct json){ JSON_STRING, false, SLICE("\"1\"") }, &number),
			 -1);
	assert_int_equal(scan_int((struct json){ .type = JSON_ABSENT }, &number), -1);
}

static void plain_strings(void **state)
{
	static const char object[] =
		"{\"a\":\"text\",\"b\":\"\",\"c\":\"\\u0041\",\"d\":12,\"e\":\"\\\\\"}";

	assert_slice(scan_plain_string(member(object, "a")), "text");
	assert_int_equal(scan_plain_string(member(object, "b")).n, 0);
	assert_non_null(scan_plain_string(member(object, "b")).p);
	assert_null(scan_plain_string(member(object, "c")).p);
	assert_null(scan_plain_string(member(object, "d")).p);
	assert_null(scan_plain_string(member(object, "e")).p);
	assert_null(scan_plain_string(member(object, "nothing")).p);
}

/* Writes what it gets into a buffer, and stops after `stop_after` calls. */
struct collector {
	struct buf out;
	size_t calls;
	size_t stop_after;
};

static int collect_element(struct slice element, void *arg)
{
	struct collector *collector = arg;

	buf_append_char(&collector->out, '<');
	buf_append_slice(&collector->out, element);
	buf_append_char(&collector->out, '>');
	return ++collector->calls == collector->stop_after ? -1 : 0;
}

static int collect_member(struct slice name, struct json value, void *arg)
{
	struct collector *collector = arg;

	buf_append_slice(&collector->out, name);
	buf_append_char(&collector->out, '=');
	return collect_element(value.text, arg);
}

static void members_come_in_order(void **state)
{
	struct slice object =
		SLICE_LIT("{ \"a\" : 1 , \"a\":[ ],\"\\u0062\":{\"x\":2},\"\":\"\" }");
	struct collector all = { .calls = 0 };
	struct collector two = { .stop_after = 2 };

	scan_members(object, collect_member, &all);
	assert_slice(buf_slice(&all.out), "a=<1>a=<[ ]>\\u0062=<{\"x\":2}>=<\"\">");
	scan_members(object, collect_member, &two);
	assert_slice(buf_slice(&two.out), "a=<1>a=<[ ]>");
	buf_fini(&all.out);
	buf_fini(&two.out);
	scan_members(SLICE_LIT("[1]"), collect_member, &two);
	assert_int_equal(two.calls, 2);
}

static int collect_token(const struct scan_token *token, void *arg)
{
	struct collector *collector = arg;
	static const char *const marks[] = { "c", "n", "s" };

	buf_printf(&collector->out, "%s%zu%s", marks[token->kind], token->depth,
		   token->value.has_escape ? "!" : "");
	return collect_element(token->kind != SCAN_CONTAINER   ? token->value.text :
			       token->value.type == JSON_ARRAY ? SLICE_LIT("[") :
								 SLICE_LIT("{"),
			       arg);
}

static void tokens_come_in_order(void **state)
{
	struct slice value =
		SLICE_LIT("{ \"a\" : [1,\"]\",{\"b\\\"\":\":\"},[]] , \"c\":true,\"d\"\n:\"e\"}");
	struct collector all = { .calls = 0 };
	struct collector two = { .stop_after = 2 };

	scan_tokens(value, collect_token, &all);
	assert_slice(buf_slice(&all.out),
		     "c0<{>n1<\"a\">c1<[>s2<\"]\">c2<{>n3!<\"b\\\"\">s3<\":\">c2<[>n1<\"c\">"
		     "n1<\"d\">s1<\"e\">");
	scan_tokens(value, collect_token, &two);
	assert_slice(buf_slice(&two.out), "c0<{>n1<\"a\">");
	buf_fini(&all.out);
	buf_fini(&two.out);
	all.calls = 0;
	scan_tokens(SLICE_LIT(" -1.5 "), collect_token, &all);
	assert_int_equal(all.calls, 0);
	scan_tokens(SLICE_LIT("\"x\""), collect_token, &all);
	assert_slice(buf_slice(&all.out), "s0<\"x\">");
	buf_fini(&all.out);
}

static int split(struct slice text, size_t max, struct collector *collector, struct error *err)
{
	char *copy = malloc(text.n > 0 ? text.n : 1);
	int count;

	memcpy(copy, text.p, text.n);
	err->kind = ERROR_NONE;
	count = scan_array(slice_of(copy, text.n), max, collect_element, collector, err);
	free(copy);
	return count;
}

/* BACK-FRAME-04 */
static void arrays_are_split(void **state)
{
	static const struct {
		struct slice text;
		int count;
		const char *elements;
	} cases[] = {
		{ SLICE("[]"), 0, "" },
		{ SLICE(" [ \n] "), 0, "" },
		{ SLICE("[1]"), 1, "<1>" },
		{ SLICE(" [ 1 , \"a,]\\\"\" ,\r\n{\"b\":[1,{}]},[[],[]] ,null]\n"), 5,
		  "<1><\"a,]\\\"\"><{\"b\":[1,{}]}><[[],[]]><null>" },
		{ SLICE("[\"\\\\\",\"\\\\\\\"\",\"\"]"), 3, "<\"\\\\\"><\"\\\\\\\"\"><\"\">" },
		/* Nonsense inside is the elements' own affair. */
		{ SLICE("[x,{y z},{],\"\n\"]"), 4, "<x><{y z}><{]><\"\n\">" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct collector collector = { .calls = 0 };
		struct error err;

		assert_int_equal(split(cases[i].text, 10, &collector, &err), cases[i].count);
		assert_int_equal(err.kind, ERROR_NONE);
		assert_slice(buf_slice(&collector.out), cases[i].elements);
		buf_fini(&collector.out);
	}
}

/* FRONT-HTTP-10: and nothing is handed out before the whole array is known to be one. */
static void broken_arrays_are_refused(void **state)
{
	static const struct {
		struct slice text;
		enum error_kind kind;
	} cases[] = {
		{ SLICE(""), ERROR_INVALID },          { SLICE("{}"), ERROR_INVALID },
		{ SLICE("1"), ERROR_INVALID },         { SLICE("["), ERROR_SYNTAX },
		{ SLICE("[ "), ERROR_SYNTAX },         { SLICE("[1"), ERROR_SYNTAX },
		{ SLICE("[1,"), ERROR_SYNTAX },        { SLICE("[1,]"), ERROR_SYNTAX },
		{ SLICE("[,]"), ERROR_SYNTAX },        { SLICE("[,1]"), ERROR_SYNTAX },
		{ SLICE("[1,,2]"), ERROR_SYNTAX },     { SLICE("[1 2]"), ERROR_SYNTAX },
		{ SLICE("[1}"), ERROR_SYNTAX },        { SLICE("[1]]"), ERROR_SYNTAX },
		{ SLICE("[1]x"), ERROR_SYNTAX },       { SLICE("[] []"), ERROR_SYNTAX },
		{ SLICE("[1]\0"), ERROR_SYNTAX },      { SLICE("[\"a]"), ERROR_SYNTAX },
		{ SLICE("[\"a\\\"]"), ERROR_SYNTAX },  { SLICE("[{\"a\":\"]}"), ERROR_SYNTAX },
		{ SLICE("[{\"a\":1]"), ERROR_SYNTAX }, { SLICE("[\"a\"\"b\"]"), ERROR_SYNTAX },
		{ SLICE("[{}{}]"), ERROR_SYNTAX },     { SLICE("[1,2,3,4]"), ERROR_LIMIT },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct collector collector = { .calls = 0 };
		struct error err;

		assert_int_equal(split(cases[i].text, 3, &collector, &err), -1);
		if (err.kind != cases[i].kind)
			fail_msg("kind %d: %.*s", (int)err.kind, SLICE_ARG(cases[i].text));
		assert_int_equal(collector.calls, 0);
	}
}

static void array_stops_when_told(void **state)
{
	struct collector collector = { .stop_after = 2 };
	struct error err;

	assert_int_equal(split(SLICE_LIT("[1,2,3]"), 3, &collector, &err), -1);
	assert_int_equal(err.kind, ERROR_NONE);
	assert_slice(buf_slice(&collector.out), "<1><2>");
	buf_fini(&collector.out);
}

static void deep_arrays_need_no_stack(void **state)
{
	struct collector collector = { .calls = 0 };
	struct buf text = { NULL, 0, 0 };
	struct error err;

	for (int i = 0; i < 1000000; i++)
		buf_append_char(&text, '[');
	assert_int_equal(split(buf_slice(&text), 3, &collector, &err), -1);
	assert_int_equal(err.kind, ERROR_SYNTAX);
	buf_fini(&text);
}

static const char *decoded(const char *json, struct buf *out)
{
	struct json value = { JSON_STRING, true, slice_str(json) };

	buf_fini(out);
	return scan_decode_string(value, out) == 0 ? buf_terminate(out) : NULL;
}

/* SEC-50, RFC 8259 §7: what the server will read. */
static void strings_are_decoded(void **state)
{
	static const char *const bad[] = { "\"\\uD800\"", "\"\\uD800x\"", "\"\\uDC00\"",
					   "\"\\uD800\\u0041\"", "\"\\uD83D\\n\"" };
	struct buf out = { 0 };
	struct json number = { JSON_NUMBER, false, SLICE("7") };

	assert_string_equal(decoded("\"\"", &out), "");
	assert_string_equal(decoded("\"a\\u0062c\"", &out), "abc");
	assert_string_equal(decoded("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", &out), "\"\\/\b\f\n\r\t");
	assert_string_equal(decoded("\"\\u00e9\\u20AC\\ud83d\\ude00\"", &out),
			    "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
	assert_non_null(decoded("\"a\\u0000b\"", &out));
	assert_int_equal(out.len, 3);
	assert_memory_equal(out.data, "a\0b", 3);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(decoded(bad[i], &out));
	assert_int_equal(scan_decode_string(number, &out), -1);
	/* A member of params that is an array, or not there. */
	assert_int_equal(scan_decode_string((struct json){ .type = JSON_ABSENT }, &out), -1);
	buf_fini(&out);
}

static void strings_are_read_without_a_copy_where_that_is_enough(void **state)
{
	struct json plain = { JSON_STRING, false, SLICE("\"abc\"") };
	struct json empty = { JSON_STRING, false, SLICE("\"\"") };
	struct json escaped = { JSON_STRING, true, SLICE("\"a\\u0062c\"") };
	struct json half = { JSON_STRING, true, SLICE("\"\\uD800\"") };
	struct json number = { JSON_NUMBER, false, SLICE("7") };
	struct buf room = { 0 };
	struct slice text;

	assert_int_equal(scan_read_string(plain, &room, &text), 0);
	assert_ptr_equal(text.p, plain.text.p + 1);
	assert_int_equal(text.n, 3);
	assert_int_equal(scan_read_string(empty, &room, &text), 0);
	assert_int_equal(text.n, 0);
	assert_null(room.data);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(scan_read_string(escaped, &room, &text), 0);
		assert_ptr_equal(text.p, room.data);
		assert_true(slice_is_equal(text, SLICE_LIT("abc")));
	}
	assert_int_equal(scan_read_string(half, &room, &text), -1);
	assert_int_equal(text.n, 0);
	assert_int_equal(scan_read_string(number, &room, &text), -1);
	assert_int_equal(text.n, 0);
	buf_fini(&room);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types),
		cmocka_unit_test(values_have_escapes),
		cmocka_unit_test(members_are_found),
		cmocka_unit_test(members_that_are_not_there),
		cmocka_unit_test(names_carry_their_length),
		cmocka_unit_test(paths),
		cmocka_unit_test(integers),
		cmocka_unit_test(plain_strings),
		cmocka_unit_test(strings_are_decoded),
		cmocka_unit_test(strings_are_read_without_a_copy_where_that_is_enough),
		cmocka_unit_test(members_come_in_order),
		cmocka_unit_test(tokens_come_in_order),
		cmocka_unit_test(arrays_are_split),
		cmocka_unit_test(broken_arrays_are_refused),
		cmocka_unit_test(array_stops_when_told),
		cmocka_unit_test(deep_arrays_need_no_stack),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
