/* SPDX-License-Identifier: Apache-2.0 */
/* When which line comes, and that a gateway which was taken over can make the keeper say nothing else, and wait for nothing. */
#include "keeper/announcement.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unit_test.h"
#include "obs/log.h"

#define WAIT_MS 2000

static struct config_server servers[3]; /* plain is not tried, a and b are */
static struct config_listen listens[1];
static struct config config;
static struct announcement announcement;
static int listener;
static int ends[2];
static int own_stderr;
static uint64_t now_ms = 5000;

static void add(size_t i, const char *name, const char *path)
{
	servers[i] = (struct config_server){ .enabled = true };
	servers[i].conf.name = name;
	servers[i].conf.is_tried = i > 0;
	servers[i].endpoint.path = slice_str(path);
}

static int setup(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	clock_freeze(now_ms);
	add(0, "plain", "/plain/mcp");
	add(1, "a", "/a/mcp");
	add(2, "b", "/b/mcp");
	config = (struct config){ .servers = servers, .server_count = ARRAY_LEN(servers) };
	config.listen = listens;
	config.listen_count = 1;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	own_stderr = dup(STDERR_FILENO);
	announcement_init(&announcement, &config);
	return dup2(ends[1], STDERR_FILENO) < 0;
}

static int teardown(void **state)
{
	dup2(own_stderr, STDERR_FILENO);
	close(own_stderr);
	announcement_fini(&announcement);
	close(listener);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

/* What was said since the last look, with `@` for ` at URL` and the line's end. */
static const char *said(void)
{
	static char text[4096];
	char line[4096], *rest = line;
	ssize_t n = read(ends[0], line, sizeof(line) - 1);

	text[0] = '\0';
	line[n > 0 ? n : 0] = '\0';
	for (char *at; (at = strsep(&rest, "\n")) != NULL && *at != '\0';) {
		char *url = strstr(at, " at http://127.0.0.1:");

		assert_non_null(url);
		*url = '\0';
		assert_memory_equal(at, "mcpgated: ready: ", 17);
		strcat(text, at + 17);
		strcat(text, "@");
	}
	return text;
}

static void take_with(uint32_t server, int tools, struct slice name, struct slice version)
{
	announcement_take(&announcement, &(struct ipc_message){ .type = IPC_FOUND,
								.found = { server, tools },
								.texts = { name, version } });
}

static void take(uint32_t server, int tools, struct slice name)
{
	take_with(server, tools, name, slice_of(NULL, 0));
}

#define FOUND SLICE_LIT("name 1.2")

static void lines_wait_for_what_is_found(void **state)
{
	announcement_begin(&announcement, &listener);
	assert_string_equal(said(), "plain (not tried yet)@");
	assert_int_equal(announcement_do_due(&announcement), now_ms + WAIT_MS);
	take_with(2, 3, SLICE_LIT("name"), SLICE_LIT("1.2"));
	assert_string_equal(said(), "b (name 1.2, 3 tools)@");
	take(2, 4, FOUND);
	assert_string_equal(said(), "");
	take(1, IPC_FOUND_FAILING, slice_of(NULL, 0));
	assert_string_equal(said(), "a (fails to start, see the log)@");
}

static void lines_wait_for_two_seconds(void **state)
{
	announcement_begin(&announcement, &listener);
	assert_string_equal(said(), "plain (not tried yet)@");
	clock_freeze(now_ms + WAIT_MS - 1);
	(void)announcement_do_due(&announcement);
	assert_string_equal(said(), "");
	clock_freeze(now_ms + WAIT_MS);
	assert_true(announcement_do_due(&announcement) == UINT64_MAX);
	assert_string_equal(said(), "a (no answer yet)@b (no answer yet)@");
	take(1, 1, FOUND);
	assert_string_equal(said(), "");
}

/* With TLS the gateway may have looked before it serves. */
static void what_was_found_before_is_known(void **state)
{
	take(1, 1, SLICE_LIT("name"));
	take(2, IPC_FOUND_UNLISTED, slice_of(NULL, 0));
	assert_string_equal(said(), "");
	announcement_begin(&announcement, &listener);
	assert_string_equal(said(), "plain (not tried yet)@a (name, 1 tool)@b@");
	assert_true(announcement_do_due(&announcement) == UINT64_MAX);
}

/* SEC-68 */
static void gateway_is_not_believed(void **state)
{
	char many[IPC_TEXT_BYTES_MAX];
	struct slice text;

	take(UINT32_MAX, 1, FOUND);
	take(0, 1, FOUND); /* it is not tried */
	take(1, -77, slice_of(NULL, 0));
	memset(many, '\n', sizeof(many));
	take(2, INT32_MAX, slice_of(many, sizeof(many)));
	announcement_begin(&announcement, &listener);
	text = slice_str(said());
	assert_true(slice_has_prefix(text, SLICE_LIT("plain (not tried yet)@a@b (\\u000a\\u000a")));
	assert_true(text.n < 500 && memchr(text.p, '\n', text.n) == NULL);
	assert_non_null(strstr(text.p, "..., 2147483647 tools)@"));
}

/* The addresses stand in objects of the log, at once. */
static void log_of_objects_waits_for_nothing(void **state)
{
	char text[2048];
	ssize_t n;

	config.log_format = LOG_FORMAT_JSON;
	log_set(ends[1], LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	announcement_begin(&announcement, &listener);
	log_set(STDERR_FILENO, LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	assert_true(announcement_do_due(&announcement) == UINT64_MAX);
	n = read(ends[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	assert_non_null(strstr(text, "\"event\":\"endpoint_ready\",\"server\":\"plain\""));
	assert_non_null(strstr(text, "\"event\":\"endpoint_ready\",\"server\":\"b\""));
	assert_null(strstr(text, "mcpgated: ready"));
}

/* A stop while lines wait has closed the sockets. */
static void nothing_is_said_of_what_is_closed(void **state)
{
	int closed = -1;

	announcement_begin(&announcement, &closed);
	clock_freeze(now_ms + WAIT_MS);
	(void)announcement_do_due(&announcement);
	assert_string_equal(said(), "");
}

/* What waits is said of the servers as they were; what is found later may be about others. */
static void a_reload_ends_the_wait(void **state)
{
	struct config other = config;

	announcement_begin(&announcement, &listener);
	assert_string_equal(said(), "plain (not tried yet)@");
	announcement_renew(&announcement, &other);
	assert_string_equal(said(), "a (no answer yet)@b (no answer yet)@");
	assert_true(announcement_do_due(&announcement) == UINT64_MAX);
	take(1, 1, FOUND);
	announcement_renew(&announcement, &config);
	assert_string_equal(said(), "");
}

static void a_reload_before_it_begins_is_what_is_said(void **state)
{
	struct config other = config;

	other.servers = servers + 1;
	other.server_count = 2;
	take(2, 3, FOUND);
	announcement_renew(&announcement, &other);
	take(0, 3, FOUND);
	assert_string_equal(said(), "");
	announcement_begin(&announcement, &listener);
	assert_string_equal(said(), "a@b@");
	assert_true(announcement_do_due(&announcement) == UINT64_MAX);
}

/* As nobody can be somebody for a look. */
static void what_needs_claims_is_not_tried(void **state)
{
	const struct slice claim = SLICE("sub");

	servers[1].conf.claims = (struct slices){ &claim, 1 };
	announcement_begin(&announcement, &listener);
	assert_string_equal(said(), "plain (not tried yet)@a (not tried yet)@");
	servers[1].conf.claims.count = 0;
}

/* systemd means the process that it has started, if it says so. REL-52 */
static void the_watchdog_is_of_one_process(void **state)
{
	char own[16];
	const struct {
		const char *usec, *pid;
		uint64_t expected;
	} rows[] = {
		{ "30000000", NULL, 15000 },
		{ "30000000", own, 15000 },
		{ "30000000", "1", 0 },
		{ "30000000", "x", 0 },
		{ "2000", own, 1 },
		{ "1999", own, 0 },
		{ "x", own, 0 },
		{ NULL, own, 0 },
	};

	snprintf(own, sizeof(own), "%d", (int)getpid());
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct notify notify;

		setenv("NOTIFY_SOCKET", "/none", 1);
		if (rows[i].usec != NULL)
			setenv("WATCHDOG_USEC", rows[i].usec, 1);
		if (rows[i].pid != NULL)
			setenv("WATCHDOG_PID", rows[i].pid, 1);
		notify_init(&notify);
		assert_int_equal(notify.watchdog_ms, rows[i].expected);
		assert_null(getenv("WATCHDOG_PID"));
		close(notify.fd);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lines_wait_for_what_is_found),
		TEST(lines_wait_for_two_seconds),
		TEST(what_was_found_before_is_known),
		TEST(gateway_is_not_believed),
		TEST(log_of_objects_waits_for_nothing),
		TEST(nothing_is_said_of_what_is_closed),
		TEST(a_reload_ends_the_wait),
		TEST(a_reload_before_it_begins_is_what_is_said),
		TEST(what_needs_claims_is_not_tried),
		TEST(the_watchdog_is_of_one_process),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
