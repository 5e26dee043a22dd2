/* SPDX-License-Identifier: Apache-2.0 */
/* Client files: what of an entry counts, what is left out with a word, what is refused. */
#include "config/import.h"

#include "base/unit_test.h"

struct outcome {
	struct tree *root;
	struct config_problems problems;
	struct config_problems warnings;
};

static struct outcome import_text(const char *json)
{
	struct outcome outcome = { 0 };

	outcome.root = import_read(slice_str(json), "f.json", &outcome.problems, &outcome.warnings);
	return outcome;
}

static void end(struct outcome *outcome)
{
	tree_free(&outcome->root);
	config_problems_fini(&outcome->problems);
	config_problems_fini(&outcome->warnings);
}

static void assert_texts(const struct config_problems *list, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < list->count && i < count; i++)
		assert_string_equal(list->items[i], texts[i]);
	assert_int_equal(list->count, count);
}

static void assert_refused(const char *json, const char *reason)
{
	struct outcome outcome = import_text(json);

	assert_null(outcome.root);
	assert_texts(&outcome.problems, &reason, 1);
	end(&outcome);
}

static const char *text_at(const struct tree *map, const char *key)
{
	const struct tree *value = tree_find(map, key);

	assert_non_null(value);
	assert_int_equal(value->kind, TREE_TEXT);
	return value->text;
}

static void test_entries_become_servers(void **state)
{
	struct outcome outcome = import_text(
		"{\"mcpServers\": {\"git\": {\"type\": \"stdio\", \"command\": \"uvx\", \"args\": "
		"[\"a\", \"\\u00e4\\n\"], \"env\": {\"A_TOKEN\": \"x\", \"B\": \"\"}, \"cwd\": "
		"\"/srv\", \"autoApprove\": [1]}, \"off\": {\"command\": \"x\", \"disabled\": true},"
		"\"on\": {\"command\": \"x\", \"disabled\": false, \"env\": null}}, \"other\": 1}");
	struct tree *servers = tree_find(outcome.root, "servers");
	struct tree *git = tree_find(servers, "git");

	assert_int_equal(outcome.problems.count, 0);
	assert_int_equal(outcome.warnings.count, 1);
	assert_string_equal(outcome.warnings.items[0],
			    "f.json: mcpServers.off: is disabled there, and not served");
	assert_int_equal(servers->count, 3);
	assert_int_equal(git->count, 4);
	assert_string_equal(text_at(git, "command"), "uvx");
	assert_string_equal(tree_find(git, "args")->items[1]->text, "\xc3\xa4\n");
	assert_string_equal(text_at(tree_find(git, "env"), "A_TOKEN"), "x");
	assert_string_equal(text_at(git, "cwd"), "/srv");
	assert_string_equal(text_at(tree_find(servers, "off"), "enabled"), "false");
	assert_string_equal(text_at(tree_find(servers, "on"), "enabled"), "true");
	end(&outcome);
}

static void test_left_out_and_renamed_entries_are_told(void **state)
{
	static const char *const warnings[] = {
		"f.json: mcpServers.far: left out: it is reached by a url; only servers that are "
		"started here, by a command, can be served",
		"f.json: mcpServers.odd: left out: it has no command; only servers that are started "
		"here, by a command, can be served",
		"f.json: mcpServers.My Server: is served as 'my-server'",
	};
	struct outcome outcome = import_text(
		"{\"mcpServers\": {\"far\": {\"url\": \"https://x.example/mcp\"}, \"odd\": {},"
		"\"My Server\": {\"command\": \"x\"}}}");

	assert_texts(&outcome.warnings, warnings, 3);
	assert_int_equal(tree_find(outcome.root, "servers")->count, 1);
	end(&outcome);
}

static void test_editors_files_are_read(void **state)
{
	struct outcome outcome = import_text(
		"// of an editor\n{\n  \"inputs\": [{\"id\": \"key\"},],\n  /* one\n server */\n"
		"  \"servers\": {\"a\": {\"type\": \"stdio\", \"command\": \"x\", // y\n"
		"    \"args\": [\"http://h/*\\\"\", \",]*/\", /**/ ], }, },\n}\n//");
	struct tree *a = tree_find(tree_find(outcome.root, "servers"), "a");

	assert_int_equal(outcome.problems.count, 0);
	assert_int_equal(outcome.warnings.count, 0);
	assert_int_equal(tree_find(a, "args")->count, 2);
	assert_string_equal(tree_find(a, "args")->items[0]->text, "http://h/*\"");
	assert_string_equal(tree_find(a, "args")->items[1]->text, ",]*/");
	end(&outcome);
	assert_refused("{\"servers\": {\"a\": 7}}", "f.json: servers.a: must be an object");
	assert_refused("{\n/* x\n \"a\": 1 2}",
		       "f.json:2:1: not valid JSON: string or '}' expected");
	assert_refused("{\"a\": 1,\n // x\n 2}",
		       "f.json:3:2: not valid JSON: string or '}' expected");
	assert_refused("{\"a\\", "f.json:1:4: not valid JSON: invalid escape");
}

static void test_what_is_not_as_in_the_client_is_told(void **state)
{
	static const char *const warnings[] = {
		"f.json: mcpServers.a.args: '${input:key}' is passed as it stands: nothing is put in "
		"its place here",
		"f.json: mcpServers.a.env: '${HOME}' is passed as it stands: nothing is put in its "
		"place here",
		"f.json: mcpServers.a.agrs: is not known, and ignored; what counts is command, args, "
		"env, cwd and disabled",
	};
	struct outcome outcome = import_text(
		"{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"--key=${input:key}\", "
		"\"$HOME\"], \"env\": {\"W\": \"${claim:sub}\", \"D\": \"${claim:sub}${HOME}/x\"}, "
		"\"agrs\": []}}}");

	assert_texts(&outcome.warnings, warnings, 3);
	end(&outcome);
}

/* A reference of ours in a client's file would let it read files of the daemon's user. */
/* A stranger's file cannot act on the terminal. */
static void test_controls_in_names_are_not_shown(void **state)
{
	assert_refused("{\"mcpServers\":{\"a\\u001b[31m\\u009b1m\\u00e4\\n\":7}}",
		       "f.json: mcpServers.a?[31m??1m\u00e4?: must be an object");
}

static void test_values_are_texts_only(void **state)
{
	assert_refused("{\"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": {\"K\": {\"file\": "
		       "\"/etc/shadow\"}}}}}",
		       "f.json: mcpServers.a.env: must be an object of strings");
	assert_refused("{\"mcpServers\": {\"a\": {\"command\": [\"x\"]}}}",
		       "f.json: mcpServers.a.command: must be a string");
	assert_refused("{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": \"y\"}}}",
		       "f.json: mcpServers.a.args: must be an array of strings");
	assert_refused("{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [1, 2]}}}",
		       "f.json: mcpServers.a.args: must be an array of strings");
	assert_refused("{\"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": []}}}",
		       "f.json: mcpServers.a.env: must be an object of strings");
	assert_refused("{\"mcpServers\": {\"a\": {\"command\": \"x\", \"disabled\": \"true\"}}}",
		       "f.json: mcpServers.a.disabled: must be true or false");
	assert_refused("{\"mcpServers\": {\"a\": \"x\"}}",
		       "f.json: mcpServers.a: must be an object");
	assert_refused(
		"{\"mcpServers\": {\"A\": {\"command\": \"x\"}, \"a\": {\"command\": \"x\"}}}",
		"f.json: mcpServers.a: another entry is already served as 'a'");
}

static void test_what_is_no_such_file(void **state)
{
	static const char none[] = "f.json: there is no object \"mcpServers\" in it; expected is "
				   "{\"mcpServers\": {\"NAME\": {\"command\": …, \"args\": […]}}}";

	assert_refused("{}", none);
	assert_refused("[]", none);
	assert_refused("{\"mcpServers\": []}", none);
	assert_refused("{\"mcpServers\": {\"far\": {\"url\": \"u\"}}}",
		       "f.json: mcpServers: no entry can be served; one at least must have a "
		       "command, which is started here");
	assert_refused("{\"a\": 1,\n \"a\": 2}",
		       "f.json:2:4: not valid JSON: duplicate object key");
	assert_refused("", "f.json:1:0: not valid JSON: '[' or '{' expected");
	/* The text it stumbles over is not shown. */
	assert_refused("{\"K\": \"s3cret\" 1}", "f.json:1:16: not valid JSON: '}' expected");
	assert_refused("{\"K\": \"s3cret\\u0000\"}",
		       "f.json:1:20: not valid JSON: a text holds a NUL character");
}

static void test_a_byte_order_mark_is_skipped(void **state)
{
	struct outcome outcome =
		import_text("\xEF\xBB\xBF{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}\r\n");

	assert_int_equal(outcome.problems.count, 0);
	assert_non_null(outcome.root);
	end(&outcome);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries_become_servers),
		cmocka_unit_test(test_left_out_and_renamed_entries_are_told),
		cmocka_unit_test(test_editors_files_are_read),
		cmocka_unit_test(test_what_is_not_as_in_the_client_is_told),
		cmocka_unit_test(test_controls_in_names_are_not_shown),
		cmocka_unit_test(test_values_are_texts_only),
		cmocka_unit_test(test_what_is_no_such_file),
		cmocka_unit_test(test_a_byte_order_mark_is_skipped),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
