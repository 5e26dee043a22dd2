/* SPDX-License-Identifier: Apache-2.0 */
/* What is offered to a shell, with a daemon that answers what a test wants. */
#include "ctl/complete.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/unit_test.h"
#include "ctl/client.h"
#include "ctl/line.h"

static const char *answer; /* NULL: no daemon answers */
static char asked_at[CLIENT_PATH_BYTES];
static long asked_ms;

bool client_find_socket(char path_r[CLIENT_PATH_BYTES])
{
	strcpy(path_r, "/usual");
	return true;
}

int client_ask(const struct client_request *request, struct client_reply *reply_r,
	       struct error *err)
{
	assert_string_equal(request->target, "/servers");
	strcpy(asked_at, request->socket);
	asked_ms = request->total_ms;
	*reply_r = (struct client_reply){ .status = 200 };
	return answer != NULL ? 0 : error_set(err, ERROR_SYSTEM, "nobody");
}

json_t *client_reply_read(const struct client_reply *reply, struct error *err)
{
	return json_loads(answer, 0, NULL);
}

void client_reply_fini(struct client_reply *reply)
{
}

static const char *command(size_t i, const char **arguments_r)
{
	static const char *const rows[][2] = {
		{ "status", "" },
		{ "logs", "SERVER [--follow]" },
		{ "tools", "[SERVER]" },
		{ "deny", "add|list|remove [NUMBER]" },
		{ "can", "WHO [SERVER]" },
		{ "client-config", "SERVER [--client C]" },
		{ "pins", "[approve|reject] [S]" },
	};

	*arguments_r = i < ARRAY_LEN(rows) ? rows[i][1] : NULL;
	return i < ARRAY_LEN(rows) ? rows[i][0] : NULL;
}

static const struct option options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "follow", no_argument, NULL, 'f' },
	{ "client", required_argument, NULL, 256 },
	{ NULL, 0, NULL, 0 },
};

static const char *value(const char *option, size_t i)
{
	static const char *const clients[] = { "cline", "codex", "zed" };

	return strcmp(option, "client") == 0 && i < ARRAY_LEN(clients) ? clients[i] : NULL;
}

/* What is printed for these words, the last of which is being typed. */
static const char *offered(char *const *words, int count)
{
	static char text[1024];
	int saved = dup(STDOUT_FILENO);
	FILE *file = tmpfile();
	size_t n;

	assert_non_null(file);
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	complete_print(&(struct complete_forms){ command, value, options }, words, count);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	fclose(file);
	return text;
}

#define OFFERED(...)                            \
	offered((char *const[]){ __VA_ARGS__ }, \
		(int)(sizeof((char *const[]){ __VA_ARGS__ }) / sizeof(char *)))

static void test_commands_and_words(void **state)
{
	answer = NULL;
	assert_string_equal(OFFERED(""),
			    "help\nstatus\nlogs\ntools\ndeny\ncan\nclient-config\npins\n");
	assert_string_equal(OFFERED("c"), "can\nclient-config\n");
	assert_string_equal(OFFERED("deny", ""), "add\nlist\nremove\n");
	assert_string_equal(OFFERED("deny", "r"), "remove\n");
	assert_string_equal(OFFERED("deny", "add", ""), "");
	assert_string_equal(OFFERED("-"), "--socket\n--follow\n--client\n");
	assert_string_equal(OFFERED("logs", "--f"), "--follow\n");
	assert_string_equal(OFFERED("nothing", ""), "");
	assert_string_equal(offered(NULL, 0), OFFERED(""));
}

static void test_values_of_options(void **state)
{
	answer = NULL;
	assert_string_equal(OFFERED("client-config", "x", "--client", ""), "cline\ncodex\nzed\n");
	assert_string_equal(OFFERED("--client", "c"), "cline\ncodex\n");
	assert_string_equal(OFFERED("--client", "="), "cline\ncodex\nzed\n"); /* bash */
	assert_string_equal(OFFERED("--client", "=", "z"), "zed\n");
	assert_string_equal(OFFERED("--client=c"), "--client=cline\n--client=codex\n");
	assert_string_equal(OFFERED("--socket="), "");
	assert_string_equal(OFFERED("--client", "zed", "p"), "pins\n");
	assert_string_equal(OFFERED("--=z"), "");
}

static void test_help_of_a_command(void **state)
{
	assert_string_equal(OFFERED("h"), "help\n");
	assert_string_equal(OFFERED("help", "c"), "can\nclient-config\n");
	assert_string_equal(OFFERED("help", "can", ""), "");
}

static void test_names_of_servers(void **state)
{
	answer = "{\"servers\":[{\"name\":\"git\"},{\"name\":\"db_2\"},{\"name\":7},{}]}";
	assert_string_equal(OFFERED("logs", ""), "git\ndb_2\n");
	assert_string_equal(asked_at, "/usual");
	assert_string_equal(OFFERED("-s", "/other", "logs", "g"), "git\n");
	assert_string_equal(asked_at, "/other");
	assert_string_equal(OFFERED("can", ""), "");
	assert_string_equal(OFFERED("can", "alice", ""), "git\ndb_2\n");
	assert_string_equal(OFFERED("-f", "logs", ""), "git\ndb_2\n");
	assert_string_equal(OFFERED("logs", "-s", ""), "");
	assert_string_equal(OFFERED("logs", "git", ""), "");
	assert_true(asked_ms > 0 && asked_ms <= 5000);
}

/* What is in brackets may be left out: behind it may stand what follows. */
static void test_what_may_be_left_out(void **state)
{
	answer = "{\"servers\":[{\"name\":\"git\"},{\"name\":\"db_2\"}]}";
	assert_string_equal(OFFERED("pins", ""), "approve\nreject\ngit\ndb_2\n");
	assert_string_equal(OFFERED("pins", "re"), "reject\n");
	assert_string_equal(OFFERED("pins", "g"), "git\n");
	assert_string_equal(OFFERED("pins", "approve", ""), "git\ndb_2\n");
	assert_string_equal(OFFERED("pins", "reject", "d"), "db_2\n");
	assert_string_equal(OFFERED("pins", "git", ""), "");
	assert_string_equal(OFFERED("pins", "approve", "git", ""), "");
	assert_string_equal(OFFERED("pins", "1", "2", "3", "4", "5", "6", "7", "8", "9", ""), "");
}

static void test_a_socket_in_one_word(void **state)
{
	answer = "{\"servers\":[{\"name\":\"git\"}]}";
	assert_string_equal(OFFERED("--socket=/one", "logs", ""), "git\n");
	assert_string_equal(asked_at, "/one");
	assert_string_equal(OFFERED("-s/two", "logs", ""), "git\n");
	assert_string_equal(asked_at, "/two");
	assert_string_equal(OFFERED("logs", "--socket=/three", "g"), "git\n");
	assert_string_equal(asked_at, "/three");
	assert_string_equal(OFFERED("--socket", "=", "/four", "logs", ""), "git\n"); /* bash */
	assert_string_equal(asked_at, "/four");
	assert_string_equal(OFFERED("--socket", "=", ""), "");
	assert_string_equal(OFFERED("--socket", "="), "");
}

/* Whoever answers at the socket: a shell may put what is offered into the line as it is. */
static void test_hostile_names_are_not_offered(void **state)
{
	answer = "{\"servers\":[{\"name\":\"a b\"},{\"name\":\"$(x)\"},{\"name\":\"`x`\"},"
		 "{\"name\":\"a;x\"},{\"name\":\"a\\nb\"},{\"name\":\"\\u001b[2J\"},"
		 "{\"name\":\"a|x\"},{\"name\":\"~\"},{\"name\":\"*\"},{\"name\":\"'\"},"
		 "{\"name\":\"--socket\"},{\"name\":\"\"},{\"name\":\"\\u00e4\"},{\"name\":\"/x\"},"
		 "{\"name\":\"good\"}]}";
	assert_string_equal(OFFERED("logs", ""), "good\n");
	answer = "[]";
	assert_string_equal(OFFERED("logs", ""), "");
	answer = "nonsense";
	assert_string_equal(OFFERED("logs", ""), "");
}

/* The last word of what is too long for a path is not looked at beyond it. */
static void test_a_long_socket(void **state)
{
	char path[400];

	answer = "{\"servers\":[]}";
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_string_equal(OFFERED("-s", path, "logs", ""), "");
	assert_int_equal(strlen(asked_at), CLIENT_PATH_BYTES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands_and_words),
		cmocka_unit_test(test_values_of_options),
		cmocka_unit_test(test_help_of_a_command),
		cmocka_unit_test(test_names_of_servers),
		cmocka_unit_test(test_what_may_be_left_out),
		cmocka_unit_test(test_a_socket_in_one_word),
		cmocka_unit_test(test_hostile_names_are_not_offered),
		cmocka_unit_test(test_a_long_socket),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
