/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as editors write it: what is left out, what is refused and where, and the place of every byte. */
#include "config/jsonc.h"

#include "base/mem.h"
#include "base/unit_test.h"

static void assert_read(const char *written, const char *strict)
{
	struct jsonc json = { 0 };
	struct error err = { .text = "" };

	if (jsonc_read(&json, slice_str(written), &err) < 0)
		fail_msg("%s: %s", written, err.text);
	assert_string_equal(buf_terminate(&json.text), strict);
	jsonc_fini(&json);
	assert_null(json.text.data);
}

static void assert_refused(struct slice written, const char *reason)
{
	struct jsonc json = { 0 };
	struct error err = { .text = "" };

	assert_int_equal(jsonc_read(&json, written, &err), -1);
	if (strcmp(err.text, reason) != 0)
		fail_msg("%.*s: %s", SLICE_ARG(written), err.text);
	jsonc_fini(&json);
}

static void test_what_is_no_json_becomes_space(void **state)
{
	assert_read("{}", "{}");
	assert_read("\xEF\xBB\xBF{}", "{}");
	assert_read("[1,]", "[1 ]");
	assert_read("[1 , ]", "[1   ]");
	assert_read("{\"a\":1,\n}", "{\"a\":1 \n}");
	assert_read("[1,//x\n]", "[1    \n]");
	assert_read("[1,/**/]", "[1     ]");
	assert_read("[1,/*,*/2]", "[1,     2]");
	assert_read("//\n[]//", "  \n[]  ");
	assert_read("/***/[]", "     []");
	assert_read("/*/ */[]", "       []" + 1);
	assert_read("/*\xc3\xa4\r\n*/[]", "     \n  []");
	assert_read("[\"//\",\"/*\",\",]\",\"\\\",]\"]", "[\"//\",\"/*\",\",]\",\"\\\",]\"]");
	assert_read("[\"\\\\\",]", "[\"\\\\\" ]");
}

static void test_what_is_refused(void **state)
{
	static const char nul[] = "[\"a\\u0000\"]";

	assert_refused(slice_of(NULL, 0), "1:0: not valid JSON: '[' or '{' expected");
	assert_refused(SLICE_LIT("[1,,]"), "1:5: not valid JSON: unexpected token");
	assert_refused(SLICE_LIT("[1 2]"), "1:4: not valid JSON: ']' expected");
	assert_refused(SLICE_LIT("{\"a\":1,\"a\":2}"),
		       "1:10: not valid JSON: duplicate object key");
	assert_refused(SLICE_LIT("{\"a\":1,\"\\u0061\":2}"),
		       "1:15: not valid JSON: duplicate object key");
	assert_refused(SLICE_LIT("[\"\xff\"]"), "1:2: not valid JSON: unable to decode byte 0xff");
	assert_refused(SLICE_LIT("[\"\\ud800\"]"),
		       "1:9: not valid JSON: invalid Unicode '\\uD800'");
	assert_refused(slice_of(nul, sizeof(nul) - 1),
		       "1:10: not valid JSON: a text holds a NUL character");
	assert_refused(SLICE_LIT("[\"s3cret s3cret\n\"]"),
		       "1:15: not valid JSON: unexpected newline");
	assert_refused(SLICE_LIT("[s3cret]"), "1:2: not valid JSON: invalid token");
	assert_refused(SLICE_LIT("/* [1]"), "1:1: not valid JSON: '[' or '{' expected");
	assert_refused(SLICE_LIT("[1]x"), "1:4: not valid JSON: end of file expected");
}

static void test_depth_is_bounded(void **state)
{
	struct buf deep = { 0 };

	for (int i = 0; i < 2049; i++)
		buf_append_char(&deep, '[');
	assert_refused(buf_slice(&deep), "1:2049: not valid JSON: maximum parsing depth reached");
	buf_fini(&deep);
}

/* The same without any memory of what was asked before. */
static void assert_place(struct jsonc *json, size_t offset)
{
	unsigned line, column, line_now = 1, column_now = 1;

	for (size_t i = 0; i < offset; i++) {
		if (json->original.p[i] == '\n')
			line_now++;
		column_now = json->original.p[i] == '\n'                         ? 1 :
			     ((unsigned char)json->original.p[i] & 0xC0) == 0x80 ? column_now :
										   column_now + 1;
	}
	jsonc_place(json, json->text.data + offset, &line, &column);
	if (line != line_now || column != column_now)
		fail_msg("%zu: %u:%u, not %u:%u", offset, line, column, line_now, column_now);
}

static void test_places_in_any_order(void **state)
{
	static const char text[] = "\xEF\xBB\xBF[\n\n \"\xc3\xa4\xf0\x9f\x98\x80\", // \xc3\xa4\n"
				   "\"b\",\"c\"\n, \"\xc3\xa4\",\n]";
	struct jsonc json = { 0 };
	struct error err;
	size_t length;

	assert_int_equal(jsonc_read(&json, slice_of(text, sizeof(text) - 1), &err), 0);
	length = json.text.len;
	for (size_t i = 0; i <= length; i++)
		assert_place(&json, i);
	for (size_t i = length + 1; i-- > 0;)
		assert_place(&json, i);
	for (size_t i = 0; i < 40 * length; i++)
		assert_place(&json, i * 7919 % (length + 1));
	jsonc_fini(&json);
}

/* Messages name the place of an entry after those of its members: a large file on one line is read all the same. */
static void test_places_are_found_quickly(void **state)
{
	struct jsonc json = { 0 };
	struct buf text = { 0 };
	unsigned line, column;
	struct error err;

	buf_append_char(&text, '[');
	for (int i = 0; i < 1000000; i++)
		buf_append_str(&text, "1,");
	buf_append_char(&text, ']');
	assert_int_equal(jsonc_read(&json, buf_slice(&text), &err), 0);
	for (size_t i = 2; i < json.text.len;
	     i += 2) { /* minutes, were each counted from the beginning */
		jsonc_place(&json, json.text.data + i, &line, &column);
		assert_int_equal(column, i + 1);
		jsonc_place(&json, json.text.data + i - 2, &line, &column);
		assert_int_equal(column, i - 1);
	}
	jsonc_fini(&json);
	buf_fini(&text);
}

static void test_comments_that_do_not_end(void **state)
{
	struct buf text = { 0 };

	for (int i = 0; i < 2000000; i++)
		buf_append_str(&text, "/* ");
	assert_refused(buf_slice(&text), "1:1: not valid JSON: '[' or '{' expected");
	buf_fini(&text);
	assert_refused(SLICE_LIT("[1, /*\n,]"), "1:5: not valid JSON: invalid token");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_no_json_becomes_space),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_depth_is_bounded),
		cmocka_unit_test(test_comments_that_do_not_end),
		cmocka_unit_test(test_places_in_any_order),
		cmocka_unit_test(test_places_are_found_quickly),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
