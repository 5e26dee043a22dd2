/* SPDX-License-Identifier: Apache-2.0 */
/* Tools in the formats of function-calling interfaces, and what is told of names that these do not take. */
#include "ctl/offers.c"

#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/unit_test.h"

static char said[1024]; /* on standard error, by the last conversion */

/* A list of one tool, in this format; as JSON with sorted keys. */
static void converts(const char *tool, const char *format, const char *expected)
{
	json_t *list = json_pack("[o]", json_loads(tool, JSON_ALLOW_NUL, NULL)), *converted;
	int saved = dup(STDERR_FILENO);
	FILE *file = tmpfile();
	char *text;
	size_t n;

	assert_non_null(file);
	dup2(fileno(file), STDERR_FILENO);
	converted = tools_convert(list, format);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	n = fread(said, 1, sizeof(said) - 1, file);
	said[n] = '\0';
	fclose(file);
	text = json_dumps(json_array_get(converted, 0), JSON_COMPACT | JSON_SORT_KEYS);
	if (expected != NULL)
		assert_string_equal(text, expected);
	free(text);
	json_decref(converted);
	json_decref(list);
}

#define SCHEMA "{\"type\":\"object\"}"
#define TOOL "{\"name\":\"t\",\"title\":\"T\",\"description\":\"d\",\"inputSchema\":" SCHEMA "}"

static void members_have_other_names(void **state)
{
	converts(TOOL, "mcp",
		 "{\"description\":\"d\",\"inputSchema\":" SCHEMA
		 ",\"name\":\"t\",\"title\":\"T\"}");
	converts(TOOL, "openai",
		 "{\"function\":{\"description\":\"d\",\"name\":\"t\",\"parameters\":" SCHEMA
		 "},\"type\":\"function\"}");
	converts(TOOL, "anthropic",
		 "{\"description\":\"d\",\"input_schema\":" SCHEMA ",\"name\":\"t\"}");
	converts("{\"name\":\"t\"}", "anthropic", "{\"name\":\"t\"}");
	assert_string_equal(said, "");
}

static void there_are_no_other_formats(void **state)
{
	json_t *none = json_array();

	assert_null(tools_convert(none, "yaml"));
	assert_null(tools_convert(none, ""));
	json_decref(none);
}

static void odd_names_are_told_of(void **state)
{
	static const char *const odd[] = { "a.b", "", "a b", "\\u00e4", "a\\nb" };
	char tool[128], name[66];

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		snprintf(tool, sizeof(tool), "{\"name\":\"%s\"}", odd[i]);
		converts(tool, "openai", NULL);
		assert_non_null(strstr(said, "the API does not accept this name"));
	}
	memset(name, 'x', sizeof(name) - 1);
	name[65] = '\0';
	snprintf(tool, sizeof(tool), "{\"name\":\"%s\"}", name);
	converts(tool, "anthropic", NULL);
	assert_non_null(strstr(said, name));
	snprintf(tool, sizeof(tool), "{\"name\":\"%s\"}", name + 1);
	converts(tool, "anthropic", NULL);
	assert_string_equal(said, "");
	converts("{\"name\":\"a.b\"}", "mcp", NULL); /* which has no such limit */
	assert_string_equal(said, "");
}

static void odd_names_cannot_act(void **state)
{
	converts("{\"name\":\"x\\u001b[2J\\u202e\"}", "anthropic", NULL);
	assert_string_equal(said,
			    "mcpgatectl: the API does not accept this name: 'x\\x1b[2J\\u202e'\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_have_other_names),
		cmocka_unit_test(there_are_no_other_formats),
		cmocka_unit_test(odd_names_are_told_of),
		cmocka_unit_test(odd_names_cannot_act),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
