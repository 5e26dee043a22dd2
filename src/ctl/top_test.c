/* SPDX-License-Identifier: Apache-2.0 */
/* What top shows of the reports of a daemon that answers what a test wants. */
/* The daemon is this test. */
#define line_ask fake_line_ask
#include "ctl/show.c"

#include <locale.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/unit_test.h"

static const char *const *answers; /* one for each view; NULL: the daemon answers no more */

json_t *line_ask(const struct line *line, const char *method, char *target, struct slice body)
{
	assert_string_equal(method, "GET");
	assert_string_equal(target, "/status");
	free(target);
	return *answers != NULL ? json_loads(*answers++, 0, NULL) : NULL;
}

/* The last of as many views as there are answers. */
static const char *last_view(const char *const *reports)
{
	static char text[4096];
	struct line line = { .delay = "0.1" };
	int saved = dup(STDOUT_FILENO);
	FILE *file = tmpfile();
	char views[24];
	const char *at, *last;
	size_t count = 0, n;

	assert_non_null(file);
	while (reports[count] != NULL)
		count++;
	snprintf(views, sizeof(views), "%zu", count);
	line.views = views;
	answers = reports;
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	assert_int_equal(top_run(&line), 0);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	fclose(file);
	for (at = last = text; (at = strstr(at, "mcpgated ")) != NULL; at++)
		last = at;
	return last;
}

#define HEAD                                                                        \
	"\"version\":\"1\",\"state\":\"serving\",\"connections\":2,\"sessions\":3," \
	"\"processes\":4,\"calls\":5"
#define TITLES \
	"\nSERVER  STATE  PROCESSES  SESSIONS  CALLS  WAITING  CALLS/S  ERRORS/S   P50   P95   P99\n"

static void rates_are_of_the_time_between(void **state)
{
	static const char *const reports[] = {
		"{" HEAD ",\"uptime_ms\":1000,\"servers\":["
		"{\"name\":\"b\",\"answered\":700,\"answer_buckets\":[700]},"
		"{\"name\":\"a\",\"state\":\"ready\",\"answered\":10,\"errors\":1,\"failed\":1,"
		"\"answer_buckets\":[10]}]}",
		"{" HEAD ",\"uptime_ms\":3000,\"servers\":["
		"{\"name\":\"a\",\"state\":\"ready\",\"processes\":1,\"sessions\":2,\"calls\":3,"
		"\"waiting\":4,\"answered\":30,\"errors\":5,\"failed\":3,"
		"\"answer_buckets\":[10,0,20]}]}",
		NULL,
	};

	assert_string_equal(
		last_view(reports),
		"mcpgated 1: serving; of the last 2.0 s\n"
		"2 connections, 3 sessions, 4 processes, 5 calls in flight\n" TITLES
		"a       ready          1         2      3        4     11.0       3.0  <4ms  <4ms  <4ms\n");
}

/* What its counters say is of its whole life then. */
static void a_daemon_begins_anew(void **state)
{
	static const char *const reports[] = {
		"{" HEAD ",\"uptime_ms\":900000,\"servers\":[{\"name\":\"a\",\"state\":\"ready\","
		"\"answered\":100,\"errors\":9,\"failed\":9,\"answer_buckets\":[100]}]}",
		"{" HEAD ",\"uptime_ms\":2000,\"servers\":[{\"name\":\"a\",\"state\":\"ready\","
		"\"answered\":4,\"errors\":2,\"failed\":0,\"answer_buckets\":[4]}]}",
		NULL,
	};
	const char *view = last_view(reports);

	assert_non_null(strstr(view, "of the last 2.0 s\n"));
	assert_non_null(strstr(view, "  2.0       1.0  <1ms  <1ms  <1ms\n"));
}

/* One that a reload retired meanwhile has done nothing since; afterwards it has rates of its own. */
static void a_retiring_server_has_its_own_rates(void **state)
{
	static const char *const reports[] = {
		"{" HEAD ",\"uptime_ms\":1000,\"servers\":[{\"name\":\"a\",\"state\":\"ready\","
		"\"answered\":100,\"answer_buckets\":[100]}]}",
		"{" HEAD ",\"uptime_ms\":2000,\"servers\":[{\"name\":\"a\",\"state\":"
		"\"retiring\",\"answered\":90,\"answer_buckets\":[90]},{\"name\":\"a\","
		"\"state\":\"ready\",\"answered\":107,\"answer_buckets\":[107]}]}",
		NULL,
	};
	const char *const later[] = {
		reports[1],
		"{" HEAD ",\"uptime_ms\":3000,\"servers\":[{\"name\":\"a\",\"state\":"
		"\"retiring\",\"answered\":92,\"answer_buckets\":[92]},{\"name\":\"a\","
		"\"state\":\"ready\",\"answered\":112,\"answer_buckets\":[112]}]}",
		NULL,
	};
	const char *view = last_view(reports);

	assert_non_null(
		strstr(view, "a       retiring          0         0      0        0      0.0"));
	assert_non_null(
		strstr(view, "a       ready             0         0      0        0      7.0"));
	view = last_view(later);
	assert_non_null(
		strstr(view, "a       retiring          0         0      0        0      2.0"));
	assert_non_null(
		strstr(view, "a       ready             0         0      0        0      5.0"));
}

static void no_time_between_is_little(void **state)
{
	static const char *const reports[] = {
		"{\"uptime_ms\":0,\"servers\":[{\"name\":\"a\",\"answered\":1}]}",
		NULL,
	};
	const char *view = last_view(reports);

	assert_null(strstr(view, "inf"));
	assert_non_null(strstr(view, "  1000.0       0.0    -    -    -\n"));
}

/* Whoever answers at the socket. */
static void nothing_acts_on_a_terminal(void **state)
{
	static const char *const reports[] = {
		"{\"version\":\"\\u001b[2J\",\"state\":\"\\u202e\",\"servers\":[{\"name\":\"a\\nb\","
		"\"state\":\"\\u0007\"}]}",
		NULL,
	};
	const char *view = last_view(reports);

	assert_non_null(strstr(view, "mcpgated \\x1b[2J: \\u202e; "));
	assert_non_null(strstr(view, "\na\\x0ab  \\x07 "));
}

static void the_daemon_ends(void **state)
{
	struct line line = { .views = "3", .delay = "0.1" };
	static const char *const none[] = { NULL };

	answers = none;
	assert_int_equal(top_run(&line), EXIT_FAILED);
}

static void numbers_are_bounded(void **state)
{
	static const char *const delays[] = { "0.09", "3601", "x", "1x", "", "nan", "inf" };
	static const char *const views[] = { "0", "-1", "1000000001", "x", "nan" };

	for (size_t i = 0; i < ARRAY_LEN(delays); i++)
		assert_int_equal(top_run(&(struct line){ .delay = delays[i] }), EXIT_USAGE);
	for (size_t i = 0; i < ARRAY_LEN(views); i++)
		assert_int_equal(top_run(&(struct line){ .views = views[i] }), EXIT_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_of_the_time_between),
		cmocka_unit_test(a_daemon_begins_anew),
		cmocka_unit_test(a_retiring_server_has_its_own_rates),
		cmocka_unit_test(no_time_between_is_little),
		cmocka_unit_test(nothing_acts_on_a_terminal),
		cmocka_unit_test(the_daemon_ends),
		cmocka_unit_test(numbers_are_bounded),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
