/* SPDX-License-Identifier: Apache-2.0 */
/* What reload says of each outcome, and its exit status. */
/* The daemon is this test. */
#define line_ask fake_line_ask
#define line_finish fake_line_finish
#include "ctl/orders.c"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/unit_test.h"

static const char *answer; /* NULL: the daemon gives none */

json_t *line_ask(const struct line *line, const char *method, char *target, struct slice body)
{
	assert_string_equal(method, "POST");
	assert_string_equal(target, "/reload");
	free(target);
	return answer != NULL ? json_loads(answer, 0, NULL) : NULL;
}

int line_finish(json_t *value)
{
	int status = value != NULL ? 0 : EXIT_FAILED;

	json_decref(value);
	return status;
}

static char said[1024]; /* on both outputs */

static int reloads(const char *text)
{
	struct line line = { .count = 1 };
	int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO), status;
	FILE *file = tmpfile();
	size_t n;

	answer = text;
	assert_non_null(file);
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	dup2(fileno(file), STDERR_FILENO);
	status = orders_reload(&line);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	close(out);
	close(err);
	rewind(file);
	n = fread(said, 1, sizeof(said) - 1, file);
	said[n] = '\0';
	fclose(file);
	return status;
}

static void what_has_changed_is_told(void **state)
{
	assert_int_equal(
		reloads("{\"used\":true,\"added\":[\"a\"],\"changed\":[\"c\"],\"rules\":[\"d\"],"
			"\"removed\":[\"r\"],\"listen_added\":[\"l\"],\"errors\":[]}"),
		0);
	assert_string_equal(said, "added: a\n"
				  "changed, for new sessions: c\n"
				  "changed, for all sessions: d\n"
				  "removed: r\n"
				  "listening: l\n");
	assert_int_equal(reloads("{\"used\":true}"), 0);
	assert_string_equal(said,
			    "no server has changed; everything else is now as the file says\n");
}

static void what_is_wrong_fails(void **state)
{
	assert_int_equal(reloads("{\"used\":false,\"errors\":[\"e\"]}"), EXIT_FAILED);
	assert_string_equal(said, "mcpgatectl: e\nmcpgatectl: nothing has changed: the "
				  "previous configuration stays in use\n");
	/* All but a part is in use. */
	assert_int_equal(reloads("{\"used\":true,\"errors\":[\"e\"],\"added\":[\"a\"]}"),
			 EXIT_FAILED);
	assert_non_null(strstr(said, "mcpgatectl: e\n"));
	assert_non_null(strstr(said, "added: a\n"));
	assert_int_equal(reloads("{\"used\":true,\"warnings\":[\"w\"]}"), 0);
	assert_non_null(strstr(said, "mcpgatectl: warning: w\n"));
	assert_int_equal(reloads(NULL), EXIT_FAILED);
	assert_string_equal(said, "");
}

/* Texts of the file stand in what is wrong with it. */
static void nothing_acts_on_a_terminal(void **state)
{
	reloads("{\"used\":false,\"errors\":[\"\\u001b[2J\\u202e\\nx\", 7]}");
	assert_non_null(strstr(said, "mcpgatectl: \\x1b[2J\\u202e\\x0ax\nmcpgatectl: \n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_changed_is_told),
		cmocka_unit_test(what_is_wrong_fails),
		cmocka_unit_test(nothing_acts_on_a_terminal),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
