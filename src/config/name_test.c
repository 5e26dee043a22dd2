/* SPDX-License-Identifier: Apache-2.0 */
/* The names that servers get when nobody names them. */
#include "config/import.h"

#include "base/check.h"
#include "base/unit_test.h"

static void assert_name(char *name, const char *expected)
{
	assert_string_equal(name, expected);
	free(name);
}

#define ASSERT_COMMAND(expected, ...) \
	assert_name(name_from_command((char *const[]){ __VA_ARGS__, NULL }), expected)

static void test_packages_that_runners_run(void **state)
{
	ASSERT_COMMAND("github", "npx", "-y", "@modelcontextprotocol/server-github");
	ASSERT_COMMAND("github", "npx", "-y", "@modelcontextprotocol/server-github@1.2.3");
	ASSERT_COMMAND("everything", "/usr/bin/npx", "@scope/mcp-server-everything@latest", "x");
	ASSERT_COMMAND("time", "uvx", "mcp-server-time==1.0", "--local-timezone", "UTC");
	ASSERT_COMMAND("git", "uvx", "--from", "pkg", "mcp-server-git[cli]>=2");
	ASSERT_COMMAND("foo", "pipx", "run", "--spec", "x", "foo");
	ASSERT_COMMAND("mcp-remote", "npm", "exec", "--", "mcp-remote");
	ASSERT_COMMAND("tool", "uv", "tool", "run", "tool");
	ASSERT_COMMAND("bar", "pnpm", "dlx", "bar");
	ASSERT_COMMAND("server", "npx", "server-");
}

static void test_other_commands(void **state)
{
	ASSERT_COMMAND("mcpgated-demo", "/usr/libexec/mcpgated-demo");
	ASSERT_COMMAND("python3-11", "python3.11", "server.py");
	ASSERT_COMMAND("mcp-server-x", "mcp-server-x");
	ASSERT_COMMAND("npx", "npx");
	ASSERT_COMMAND("npx", "npx", "-y");
	ASSERT_COMMAND("uvx", "uvx", "--from");
	ASSERT_COMMAND("pipx", "pipx", "install", "x");
	ASSERT_COMMAND("uv", "uv", "run", "server.py");
	ASSERT_COMMAND("server", "");
	ASSERT_COMMAND("server", "/");
}

static void test_alphabet(void **state)
{
	char long_text[200];
	char *name;

	assert_name(name_from_text(SLICE_LIT("My Server_2")), "my-server_2");
	assert_name(name_from_text(SLICE_LIT("--x--")), "x");
	assert_name(name_from_text(SLICE_LIT("__")), "server");
	assert_name(name_from_text(SLICE_LIT("\xc3\xa4")), "server");
	assert_name(name_from_text(SLICE_LIT("")), "server");
	memset(long_text, 'a', sizeof(long_text));
	name = name_from_text(slice_of(long_text, sizeof(long_text)));
	assert_int_equal(strlen(name), 64);
	free(name);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packages_that_runners_run),
		cmocka_unit_test(test_other_commands),
		cmocka_unit_test(test_alphabet),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
