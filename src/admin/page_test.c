/* SPDX-License-Identifier: Apache-2.0 */
/* The status page: who gets what of it, and viewers that are many, or slow. */
#include "admin/page.h"

#include <sys/socket.h>
#include <unistd.h>

#include "admin/reports.h"
#include "router/stage.h"

/* Of "token". */
#define HASH "3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0"
#define CLIENTS_MAX (VIEWERS_MAX + 2)

static struct admin admin;
static struct http_server *front, *server;
static struct http_handler handler;
static int clients[CLIENTS_MAX];
static int client_count;
static struct buf answer;

static const struct frontend_conf no_rules;

static int setup(void **state)
{
	static const struct slice paths[] = { SLICE("/a/mcp"), SLICE("/b/mcp") };
	static const char *const names[] = { "a", "b" };
	static const struct http_conf http = { .header_bytes = 8192,
					       .body_bytes = 8192,
					       .header_timeout_ms = 600000,
					       .body_timeout_ms = 600000,
					       .idle_timeout_ms = 600000,
					       .stall_timeout_ms = 600000,
					       .max_connections = CLIENTS_MAX };

	router_stage_open();
	for (size_t i = 0; i < 2; i++)
		servers[i].conf.name = names[i];
	admin = (struct admin){ .refusal_said_ms = 0 };
	front = http_server_new(loop, &http, &handler);
	admin_init(&admin, &(struct admin_conf){ .router = &router,
						 .servers = servers,
						 .server_count = 2,
						 .fleet = &fleet,
						 .paths = paths,
						 .auth_mode = "none",
						 .client_frontend = &no_rules,
						 .front = front,
						 .page_token = HASH,
						 .version = "9" });
	server = http_server_new(loop, &http, &admin.page_handler);
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < client_count; i++)
		if (clients[i] >= 0)
			close(clients[i]);
	client_count = 0;
	http_server_free(&server);
	http_server_free(&front);
	admin_fini(&admin);
	buf_fini(&answer);
	return router_stage_close(state);
}

/* buffer_bytes: what is sent to it stays in the server beyond that; 0: as it comes. */
static int ask(const char *head, int buffer_bytes)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
			 0);
	if (buffer_bytes > 0)
		setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
	clients[client_count++] = fds[0];
	assert_int_equal(write(fds[0], head, strlen(head)), strlen(head));
	http_server_accept(server, &(struct http_arrival){ .fd = fds[1] });
	settle();
	return fds[0];
}

/* What has come on it, all of which is taken. */
static const char *take(int client)
{
	char bytes[4096];
	ssize_t got;

	answer.len = 0;
	do {
		got = read(client, bytes, sizeof(bytes));
		if (got > 0)
			buf_append(&answer, bytes, (size_t)got);
		settle();
	} while (got > 0);
	return buf_terminate(&answer);
}

static int status_of(const char *head)
{
	int status = 0;

	assert_int_equal(sscanf(take(ask(head, 0)), "HTTP/1.1 %d ", &status), 1);
	return status;
}

#define HOST "Host: 127.0.0.1:9\r\n"
#define RIGHT "Authorization: Bearer token\r\n"
#define GET(path, fields) "GET " path " HTTP/1.1\r\n" fields "\r\n"
#define POST(path, fields) "POST " path " HTTP/1.1\r\nContent-Length: 0\r\n" fields "\r\n"

/* SEC-78 SEC-01 */
static void strangers_get_nothing(void **state)
{
	static const struct {
		const char *head;
		int status;
	} rows[] = {
		{ GET("/", HOST), 200 },
		{ GET("/", "Host: localhost\r\n"), 200 },
		{ GET("/", "Host: [::1]:9\r\n"), 200 },
		{ GET("/", "Host: 127.8.9.1\r\n"), 200 },
		{ GET("/", "Host: 127.0.0.1.evil.example\r\n"), 403 },
		{ GET("/", "Host: evil.example\r\n"), 403 },
		{ GET("/access", HOST "Origin: http://127.0.0.1:9\r\n"), 200 },
		{ GET("/access", HOST "Origin: http://127.0.0.1:90\r\n"), 403 },
		{ GET("/access", HOST "Origin: https://127.0.0.1:9\r\n"), 403 },
		{ GET("/access", HOST "Origin: ftps://127.0.0.1:9\r\n"), 403 },
		{ GET("/access", HOST "Origin: null\r\n"), 403 },
		{ POST("/drain", HOST RIGHT "Origin: http://evil.example\r\n"), 403 },
		{ GET("/access", HOST "Sec-Fetch-Site: same-origin\r\n"), 200 },
		{ GET("/access", HOST "Sec-Fetch-Site: none\r\n"), 200 },
		{ GET("/access", HOST "Sec-Fetch-Site: same-site\r\n"), 403 },
		{ GET("/events", HOST "Sec-Fetch-Site: cross-site\r\n"), 403 },
		{ GET("/", HOST "Sec-Fetch-Site: cross-site\r\n"), 200 }, /* a link */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (status_of(rows[i].head) != rows[i].status)
			fail_msg("%s is answered with %s", rows[i].head, answer.data);
}

/* SEC-78: what is not in the table for the page is not there, with the token neither. */
static void the_page_has_little(void **state)
{
	static const char *const nothing[] = {
		GET("/status", HOST RIGHT),    GET("/metrics", HOST RIGHT),
		GET("/deny", HOST RIGHT),      GET("/mcp/a", HOST RIGHT),
		POST("/deny-add", HOST RIGHT), POST("/reload", HOST RIGHT),
		POST("/can", HOST RIGHT),      GET("/page/../status", HOST),
	};

	for (size_t i = 0; i < ARRAY_LEN(nothing); i++)
		if (status_of(nothing[i]) != 404)
			fail_msg("%s is answered with %s", nothing[i], answer.data);
	assert_int_equal(status_of(POST("/", HOST)), 405);
	assert_int_equal(status_of(POST("/events", HOST)), 405);
}

static void orders_take_the_token(void **state)
{
	static const char *const orders[] = {
		POST("/drain", HOST),
		POST("/end-session?id=abcd", HOST),
		POST("/pins-approve?server=a", HOST),
		POST("/pins-reject?server=a", HOST),
	};

	assert_int_equal(status_of(POST("/restart?server=a", HOST)), 403);
	assert_int_equal(status_of(POST("/restart?server=a", HOST "Authorization: Bearer x\r\n")),
			 403);
	assert_int_equal(status_of(POST("/restart?server=a", HOST "Authorization: token\r\n")),
			 403);
	assert_int_equal(status_of(GET("/access", HOST "Authorization: Bearer x\r\n")), 403);
	assert_true(is_logged("admin_refused"));
	assert_non_null(
		strstr(take(ask(GET("/access", HOST), 0)), "{\"orders\":false,\"token\":true}"));
	assert_non_null(strstr(take(ask(GET("/access", HOST RIGHT), 0)),
			       "{\"orders\":true,\"token\":false}"));
	assert_non_null(strstr(answer.data, "\r\nCache-Control: no-store\r\n"));
	assert_int_equal(status_of(
				 POST("/restart?server=a", HOST "Authorization: Basic token\r\n")),
			 403);
	for (size_t i = 0; i < ARRAY_LEN(orders); i++)
		if (status_of(orders[i]) != 403)
			fail_msg("%s is answered with %s", orders[i], answer.data);
	assert_false(is_logged("admin_command"));
	assert_int_equal(status_of(POST("/restart?server=a", HOST RIGHT)), 200);
	assert_true(is_logged("admin_command"));
}

/* A hash that differs in its last digit is that of another token. */
static void all_of_the_hash_counts(void **state)
{
	char *last = &admin.page_token[strlen(admin.page_token) - 1];

	*last = *last == '0' ? '1' : '0';
	assert_int_equal(status_of(GET("/access", HOST RIGHT)), 403);
}

/* Whoever guesses does not fill the log. */
static void wrong_tokens_are_told_of_now_and_then(void **state)
{
	for (int i = 0; i < 3; i++)
		assert_int_equal(status_of(POST("/drain", HOST)), 403);
	assert_int_equal(count_logged("admin_refused"), 1);
	pass(60 * 1000);
	assert_int_equal(status_of(POST("/drain", HOST)), 403);
	assert_int_equal(count_logged("admin_refused"), 2);
}

static void every_file_is_served(void **state)
{
	static const char page_policy[] =
		"\r\nContent-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
		"img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n";

	assert_int_equal(page_file_count, 4);
	for (size_t i = 0; i < page_file_count; i++) {
		struct buf head = { 0 };
		const char *text;

		buf_printf(&head, "GET %s HTTP/1.1\r\n" HOST "\r\n", page_files[i].path);
		text = take(ask(buf_terminate(&head), 0));
		assert_non_null(strstr(text, page_files[i].type));
		assert_non_null(strstr(text, page_policy));
		assert_non_null(strstr(text, "\r\nCache-Control: no-store\r\n"));
		assert_non_null(strstr(text, "\r\nX-Content-Type-Options: nosniff\r\n"));
		assert_memory_equal(answer.data + answer.len - page_files[i].size,
				    page_files[i].bytes, page_files[i].size);
		buf_fini(&head);
	}
}

static size_t count_events(const char *text)
{
	size_t count = 0;

	for (; (text = strstr(text, "event: message\ndata: {\"at_ms\":")) != NULL; text++)
		count++;
	return count;
}

static unsigned long long uptime_of(const char *text)
{
	const char *at = strstr(text, "\"uptime_ms\":");

	assert_non_null(at);
	return strtoull(at + strlen("\"uptime_ms\":"), NULL, 10);
}

/* Each is made once, for all. */
static void snapshots_are_new_and_shared(void **state)
{
	int first = ask(GET("/events", HOST), 0), second;
	unsigned long long uptime_ms = uptime_of(take(first));

	pass(VIEWERS_EVERY_MS / 2);
	second = ask(GET("/events", HOST), 0);
	assert_int_equal(uptime_of(take(second)), uptime_ms);
	pass(VIEWERS_EVERY_MS / 2);
	assert_int_equal(uptime_of(take(first)), uptime_ms + VIEWERS_EVERY_MS);
	assert_int_equal(uptime_of(take(second)), uptime_ms + VIEWERS_EVERY_MS);
}

/* Whoever was there before, and whenever he has left. */
static void nobody_gets_a_snapshot_twice(void **state)
{
	int first = ask(GET("/events", HOST), 0), second, third;
	unsigned long long uptime_ms = uptime_of(take(first));

	pass(700);
	close(first);
	clients[0] = -1;
	settle();
	second = ask(GET("/events", HOST), 0);
	assert_int_equal(uptime_of(take(second)), uptime_ms);
	pass(VIEWERS_EVERY_MS - 700);
	third = ask(GET("/events", HOST), 0);
	assert_int_equal(uptime_of(take(third)), uptime_ms + VIEWERS_EVERY_MS);
	pass(700);
	assert_int_equal(uptime_of(take(third)), uptime_ms + VIEWERS_EVERY_MS + 700);
	assert_int_equal(uptime_of(take(second)), uptime_ms + VIEWERS_EVERY_MS + 700);
}

/* One each second, and none when nobody looks. */
static void snapshots_come_in_time(void **state)
{
	int client = ask(GET("/events", HOST), 0);

	assert_int_equal(count_events(take(client)), 1);
	assert_non_null(strstr(answer.data, "retry: 1000\n"));
	assert_non_null(strstr(answer.data, "\"sessions\":[]"));
	assert_non_null(strstr(answer.data, "\"requests\":"));
	pass(VIEWERS_EVERY_MS - 1);
	assert_int_equal(count_events(take(client)), 0);
	pass(1);
	assert_int_equal(count_events(take(client)), 1);
	close(client);
	clients[0] = -1;
	settle();
	pass(VIEWERS_EVERY_MS);
	assert_int_equal(admin.viewers.count, 0);
	assert_false(timer_is_running(&admin.viewers.every));
}

static void viewers_are_bounded(void **state)
{
	for (int i = 0; i < VIEWERS_MAX; i++)
		assert_int_equal(status_of(GET("/events", HOST)), 200);
	assert_int_equal(status_of(GET("/events", HOST)), 503);
	assert_non_null(strstr(answer.data, "too many look at the page already"));
	close(clients[3]);
	clients[3] = -1;
	settle();
	assert_int_equal(admin.viewers.count, VIEWERS_MAX - 1);
	assert_int_equal(status_of(GET("/events", HOST)), 200);
}

#define MARK_BYTES (256 * 1024) /* of http_conn_has_room */

/* Lets seconds pass until this viewer, who takes all, has got so many bytes, or the other one has gone. */
static size_t look(int client, size_t bytes)
{
	size_t sent = 0;

	while (sent < bytes && admin.viewers.count == 2) {
		pass(VIEWERS_EVERY_MS);
		sent += strlen(take(client));
	}
	return sent;
}

/* Who takes nothing gets nothing more, and is ended; who has caught up in time goes on. */
static void slow_viewers_are_ended(void **state)
{
	int slow = ask(GET("/events", HOST), 4096);
	int other = ask(GET("/events", HOST), 0);
	size_t one = strlen(take(other)), sent;

	look(other, MARK_BYTES + 7 * one);
	assert_int_equal(admin.viewers.count, 2);
	assert_true(count_events(take(slow)) >= MARK_BYTES / one - 1);
	assert_true(answer.len < MARK_BYTES + 3 * one); /* the last few were left out */
	look(other, 12 * one);
	assert_int_equal(admin.viewers.count, 2);
	assert_true(count_events(take(slow)) >= 11);

	sent = look(other, 2 * MARK_BYTES);
	assert_int_equal(admin.viewers.count, 1);
	assert_true(sent >= MARK_BYTES + 9 * one && sent < MARK_BYTES + 20 * one);
	pass(VIEWERS_EVERY_MS);
	assert_int_equal(count_events(take(other)), 1);
}

/* Before it is answered: nobody is there to look. */
static void who_closes_his_end_has_left(void **state)
{
	static const char head[] = GET("/events", HOST);
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
			 0);
	clients[client_count++] = fds[0];
	assert_int_equal(write(fds[0], head, sizeof(head) - 1), sizeof(head) - 1);
	assert_int_equal(shutdown(fds[0], SHUT_WR), 0);
	http_server_accept(server, &(struct http_arrival){ .fd = fds[1] });
	settle();
	assert_int_equal(admin.viewers.count, 0);
}

/* Lines of a server, which keeps the last ones: what waits for who does not read is bounded. */
static void slow_readers_of_lines_miss_some(void **state)
{
	size_t users = servers[0].users;
	int slow = ask(GET("/logs?server=a&follow=1", HOST), 4096);
	char line[1000];

	assert_int_equal(servers[0].users, users); /* a reload may put another in its place */
	memset(line, 'x', sizeof(line));
	for (size_t i = 0; i < 4 * MARK_BYTES / sizeof(line); i++)
		stderr_ring_add(&servers[0].stats->stderr_ring, 1, slice_of(line, sizeof(line)));
	settle();
	take(slow);
	assert_true(answer.len > MARK_BYTES / 2 && answer.len < 2 * MARK_BYTES);
	stderr_ring_add(&servers[0].stats->stderr_ring, 1, SLICE_LIT("the last one"));
	settle();
	assert_non_null(strstr(take(slow), "the last one"));
	close(slow);
	clients[0] = -1;
	settle();
	assert_int_equal(servers[0].users, users);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(strangers_get_nothing),
		TEST(the_page_has_little),
		TEST(orders_take_the_token),
		TEST(every_file_is_served),
		TEST(snapshots_come_in_time),
		TEST(viewers_are_bounded),
		TEST(slow_viewers_are_ended),
		TEST(all_of_the_hash_counts),
		TEST(wrong_tokens_are_told_of_now_and_then),
		TEST(snapshots_are_new_and_shared),
		TEST(nobody_gets_a_snapshot_twice),
		TEST(who_closes_his_end_has_left),
		TEST(slow_readers_of_lines_miss_some),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
