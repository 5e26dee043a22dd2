/* SPDX-License-Identifier: Apache-2.0 */
/* What arguments may hold, whatever they are wrapped in. SEC-50, SEC-54, SEC-55 */
#include "policy/arguments.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/unit_test.h"
#include "jsonrpc/scan.h"
#include "policy/pattern.h"
#include "policy/rule.h"

#define SLICES(...)                                                                          \
	{                                                                                    \
		(const struct slice[]){ __VA_ARGS__ },                                       \
			sizeof((const struct slice[]){ __VA_ARGS__ }) / sizeof(struct slice) \
	}

static const struct scan_limits limits = { .depth_max = SCAN_DEPTH_MAX, .id_max = 256 };

/* Why a message with these params is refused; NULL: it is not. */
static const char *judge_as(const struct argument_rules *rules, const char *id, const char *method,
			    const char *params)
{
	char *text = mem_printf("{\"jsonrpc\":\"2.0\",%s\"method\":\"%s\",\"params\":%s}", id,
				method, params);
	struct envelope env;
	struct error err;
	const char *why;
	struct rule rule;

	if (scan_envelope(slice_str(text), &limits, 0, &env, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	why = arguments_judge(rules, &env, &(struct pattern_work){ 0 }, &rule);
	assert_true(why == NULL || (rule.key >= RULE_ARGUMENTS && rule.key <= RULE_PATHS));
	free(text);
	return why;
}

static const char *judge_message(const struct argument_rules *rules, const char *method,
				 const char *params)
{
	return judge_as(rules, "\"id\":1,", method, params);
}

static const char *judge(const struct argument_rules *rules, const char *arguments)
{
	char *params = mem_printf("{\"name\":\"read_file\",\"arguments\":%s}", arguments);
	const char *why = judge_message(rules, "tools/call", params);

	free(params);
	return why;
}

static void assert_refused(const char *why, const char *wanted, const char *text)
{
	if (why == NULL || strstr(why, wanted) == NULL)
		fail_msg("%s: %s", text, why != NULL ? why : "is taken");
}

static void without_rules_all_is_taken(void **state)
{
	struct argument_rules rules = { 0 };

	argument_rules_prepare(&rules);
	assert_null(judge(&rules, "{\"path\":\"/etc/passwd\",\"__proto__\":\"\\ud800\"}"));
	assert_null(judge(&rules, "7"));
	assert_null(judge_message(&rules, "tools/call", "[]"));
	argument_rules_fini(&rules);
}

static void size_is_as_written(void **state)
{
	struct argument_rules rules = { .max_bytes = 12 };

	argument_rules_prepare(&rules);
	assert_null(judge(&rules, "{\"a\":\"1234\"}"));
	assert_refused(judge(&rules, "{\"a\":\"12345\"}"), "longer", "13 bytes");
	assert_refused(judge(&rules, "{\"a\":   \"1\" }"), "longer", "spaces count");
	assert_null(judge(&rules, "null"));
	assert_null(judge_message(&rules, "tools/call", "{\"name\":\"x\"}"));
	assert_null(judge_message(&rules, "tools/list", "{\"arguments\":{\"a\":\"123456\"}}"));
	assert_refused(judge_message(&rules, "prompts/get",
				     "{\"name\":\"x\",\"arguments\":{\"a\":\"123456\"}}"),
		       "longer", "a prompt");
	argument_rules_fini(&rules);
}

/* SEC-50: what only looks like the method, or has its arguments elsewhere. */
static void nothing_is_a_way_round(void **state)
{
	struct argument_rules rules = { .forbidden_keys.written = SLICES(SLICE("__proto__")) };
	static const char *const methods[] = { "tools/call",  "TOOLS/CALL",       "tools/call ",
					       "Prompts/Get", "tools/call\u200b", "prompts/get" };

	argument_rules_prepare(&rules);
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		const char *params = "{\"name\":\"x\",\"arguments\":{\"__proto__\":1}}";

		assert_refused(judge_message(&rules, methods[i], params), "member", methods[i]);
		assert_refused(judge_as(&rules, "", methods[i], params), "member", methods[i]);
		assert_refused(judge_message(&rules, methods[i], "[{\"__proto__\":1}]"), "array",
			       methods[i]);
	}
	assert_refused(judge(&rules, "\"{\\\"__proto__\\\":1}\""), "object", "a string");
	assert_refused(judge(&rules, "[{\"__proto__\":1}]"), "object", "an array");
	assert_refused(judge(&rules, "false"), "object", "false");
	assert_null(judge_message(&rules, "resources/read", "{\"arguments\":{\"__proto__\":1}}"));
	argument_rules_fini(&rules);
}

static void keys_are_found_at_any_depth(void **state)
{
	struct argument_rules rules = {
		.forbidden_keys.written =
			SLICES(SLICE("__proto__"), SLICE("constructor"), SLICE("admin_*")),
	};
	static const char *const refused[] = {
		"{\"__proto__\":{}}",
		"{\"a\":{\"b\":[0,{\"c\":[[{\"constructor\":1}]]}]}}",
		"{\"a\":[\"]\",\"}\",\"\\\"\",{\"__proto__\":1}]}",
		"{\"\\u005f_proto__\":1}",
		"{\"__PROTO__\":1}",
		"{\" __proto__ \":1}",
		"{\"\\uff3f\\uff3fproto\\uff3f\\uff3f\":1}",
		"{\"a\":1,\"__proto__\" : 1}",
		"{\"admin_role\":1}",
		"{\"Admin_role\":1}",
		"{\"__proto__\u200b\":1}",
		"{\"\ufeffCon\\u00adstructor\":1}",
		"{\"__proto__\\u0000x\":1}",
		"{\"__proto__\\n\":1}",
	};
	static const char *const taken[] = {
		"{}",
		"{\"proto\":\"__proto__\"}",
		"{\"a\":[\"__proto__\",\":\"]}",
		"{\"a\":\"\\\"__proto__\\\":1\"}",
		"{\"__proto\":1}",
		"{\"\":1,\"my_constructor\":2}",
		"{\"badmin_role\":1}",
		"{\"\u200b\":1,\"a\\n\":2,\"\U0001f468\u200d\U0001f469\":3}",
	};
	struct buf deep = { 0 };

	argument_rules_prepare(&rules);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		assert_refused(judge(&rules, refused[i]), "member", refused[i]);
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		assert_null(judge(&rules, taken[i]));
	/* Two of the containers are around the arguments. */
	for (int i = 0; i < SCAN_DEPTH_MAX - 2; i++)
		buf_append_str(&deep, "{\"a\":");
	deep.len -= strlen("{\"a\":");
	buf_append_str(&deep, "{\"__proto__\":1");
	for (int i = 0; i < SCAN_DEPTH_MAX - 2; i++)
		buf_append_char(&deep, '}');
	assert_refused(judge(&rules, buf_terminate(&deep)), "member", "as deep as can be");
	buf_fini(&deep);
	argument_rules_fini(&rules);
}

static void patterns_are_for_tools(void **state)
{
	const struct named_slices lists[] = {
		{ SLICE("*"), SLICES(SLICE("\\.\\./"), SLICE("(?i)drop\\s+table")) },
		{ SLICE("Read_*"), SLICES(SLICE("^secret$")) },
		{ SLICE("delete_*"), SLICES(SLICE("x")) },
		{ SLICE("other"), SLICES(SLICE("(broken")) },
	};
	struct argument_rules rules = { .deny_patterns = { lists, ARRAY_LEN(lists) } };
	static const char *const refused[] = {
		"{\"a\":\"../\"}",
		"{\"a\":[[{\"b\":\"x/..\\/y\"}]]}",
		"{\"a\":\"\\u002e\\u002e\\u002f\"}",
		"{\"../\":1}",
		"{\"q\":\"DROP\\n\\tTABLE users\"}",
		"{\"a\":\"secret\"}",
		"{\"secret\":\"a\"}",
	};

	argument_rules_prepare(&rules);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		assert_refused(judge(&rules, refused[i]), "text that is not allowed", refused[i]);
	assert_null(judge(&rules, "{\"a\":\"secrets\",\"b\":\"x\",\"c\":[\"..\",\"/\"]}"));
	assert_refused(judge(&rules, "{\"a\":\"\\ud800\"}"), "cannot be read", "half a pair");
	assert_refused(judge_message(&rules, "tools/call",
				     "{\"name\":\"DELETE_all\",\"arguments\":{\"a\":\"x\"}}"),
		       "not allowed", "another spelling of the tool");
	/* What is no name may be that of any tool. */
	assert_refused(judge_message(&rules, "tools/call",
				     "{\"name\":\"list\\u0000\",\"arguments\":{\"a\":\"x\"}}"),
		       "not allowed", "no name");
	assert_refused(judge_message(&rules, "tools/call", "{\"arguments\":{\"a\":\"x\"}}"),
		       "not allowed", "without a name");
	assert_null(judge_message(&rules, "tools/call",
				  "{\"name\":\"list\",\"arguments\":{\"a\":\"x\"}}"));
	argument_rules_fini(&rules);
}

/* Nobody knows whether it fits: refused, never taken. */
static void what_is_too_hard_is_refused(void **state)
{
	const struct named_slices lists[] = {
		{ SLICE("*"), SLICES(SLICE("^(a+)+$")) },
	};
	struct argument_rules rules = { .deny_patterns = { lists, 1 } };
	struct buf text = { 0 };

	argument_rules_prepare(&rules);
	assert_null(judge(&rules, "{\"t\":\"aab\"}"));
	assert_refused(judge(&rules, "{\"t\":\"aaa\"}"), "not allowed", "it fits");
	buf_append_str(&text, "{\"t\":\"");
	for (int i = 0; i < 10000; i++)
		buf_append_char(&text, 'a');
	buf_append_str(&text, "b\"}");
	assert_refused(judge(&rules, buf_terminate(&text)), "too long to judge", "a long one");
	buf_fini(&text);
	argument_rules_fini(&rules);
}

static void paths_are_found_in_all_strings(void **state)
{
	struct argument_rules rules = {
		.paths.roots = SLICES(SLICE("/srv/data")),
		.path_members.written = SLICES(SLICE("path"), SLICE("*_path"), SLICE("files")),
		.paths_ignored.written = SLICES(SLICE("content"), SLICE("text*")),
	};
	static const char *const refused[] = {
		"{\"a\":\"/etc/passwd\"}",
		"{\"a\":[[\"/srv/data/x\",\"/etc/passwd\"]]}",
		"{\"a\":{\"b\":\"\\u002fetc\"}}",
		"{\"/etc/passwd\":\"x\"}",
		"{\"a\":{\"../x\":1}}",
		"{\"path\":\"notes.txt\"}",
		"{\"Path\":\"notes.txt\"}",
		"{\"my_path\":\"notes.txt\"}",
		"{\"files\":[\"/srv/data/x\",[\"notes.txt\"]]}",
		"{\"a\":[{\"files\":[{\"b\":1},\"notes.txt\"]}]}",
		"{\"pa\\u200bth\":\"notes.txt\"}",
		"{\"content\":{\"a\":\"/etc\"}}",
		"{\"content\":{\"path\":\"x\"}}",
		"{\"content\":[{\"a\":\"/etc\"}]}",
		"{\"Content\":\"/etc\"}",
		"{\"content\":\"x\",\"/etc\":\"x\"}",
		"{\"content\":\"/etc\",\"b\":\"/etc\"}",
		"{\"content\":[\"/etc\"],\"b\":[\"/etc\"]}",
		"{\"a\":\"\\udc00\"}",
	};
	static const char *const taken[] = {
		"{\"a\":\"/srv/data/x\",\"path\":\"/srv/data/y\"}",
		"{\"files\":[\"/srv/data/a\",\"/srv/data/b\"],\"n\":7,\"t\":true,\"z\":null}",
		"{\"content\":\"/etc/passwd\"}",
		"{\"content\":[\"/etc\",[\"../x\"]]}",
		"{\"text_new\":\"/* C */\"}",
		"{\"a\":{\"content\":\"../x\"},\"b\":\"x\"}",
		"{\"content\":{\"/etc\":\"x\"}}",
		"{\"path\":{\"a\":\"notes.txt\"}}",
		"{\"path\":[{\"a\":\"b\"},\"/srv/data/x\"]}",
		"{\"mypath\":\"notes.txt\"}",
	};

	argument_rules_prepare(&rules);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		assert_refused(judge(&rules, refused[i]),
			       i + 1 < ARRAY_LEN(refused) ? "path" : "read", refused[i]);
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		if (judge(&rules, taken[i]) != NULL)
			fail_msg("%s", taken[i]);
	assert_refused(judge_message(&rules, "prompts/get",
				     "{\"name\":\"x\",\"arguments\":{\"a\":\"~/x\"}}"),
		       "path", "a prompt");
	argument_rules_fini(&rules);
}

/* Who wrote a relative path is told what would do, where none of them does. */
static void a_relative_path_is_told_apart(void **state)
{
	struct argument_rules rules = {
		.paths.roots = SLICES(SLICE("/srv/data")),
		.path_members.written = SLICES(SLICE("path")),
	};

	argument_rules_prepare(&rules);
	assert_refused(judge(&rules, "{\"path\":\"notes.txt\"}"), "absolute", "without a base");
	assert_refused(judge(&rules, "{\"a\":\"../x\"}"), "absolute", "without a base");
	assert_null(strstr(judge(&rules, "{\"path\":\"/etc\"}"), "absolute"));
	rules.paths.base = SLICE_LIT("/srv/data/in");
	assert_null(judge(&rules, "{\"path\":\"notes.txt\"}"));
	assert_null(strstr(judge(&rules, "{\"path\":\"../../x\"}"), "absolute"));
	argument_rules_fini(&rules);
}

/* A batch takes no longer than one message may. SEC-14 */
static void the_time_is_for_all_of_a_batch(void **state)
{
	static const char call[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
		"{\"name\":\"x\",\"arguments\":{\"a\":\"b\"}}}";
	const struct named_slices lists[] = { { SLICE("*"), SLICES(SLICE("b+c")) } };
	struct argument_rules rules = { .deny_patterns = { lists, 1 } };
	struct pattern_work work = { 0 };
	struct rule rule;
	struct envelope env;
	struct error err;

	argument_rules_prepare(&rules);
	assert_int_equal(scan_envelope(slice_str(call), &limits, 0, &env, &err), 0);
	for (int i = 0; i < 1000 && work.begun_ns == 0; i++)
		assert_null(arguments_judge(&rules, &env, &work, &rule));
	assert_true(work.begun_ns > 0);
	work.begun_ns -= PATTERN_WORK_MAX_NS;
	for (int i = 0; i < 1000 && !work.is_spent; i++)
		assert_true(arguments_judge(&rules, &env, &work, &rule) == NULL || work.is_spent);
	assert_refused(arguments_judge(&rules, &env, &work, &rule), "too long", "the last");
	argument_rules_fini(&rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_rules_all_is_taken),
		cmocka_unit_test(size_is_as_written),
		cmocka_unit_test(nothing_is_a_way_round),
		cmocka_unit_test(keys_are_found_at_any_depth),
		cmocka_unit_test(patterns_are_for_tools),
		cmocka_unit_test(what_is_too_hard_is_refused),
		cmocka_unit_test(a_relative_path_is_told_apart),
		cmocka_unit_test(the_time_is_for_all_of_a_batch),
		cmocka_unit_test(paths_are_found_in_all_strings),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
