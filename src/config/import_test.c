/* SPDX-License-Identifier: Apache-2.0 */
/* Client files: what of an entry counts, what is left out with a word, what is refused. */
#include "config/import.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/unit_test.h"
#include "config/tree.h"

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

#define NO_ENTRY "f.json: no entry can be served; at least one must have a command or a URL"

/* The one entry of this file is left out, for this reason; what stands beside it is served all the same. */
static void assert_left_out(const char *entry, const char *reason)
{
	char *alone = mem_printf("{\"mcpServers\": {%s}}", entry);
	char *beside = mem_printf("{\"mcpServers\": {%s, \"ok\": {\"command\": \"y\"}}}", entry);
	struct outcome outcome = import_text(beside);

	assert_texts(&outcome.warnings, &reason, 1);
	assert_int_equal(outcome.problems.count, 0);
	assert_int_equal(tree_find(outcome.root, "servers")->count, 1);
	assert_non_null(tree_find(tree_find(outcome.root, "servers"), "ok"));
	end(&outcome);
	assert_refused(alone, NO_ENTRY);
	free(alone);
	free(beside);
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
	assert_string_equal(
		outcome.warnings.items[0],
		"f.json:1:193: mcpServers.off.disabled: is disabled in that file, so it is not "
		"served");
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
		"f.json:1:17: mcpServers.far: goes to another machine without TLS; the entry is left out",
		"f.json:1:57: mcpServers.odd: left out: it has neither of them; only servers with a "
		"command or a URL can be served",
		"f.json:1:67: mcpServers.My Server: is served as 'my-server'",
	};
	struct outcome outcome = import_text(
		"{\"mcpServers\": {\"far\": {\"url\": \"http://x.example/mcp\"}, \"odd\": {},"
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
	assert_refused("{\n/* x\n \"a\": 1 2}",
		       "f.json:2:1: not valid JSON: string or '}' expected");
	assert_refused("{\"a\": 1,\n // x\n 2}",
		       "f.json:3:2: not valid JSON: string or '}' expected");
	assert_refused("{\"a\\", "f.json:1:4: not valid JSON: invalid escape");
}

static void test_what_is_not_as_in_the_client_is_told(void **state)
{
	static const char *const warnings[] = {
		"f.json:2:11: mcpServers.a.args: '${input:key}' is passed on unchanged: there is "
		"nobody to ask for it; write ${NAME} instead, and set the variable NAME for "
		"mcpgated",
		"f.json:2:34: mcpServers.a.args: '$HOME' is passed on unchanged: to use a "
		"variable's value, write ${NAME}",
		"f.json:3:2: mcpServers.a.agrs: is unknown and ignored; the known ones are "
		"command, args, env, cwd, disabled and enabled",
	};
	struct outcome outcome =
		import_text("{\"mcpServers\": {\"a\": {\"command\": \"x\",\n"
			    " \"args\": [\"--key=\u00e4${input:key}\", \"$HOME\"],\n"
			    " \"agrs\": [], \"env\": {\"W\": \"${claim:sub}\"}}}}");

	assert_texts(&outcome.warnings, warnings, 3);
	end(&outcome);
}

/* What stands in an argument, with the one message about it, or NULL: none. */
static void assert_expanded(const char *written, const char *expanded, const char *message)
{
	char *json = mem_printf("{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[\"%s\"]}}}",
				written);
	struct outcome outcome = import_text(json);
	struct tree *a = tree_find(tree_find(outcome.root, "servers"), "a");

	assert_texts(&outcome.warnings, &message, message != NULL);
	assert_string_equal(tree_find(a, "args")->items[0]->text, expanded);
	end(&outcome);
	free(json);
}

#define AT "f.json:1:43: mcpServers.a.args: "

static void test_variables_are_put_in(void **state)
{
	setenv("IMPORT_TEST", "some ${IMPORT_TEST}", 1);
	setenv("IMPORT_TOKEN", "s3cret", 1);
	setenv("IMPORT_BYTES", "\xff", 1);
	setenv("HOME", "/home/me", 1);
	unsetenv("IMPORT_NONE");
	assert_expanded("a ${IMPORT_TEST}, ${env:IMPORT_TEST}", /* and not looked through again */
			"a some ${IMPORT_TEST}, some ${IMPORT_TEST}", NULL);
	assert_expanded("${IMPORT_NONE:-else}${IMPORT_TEST:-no}", "elsesome ${IMPORT_TEST}", NULL);
	assert_expanded("${IMPORT_NONE:-}", "", NULL);
	assert_expanded("${env:IMPORT_NONE:-a:b}", "a:b", NULL);
	assert_expanded("${claim:sub}", "${claim:sub}", NULL);
	assert_expanded("${userHome}${/}a${pathSeparator}b", "/home/me/a/b", NULL);
	assert_expanded(
		"${env:IMPORT_NONE}", "${env:IMPORT_NONE}",
		AT "'${env:IMPORT_NONE}' is passed on unchanged: no such variable is set here");
	assert_expanded(
		"${IMPORT_BYTES}", "${IMPORT_BYTES}",
		AT "'${IMPORT_BYTES}' is passed on unchanged: the variable's value is not UTF-8");
	assert_expanded("${IMPORT_NONE:-${X}}", "${IMPORT_NONE:-${X}}",
			AT "'${IMPORT_NONE:-${X}' is passed on unchanged: it is not expanded here");
	assert_expanded("x${", "x${", AT "'${' is passed on unchanged: it is not expanded here");
	assert_expanded(
		"${workspaceFolder}/x", "${workspaceFolder}/x",
		AT
		"'${workspaceFolder}' is passed on unchanged: no folder is open here; write a path "
		"instead");
	assert_expanded(
		"--key=${IMPORT_TOKEN}", "--key=s3cret",
		AT
		"'${IMPORT_TOKEN}' seems to be a secret, and is on a command line, which everybody "
		"on this machine can read; most servers accept it in a variable instead: env");
}

/* A hundred thousand references to a long value do not fill the memory. */
static void test_what_is_put_in_is_bounded(void **state)
{
	struct buf json = { 0 };
	struct outcome outcome;
	char value[4000] = { 0 };

	memset(value, 'v', sizeof(value) - 1);
	setenv("IMPORT_TEST", value, 1);
	buf_append_str(&json, "{\"mcpServers\":{\"a\":{\"command\":\"");
	for (int i = 0; i < 100000; i++)
		buf_append_str(&json, "${IMPORT_TEST}");
	buf_append_str(&json, "\"}}}");
	outcome = import_text(buf_terminate(&json));
	assert_true(strlen(text_at(tree_find(tree_find(outcome.root, "servers"), "a"), "command")) <
		    2000000);
	assert_int_equal(outcome.warnings.count, 1);
	end(&outcome);
	buf_fini(&json);
}

/* What came from the environment is masked, whatever the variable's name. */
static void test_values_of_the_environment_are_secrets(void **state)
{
	struct outcome outcome;
	struct tree *env;

	setenv("IMPORT_TEST", "x", 1);
	outcome = import_text("{\"mcpServers\": {\"a\": {\"command\": \"c\", \"env\": {\"A\": "
			      "\"Bearer ${IMPORT_TEST}\", \"B\": \"x\"}}}}");
	env = tree_find(tree_find(tree_find(outcome.root, "servers"), "a"), "env");
	assert_string_equal(text_at(env, "A"), "Bearer x");
	assert_true(tree_find(env, "A")->is_secret);
	assert_false(tree_find(env, "B")->is_secret);
	end(&outcome);
}

static void test_values_have_their_places(void **state)
{
	struct outcome outcome =
		import_text("\xEF\xBB\xBF{ // one\n \"mcpServers\": {/* \u00e4 */ \"a\":\n"
			    "{\"args\": [\"\u00e4\",\"y\"], \"command\": \"x\"}}}");
	struct tree *a = tree_find(tree_find(outcome.root, "servers"), "a");

	assert_int_equal(a->key_line, 2);
	assert_int_equal(a->key_column, 25);
	assert_int_equal(a->line, 3);
	assert_int_equal(a->column, 1);
	assert_int_equal(tree_find(a, "args")->items[1]->column, 15);
	assert_int_equal(tree_find(a, "command")->column, 32);
	end(&outcome);
}

static void test_entries_of_projects(void **state)
{
	static const char *const warnings[] = {
		"f.json:1:109: projects./p.mcpServers.a: left out: another entry is already served "
		"as 'a'",
		"f.json:1:214: projects./p.mcpServers.c: is disabled in that file, so it is not "
		"served",
	};
	struct outcome outcome = import_text(
		"{\"mcpServers\": {\"a\": {\"command\": \"x\"}}, \"projects\": {\"/none\": {}, \"odd\": 7, "
		"\"/p\": {\"mcpServers\": {          \"a\": {\"command\": \"y\"}, \"b\": {\"command\": "
		"\"z\"}, \"c\": {\"command\": \"z\", \"cwd\": \"/c\"}}, \"disabledMcpServers\": [1, "
		"\"c\"]}}}");
	struct tree *servers = tree_find(outcome.root, "servers");

	assert_int_equal(servers->count, 3);
	assert_null(tree_find(tree_find(servers, "a"), "cwd"));
	assert_string_equal(text_at(tree_find(servers, "b"), "cwd"), "/p");
	assert_string_equal(text_at(tree_find(servers, "c"), "cwd"), "/c");
	assert_string_equal(text_at(tree_find(servers, "c"), "enabled"), "false");
	assert_texts(&outcome.warnings, warnings, 2);
	end(&outcome);
}

/* What each is compared with all others for would take hours where there are a million. */
static void test_many_are_too_many(void **state)
{
	static const struct {
		const char *before, *head, *tail, *after, *problem;
	} rows[] = {
		{ "{\"mcpServers\":{", "\"e", "\":{\"command\":\"x\"}", "}}",
		  ": mcpServers.e4096: is one too many: at most 4096 are allowed" },
		{ "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"env\":{", "\"V", "\":\"\"", "}}}}",
		  ": mcpServers.a.env: has one variable too many; the entry is left out" },
		{ "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"args\":[", "\"", "\"", "]}}}",
		  ": mcpServers.a.args: must be an array of fewer strings" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct outcome outcome;
		struct buf text = { 0 };

		buf_append_str(&text, rows[i].before);
		for (int n = 0; n < 100000; n++)
			buf_printf(&text, "%s%s%d%s", n > 0 ? "," : "", rows[i].head, n,
				   rows[i].tail);
		buf_append_str(&text, rows[i].after);
		outcome = import_text(buf_terminate(&text));
		assert_null(outcome.root);
		assert_int_equal(outcome.problems.count, 1);
		assert_non_null(
			strstr(i == 0 ? outcome.problems.items[0] : outcome.warnings.items[0],
			       rows[i].problem));
		end(&outcome);
		buf_fini(&text);
	}
}

static void test_what_is_said_twice(void **state)
{
	struct outcome outcome;

	assert_left_out(
		"\"a\": {\"command\": {\"path\": \"x\", \"args\": [\"a\"]}, "
		"\"args\": [\"b\"]}",
		"f.json:1:72: mcpServers.a.args: sets the same thing as another member; the "
		"entry is left out");
	/* The entry itself counts, not what stands around it. */
	outcome =
		import_text("{\"projects\": {\"p\": {\"mcpServers\": {\"a\": {\"command\": \"x\", "
			    "\"disabled\": false}}, \"disabledMcpServers\": [\"a\"]}}}");
	assert_string_equal(text_at(tree_find(tree_find(outcome.root, "servers"), "a"), "enabled"),
			    "true");
	/* And a project without a path has no directory. */
	assert_null(tree_find(tree_find(tree_find(outcome.root, "servers"), "a"), "cwd"));
	end(&outcome);
}

/* Nor can what is no UTF-8, of which names of files may consist. */
static void test_bytes_that_are_no_text_are_not_shown(void **state)
{
	struct config_problems problems = { NULL, 0 };

	problem_add(&problems, "%s",
		    "a\xff"
		    "b\x9b"
		    "2Jc\xc3");
	assert_string_equal(problems.items[0], "a?b?2Jc?");
	config_problems_fini(&problems);
}

/* A stranger's file cannot act on the terminal. */
static void test_controls_in_names_are_not_shown(void **state)
{
	assert_left_out("\"a\\u001b[31m\\u009b1m\\u00e4\\n\":7",
			"f.json:1:17: mcpServers.a?[31m??1m\u00e4?: left out: it is not an object");
}

/* Nothing is a {file:} reference, and what is not as the client would start it is not started. */
static void test_odd_entries_are_left_out(void **state)
{
	assert_left_out(
		"\"a\": {\"command\": [\"x\"]}",
		"f.json:1:34: mcpServers.a.command: must be a string; the entry is left out");
	assert_left_out("\"a\": {\"command\": \"x\", \"args\": \"y\"}",
			"f.json:1:47: mcpServers.a.args: must be an array of strings; the entry is "
			"left out");
	assert_left_out("\"a\": {\"command\": \"x\", \"args\": [null]}",
			"f.json:1:47: mcpServers.a.args: must be an array of strings; the entry is "
			"left out");
	assert_left_out("\"a\": {\"command\": \"x\", \"env\": [1]}",
			"f.json:1:46: mcpServers.a.env: must be an object of strings; the entry is "
			"left out");
	assert_left_out("\"a\": {\"command\": \"x\", \"cwd\": \"\"}",
			"f.json:1:46: mcpServers.a.cwd: must not be empty; the entry is left out");
	assert_left_out("\"a\": {\"command\": \"x\", \"disabled\": \"true\", \"args\": 7}",
			"f.json:1:51: mcpServers.a.disabled: must be true or false; the entry is "
			"left out");
	assert_left_out("\"a\": \"x\"", "f.json:1:17: mcpServers.a: left out: it is not an object");
	assert_left_out("\"_comment\": \"mine\"",
			"f.json:1:17: mcpServers._comment: left out: it is not an object");
	assert_left_out(
		"\"a\": {\"command\": \"\", \"baseUrl\": \"http://192.0.2.1/\"}",
		"f.json:1:17: mcpServers.a: goes to another machine without TLS; the entry is left "
		"out");
}

static void test_values_become_texts(void **state)
{
	static const char *const warnings[] = {
		"f.json:1:47: mcpServers.a.args: a value that is not a string is passed on as it is "
		"written",
		"f.json:2:15: mcpServers.a.env: a value that is not a string is passed on as it is "
		"written",
		"f.json:2:28: mcpServers.a.env: a value that is not a string is passed on as it is "
		"written",
		"f.json:2:40: mcpServers.a.env: 'NONE' is not a text, and is ignored",
		"f.json:2:52: mcpServers.a.env: 'FILE' is not a text, and is ignored",
		"f.json:2:63: mcpServers.a.env: 'A=B' cannot be the name of a variable, and is "
		"ignored",
		"f.json:2:73: mcpServers.a.env: '' cannot be the name of a variable, and is ignored",
	};
	struct outcome outcome = import_text(
		"{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\":[8080, \"y\"],\n\"env\":{\"PORT\":1.50,"
		"\"DEBUG\":true,\"NONE\":null,\"FILE\":{\"file\":1},\"A=B\":\"\", \"\":\"\","
		"\"//\":\"a comment\"}}, \"b\": {\"command\": \"x\", \"env\": []}}}");
	struct tree *servers = tree_find(outcome.root, "servers");
	struct tree *env = tree_find(tree_find(servers, "a"), "env");

	assert_texts(&outcome.warnings, warnings, ARRAY_LEN(warnings));
	assert_int_equal(outcome.problems.count, 0);
	assert_int_equal(servers->count, 2);
	assert_string_equal(tree_find(tree_find(servers, "a"), "args")->items[0]->text, "8080");
	assert_int_equal(env->count, 3);
	assert_string_equal(text_at(env, "PORT"), "1.50");
	assert_string_equal(text_at(env, "DEBUG"), "true");
	assert_string_equal(text_at(env, "//"), "a comment");
	assert_int_equal(tree_find(tree_find(servers, "b"), "env")->count, 0);
	end(&outcome);
}

static void test_names_that_become_the_same_are_numbered(void **state)
{
	static const char *const warnings[] = {
		"f.json:1:17: mcpServers.\u6587\u4ef6: is served as 'server'",
		"f.json:1:41: mcpServers.\u641c\u7d22: is served as 'server-2'",
		"f.json:1:87: mcpServers.A: is served as 'a-2'",
		"f.json:1:120: servers.a: is served as 'a-3'",
	};
	struct outcome outcome = import_text(
		"{\"mcpServers\": {\"\u6587\u4ef6\": {\"command\": \"w\"}, \"\u641c\u7d22\": {\"command\": \"x\"},"
		"\"a\": {\"command\": \"y\"}, \"A\":{\"command\":\"z\"}}, \"servers\":{\"a\":{\"command\":\"v\"}}}");
	struct tree *servers = tree_find(outcome.root, "servers");

	assert_int_equal(outcome.problems.count, 0);
	assert_texts(&outcome.warnings, warnings, ARRAY_LEN(warnings));
	assert_int_equal(servers->count, 5);
	assert_string_equal(text_at(tree_find(servers, "server-2"), "command"), "x");
	assert_string_equal(text_at(tree_find(servers, "a-2"), "command"), "z");
	end(&outcome);
}

/* However a client says so. */
static void test_what_is_disabled_is_not_served(void **state)
{
	static const struct {
		const char *file;
		const char *enabled; /* of the entry `a` */
	} rows[] = {
		{ "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"isActive\":false}}}", "false" },
		{ "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"isActive\":true}}}", "true" },
		{ "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"enabled\":false}}}", "false" },
		{ "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"disabled\":true,\"enabled\":true}}}",
		  "false" },
		{ "{\"mcpServers\":{\"a\":{\"command\":\"x\",\"isActive\":true,\"disabled\":true}}}",
		  "false" },
		{ "{\"mcp\":{\"excluded\":[\"b\",\"a\"]},\"mcpServers\":{\"a\":{\"command\":\"x\"}}}",
		  "false" },
		{ "{\"mcp\":{\"allowed\":[\"b\"]},\"mcpServers\":{\"a\":{\"command\":\"x\"}}}",
		  "false" },
		{ "{\"mcp\":{\"allowed\":[\"a\"]},\"mcpServers\":{\"a\":{\"command\":\"x\"}}}",
		  NULL },
		{ "{\"excludeMCPServers\":[\"a\"],\"mcpServers\":{\"a\":{\"command\":\"x\"}}}",
		  "false" },
		{ "{\"allowMCPServers\":[],\"mcpServers\":{\"a\":{\"command\":\"x\"}}}", "false" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct outcome outcome = import_text(rows[i].file);
		struct tree *a = tree_find(tree_find(outcome.root, "servers"), "a");
		bool is_off = rows[i].enabled != NULL && strcmp(rows[i].enabled, "false") == 0;

		assert_int_equal(outcome.problems.count, 0);
		assert_int_equal(outcome.warnings.count, is_off);
		if (rows[i].enabled == NULL)
			assert_null(tree_find(a, "enabled"));
		else
			assert_string_equal(text_at(a, "enabled"), rows[i].enabled);
		end(&outcome);
	}
}

static void test_what_is_no_such_file(void **state)
{
	static const char none[] =
		"f.json: contains no object \"mcpServers\", nor one with the name that another "
		"client uses; expected: {\"mcpServers\": {\"NAME\": {\"command\": …, \"args\": "
		"[…]}}}";

	assert_refused("{}", none);
	assert_refused("[]", none);
	assert_refused("{\"mcpServers\": []}", none);
	assert_refused("{\"mcpServers\": {\"far\": {\"url\": \"u\"}}}",
		       "f.json: no entry can be served; at least one must have a command or a URL");
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
		cmocka_unit_test(test_variables_are_put_in),
		cmocka_unit_test(test_what_is_put_in_is_bounded),
		cmocka_unit_test(test_values_of_the_environment_are_secrets),
		cmocka_unit_test(test_values_have_their_places),
		cmocka_unit_test(test_entries_of_projects),
		cmocka_unit_test(test_many_are_too_many),
		cmocka_unit_test(test_what_is_said_twice),
		cmocka_unit_test(test_bytes_that_are_no_text_are_not_shown),
		cmocka_unit_test(test_controls_in_names_are_not_shown),
		cmocka_unit_test(test_odd_entries_are_left_out),
		cmocka_unit_test(test_values_become_texts),
		cmocka_unit_test(test_names_that_become_the_same_are_numbered),
		cmocka_unit_test(test_what_is_disabled_is_not_served),
		cmocka_unit_test(test_what_is_no_such_file),
		cmocka_unit_test(test_a_byte_order_mark_is_skipped),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
