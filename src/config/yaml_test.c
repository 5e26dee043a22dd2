/* SPDX-License-Identifier: Apache-2.0 */
/* What the YAML reader understands, where it says things stand, and everything it refuses. */
#include "config/tree.h"

#include "base/unit_test.h"

static struct tree *read_text(const char *text)
{
	struct error err = { .kind = ERROR_NONE };
	struct tree *root = yaml_read(slice_str(text), "f", &err);

	if (root == NULL)
		print_message("refused: %s\n", err.text);
	assert_non_null(root);
	return root;
}

static void assert_refused_bytes(struct slice text, const char *reason)
{
	struct error err = { .kind = ERROR_NONE };

	assert_null(yaml_read(text, "f", &err));
	assert_string_equal(err.text, reason);
}

static void assert_refused(const char *text, const char *reason)
{
	assert_refused_bytes(slice_str(text), reason);
}

static void test_kinds_and_places(void **state)
{
	struct tree *root = read_text("a: 1\nlist:\n  - x\n  - 'y z'\nmap: {k: \"v\\n\"}\n");
	struct tree *list = tree_find(root, "list"), *map = tree_find(root, "map");

	assert_int_equal(root->kind, TREE_MAP);
	assert_int_equal(root->count, 3);
	assert_string_equal(root->file, "f");
	assert_string_equal(tree_find(root, "a")->text, "1");
	assert_true(tree_find(root, "a")->is_plain);
	assert_int_equal(tree_find(root, "a")->line, 1);
	assert_int_equal(tree_find(root, "a")->column, 4);
	assert_int_equal(list->kind, TREE_LIST);
	assert_int_equal(list->key_line, 2);
	assert_int_equal(list->key_column, 1);
	assert_string_equal(list->items[1]->text, "y z");
	assert_false(list->items[1]->is_plain);
	assert_int_equal(list->items[1]->line, 4);
	assert_int_equal(list->items[1]->column, 5);
	assert_string_equal(tree_find(map, "k")->text, "v\n");
	assert_int_equal(tree_find(map, "k")->key_column, 7);
	assert_null(tree_find(root, "b"));
	assert_null(tree_find(list, "x"));
	tree_free(&root);
	assert_null(root);
}

static void test_path_of_a_value(void **state)
{
	struct tree *root = read_text("listen: [{address: x}]\na: {b: {c: 1}}\n");
	struct tree *address = tree_find(tree_find(root, "listen")->items[0], "address");
	struct tree *c = tree_find(tree_find(tree_find(root, "a"), "b"), "c");
	struct buf path = { 0 };

	tree_append_path(address, &path);
	buf_append_char(&path, ' ');
	tree_append_path(c, &path);
	tree_append_path(root, &path);
	assert_string_equal(buf_terminate(&path), "listen[0].address a.b.c");
	buf_fini(&path);
	tree_free(&root);
}

static void test_empty_texts_are_empty_maps(void **state)
{
	static const char *const texts[] = { "", "# only a comment\n", "---\n",
					     "\xef\xbb\xbf# mark\n" };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct tree *root = read_text(texts[i]);

		assert_int_equal(root->count, 0);
		assert_true(root->kind == TREE_MAP || tree_is_null(root));
		tree_free(&root);
	}
}

static void test_null_is_only_plain(void **state)
{
	struct tree *root = read_text("a:\nb: ~\nc: null\nd: ''\ne: 'null'\nf: nil\n");

	for (size_t i = 0; i < root->count; i++)
		assert_int_equal(tree_is_null(root->items[i]), i < 3);
	tree_free(&root);
}

static void test_replaced_members(void **state)
{
	struct tree *root = read_text("a: 1\nb: 2\nc: 3\n");

	tree_remove(root, "b");
	tree_remove(root, "none");
	assert_int_equal(root->count, 2);
	assert_null(tree_find(root, "b"));
	for (int i = 0; i < 20; i++) {
		char key[] = { (char)('d' + i), '\0' };

		tree_add(root, key, tree_new_text("x", "f"));
	}
	assert_int_equal(root->count, 22);
	assert_string_equal(tree_find(root, "c")->text, "3");
	tree_free(&root);
}

/* libyaml itself keeps the last of two equal keys and resolves nothing. */
static void test_what_has_two_readings_is_refused(void **state)
{
	assert_refused("a: 1\nb: {c: 1,\n  c: 2}\n",
		       "3:3: the key 'c' occurs twice, first in line 2");
	assert_refused("a: 1\n'a': 2\n", "2:1: the key 'a' occurs twice, first in line 1");
	assert_refused("a: &x 1\n",
		       "1:4: anchors (&name) are not supported; a text that begins with "
		       "'&' needs quotes");
	assert_refused("a: *x\n", "1:4: aliases (*name) are not supported; a text that begins with "
				  "'*' needs quotes");
	assert_refused("- &x [1]\n", "1:3: anchors (&name) are not supported; a text that begins "
				     "with '&' needs quotes");
	assert_refused("a: !!int 1\n",
		       "1:4: tags (!name) are not supported; a text that begins with "
		       "'!' needs quotes");
	assert_refused("a: !x {b: 1}\n", "1:4: tags (!name) are not supported; a text that begins "
					 "with '!' needs quotes");
	assert_refused("a:\n  <<: {b: 1}\n", "2:3: merge keys (<<) are not supported");
	assert_refused("? [a]\n: 1\n", "1:3: a key must be a text");
	assert_refused("? *a\n: 1\n", "1:3: aliases (*name) are not supported; a text that begins "
				      "with '*' needs quotes");
	assert_refused("a: 1\n---\nb: 1\n",
		       "2:1: a second document begins here; only one is allowed");
}

static void test_what_is_no_yaml_is_refused(void **state)
{
	assert_refused("a: [1\n", "2:1: not valid YAML: did not find expected ',' or ']', while "
				  "parsing a flow sequence (is there a '[' that is not closed?)");
	assert_refused(
		"a:\n  b: 1\n c: 2\n",
		"3:2: not valid YAML: did not find expected key, while parsing a block mapping (is "
		"the line indented like its neighbours?)");
	assert_refused(
		"a: @b\n",
		"1:4: not valid YAML: found character that cannot start any token, while scanning "
		"for the next token (a text that begins like this needs quotes)");
	assert_refused(
		"a: *.c\n",
		"1:5: not valid YAML: did not find expected alphabetic or numeric character, while "
		"scanning an alias (a text that begins with * or & needs quotes)");
	assert_refused("a: \"b\n",
		       "2:1: not valid YAML: found unexpected end of stream, while "
		       "scanning a quoted scalar (is there a quote that is not closed?)");
	assert_refused(
		"a:\n\tb: 1\n",
		"2:1: not valid YAML: found character that cannot start any token, while scanning "
		"for the next token (a tab: indent with spaces)");
	assert_refused(
		"a: 1\n  b: 2\n",
		"2:4: not valid YAML: mapping values are not allowed in this context (is the line "
		"indented like its neighbours? A text with ': ' in it needs quotes)");
	assert_refused("a: 1\nb: \xff\n", "2:4: not valid YAML: invalid leading UTF-8 octet");
	assert_refused("a: \"\\0\"\n", "1:4: a text holds a NUL character");
	assert_refused("\"a\\0\": 1\n", "1:1: a key holds a NUL character");
	assert_refused_bytes(slice_of("a: \0", 4),
			     "1:4: not valid YAML: control characters are not allowed");
}

static void test_limits(void **state)
{
	char deep[2 * YAML_DEPTH_MAX + 3];
	char *large = malloc(YAML_BYTES_MAX + 1);
	struct tree *root;

	memset(deep, '[', YAML_DEPTH_MAX);
	memset(deep + YAML_DEPTH_MAX, ']', YAML_DEPTH_MAX);
	deep[2 * YAML_DEPTH_MAX] = '\0';
	root = read_text(deep);
	tree_free(&root);
	memset(deep, '[', YAML_DEPTH_MAX + 1);
	assert_refused(deep, "1:33: nested deeper than 32 levels");
	memset(large, '[', YAML_BYTES_MAX + 1);
	assert_refused_bytes(slice_of(large, YAML_BYTES_MAX + 1), "1:1: larger than 16 MiB");
	/* Quick although libyaml's time is quadratic: it stops at the 33rd. */
	assert_refused_bytes(slice_of(large, YAML_BYTES_MAX), "1:33: nested deeper than 32 levels");
	memset(large, ',', YAML_BYTES_MAX);
	for (size_t i = 0; i < 2 * (YAML_ITEMS_MAX + 2); i += 2)
		memcpy(large + i, i == 0 ? "[x" : ",x", 2);
	assert_refused_bytes(slice_of(large, YAML_BYTES_MAX),
			     "1:8194: more than 4096 entries in one list or map");
	memset(large, 'k', YAML_KEY_MAX + 1);
	strcpy(large + YAML_KEY_MAX + 1, ": 1");
	assert_refused(large, "1:1: a key is longer than 200 bytes");
	free(large);
}

/* Found by their keys' hashes, from some number on. */
static void test_maps_with_many_members(void **state)
{
	struct tree *root = tree_new(TREE_MAP, "f");
	char key[16];

	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		assert_null(tree_find(root, key));
		tree_add(root, key, tree_new_text(key, "f"));
		assert_string_equal(tree_find(root, "k0")->text, "k0");
		assert_string_equal(tree_find(root, key)->text, key);
	}
	for (int i = 0; i < 100; i += 2) {
		snprintf(key, sizeof(key), "k%d", i);
		tree_remove(root, key);
		assert_null(tree_find(root, key));
		assert_string_equal(tree_find(root, "k99")->text, "k99");
	}
	assert_int_equal(root->count, 50);
	tree_remove(root, "none");
	tree_add(root, "k0", tree_new_text("again", "f"));
	assert_string_equal(tree_find(root, "k0")->text, "again");
	assert_string_equal(tree_find(root, "k1")->text, "k1");
	tree_free(&root);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds_and_places),
		cmocka_unit_test(test_path_of_a_value),
		cmocka_unit_test(test_empty_texts_are_empty_maps),
		cmocka_unit_test(test_null_is_only_plain),
		cmocka_unit_test(test_replaced_members),
		cmocka_unit_test(test_what_has_two_readings_is_refused),
		cmocka_unit_test(test_what_is_no_yaml_is_refused),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_maps_with_many_members),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
