/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a configuration includes: what becomes of them, who may have written them, and how much of them there may be. */
#include "config/load.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit_test.h"
#include "config/tree.h"
#include "config/table.h"

static char directory[64];
static struct config_problems problems, warnings;
static struct slices paths;
static struct tree *root;

/* Borrowed until the next but one call. */
static const char *path_of(const char *name)
{
	static char texts[2][128];
	static int at;

	at = 1 - at;
	snprintf(texts[at], sizeof(texts[at]), "%s/%s", directory, name);
	return texts[at];
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path_of(name), 0600), 0);
}

static void forget(void)
{
	tree_free(&root);
	texts_free(&paths);
	config_problems_fini(&problems);
	config_problems_fini(&warnings);
}

static void read_all(void)
{
	struct types_context context = { .problems = &problems,
					 .warnings = &warnings,
					 .is_yaml = true };

	forget();
	root = include_read(path_of("main"), &context, &paths);
	assert_non_null(root);
}

/* The one problem that there is has this text behind the path of this file. */
static void assert_problem(const char *name, const char *text)
{
	const char *path = path_of(name);

	assert_int_equal(problems.count, 1);
	assert_memory_equal(problems.items[0], path, strlen(path));
	if (strstr(problems.items[0], text) == NULL)
		fail_msg("'%s' has no '%s'", problems.items[0], text);
}

static const struct tree *find(const char *key, const char *below)
{
	return tree_find(tree_find(root, key), below);
}

static int setup(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/mcpgated-include-XXXXXX");
	return mkdtemp(directory) != NULL && mkdir(path_of("d"), 0700) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	char *command = mem_printf("rm -r '%s'", directory);
	int result = system(command);

	(void)state;
	forget();
	free(command);
	return result;
}

static void all_stands_as_in_one_file(void **state)
{
	put("main", "include: [d/*.yaml, more]\nservers: {m: {}}\nauth: {tokens: [{name: t}]}\n");
	put("d/b.yaml", "servers: {b: {}}\n");
	put("d/a.yaml", "servers: {a: {}}\nauth: {tokens: [{name: u}], issuers: [{issuer: i}]}\n");
	put("d/c.other", "nonsense: 1\n");
	put("more", "auth: {tokens: [{name: v}]}\n");
	read_all();
	assert_int_equal(problems.count, 0);
	assert_int_equal(tree_find(root, "servers")->count, 3);
	assert_string_equal(tree_find(root, "servers")->items[1]->key, "a");
	assert_string_equal(find("servers", "b")->file, path_of("d/b.yaml"));
	assert_int_equal(find("auth", "tokens")->count, 3);
	assert_string_equal(find("auth", "tokens")->items[2]->file, path_of("more"));
	assert_int_equal(find("auth", "issuers")->count, 1);
	assert_null(tree_find(root, "include"));
	assert_int_equal(paths.count, 3);
	/* What is not there: none of a pattern is fine, a name has to be. */
	put("main", "include: [none/*.yaml, d/*.none]\n");
	read_all();
	assert_int_equal(problems.count, 0);
	put("main", "include: [none]\n");
	read_all();
	assert_problem("main", ":1:11: include[0]: ");
	put("main", "include: d/*.yaml\n");
	read_all();
	assert_problem("main", "must be a list of files");
	put("main", "include: [[]]\n");
	read_all();
	assert_problem("main", "must be the path of a file");
}

static void other_keys_are_refused(void **state)
{
	put("main", "include: [d/a]\n");
	put("d/a", "limits: {sessions: 1}\n");
	read_all();
	assert_problem("d/a",
		       ":1:1: an included file may have only servers, endpoints, auth.tokens");
	put("d/a", "auth: {mode: token}\n");
	read_all();
	assert_problem("d/a", "in an included file, auth may have only tokens and issuers");
	put("d/a", "include: [b]\n");
	read_all();
	assert_problem("d/a", "an included file may have only servers");
	put("d/a", "[]\n");
	read_all();
	assert_problem("d/a", "must be a map of keys");
	put("d/a", "servers: []\n");
	read_all();
	assert_problem("d/a", "must be a map");
	put("d/a", "auth: {tokens: {}}\n");
	read_all();
	assert_problem("d/a", "must be a list");
}

static void names_are_there_once(void **state)
{
	put("main", "include: [d/a, d/b]\nservers: {m: {}}\n");
	put("d/a", "servers: {m: {}}\n");
	put("d/b", "");
	read_all();
	assert_int_equal(problems.count, 1);
	assert_non_null(
		strstr(problems.items[0], "/d/a:1:11: the server 'm' is already defined in "));
	put("d/a", "auth: {tokens: [{name: x}, {name: y}, {name: x}], issuers: [{issuer: x}]}\n");
	put("d/b", "auth: {tokens: [{name: z}, {name: y}, {other: x}, 5]}\n");
	read_all();
	assert_int_equal(problems.count, 2);
	assert_non_null(strstr(problems.items[0], ": the token 'x' is already defined in "));
	assert_non_null(strstr(problems.items[1], ": the token 'y' is already defined in "));
	assert_non_null(strstr(problems.items[1], "/d/a:1:"));
	assert_int_equal(find("auth", "tokens")->count, 5);
	assert_int_equal(find("auth", "issuers")->count, 1);
}

/* DEF-25: whoever writes them chooses what is run. */
static void others_may_not_have_written_them(void **state)
{
	put("main", "include: [d/*]\n");
	put("d/a", "servers: {a: {}}\n");
	assert_int_equal(chmod(path_of("d/a"), 0620), 0);
	read_all();
	assert_problem("d/a", "is writable by group or others, but only its owner may write to it");
	assert_int_equal(chmod(path_of("d/a"), 0644), 0);
	read_all();
	assert_int_equal(problems.count, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(chmod(path_of("d"), i == 0 ? 0720 : 0702), 0);
		read_all();
		assert_problem("d/a", "its directory may be writable only by root, user ");
	}
	/* As in /tmp: nobody may put another one in its place. */
	assert_int_equal(chmod(path_of("d"), 01777), 0);
	read_all();
	assert_int_equal(problems.count, 0);
	/* Where a link leads to as well. */
	assert_int_equal(chmod(path_of("d"), 0700), 0);
	assert_int_equal(mkdir(path_of("e"), 0700), 0);
	put("e/b", "servers: {b: {}}\n");
	assert_int_equal(symlink("../e/b", path_of("d/b")), 0);
	read_all();
	assert_int_equal(problems.count, 0);
	assert_int_equal(chmod(path_of("e"), 0777), 0);
	read_all();
	assert_problem("e/b", "its directory may be writable only by root, user ");
	if (geteuid() != 0)
		return; /* only root gives files away */
	assert_int_equal(unlink(path_of("d/b")), 0);
	assert_int_equal(chown(path_of("d/a"), 12345, 0), 0);
	read_all();
	assert_problem("d/a", "belongs to user 12345, but must belong to ");
	assert_int_equal(chown(path_of("main"), 12345, 0), 0);
	assert_int_equal(chown(path_of("d"), 12345, 0), 0);
	read_all();
	assert_int_equal(problems.count, 0);
	assert_int_equal(chown(path_of("d"), 12346, 0), 0);
	read_all();
	assert_problem("d/a", "its directory may be writable only by root, user ");
}

/* `count` entries of a list or map, each made of its number. */
static char *entries(const char *before, const char *format, unsigned int first, unsigned int count)
{
	struct buf text = { 0 };
	char *copy;

	buf_append_str(&text, before);
	for (unsigned int i = first; i < first + count; i++) {
		buf_append_str(&text, i > first ? ", " : "");
		buf_printf(&text, "%s%u", format, i);
		buf_append_str(&text, before[0] == 's' ? ": {}" : "}");
	}
	buf_append_str(&text, before[0] == 's' ? "}\n" : "]}\n");
	copy = mem_dup_slice(buf_slice(&text));
	buf_fini(&text);
	return copy;
}

static void lists_are_bounded(void **state)
{
	char *tokens[] = { entries("auth: {tokens: [", "{name: t", 0, YAML_ITEMS_MAX - 1),
			   entries("auth: {tokens: [", "{name: t", 10000, 3) };
	char *servers[] = { entries("servers: {", "s", 0, YAML_ITEMS_MAX - 1),
			    entries("servers: {", "s", 10000, 2) };

	put("main", "include: [d/*]\n");
	put("d/a", tokens[0]);
	put("d/b", tokens[1]);
	read_all();
	assert_problem("d/b", "the token is one too many: the list may have at most 4096");
	assert_int_equal(find("auth", "tokens")->count, YAML_ITEMS_MAX);
	put("d/a", servers[0]);
	put("d/b", servers[1]);
	read_all();
	assert_problem("d/b", "there are more than 4096 servers");
	assert_int_equal(tree_find(root, "servers")->count, YAML_ITEMS_MAX);
	for (int i = 0; i < 2; i++) {
		free(tokens[i]);
		free(servers[i]);
	}
}

static void files_are_bounded(void **state)
{
	char *large = mem_alloc(INCLUDE_FILE_BYTES_MAX + 1);
	char name[16];

	put("main", "include: [d/*]\n");
	memset(large, '#', INCLUDE_FILE_BYTES_MAX);
	large[INCLUDE_FILE_BYTES_MAX] = '\0';
	for (int i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "d/%d", i);
		put(name, large);
		assert_int_equal(truncate(path_of(name), INCLUDE_FILE_BYTES_MAX), 0);
	}
	read_all();
	assert_int_equal(paths.count, 4);
	assert_non_null(
		strstr(problems.items[problems.count - 1], "are larger than 4096 KiB in total"));
	for (int i = 0; i <= INCLUDE_FILES_MAX; i++) {
		snprintf(name, sizeof(name), "d/%d", i);
		put(name, "servers: {}\n");
	}
	read_all();
	assert_problem("main", "there are more than 1024 files");
	assert_int_equal(paths.count, INCLUDE_FILES_MAX);
	free(large);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_stands_as_in_one_file), TEST(other_keys_are_refused),
		TEST(names_are_there_once),      TEST(others_may_not_have_written_them),
		TEST(lists_are_bounded),         TEST(files_are_bounded),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
