/* SPDX-License-Identifier: Apache-2.0 */
/* Each text is copied into a block of exactly its size, so that AddressSanitizer sees a read beyond the end. */
#include "jsonrpc/canonical.h"

#include "base/unit_test.h"
#include "jsonrpc/write.h"

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

/* ---- trees ---- */

static const struct json_tree_limits limits = { 8, 12 };

/* The tree as text: of each node its name, type and number of members, in brackets what it contains. */
static void append_node(struct buf *out, const struct json_node *node)
{
	static const char letters[] = "?ntf#\"[{";

	buf_append_slice(out, node->name);
	buf_append_char(out, letters[node->type]);
	if (node->count == 0)
		buf_append_slice(out, node->text);
	JSON_NODE_FOREACH(each, node) {
		assert_ptr_equal(each - each->up, node);
		append_node(out, each);
	}
	if (node->count > 0)
		buf_append_char(out, '.');
}

static void reads(const char *text, const char *expected)
{
	struct json_tree tree = { .count = 0 };
	struct buf out = { 0 };

	assert_null(json_tree_read(&tree, slice_str(text), &limits));
	append_node(&out, tree.nodes);
	assert_string_equal(buf_terminate(&out), expected);
	assert_int_equal(tree.nodes[0].span, tree.count);
	buf_fini(&out);
	json_tree_fini(&tree);
}

static void refuses(const char *text, const char *expected)
{
	struct json_tree tree = { .count = 0 };
	const char *why = json_tree_read(&tree, slice_str(text), &limits);

	assert_non_null(why);
	assert_string_equal(why, expected);
	json_tree_fini(&tree);
}

static void values_become_nodes(void **state)
{
	reads("1.50", "#15e-1");
	reads(" null ", "nnull");
	reads("\"\\u0041\"", "\"\"A\"");
	reads("[]", "[[]");
	reads("{}", "{{}");
	reads("[true, false, [1]]", "[ttrueffalse[#1..");
	reads("{\"b\": {\"d\": 2, \"c\": []}, \"a\": 10}", "{a#1e1b{c[[]d#2..");
	reads("[[],{},[[]]]", "[[[]{{}[[[]..");
}

static void what_has_two_meanings_is_no_tree(void **state)
{
	refuses("{\"a\":1,\"b\":2,\"\\u0061\":1}", "an object has a name twice");
	refuses("{\"x\":{\"a\":1,\"a\":1}}", "an object has a name twice");
	reads("{\"a\":{\"a\":1}}", "{a{a#1..");
	reads("[{\"a\":1},{\"a\":1}]", "[{a#1.{a#1..");
	refuses("[\"\\ud800\"]", "a text cannot be read");
	refuses("{\"\\udc00\":1}", "a name cannot be read");
	refuses("1e1234567890123456789", "a number cannot be read");
	refuses("1.5E1234567890123456789", "a number cannot be read");
	reads("1e123456789012345678", "#1e123456789012345678");
	reads("\"\\ud83d\\ude00\"", "\"\"\xF0\x9F\x98\x80\"");
}

static void trees_are_bounded(void **state)
{
	reads("[1,1,1,1,1,1,1,1,1,1,1]", "[#1#1#1#1#1#1#1#1#1#1#1.");
	refuses("[1,1,1,1,1,1,1,1,1,1,1,1]", "it has too many values");
	reads("[[[[[[[[]]]]]]]]", "[[[[[[[[[].......");
	refuses("[[[[[[[[[]]]]]]]]]", "it is nested too deep");
}

static void members_are_found(void **state)
{
	struct json_tree tree = { .count = 0 };

	assert_null(json_tree_read(&tree, SLICE_LIT("{\"b\":1,\"\\\"\":2}"), &limits));
	assert_int_equal(json_node_member(tree.nodes, SLICE_LIT("b"))->type, JSON_NUMBER);
	assert_non_null(json_node_member(tree.nodes, SLICE_LIT("\\\"")));
	assert_null(json_node_member(tree.nodes, SLICE_LIT("c")));
	assert_null(json_node_member(json_node_first(tree.nodes), SLICE_LIT("c")));
	json_tree_fini(&tree);
}

/* The last node of the text. */
static void has_path(const char *text, size_t bytes_max, const char *expected)
{
	struct json_tree tree = { .count = 0 };
	struct buf path = { 0 };

	assert_null(json_tree_read(&tree, slice_str(text), &limits));
	json_node_append_path(&path, &tree.nodes[tree.count - 1], bytes_max);
	assert_string_equal(buf_terminate(&path), expected);
	buf_fini(&path);
	json_tree_fini(&tree);
}

static void paths_are_for_people(void **state)
{
	has_path("1", 80, "");
	has_path("{\"a\":[0,{\"b\":1}]}", 80, "/a/1/b");
	has_path("{\"a/~b\":1}", 80, "/a~1~0b");
	has_path("{\"\xC3\xA4\\n\\u001b[1m \":1}", 80, "/???n?u001b[1m?");
	has_path("{\"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeee\":1}", 80,
		 "/aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd...");
	has_path("{\"aaaaaaaa\":{\"bbbbbbbb\":{\"cccccccc\":1}}}", 12, ".../cccccccc");
}

/* What has been made once goes with the message, also into a copy. */
static void test_form_goes_with_the_message(void **state)
{
	static const struct slice text = SLICE(
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"arguments\":{ \"b\":1.0,\"a\":2,\"a\":3 }}}");
	struct buf room = { 0 }, unused = { 0 };
	struct canonical_form form;
	struct envelope env;
	struct msg *msg;

	assert_int_equal(scan_envelope(text, &scan_limits_none, 0, &env, NULL), 0);
	assert_int_equal(env.canonical.text.n, 0);
	canonical_keep(&env, &room);
	msg = msg_new_scanned(&env);
	memset(room.data, '!', room.len);
	buf_fini(&room);
	form = canonical_get(msg->env, &unused);
	assert_true(slice_is_equal(form.text, SLICE_LIT("{\"a\":2,\"a\":3,\"b\":1}")));
	assert_string_equal(form.flaw, "an object has a name twice");
	assert_int_equal(unused.len, 0);
	msg_unref(&msg);
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
		cmocka_unit_test(values_become_nodes),
		cmocka_unit_test(what_has_two_meanings_is_no_tree),
		cmocka_unit_test(trees_are_bounded),
		cmocka_unit_test(members_are_found),
		cmocka_unit_test(paths_are_for_people),
		cmocka_unit_test(test_form_goes_with_the_message),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
