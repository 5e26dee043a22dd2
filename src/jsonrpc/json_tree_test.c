/* SPDX-License-Identifier: Apache-2.0 */
#include "jsonrpc/json_tree.h"

#include <stdlib.h>

#include "base/unit_test.h"

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

static void test_values_become_nodes(void **state)
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

static void test_what_has_two_meanings_is_no_tree(void **state)
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

static void test_limits(void **state)
{
	reads("[1,1,1,1,1,1,1,1,1,1,1]", "[#1#1#1#1#1#1#1#1#1#1#1.");
	refuses("[1,1,1,1,1,1,1,1,1,1,1,1]", "it has too many values");
	reads("[[[[[[[[]]]]]]]]", "[[[[[[[[[].......");
	refuses("[[[[[[[[[]]]]]]]]]", "it is nested too deep");
}

static void test_members_are_found(void **state)
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

static void test_paths_are_for_people(void **state)
{
	has_path("1", 80, "");
	has_path("{\"a\":[0,{\"b\":1}]}", 80, "/a/1/b");
	has_path("{\"a/~b\":1}", 80, "/a~1~0b");
	has_path("{\"\xC3\xA4\\n\\u001b[1m \":1}", 80, "/???n?u001b[1m?");
	has_path("{\"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeee\":1}", 80,
		 "/aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd...");
	has_path("{\"aaaaaaaa\":{\"bbbbbbbb\":{\"cccccccc\":1}}}", 12, ".../cccccccc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_become_nodes),
		cmocka_unit_test(test_what_has_two_meanings_is_no_tree),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_members_are_found),
		cmocka_unit_test(test_paths_are_for_people),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
