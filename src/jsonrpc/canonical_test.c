/* SPDX-License-Identifier: Apache-2.0 */
/* Each text is copied into a block of exactly its size, so that AddressSanitizer sees a read beyond the end. */
#include "jsonrpc/canonical.h"

#include "base/unit_test.h"
#include "jsonrpc/scan.h"

static int append_copy(struct buf *out, struct slice text, size_t depth_max)
{
	char *copy = malloc(text.n > 0 ? text.n : 1);
	int result;

	memcpy(copy, text.p, text.n);
	result = canonical_append(out, slice_of(copy, text.n), depth_max);
	free(copy);
	return result;
}

/* Its form is `expected`, and the form of that is itself. */
static void becomes(const char *text, const char *expected)
{
	struct buf out = { 0 };

	assert_int_equal(append_copy(&out, slice_str(text), 16), 0);
	assert_string_equal(buf_terminate(&out), expected);
	out.len = 0;
	assert_int_equal(append_copy(&out, slice_str(expected), 16), 0);
	assert_string_equal(buf_terminate(&out), expected);
	buf_fini(&out);
}

static void white_space_goes(void **state)
{
	becomes(" [ 1 ,\n\t{ \"a\" : [ ] , \"b\" : { } } ,\rtrue ] ",
		"[1,{\"a\":[],\"b\":{}},true]");
	becomes("\"a b\"", "\"a b\"");
	becomes("null", "null");
}

static void members_are_sorted(void **state)
{
	becomes("{\"b\":1,\"a\":2}", "{\"a\":2,\"b\":1}");
	becomes("{\"b\":{\"z\":[{\"y\":1,\"x\":2}],\"k\":0},\"\":3}",
		"{\"\":3,\"b\":{\"k\":0,\"z\":[{\"x\":2,\"y\":1}]}}");
	becomes("{\"aa\":1,\"a\":2,\"b\":3,\"a!\":4}", "{\"a\":2,\"a!\":4,\"aa\":1,\"b\":3}");
	becomes("[3,1,2]", "[3,1,2]");
	becomes("{\"longer name 2\":1,\"longer n\":2,\"longer name 1\":3,\"longer \":4,\"longer name 1\":5}",
		"{\"longer \":4,\"longer n\":2,\"longer name 1\":3,\"longer name 1\":5,\"longer name 2\":1}");
	becomes("{\"\u00e9\":1,\"z\":2}", "{\"z\":2,\"é\":1}");
	/* by what the names mean, not by how they are spelled */
	becomes("{\"b\":1,\"\\u0061\":2}", "{\"a\":2,\"b\":1}");
}

/* Readers differ on which one counts. */
static void members_of_one_name_keep_their_order(void **state)
{
	becomes("{\"b\":0,\"a\":2,\"a\":1,\"\\u0061\":3}", "{\"a\":2,\"a\":1,\"a\":3,\"b\":0}");
}

static void strings_are_spelled_in_one_way(void **state)
{
	becomes("\"\\u0041\\/\\u00e9\\ud83d\\ude00\"", "\"A/é😀\"");
	becomes("\"\\u0022\\u005c\\n\\u000a\"", "\"\\\"\\\\\\n\\n\"");
	becomes("\"\xe2\x80\xa8\"", "\"\\u2028\"");
	becomes("\"\\u2028\"", "\"\\u2028\"");
	becomes("\"\\ud800\\u0041\"", "\"\\ud800\\u0041\""); /* half a pair has no meaning */
}

static void numbers_are_spelled_in_one_way(void **state)
{
	becomes("0", "0");
	becomes("-0", "0");
	becomes("0.000", "0");
	becomes("0e5", "0");
	becomes("0e99999999999999999999", "0");
	becomes("1", "1");
	becomes("1.0", "1");
	becomes("10e-1", "1");
	becomes("0.1E+1", "1");
	becomes("100", "1e2");
	becomes("1.00E2", "1e2");
	becomes("-120.50", "-1205e-1");
	becomes("0.00012", "12e-5");
	becomes("1e0000000000000000000000000005", "1e5");
	/* not the same for a reader that is exact */
	becomes("9007199254740993", "9007199254740993");
	becomes("9007199254740992", "9007199254740992");
	becomes("1e400", "1e400");
	becomes("10e999999999999999999", "1e1000000000000000000");
	becomes("1.50e1234567890123456789", "1.50e1234567890123456789");
}

static void what_is_no_json_is_refused(void **state)
{
	static const char *const texts[] = {
		"",   " ",   "{",   "[1,]", "{\"a\":1,}", "{a:1}",   "\"",
		"01", "1 2", "tru", "[1}",  "\"\xff\"",   "{\"a\"}",
	};
	struct buf out = { 0 };

	buf_append_str(&out, "before");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(append_copy(&out, slice_str(texts[i]), 16), -1);
		assert_int_equal(out.len, 6);
	}
	buf_fini(&out);
}

static void depth_is_bounded(void **state)
{
	struct buf out = { 0 };
	char text[2 * SCAN_DEPTH_MAX];

	assert_int_equal(append_copy(&out, slice_str("[[{}]]"), 3), 0);
	assert_int_equal(append_copy(&out, slice_str("[[{}]]"), 2), -1);
	memset(text, '[', SCAN_DEPTH_MAX);
	memset(text + SCAN_DEPTH_MAX, ']', SCAN_DEPTH_MAX);
	out.len = 0;
	assert_int_equal(append_copy(&out, slice_of(text, sizeof(text)), SCAN_DEPTH_MAX), 0);
	assert_int_equal(out.len, sizeof(text));
	assert_memory_equal(out.data, text, sizeof(text));
	buf_fini(&out);
}

static void a_memo_makes_one_form_once(void **state)
{
	struct canonical_memo memo = { .is_made = false };
	char text[] = "[1, 2]", other[] = "[1, 2]";
	struct slice of = slice_of(text, strlen(text)), form;

	canonical_memo_begin(&memo, of);
	form = canonical_memo_get(&memo, of);
	assert_true(slice_is_equal(form, SLICE_LIT("[1,2]")));
	text[1] = '3'; /* nobody may: so it is seen that it is not looked at again */
	form = canonical_memo_get(&memo, of);
	assert_true(slice_is_equal(form, SLICE_LIT("[1,2]")));
	/* Another one is made each time, and the first one anew behind it. */
	other[1] = '4';
	form = canonical_memo_get(&memo, slice_str(other));
	assert_true(slice_is_equal(form, SLICE_LIT("[4,2]")));
	form = canonical_memo_get(&memo, of);
	assert_true(slice_is_equal(form, SLICE_LIT("[3,2]")));
	/* At an end everything is forgotten, whatever stands in the same place. */
	canonical_memo_end(&memo);
	text[1] = '5';
	form = canonical_memo_get(&memo, of);
	assert_true(slice_is_equal(form, SLICE_LIT("[5,2]")));
	text[1] = '6';
	form = canonical_memo_get(&memo, of);
	assert_true(slice_is_equal(form, SLICE_LIT("[6,2]")));
	canonical_memo_begin(&memo, of);
	form = canonical_memo_get(&memo, of);
	assert_true(slice_is_equal(form, SLICE_LIT("[6,2]")));
	canonical_memo_end(&memo);
	text[1] = '7';
	canonical_memo_begin(&memo, of);
	form = canonical_memo_get(&memo, of);
	assert_true(slice_is_equal(form, SLICE_LIT("[7,2]")));
	canonical_memo_end(&memo);
	canonical_memo_fini(&memo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(white_space_goes),
		cmocka_unit_test(members_are_sorted),
		cmocka_unit_test(members_of_one_name_keep_their_order),
		cmocka_unit_test(strings_are_spelled_in_one_way),
		cmocka_unit_test(numbers_are_spelled_in_one_way),
		cmocka_unit_test(what_is_no_json_is_refused),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(a_memo_makes_one_form_once),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
