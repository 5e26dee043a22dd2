/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection from both of its sides: a client on a socket pair that sends bytes as it likes, and
 * a handler that answers at once, later, as a stream, or not at all. The clock stands unless moved.
 */
#include "http/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/unit_test.h"
#include "http/reply.c"
#include "obs/log.h"

#define HEADER_BYTES 4096
#define BODY_BYTES (2 * 1024 * 1024)
#define HEADER_MS 1000
#define BODY_MS 3000
#define IDLE_MS 5000
#define STALL_MS 8000
#define LINGER_MS 2000
#define CONNECTIONS_MAX 8
#define ROOM_HIGH_BYTES (256 * 1024)
#define JOBS_MAX 64

#define HOST "Host: a\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"
#define POST(path, length) "POST " path " HTTP/1.1\r\n" HOST "Content-Length: " length "\r\n\r\n"
#define CHUNKED(path) "POST " path " HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"

/* One request as the handler has seen it. */
struct job {
	struct http_exchange exchange;
	struct http_conn *conn; /* stays, to be ended by */
	char path[24];
	struct buf body;
	int bodies;
	int rooms;
	int gone;
	enum reason reason;
	void (*on_room)(struct job *job);
	void (*on_gone)(struct job *job);
};

struct client {
	int fd;
	int server_fd; /* the other end; only to be looked at */
	struct buf in;
	bool has_ended;
};

static struct loop *loop;
static struct http_server *server;
static struct job jobs[JOBS_MAX];
static int job_count;
static size_t
	slow_count; /* requests for /slow, which are no jobs any more once they are answered */
static uint64_t now_ms = 1000000;

/* ---- the handler ---- */

static void reply_text(struct http_conn *conn, int status, const char *text)
{
	const struct slice parts[] = { slice_str(text), SLICE(""), SLICE(".") };

	http_reply(conn, &(struct http_reply){
				 .status = status,
				 .content_type = "text/plain",
				 .fields = (struct slice[]){ SLICE("X-Test: "), SLICE("yes\r\n") },
				 .field_count = 2,
				 .parts = parts,
				 .part_count = 3 });
}

static void job_reply(struct job *job)
{
	reply_text(job->exchange.conn, 200, job->path);
	assert_null(job->exchange.conn);
}

static void job_on_body(struct http_exchange *exchange, struct slice body)
{
	struct job *job = container_of(exchange, struct job, exchange);

	job->bodies++;
	buf_append_slice(&job->body, body);
	if (strcmp(job->path, "/slow") == 0) {
		clock_freeze(now_ms += 10); /* the turn gets long */
		slow_count++;
		job_count--;
	}
	if (strcmp(job->path, "/sync") == 0 || strcmp(job->path, "/slow") == 0)
		job_reply(job);
	else if (strcmp(job->path, "/stream") == 0)
		http_stream_begin(exchange->conn, sse_fields);
	else if (strcmp(job->path, "/end-in-body") == 0)
		http_conn_end(exchange->conn, REASON_CANCELLED);
}

static void job_on_room(struct http_exchange *exchange)
{
	struct job *job = container_of(exchange, struct job, exchange);

	job->rooms++;
	if (job->on_room != NULL)
		job->on_room(job);
}

static void job_on_gone(struct http_exchange *exchange, enum reason reason)
{
	struct job *job = container_of(exchange, struct job, exchange);

	assert_null(exchange->conn);
	job->gone++;
	job->reason = reason;
	if (job->on_gone != NULL)
		job->on_gone(job);
}

static const struct http_exchange_ops job_ops = { .on_body = job_on_body,
						  .on_room = job_on_room,
						  .on_gone = job_on_gone };

static struct http_exchange *on_request(struct http_handler *handler, struct http_conn *conn,
					const struct http_request *request)
{
	struct job *job = &jobs[job_count++];

	assert_in_range(job_count, 1, JOBS_MAX);
	job->exchange.ops = &job_ops;
	job->conn = conn;
	snprintf(job->path, sizeof(job->path), "%.*s", SLICE_ARG(request->path));
	if (strcmp(job->path, "/refuse") == 0)
		reply_text(conn, 403, job->path);
	else if (strcmp(job->path, "/end") == 0)
		http_conn_end(conn, REASON_CANCELLED);
	else if (strcmp(job->path, "/judge") == 0)
		return http_conn_hold(conn), &job->exchange;
	else
		return &job->exchange;
	return NULL;
}

static void write_error(struct http_handler *handler, int status, const char *reason,
			struct buf *body)
{
	buf_printf(body, "{\"status\":%d,\"why\":\"%s\"}", status, reason);
}

static struct client clients[CONNECTIONS_MAX + 3];
static int client_count;
static struct client
	*announced; /* to whom nothing may have been sent before a write is announced */
static int announcements;

static bool has_bytes(const struct client *client)
{
	char byte;

	return recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static void before_write(struct http_handler *handler)
{
	announcements++;
	if (announced != NULL)
		assert_false(has_bytes(announced));
	announced = NULL;
}

static struct http_handler handler = { on_request, write_error, before_write };

/* ---- the client ---- */

static void turns(int count)
{
	for (int i = 0; i < count; i++)
		loop_turn(loop, false);
}

static void advance(uint64_t by_ms)
{
	now_ms += by_ms;
	clock_freeze(now_ms);
	turns(2);
}

/* The port of the clients to come. */
static unsigned int coming_by;

static struct client *client_new(void)
{
	struct client *client = &clients[client_count++];
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
			 0);
	client->fd = fds[0];
	client->server_fd = fds[1];
	http_server_accept(server, &(struct http_arrival){ .fd = fds[1], .port = coming_by });
	return client;
}

static void client_close(struct client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
	turns(2);
}

/* Sends as far as the server takes it; returns the bytes sent. */
static size_t client_send_bytes(struct client *client, struct slice bytes)
{
	size_t sent = 0;

	for (int idle = 0; sent < bytes.n && idle < 5;) {
		ssize_t n = write(client->fd, bytes.p + sent, bytes.n - sent);

		sent += n > 0 ? (size_t)n : 0;
		idle = n > 0 ? 0 : idle + 1;
		turns(1);
	}
	turns(2);
	return sent;
}

static void client_send(struct client *client, const char *text)
{
	assert_int_equal(client_send_bytes(client, slice_str(text)), strlen(text));
}

/* Reads what comes until nothing more does. */
static void client_pump(struct client *client)
{
	for (int idle = 0; idle < 4; idle++) {
		ssize_t n;

		turns(1);
		while ((n = read(client->fd, buf_reserve(&client->in, 65536), 65536)) > 0) {
			client->in.len += (size_t)n;
			idle = 0;
		}
		client->has_ended |= n == 0 || errno != EAGAIN;
	}
}

struct answer {
	int status;
	char head[2048];
	struct slice body;
	struct buf decoded;
};

static struct answer answer; /* of the last client_take */

/* Cuts a chunked body off the front of `in`; false if it is not complete. */
static bool take_chunks(struct slice in, struct buf *body_r, size_t *used_r)
{
	const char *begin = in.p;

	for (;;) {
		const char *line_end = in.n > 0 ? memmem(in.p, in.n, "\r\n", 2) : NULL;
		size_t size;

		if (line_end == NULL)
			return false;
		size = strtoul(in.p, NULL, 16);
		if (in.p + in.n < line_end + 2 + size + 2)
			return false;
		buf_append(body_r, line_end + 2, size);
		assert_memory_equal(line_end + 2 + size, "\r\n", 2);
		in = slice_between(line_end + 2 + size + 2, in.p + in.n);
		if (size == 0)
			break;
	}
	*used_r = (size_t)(in.p - begin);
	return true;
}

/* Takes the next answer out of what has come; returns its status, or 0 if none is complete. */
static int client_take_as(struct client *client, bool has_body)
{
	const char *end, *field;
	size_t head, length;

	client_pump(client);
	buf_consume(&answer.decoded, answer.decoded.len);
	answer.body = (struct slice){ NULL, 0 };
	end = client->in.len > 0 ? memmem(client->in.data, client->in.len, "\r\n\r\n", 4) : NULL;
	if (end == NULL)
		return 0;
	head = (size_t)(end - client->in.data) + 4;
	assert_in_range(head, 1, sizeof(answer.head) - 1);
	memcpy(answer.head, client->in.data, head);
	answer.head[head] = '\0';
	assert_int_equal(sscanf(answer.head, "HTTP/1.1 %3d ", &answer.status), 1);
	buf_consume(&client->in, head);
	length = client->in.len; /* to the end of the connection */
	field = strstr(answer.head, "Content-Length: ");
	if (!has_body || answer.status == 100 || answer.status == 204)
		length = 0;
	else if (strstr(answer.head, "Transfer-Encoding: chunked") != NULL)
		assert_true(take_chunks(buf_slice(&client->in), &answer.decoded, &length));
	else if (field != NULL)
		length = strtoul(field + 16, NULL, 10);
	assert_true(length <= client->in.len);
	if (answer.decoded.len == 0)
		buf_append(&answer.decoded, client->in.data, length);
	buf_consume(&client->in, length);
	answer.body = buf_slice(&answer.decoded);
	return answer.status;
}

static int client_take(struct client *client)
{
	return client_take_as(client, true);
}

static bool body_is(const char *text)
{
	return slice_is_equal(answer.body, slice_str(text));
}

static bool head_has(const char *text)
{
	return strstr(answer.head, text) != NULL;
}

static bool client_is_idle(struct client *client)
{
	client_pump(client);
	return client->in.len == 0 && !client->has_ended;
}

static bool client_is_ended(struct client *client)
{
	client_pump(client);
	return client->in.len == 0 && client->has_ended;
}

/* A client's small receiving end: what is sent to it stays in the server. */
static struct client *client_new_narrow(void)
{
	struct client *client = client_new();
	int size = 4096;

	setsockopt(client->server_fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	return client;
}

static int setup(void **state)
{
	static const struct http_conf conf = {
		.header_bytes = HEADER_BYTES,
		.body_bytes = BODY_BYTES,
		.header_timeout_ms = HEADER_MS,
		.body_timeout_ms = BODY_MS,
		.idle_timeout_ms = IDLE_MS,
		.stall_timeout_ms = STALL_MS,
		.max_connections = CONNECTIONS_MAX,
	};
	struct error err;

	coming_by = 0;
	clock_freeze(now_ms);
	loop = loop_new(&err);
	server = http_server_new(loop, &conf, &handler);
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < client_count; i++) {
		if (clients[i].fd >= 0)
			close(clients[i].fd);
		buf_fini(&clients[i].in);
	}
	http_server_free(&server);
	loop_free(&loop);
	for (int i = 0; i < job_count; i++)
		buf_fini(&jobs[i].body);
	buf_fini(&answer.decoded);
	memset(jobs, 0, sizeof(jobs));
	memset(clients, 0, sizeof(clients));
	job_count = client_count = 0;
	return 0;
}

/* ---- requests and answers ---- */

static void requests_follow_each_other(void **state)
{
	struct client *c = client_new();

	for (int i = 0; i < 3; i++) {
		client_send(c, GET("/sync"));
		assert_int_equal(client_take(c), 200);
		assert_true(body_is("/sync."));
		assert_true(head_has("HTTP/1.1 200 OK\r\nDate: "));
		assert_true(head_has(" GMT\r\n"));
		assert_true(head_has("\r\nContent-Type: text/plain\r\n"));
		assert_true(head_has("\r\nX-Test: yes\r\n"));
		assert_false(head_has("Connection:"));
	}
	assert_int_equal(job_count, 3);
	assert_int_equal(jobs[0].gone, 0);
	assert_true(client_is_idle(c));
	assert_int_equal(http_server_connection_count(server), 1);
}

/* SEC-20: where the network cuts is nobody's business. */
static void any_split_gives_the_same(void **state)
{
	static const char text[] = "\r\n" POST("/sync", "11") "hello world" CHUNKED(
		"/sync") "6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n" GET("/later");

	for (size_t step = 1; step < sizeof(text); step = step * 2 + 1) {
		struct client *c = client_new();

		for (size_t at = 0; at < sizeof(text) - 1; at += step) {
			size_t left = sizeof(text) - 1 - at;

			client_send_bytes(c, slice_of(text + at, left < step ? left : step));
		}
		assert_int_equal(job_count, 3);
		job_reply(&jobs[2]);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(client_take(c), 200);
			assert_int_equal(jobs[i].bodies, 1);
			assert_int_equal(jobs[i].body.len, i < 2 ? 11 : 0);
			if (i < 2)
				assert_memory_equal(jobs[i].body.data, "hello world", 11);
		}
		teardown(NULL);
		setup(NULL);
	}
}

/* SEC-27 */
static void pipelined_requests_are_answered_in_order(void **state)
{
	struct client *c = client_new();

	client_send(c, GET("/sync") GET("/later") POST("/sync", "2") "ab" GET("/later")
			       GET("/refuse"));
	assert_int_equal(job_count, 2); /* the third waits for the second */
	assert_int_equal(client_take(c), 200);
	assert_int_equal(client_take(c), 0);
	job_reply(&jobs[1]);
	assert_int_equal(client_take(c), 200);
	assert_true(body_is("/later."));
	assert_int_equal(client_take(c), 200);
	assert_true(body_is("/sync."));
	assert_int_equal(job_count, 4);
	job_reply(&jobs[3]);
	assert_int_equal(client_take(c), 200);
	assert_int_equal(client_take(c), 403);
	assert_true(client_is_idle(c)); /* it had no body: the connection stays */
}

static void head_gets_no_body(void **state)
{
	struct client *c = client_new();

	client_send(c, "HEAD /sync HTTP/1.1\r\n" HOST "\r\n");
	assert_int_equal(client_take_as(c, false), 200);
	assert_true(head_has("Content-Length: 6\r\n"));
	assert_true(client_is_idle(c));
	client_send(c, "HEAD /later HTTP/1.1\r\n" HOST "\r\n" GET("/sync"));
	job_reply(&jobs[1]);
	assert_int_equal(client_take_as(c, false), 200);
	assert_int_equal(client_take(c), 200);
	assert_true(body_is("/sync."));
	client_send(c, "HEAD /sync HTTP/1.1\r\n" HOST "\r\n");
	assert_int_equal(client_take_as(c, false), 200);
	client_send(c, "\001\r\n\r\n"); /* an answer to nobody knows what has its body */
	assert_int_equal(client_take(c), 400);
	assert_true(answer.body.n > 0);
	assert_true(client_is_ended(c));
}

static void old_client_gets_one_answer_and_the_end(void **state)
{
	struct client *c = client_new();

	client_send(c, "GET /sync HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" GET("/sync"));
	assert_int_equal(client_take(c), 200);
	assert_true(head_has("\r\nConnection: close\r\n"));
	assert_true(client_is_ended(c));
	assert_int_equal(job_count, 1);
	client_close(c);

	c = client_new();
	client_send(c,
		    "POST /stream HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	assert_true(client_is_idle(c)); /* HTTP/1.0 knows no interim answer */
	client_send(c, "ab");
	http_stream_write(jobs[1].exchange.conn, SLICE_LIT("data: 1\n\n"));
	http_stream_end(jobs[1].exchange.conn);
	assert_int_equal(client_take(c), 200);
	assert_false(head_has("Transfer-Encoding"));
	assert_true(head_has("\r\nConnection: close\r\n"));
	assert_true(body_is("data: 1\n\n"));
	assert_true(client_is_ended(c));
}

/* What is to be there before an answer is can be written for all of a turn together. */
static void short_answers_of_a_turn_go_together(void **state)
{
	struct client *a = client_new(), *b = client_new();

	client_send(a, GET("/later"));
	client_send(b, GET("/later"));
	for (int i = 0; i < 2; i++) {
		announcements = 0;
		announced = a;
		job_reply(&jobs[job_count - 2]);
		job_reply(&jobs[job_count - 1]);
		assert_false(has_bytes(a) || has_bytes(b));
		assert_int_equal(announcements, 0);
		turns(1);
		assert_true(has_bytes(a) && has_bytes(b));
		assert_int_equal(announcements, 2);
		assert_null(announced);
		assert_int_equal(client_take(a), 200);
		assert_true(body_is("/later."));
		assert_int_equal(client_take(b), 200);
		assert_true(body_is("/later."));
		client_send(a, GET("/later"));
		client_send(b, GET("/later"));
	}
	/* One of them leaves before that. */
	job_reply(&jobs[job_count - 2]);
	job_reply(&jobs[job_count - 1]);
	http_conn_end(jobs[job_count - 2].conn, REASON_CANCELLED);
	assert_int_equal(client_take(b), 200);
	assert_true(body_is("/later."));
	assert_true(client_is_ended(a));
	client_send(b, GET("/sync"));
	assert_int_equal(client_take(b), 200);
}

/* As much as is gathered has a bound: long answers, and those behind many, are written at once, and announced likewise. */
static void long_answers_go_at_once(void **state)
{
	struct client *c = client_new();
	char *text = mem_zalloc(100000);

	memset(text, 'a', 99999);
	client_send(c, GET("/later"));
	announcements = 0;
	announced = c;
	reply_text(jobs[0].conn, 200, text);
	assert_true(has_bytes(c));
	assert_int_equal(announcements, 1);
	assert_int_equal(client_take(c), 200);
	assert_int_equal(answer.body.n, 100000);
	free(text);
}

static void close_is_honoured(void **state)
{
	struct client *c = client_new();

	client_send(c, "GET /sync HTTP/1.1\r\n" HOST "Connection: x, Close\r\n\r\n" GET("/sync"));
	assert_int_equal(client_take(c), 200);
	assert_true(head_has("\r\nConnection: close\r\n"));
	assert_true(client_is_ended(c));
	assert_int_equal(job_count, 1);
}

/* SEC-33 */
static void protocol_is_never_switched(void **state)
{
	struct client *c = client_new();

	client_send(c, "GET /sync HTTP/1.1\r\n" HOST "Connection: Upgrade, HTTP2-Settings\r\n"
		       "Upgrade: h2c, websocket\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"
		       "X-HTTP-Method-Override: DELETE\r\n\r\n");
	assert_int_equal(client_take(c), 200);
	assert_true(client_is_idle(c));
}

/* SEC-29: asked for only when the request will be read. */
static void continue_is_said_when_it_is_waited_for(void **state)
{
#define EXPECT(path, length)                                                                \
	"POST " path " HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: " length \
	"\r\n\r\n"
	struct client *c = client_new();

	client_send(c, EXPECT("/sync", "2"));
	assert_int_equal(client_take(c), 100);
	client_send(c, "ab");
	assert_int_equal(client_take(c), 200);
	client_send(c, EXPECT("/sync", "2") "ab");
	assert_int_equal(client_take(c), 200); /* who has sent does not wait */
	client_send(c, EXPECT("/refuse", "2"));
	assert_int_equal(client_take(c), 403);
	assert_true(client_is_ended(c));
	client_close(c);

	c = client_new();
	client_send(c, EXPECT("/sync", "10000000000"));
	assert_int_equal(client_take(c), 413);
	assert_true(client_is_ended(c));
#undef EXPECT
}

/* The verdict is there: the request goes on with another exchange. */
static struct job *resume(struct job *job, const char *path)
{
	struct http_conn *conn = job->exchange.conn;
	struct job *next = &jobs[job_count++];

	next->exchange.ops = &job_ops;
	snprintf(next->path, sizeof(next->path), "%s", path);
	http_conn_resume(conn, &next->exchange);
	assert_null(job->exchange.conn);
	return next;
}

/* AUTH-KEY-07, AUTH-CH-09: while a head is judged its body is neither read nor asked for. */
static void judged_request_waits_with_its_body(void **state)
{
	struct client *c = client_new();
	struct job *next;

	client_send(c, "POST /judge HTTP/1.1\r\n" HOST
		       "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	advance(BODY_MS * 10);
	assert_int_equal(c->in.len, 0);
	assert_int_equal(jobs[0].bodies, 0);
	next = resume(&jobs[0], "/sync");
	assert_int_equal(client_take(c), 100);
	client_send(c, "ab");
	assert_int_equal(client_take(c), 200);
	assert_int_equal(next->body.len, 2);
	assert_int_equal(jobs[0].gone, 0);
	client_send(c, "GET /judge HTTP/1.1\r\n" HOST "\r\n" GET("/sync"));
	assert_int_equal(client_take(c), 0);
	resume(&jobs[2], "/sync");
	assert_int_equal(client_take(c), 200);
	assert_int_equal(client_take(c), 200); /* the request behind it */
}

/* A body that was sent at once is there when the verdict comes, however long it is. */
static void judged_request_finds_what_was_sent(void **state)
{
	static char body[300000];
	struct client *c = client_new();
	struct job *next;
	size_t sent;

	memset(body, 'b', sizeof(body));
	client_send(c, POST("/judge", "300000"));
	sent = client_send_bytes(c, slice_of(body, sizeof(body)));
	next = resume(&jobs[0], "/sync");
	sent += client_send_bytes(c, slice_of(body, sizeof(body) - sent));
	assert_int_equal(sent, sizeof(body));
	assert_int_equal(client_take(c), 200);
	assert_int_equal(next->body.len, sizeof(body));
	client_send(c, CHUNKED("/judge") "2\r\nab\r\n0\r\n\r\n" GET("/sync"));
	next = resume(&jobs[2], "/sync");
	assert_int_equal(client_take(c), 200);
	assert_int_equal(next->body.len, 2);
	assert_int_equal(client_take(c), 200);
	client_send(c, POST("/judge", "10000000000"));
	resume(&jobs[job_count - 1], "/sync");
	assert_int_equal(client_take(c), 413);
	assert_true(client_is_ended(c));
}

/* Refused, or left: the connection ends, and only who still waits is told. */
static void judged_request_may_be_refused_or_left(void **state)
{
	struct client *c = client_new();

	client_send(c, POST("/judge", "2") "ab");
	reply_text(jobs[0].exchange.conn, 401, "no");
	assert_int_equal(client_take(c), 401);
	assert_true(client_is_ended(c));
	assert_int_equal(jobs[0].gone, 0);
	client_close(c);
	c = client_new();
	client_send(c, POST("/judge", "2") "ab");
	client_close(c);
	turns(3);
	assert_int_equal(jobs[1].gone, 1);
	assert_int_equal(jobs[1].bodies, 0);
	c = client_new();
	client_send(c, GET("/judge"));
	http_server_drain(server);
	resume(&jobs[2], "/sync");
	assert_int_equal(client_take(c), 200);
}

/* ---- what is refused ---- */

/* SEC-20 to SEC-24: a refused head is the last thing that is read, and the answer says why. */
static void bad_requests_end_the_connection(void **state)
{
	static const struct {
		int status;
		const char *text;
	} rows[] = {
		{ 400, "GET  / HTTP/1.1\r\n" HOST "\r\n" },
		{ 400, "GET / HTTP/1.1\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\n" HOST "\r\n" },
		{ 400, "GET / HTTP/1.1\r\n" HOST HOST "\r\n" },
		{ 400, "GET / HTTP/1.1\r\n" HOST "A : b\r\n\r\n" },
		{ 400, "GET / HTTP/1.1\r\n" HOST " folded\r\n\r\n" },
		{ 400, "POST / HTTP/1.1\r\n" HOST "Content-Length: +3\r\n\r\n" },
		{ 400,
		  "POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\nContent-Length: 3\r\n\r\n" },
		{ 400, "POST / HTTP/1.1\r\n" HOST
		       "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" },
		{ 417, "POST / HTTP/1.1\r\n" HOST "Expect: tea\r\nContent-Length: 3\r\n\r\n" },
		{ 501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n" },
		{ 505, "GET / HTTP/2.0\r\n" HOST "\r\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct client *c = client_new();
		struct buf text = { 0 };

		buf_append_str(&text, rows[i].text);
		buf_append_str(&text, GET("/sync"));
		client_send_bytes(c, buf_slice(&text));
		buf_fini(&text);
		assert_int_equal(client_take(c), rows[i].status);
		assert_true(head_has("\r\nConnection: close\r\n"));
		assert_true(head_has("\r\nContent-Type: application/json\r\n"));
		assert_true(slice_has_prefix(answer.body, SLICE_LIT("{\"status\":")));
		assert_true(client_is_ended(c));
		client_send(c, GET("/sync")); /* nor is what comes later */
		assert_int_equal(job_count, 0);
		client_close(c);
		client_count--;
		buf_fini(&c->in);
		*c = (struct client){ 0 };
		assert_int_equal(http_server_connection_count(server), 0);
	}
}

/* SEC-34: a TLS hello, also its first byte alone, ends the connection at once and without HTTP. */
static void tls_on_a_plain_connection_ends_it(void **state)
{
	struct client *c = client_new();

	client_send(c, "\x16\x03\x01\x02");
	assert_true(client_is_ended(c));
	c = client_new();
	client_send(c, "\x16");
	assert_true(client_is_ended(c));
	assert_int_equal(http_server_connection_count(server), 0);
}

static bool is_in_loop_buffer(const char *text)
{
	return memmem(loop_buffer(loop), LOOP_BUFFER_BYTES, text, strlen(text)) != NULL;
}

/* AUTH-DWN-01: what a request has shown is gone once it was judged, in one piece or in several. */
static void no_token_stays_behind(void **state)
{
	struct client *c = client_new();

	client_send(c, "GET /sync HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret-one\r\n\r\n");
	assert_int_equal(client_take(c), 200);
	assert_false(is_in_loop_buffer("secret-one"));
	client_send(c, "POST /judge HTTP/1.1\r\nHost: a\r\nX-API-Key: secret-two\r\n");
	assert_false(is_in_loop_buffer("secret-two"));
	client_send(c, "A: b\r\nContent-Length: 2\r\n\r\nhi");
	assert_false(is_in_loop_buffer("secret-two"));
	assert_string_equal(jobs[1].path, "/judge");
	client_close(c);
	c = client_new();
	client_send(c, "GET /sync HTTP/1.1\r\nAuthorization: Bearer secret-three\r\nbad\r\n\r\n");
	assert_int_equal(client_take(c), 400);
	assert_false(is_in_loop_buffer("secret-three"));
	client_close(c);
}

/* SEC-28, FRONT-HTTP-09: counted while it is read. */
static void heads_are_limited(void **state)
{
	static char bomb[1 << 20];
	struct client *c = client_new();

	memset(bomb, 'y', sizeof(bomb));
	client_send(c, "GET /");
	client_send_bytes(c, slice_of(bomb, sizeof(bomb)));
	assert_int_equal(client_take(c), 431); /* the whole head may be shorter than a line here */
	client_close(c);
	c = client_new();
	client_send(c, "GET / HTTP/1.1\r\nX: ");
	client_send_bytes(c, slice_of(bomb, sizeof(bomb)));
	assert_int_equal(client_take(c), 431);
	client_close(c);
	c = client_new();
	client_send(c, "GET / HTTP/1.1\r\n");
	for (int i = 0; i < 65; i++)
		client_send(c, "X: y\r\n");
	client_send(c, "\r\n");
	assert_int_equal(client_take(c), 431);
	assert_int_equal(job_count, 0);
}

/* SEC-29, FRONT-HTTP-09 */
static void bodies_are_limited(void **state)
{
	static char block[64 * 1024 + 10];
	struct client *c = client_new();

	client_send(c, POST("/sync", "2097153"));
	assert_int_equal(client_take(c), 413);
	assert_true(client_is_ended(c));
	assert_int_equal(jobs[0].bodies, 0);
	assert_int_equal(jobs[0].gone, 1);
	assert_int_equal(jobs[0].reason, REASON_PROTOCOL_ERROR);

	memset(block, 'x', sizeof(block));
	memcpy(block, "10000\r\n", 7);
	memcpy(block + 7 + 65536, "\r\n", 2);
	c = client_new();
	client_send(c, CHUNKED("/sync"));
	for (int i = 0; i < 32; i++)
		assert_int_equal(client_send_bytes(c, slice_of(block, 65536 + 9)), 65536 + 9);
	assert_true(client_is_idle(c)); /* the limit itself is allowed */
	client_send(c, "1\r\n");
	assert_int_equal(client_take(c), 413);
	assert_true(client_is_ended(c));
	assert_int_equal(jobs[1].bodies, 0);
	assert_int_equal(jobs[1].gone, 1);

	c = client_new();
	client_send(c, CHUNKED("/sync") "5;x=y\r\nhello\r\n0\r\n\r\n" GET("/sync"));
	assert_int_equal(client_take(c), 400);
	assert_true(client_is_ended(c));
	assert_int_equal(job_count, 3);
	assert_int_equal(jobs[2].gone, 1);
}

/* SEC-24: the body of a refused request is not the next request. */
static void refused_request_takes_its_body_along(void **state)
{
	struct client *c = client_new();

	client_send(c, POST("/refuse", "36") GET("/sync"));
	assert_int_equal(client_take(c), 403);
	assert_true(head_has("\r\nConnection: close\r\n"));
	assert_true(client_is_ended(c));
	client_send(c, GET("/sync"));
	assert_int_equal(job_count, 1);
}

/* The answer reaches a client that is still sending, which a reset would prevent. */
static void refused_client_may_finish_sending(void **state)
{
	static char body[4 << 20];
	struct client *c = client_new();
	size_t sent;

	client_send(c, POST("/sync", "4194304"));
	assert_int_equal(client_send_bytes(c, slice_of(body, sizeof(body))), sizeof(body));
	assert_int_equal(client_take(c), 413);
	assert_int_equal(http_server_connection_count(server), 1);
	client_close(c);
	assert_int_equal(http_server_connection_count(server), 0);

	c = client_new(); /* but not for ever */
	client_send(c, POST("/sync", "10000000000"));
	sent = 0;
	while (sent < 64 << 20 && http_server_connection_count(server) > 0)
		sent += client_send_bytes(c, slice_of(body, sizeof(body)));
	assert_in_range(sent, 16 << 20, 32 << 20);

	c = client_new();
	client_send(c, POST("/sync", "10000000000"));
	assert_int_equal(client_take(c), 413);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(http_server_connection_count(server), 1);
		client_send(c, "x");
		advance(LINGER_MS / 4);
	}
	assert_int_equal(http_server_connection_count(server), 0);
}

/* ---- deadlines ---- */

/* SEC-25: bytes that trickle extend nothing. */
static void slow_head_is_408(void **state)
{
	struct client *c = client_new();

	advance(IDLE_MS - 1); /* the head's time begins with its first byte */
	for (int i = 0; i < 4; i++) {
		client_send(c, i == 0 ? "GET /sync HTTP/1.1\r\n" : "X: y\r\n");
		assert_true(client_is_idle(c));
		advance(HEADER_MS / 4);
	}
	assert_int_equal(client_take(c), 408);
	assert_true(head_has("\r\nConnection: close\r\n"));
	assert_true(client_is_ended(c));
	client_send(c, HOST "\r\n");
	assert_int_equal(job_count, 0);
}

/* SEC-25 */
static void slow_body_is_408(void **state)
{
	static const char *const heads[] = { POST("/sync", "100"), POST("/sync", "1000000"),
					     CHUNKED("/sync") "64\r\n" };

	for (int i = 0; i < 3; i++) {
		struct client *c = client_new();

		client_send(c, heads[i]);
		for (int j = 0; j < 3; j++) {
			client_send(c, "x");
			assert_true(client_is_idle(c));
			advance(BODY_MS / 3);
		}
		assert_int_equal(client_take(c), 408);
		assert_true(client_is_ended(c));
		assert_int_equal(jobs[i].bodies, 0);
		assert_int_equal(jobs[i].gone, 1);
		client_close(c);
	}
}

/* SEC-25: not even while a `100 Continue` could not be written. */
static void slow_body_is_408_beside_a_full_socket(void **state)
{
	struct client *c = client_new_narrow();
	char junk[512] = { 0 };

	while (write(c->server_fd, junk, sizeof(junk)) > 0)
		continue;
	client_send(c, "POST /sync HTTP/1.1\r\n" HOST
		       "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	advance(BODY_MS - 1);
	client_pump(c);
	buf_consume(&c->in, c->in.len - 25);
	assert_int_equal(client_take(c), 100);
	advance(1);
	assert_int_equal(client_take(c), 408);
	assert_int_equal(jobs[0].gone, 1);
}

static void idle_connection_is_closed(void **state)
{
	struct client *c = client_new();
	struct client *late = client_new();

	advance(IDLE_MS - 1);
	client_send(late, GET("/sync"));
	assert_int_equal(client_take(late), 200);
	advance(1);
	assert_true(client_is_ended(c));
	assert_true(client_is_idle(late));
	advance(IDLE_MS - 1);
	assert_true(client_is_ended(late));
	assert_int_equal(http_server_connection_count(server), 0);
}

static void waiting_exchange_has_no_deadline_of_ours(void **state)
{
	struct client *c = client_new();

	client_send(c, POST("/later", "2") "ab");
	advance(UINT64_C(3600) * 1000);
	job_reply(&jobs[0]);
	assert_int_equal(client_take(c), 200);
	client_send(c, GET("/stream"));
	advance(UINT64_C(3600) * 1000);
	assert_int_equal(jobs[1].gone, 0);
	http_stream_end(jobs[1].exchange.conn);
	assert_int_equal(client_take(c), 200);
	advance(IDLE_MS - 1);
	assert_true(client_is_idle(c));
}

static void reply_large(struct http_conn *conn, size_t size)
{
	struct slice part = { mem_zalloc(size), size };

	http_reply(conn, &(struct http_reply){ .status = 200, .parts = &part, .part_count = 1 });
	free((void *)(uintptr_t)part.p);
}

/* SEC-26: no byte is taken for so long. */
static void stalled_reader_is_ended(void **state)
{
	struct client *c = client_new_narrow();
	char bytes[2048];

	client_send(c, GET("/later"));
	reply_large(jobs[0].exchange.conn, 1 << 20);
	turns(3);
	for (int i = 0; i < 3; i++) { /* progress, however slow, is progress */
		advance(STALL_MS - 1);
		assert_int_equal(http_server_connection_count(server), 1);
		while (read(c->fd, bytes, sizeof(bytes)) > 0)
			continue;
		turns(3);
	}
	advance(STALL_MS);
	assert_int_equal(http_server_connection_count(server), 0);
	assert_int_equal(jobs[0].gone, 0); /* it had answered */

	c = client_new_narrow();
	client_send(c, GET("/stream"));
	while (http_conn_has_room(jobs[1].exchange.conn))
		http_stream_write(jobs[1].exchange.conn, slice_of(bytes, sizeof(bytes)));
	turns(3);
	for (int i = 0; i < 4; i++) { /* news that it does not take are no sign of it */
		advance(STALL_MS / 4 - (i == 3));
		assert_int_equal(jobs[1].gone, 0);
		http_stream_write(jobs[1].exchange.conn, SLICE_LIT("news"));
		turns(3);
	}
	advance(1);
	assert_int_equal(jobs[1].gone, 1);
	assert_int_equal(jobs[1].reason, REASON_WRITE_STALL);
}

/* ---- clients that leave ---- */

/* FRONT-HTTP-15: who sends nothing more may still read. */
static void half_closed_client_gets_its_answers(void **state)
{
	struct client *c = client_new();

	client_send(c, GET("/later") GET("/sync") GET("/later"));
	shutdown(c->fd, SHUT_WR);
	turns(3);
	assert_int_equal(jobs[0].gone, 0);
	job_reply(&jobs[0]);
	assert_int_equal(client_take(c), 200);
	assert_int_equal(client_take(c), 200);
	assert_int_equal(job_count, 3);
	assert_false(c->has_ended);
	job_reply(&jobs[2]);
	assert_int_equal(client_take(c), 200);
	assert_true(client_is_ended(c));
	assert_int_equal(http_server_connection_count(server), 0);
}

static void half_close_and_answer_may_meet(void **state)
{
	struct client *c = client_new();

	client_send(c, GET("/later") GET("/sync"));
	job_reply(&jobs[0]); /* the next one is to be begun, and here comes the end */
	shutdown(c->fd, SHUT_WR);
	assert_int_equal(client_take(c), 200);
	assert_int_equal(client_take(c), 200);
	assert_true(client_is_ended(c));
	assert_int_equal(job_count, 2);
	assert_int_equal(http_server_connection_count(server), 0);
}

/* FRONT-HTTP-15 */
static void reader_of_a_stream_that_leaves_is_noticed(void **state)
{
	static char more[HEADER_BYTES + 1];

	for (int i = 0; i < 3; i++) {
		struct client *c = client_new();

		client_send(c, i == 0 ? GET("/stream") : GET("/later"));
		if (i == 1) { /* also where reading has paused, or has been before */
			client_send_bytes(c, slice_of(more, HEADER_BYTES));
			http_stream_begin(jobs[i].exchange.conn, sse_fields);
		}
		if (i == 2) {
			client_send_bytes(c, slice_of(more, HEADER_BYTES + 1));
			http_stream_begin(jobs[i].exchange.conn, sse_fields);
		}
		turns(3);
		assert_int_equal(jobs[i].gone, 0);
		shutdown(c->fd, SHUT_WR);
		turns(3);
		assert_int_equal(jobs[i].gone, 1);
		assert_int_equal(jobs[i].reason, REASON_PEER_CLOSED);
		client_close(c);
	}
	assert_int_equal(http_server_connection_count(server), 0);
}

/* SEC-35: whenever somebody leaves, in whatever way, nothing of it stays. */
static void storms_leave_nothing(void **state)
{
	static const char text[] = GET("/sync")
		POST("/sync", "5") "hello" CHUNKED("/sync") "1\r\na\r\n0\r\n\r\n" GET("/stream");
	int lowest = dup(STDIN_FILENO);

	close(lowest);
	for (size_t size = 0; size < sizeof(text); size++) {
		for (int way = 0; way < 3; way++) {
			struct client *c = client_new();

			client_send_bytes(c, slice_of(text, size));
			if (way == 1)
				client_pump(c); /* without it the end is a reset */
			if (way == 2)
				assert_int_equal(write(c->fd, "x", 1), 1);
			client_close(c);
			turns(2);
			assert_int_equal(http_server_connection_count(server), 0);
			for (int i = 0; i < job_count; i++) {
				assert_int_equal(jobs[i].gone,
						 jobs[i].bodies == 0 ||
							 strcmp(jobs[i].path, "/stream") == 0);
				buf_fini(&jobs[i].body);
			}
			buf_fini(&c->in);
			memset(jobs, 0, sizeof(jobs));
			memset(c, 0, sizeof(*c));
			job_count = client_count = 0;
		}
	}
	assert_int_equal(dup(STDIN_FILENO), lowest);
	close(lowest);
}

/* ---- bodies ---- */

static uint32_t random_state = 1;

static uint32_t random_next(uint32_t limit)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % limit;
}

static void send_in_random_pieces(struct client *client, struct slice bytes)
{
	while (bytes.n > 0) {
		size_t size = 1 + random_next(random_next(3) == 0 ? 200000 : 3000);

		size = size < bytes.n ? size : bytes.n;
		assert_int_equal(client_send_bytes(client, slice_of(bytes.p, size)), size);
		bytes = slice_of(bytes.p + size, bytes.n - size);
	}
}

/* FRONT-HTTP-09: what is below the limit arrives, in whatever way it comes. */
static void large_bodies_arrive_whole(void **state)
{
	static char body[1 << 20];

	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (char)random_next(256);
	for (int run = 0; run < 8; run++) {
		struct client *c = client_new();
		struct buf text = { 0 };
		size_t at = 0;

		buf_append_str(&text, run % 2 == 0 ? POST("/sync", "1048576") : CHUNKED("/sync"));
		while (at < sizeof(body)) {
			size_t size = run % 2 == 0 ? sizeof(body) : 1 + random_next(90000);

			size = size < sizeof(body) - at ? size : sizeof(body) - at;
			if (run % 2 == 1)
				buf_printf(&text, "%zX\r\n", size);
			buf_append(&text, body + at, size);
			if (run % 2 == 1)
				buf_append_str(&text, "\r\n");
			at += size;
		}
		buf_append_str(&text, run % 2 == 0 ? GET("/sync") : "0\r\n\r\n" GET("/sync"));
		if (run < 2)
			client_send_bytes(c, buf_slice(&text));
		else
			send_in_random_pieces(c, buf_slice(&text));
		buf_fini(&text);
		assert_int_equal(client_take(c), 200);
		assert_int_equal(client_take(c), 200);
		assert_true(body_is("/sync."));
		assert_int_equal(jobs[run * 2].body.len, sizeof(body));
		assert_memory_equal(jobs[run * 2].body.data, body, sizeof(body));
		client_close(c);
	}
}

/* One that came with its head, one in two pieces, and none. */
static void small_bodies_are_handed_on(void **state)
{
	struct client *c = client_new();

	client_send(c, POST("/sync", "3") "abc");
	client_send(c, POST("/sync", "3") "a");
	client_send(c, "bc");
	client_send(c, POST("/sync", "0"));
	for (int i = 0; i < 3; i++)
		assert_int_equal(client_take(c), 200);
	assert_memory_equal(jobs[0].body.data, "abc", 3);
	assert_memory_equal(jobs[1].body.data, "abc", 3);
	assert_int_equal(jobs[2].body.len, 0);
}

/* ---- back-pressure ---- */

/* SEC-26: a client that does not read its answers gets no further ones made. */
static void unread_answer_holds_requests_back(void **state)
{
	static char body[BODY_BYTES];
	struct client *c = client_new_narrow();

	client_send(c, GET("/later"));
	reply_large(jobs[0].exchange.conn, 1 << 20);
	client_send(c, POST("/sync", "2097152"));
	assert_in_range(client_send_bytes(c, slice_of(body, sizeof(body))), 1, sizeof(body) - 1);
	assert_int_equal(job_count, 1);
	assert_int_equal(client_take(c), 200);
	assert_int_equal(answer.body.n, 1 << 20);
	assert_int_equal(job_count, 2);
}

static void read_ahead_pauses_and_goes_on(void **state)
{
	static char body[300000];
	struct client *c = client_new();
	size_t sent;

	memset(body, 'b', sizeof(body));
	client_send(c, GET("/later"));
	client_send(c, POST("/sync", "300000"));
	sent = client_send_bytes(c, slice_of(body, sizeof(body)));
	assert_true(sent < sizeof(body));
	job_reply(&jobs[0]);
	assert_int_equal(client_take(c), 200);
	sent += client_send_bytes(c, slice_of(body, sizeof(body) - sent));
	assert_int_equal(sent, sizeof(body));
	assert_int_equal(client_take(c), 200);
	assert_int_equal(jobs[1].body.len, sizeof(body));
}

/* SEC-26: each request takes a turn, in which many more could be read. */
static void read_ahead_is_bounded_while_requests_are_slow(void **state)
{
	static char body[BODY_BYTES], answers[65536];
	struct client *c = client_new();
	const struct slice one = SLICE(GET("/slow"));
	size_t sent = 0, most = 0;

	for (size_t at = 0; at + one.n <= sizeof(body); at += one.n)
		memcpy(body + at, one.p, one.n);
	slow_count = 0;
	for (int i = 0; i < 100; i++) {
		ssize_t n;

		while ((n = write(c->fd, body + sent % one.n, sizeof(body) / 2)) > 0)
			sent += (size_t)n;
		turns(1);
		while (read(c->fd, answers, sizeof(answers)) > 0)
			;
		most = sent - slow_count * one.n > most ? sent - slow_count * one.n : most;
	}
	assert_in_range(slow_count, 50, 1000); /* what was sent was read */
	assert_in_range(most, 1, (1 << 20) - 1);
}

/* Beside an open stream nobody waits long for the next request's turn. */
static void read_ahead_beside_a_stream_is_bounded(void **state)
{
	static char more[HEADER_BYTES];
	struct client *c = client_new();

	client_send(c, GET("/stream"));
	client_send_bytes(c, slice_of(more, sizeof(more)));
	assert_int_equal(jobs[0].gone, 0);
	client_send_bytes(c, slice_of(more, 1));
	assert_int_equal(jobs[0].gone, 1);
	assert_int_equal(jobs[0].reason, REASON_READ_AHEAD);
	assert_int_equal(http_server_connection_count(server), 0);
}

/* ---- streams ---- */

/* FRONT-HTTP-12 */
static void stream_is_chunked_and_the_connection_goes_on(void **state)
{
	struct client *c = client_new();
	struct http_conn *conn;

	client_send(c, GET("/stream") GET("/sync"));
	conn = jobs[0].exchange.conn;
	assert_false(client_is_idle(c)); /* the head goes out at once */
	assert_int_equal(job_count, 1);
	http_stream_write(conn, SLICE_LIT("data: 1\n\n"));
	http_stream_write(conn, SLICE_LIT("")); /* an empty chunk would be the end */
	http_stream_write(conn, SLICE_LIT("data: 2\n\n"));
	turns(2);
	http_stream_write(conn, SLICE_LIT("data: 3\n\n"));
	http_stream_end(conn);
	assert_null(jobs[0].exchange.conn);
	assert_int_equal(client_take(c), 200);
	assert_true(head_has("\r\nContent-Type: text/event-stream\r\n"));
	assert_true(head_has("\r\nCache-Control: no-cache, no-transform\r\n"));
	assert_true(head_has("\r\nX-Accel-Buffering: no\r\n"));
	assert_false(head_has("Content-Encoding"));
	assert_false(head_has("Content-Length"));
	assert_true(body_is("data: 1\n\ndata: 2\n\ndata: 3\n\n"));
	assert_int_equal(client_take(c), 200);
	assert_true(body_is("/sync."));
	assert_int_equal(jobs[0].gone, 0);
	assert_true(client_is_idle(c));
}

static char filler[60000];

static void fill(struct job *job)
{
	while (http_conn_has_room(job->exchange.conn))
		http_stream_write(job->exchange.conn, slice_of(filler, sizeof(filler)));
}

static void fill_twice(struct job *job)
{
	if (job->rooms < 3)
		fill(job);
	else
		http_stream_end(job->exchange.conn);
}

static void end_conn(struct job *job)
{
	http_conn_end(job->conn, REASON_SLOW_READER);
}

/* SEC-26: the marks of the queue, and on_room that writes, ends the stream, or the connection. */
static void stream_asks_for_more_when_there_is_room(void **state)
{
	struct client *c = client_new_narrow();

	client_send(c, GET("/stream"));
	turns(2);
	jobs[0].on_room = fill_twice;
	fill(&jobs[0]);
	turns(5);
	assert_int_equal(jobs[0].rooms, 0); /* the client does not read */
	assert_int_equal(client_take(c), 200);
	assert_int_equal(jobs[0].rooms, 3);
	assert_true(answer.body.n >= 3 * (ROOM_HIGH_BYTES - ROOM_HIGH_BYTES / 2));
	assert_int_equal(answer.body.n % sizeof(filler), 0);

	client_send(c, GET("/stream"));
	jobs[1].on_room = end_conn;
	fill(&jobs[1]);
	client_pump(c);
	assert_int_equal(jobs[1].rooms, 1);
	assert_int_equal(jobs[1].gone, 1);
	assert_int_equal(jobs[1].reason, REASON_SLOW_READER);
	assert_int_equal(http_server_connection_count(server), 0);
}

static void room_is_only_told_to_who_asked(void **state)
{
	struct client *c = client_new_narrow();

	client_send(c, GET("/stream") GET("/stream"));
	fill(&jobs[0]);
	http_stream_end(jobs[0].exchange.conn);
	assert_int_equal(client_take(c), 200);
	assert_int_equal(jobs[0].rooms, 0);
	http_stream_write(jobs[1].exchange.conn, slice_of(filler, sizeof(filler)));
	client_pump(c);
	assert_int_equal(jobs[1].rooms, 0);
}

static void client_that_resets_ends_the_stream(void **state)
{
	struct client *c = client_new();

	client_send(c, GET("/stream"));
	close(c->fd); /* its head unread: a reset; the write comes before the loop sees it */
	c->fd = -1;
	http_stream_write(jobs[0].exchange.conn, SLICE_LIT(": x\n\n"));
	turns(3);
	assert_int_equal(jobs[0].gone, 1);
	assert_int_equal(jobs[0].reason, REASON_PEER_ERROR);
	assert_int_equal(http_server_connection_count(server), 0);

	c = client_new();
	client_send(c, GET("/later"));
	client_close(c);
	if (jobs[1].gone == 0)
		job_reply(&jobs[1]); /* nobody reads it, nobody is told */
	turns(3);
	assert_int_equal(http_server_connection_count(server), 0);
}

/* ---- callbacks that end things ---- */

static void connection_may_be_ended_from_its_callbacks(void **state)
{
	struct client *c = client_new();

	client_send(c, GET("/end") GET("/sync"));
	assert_true(client_is_ended(c));
	assert_int_equal(job_count, 1);
	c = client_new();
	client_send(c, POST("/end-in-body", "5") "hello" GET("/sync"));
	assert_true(client_is_ended(c));
	c = client_new();
	client_send(c, POST("/end-in-body", "30000"));
	client_send_bytes(c, slice_of(filler, 30000)); /* read where it stays */
	assert_true(client_is_ended(c));
	c = client_new();
	client_send(c, CHUNKED("/end-in-body") "5\r\nhello\r\n");
	client_send(c, "0\r\n\r\n" GET("/sync"));
	assert_true(client_is_ended(c));
	assert_int_equal(job_count, 4);
	for (int i = 1; i < 4; i++) {
		assert_int_equal(jobs[i].bodies, 1);
		assert_int_equal(jobs[i].gone, 1);
		assert_int_equal(jobs[i].reason, REASON_CANCELLED);
	}
	assert_int_equal(http_server_connection_count(server), 0);
}

static void end_all_others(struct job *job)
{
	for (int i = 0; i < job_count; i++) {
		if (&jobs[i] != job && jobs[i].exchange.conn != NULL)
			http_conn_end(jobs[i].exchange.conn, REASON_CANCELLED);
	}
	http_conn_end(job->conn, REASON_DONE); /* it has ended already: nothing happens */
}

static void one_end_may_bring_others(void **state)
{
	struct client *all[4];

	for (int i = 0; i < 4; i++) {
		all[i] = client_new();
		client_send(all[i], GET("/later") GET("/sync"));
		jobs[i].on_gone = end_all_others;
	}
	for (int i = 0; i < 4; i++)
		client_send(all[i], "x"); /* all are ready in one turn */
	http_conn_end(jobs[2].exchange.conn, REASON_CANCELLED);
	turns(2);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(jobs[i].gone, 1);
		assert_true(client_is_ended(all[i]));
	}
	assert_int_equal(http_server_connection_count(server), 0);
}

static void freed_server_ends_everything(void **state)
{
	struct client *c[3];

	for (int i = 0; i < 3; i++)
		c[i] = client_new();
	client_send(c[0], GET("/later"));
	client_send(c[1], GET("/stream"));
	client_send(c[2], POST("/sync", "5") "he");
	fill(&jobs[1]);
	http_server_free(&server);
	assert_null(server);
	http_server_free(&server);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(jobs[i].gone, 1);
		assert_int_equal(jobs[i].reason, REASON_DRAINING);
	}
	turns(2);
}

/* Each step of a connection is a line of debug. */
static void steps_are_logged(void **state)
{
	static const char *const steps[] = {
		"from=idle to=head",          "from=peer_new to=peer_used", "from=persists to=ends",
		"from=head to=judging",       "from=judging to=busy",       "from=busy to=replying",
		"from=replying to=lingering", "from=lingering to=closed"
	};
	struct client *c = client_new();
	char text[4096] = "";
	const char *at = text;
	int log_ends[2];

	assert_int_equal(pipe2(log_ends, O_NONBLOCK | O_CLOEXEC), 0);
	log_set(log_ends[1], LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	client_send(c, "GET /judge HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
	job_reply(resume(&jobs[0], "/later"));
	turns(1);
	client_close(c);
	log_set(STDERR_FILENO, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	assert_true(read(log_ends[0], text, sizeof(text) - 1) > 0);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		at = strstr(at, steps[i]);
		if (at == NULL)
			fail_msg("%s is missing, or out of order, in\n%s", steps[i], text);
	}
	close(log_ends[0]);
	close(log_ends[1]);
}

/* ---- the server ---- */

static void connections_are_limited(void **state)
{
	struct client *c[CONNECTIONS_MAX], *over;
	char text[512] = "";
	int log_ends[2];

	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		c[i] = client_new();
		client_send(c[i], GET("/later"));
	}
	assert_int_equal(pipe2(log_ends, O_NONBLOCK | O_CLOEXEC), 0);
	log_set(log_ends[1], LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	client_close(client_new());
	over = client_new();
	log_set(STDERR_FILENO, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	assert_true(read(log_ends[0], text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "limits.connections"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* one line for both */
	close(log_ends[0]);
	close(log_ends[1]);
	assert_int_equal(client_take(over), 503);
	assert_true(head_has("\r\nRetry-After: "));
	assert_true(head_has("\r\nConnection: close\r\n"));
	assert_true(client_is_ended(over));
	assert_int_equal(http_server_connection_count(server), CONNECTIONS_MAX);
	job_reply(&jobs[3]);
	client_close(c[3]);
	over = client_new();
	client_send(over, GET("/sync"));
	assert_int_equal(client_take(over), 200);
}

static void turned_away_client_can_read_why(void **state)
{
	int fds[2];
	char text[256] = "";

	for (int i = 0; i < CONNECTIONS_MAX; i++)
		client_send(client_new(), GET("/later"));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
			 0);
	assert_int_equal(write(fds[0], GET("/sync"), sizeof(GET("/sync")) - 1),
			 sizeof(GET("/sync")) - 1);
	http_server_accept(server, &(struct http_arrival){ .fd = fds[1] });
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	assert_int_equal(strncmp(text, "HTTP/1.1 503 ", 13), 0);
	assert_int_equal(read(fds[0], text, sizeof(text)), 0); /* the end, no reset */
	assert_int_equal(job_count, CONNECTIONS_MAX);          /* nobody looked at the request */
	close(fds[0]);
}

/* DEF-14: what nobody uses gives way to who comes, and nothing else does. */
static void unused_connections_give_way(void **state)
{
	/* What it sends, in two pieces. */
	static const char *const unused[][2] = {
		{ "", "" },
		{ "GET /sync HT", "" },
		{ GET("/sync"), "" },
		{ "GET /sync HT", "TP/1.1\r\n" HOST "\r\n" },
		{ POST("/sync", "2") "ab" GET("/sync") "GE", "T" },
	};
	struct client *used[CONNECTIONS_MAX - 1], *c;

	for (int i = 0; i < CONNECTIONS_MAX - 1; i++)
		used[i] = client_new();
	client_send(used[0], GET("/later"));
	client_send(used[1], GET("/stream"));
	client_send(used[2], GET("/judge"));
	client_send(used[3], POST("/later", "2") "a");
	client_send(used[4], GET("/sync") GET("/later"));
	client_send(used[5], "GET /later HTTP/1.1\r\n");
	client_send(used[5], HOST "\r\n" GET("/sync"));
	client_send(used[6], GET("/later") "GET");
	for (size_t i = 0; i < ARRAY_LEN(unused); i++) {
		c = client_new();
		client_send(c, unused[i][0]);
		client_send(c, unused[i][1]);
		while (client_take(c) == 200)
			;
		assert_false(c->has_ended);
		client_send(client_new(), GET("/sync"));
		assert_int_equal(client_take(&clients[client_count - 1]), 200);
		assert_true(client_is_ended(c));
		for (int n = 0; n < 2; n++) {
			client_close(&clients[--client_count]);
			buf_fini(&clients[client_count].in);
			clients[client_count] = (struct client){ .fd = -1 };
		}
	}
	for (int i = 0; i < CONNECTIONS_MAX - 1; i++) {
		client_pump(used[i]);
		assert_false(used[i]->has_ended);
	}
	assert_int_equal(http_server_connection_count(server), CONNECTIONS_MAX - 1);
}

/* An answer that was not taken yet is owed, too. */
static void unsent_answer_does_not_give_way(void **state)
{
	static char events[300000];
	struct client *c = client_new_narrow();

	client_send(c, GET("/stream"));
	http_stream_write(jobs[0].exchange.conn, slice_of(events, sizeof(events)));
	http_stream_end(jobs[0].exchange.conn);
	for (int i = 0; i < CONNECTIONS_MAX + 2; i++)
		client_new();
	assert_int_equal(http_server_connection_count(server), CONNECTIONS_MAX);
	client_pump(c);
	assert_false(c->has_ended);
	assert_in_range(c->in.len, sizeof(events), sizeof(events) + 4096);
}

/* The listener may hear of a newcomer before the loop has seen the request that lies in the socket. */
static void request_in_the_socket_does_not_give_way(void **state)
{
	struct client *c = client_new();

	assert_int_equal(write(c->fd, GET("/later"), sizeof(GET("/later")) - 1),
			 sizeof(GET("/later")) - 1);
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		client_new();
	assert_int_equal(job_count, 1);
	assert_true(client_is_idle(c));
	job_reply(&jobs[0]);
	assert_int_equal(client_take(c), 200);
	assert_true(client_is_ended(&clients[1]));
	assert_true(client_is_idle(&clients[2]));
}

/* Nor one that waits for the turn's end, behind an answer that is complete; a part of a head does. */
static void request_behind_an_answer_does_not_give_way(void **state)
{
	struct client *c = client_new(), *over;

	client_send(c, GET("/later") GET("/later") "GET /la");
	for (int i = 1; i < CONNECTIONS_MAX; i++)
		client_send(client_new(), GET("/later"));
	job_reply(&jobs[0]);
	over = client_new();
	assert_int_equal(client_take(over), 503);
	assert_int_equal(client_take(c), 200);
	assert_string_equal(jobs[CONNECTIONS_MAX].path, "/later");
	job_reply(&jobs[CONNECTIONS_MAX]);
	assert_int_equal(client_take(c), 200);
	client_new();
	assert_true(client_is_ended(c));
}

/* DEF-12, DEF-14: half of the places are held. */
static void newcomers_must_hurry_where_places_are_scarce(void **state)
{
	struct client *first = client_new(), *c;

	for (int i = 1; i < CONNECTIONS_MAX / 2; i++)
		client_send(client_new(), GET("/later"));
	c = client_new();
	advance(HEADER_MS - 1);
	assert_true(client_is_idle(c));
	client_send(c, GET("/sync"));
	assert_int_equal(client_take(c), 200);
	advance(HEADER_MS);
	assert_true(client_is_idle(c)); /* it waits for its next request */
	c = client_new();
	advance(HEADER_MS);
	assert_true(client_is_ended(c));
	assert_true(client_is_idle(first));
}

static void drain_lets_answers_finish(void **state)
{
	struct client *idle = client_new(), *busy = client_new(), *stream = client_new();
	struct client *partial = client_new(), *early = client_new(), *late;

	client_send(idle, GET("/sync"));
	assert_int_equal(client_take(idle), 200);
	client_send(busy, GET("/later") GET("/sync"));
	client_send(stream, GET("/stream"));
	client_send(partial, "GET /sync HTTP/1.1\r\n");
	client_send(early, GET("/sync"));
	assert_int_equal(client_take(early), 200);
	assert_int_equal(write(early->fd, GET("/sync"), sizeof(GET("/sync")) - 1),
			 sizeof(GET("/sync")) - 1); /* it is not read before the drain begins */
	assert_false(http_conn_is_draining(jobs[1].exchange.conn));
	http_server_drain(server);
	assert_true(http_conn_is_draining(jobs[1].exchange.conn));
	assert_true(client_is_ended(idle));
	assert_int_equal(client_take(early), 200);
	assert_true(head_has("\r\nConnection: close\r\n"));
	assert_true(client_is_ended(early));
	job_reply(&jobs[1]);
	assert_int_equal(client_take(busy), 200);
	assert_true(head_has("\r\nConnection: close\r\n"));
	assert_true(client_is_ended(busy));
	http_stream_end(jobs[2].exchange.conn);
	assert_int_equal(client_take(stream), 200);
	assert_true(client_is_ended(stream));
	client_send(partial, HOST "\r\n");
	assert_int_equal(client_take(partial), 200);
	assert_true(head_has("\r\nConnection: close\r\n"));
	assert_true(client_is_ended(partial));
	client_close(early);
	client_close(busy);
	client_close(stream);
	client_close(partial);
	late = client_new(); /* its handshake took a while */
	client_send(late, GET("/sync"));
	assert_int_equal(client_take(late), 200);
	assert_true(client_is_ended(late));
	client_close(late);
	assert_int_equal(http_server_connection_count(server), 0);
}

/* An answer that began before the server leaves has not said that it is the last: its connection goes on until one does. */
static void leaving_keeps_what_was_said(void **state)
{
	struct client *c = client_new();

	client_send(c, GET("/stream"));
	http_server_leave(server);
	http_stream_end(jobs[0].exchange.conn);
	assert_int_equal(client_take(c), 200);
	assert_false(head_has("\r\nConnection: close\r\n"));
	assert_true(client_is_idle(c));
	client_send(c, GET("/sync"));
	assert_int_equal(client_take(c), 200);
	assert_true(head_has("\r\nConnection: close\r\n"));
	assert_true(client_is_ended(c));
}

/* As at a drain, but for those who came by one port alone. */
static void a_port_is_left(void **state)
{
	struct client *other = client_new(), *idle, *busy, *fresh;

	coming_by = 7;
	idle = client_new();
	busy = client_new();
	fresh = client_new();
	client_send(other, GET("/sync"));
	client_send(idle, GET("/sync"));
	assert_int_equal(client_take(other), 200);
	assert_int_equal(client_take(idle), 200);
	client_send(busy, GET("/later") GET("/sync"));
	http_server_leave_port(server, 7);
	assert_true(client_is_ended(idle));
	job_reply(&jobs[2]);
	assert_int_equal(client_take(busy), 200);
	assert_true(head_has("\r\nConnection: close\r\n"));
	assert_true(client_is_ended(busy));
	client_send(fresh, GET("/sync"));
	assert_int_equal(client_take(fresh), 200);
	assert_true(client_is_ended(fresh));
	client_send(other, GET("/sync"));
	assert_int_equal(client_take(other), 200);
	assert_false(head_has("\r\nConnection: close\r\n"));
	assert_true(client_is_idle(other));
}

/* REL-41: who has connected and not said yet what for is heard, but not waited for. */
static void drain_hears_newcomers(void **state)
{
	struct client *c[3] = { client_new(), client_new(), client_new() };

	turns(1);
	http_server_drain(server);
	turns(2);
	client_send(c[0], GET("/sync"));
	assert_int_equal(client_take(c[0]), 200);
	assert_true(client_is_ended(c[0]));
	advance(1900);
	client_send(c[1], GET("/sync"));
	assert_int_equal(client_take(c[1]), 200);
	assert_false(client_is_ended(c[2]));
	advance(200);
	assert_true(client_is_ended(c[2]));
}

/* REL-41: an answer that was not taken yet is to be waited for. */
static void drain_knows_of_slow_answers(void **state)
{
	static char events[300000];
	struct client *c = client_new_narrow();

	client_send(c, GET("/stream"));
	http_stream_write(jobs[0].exchange.conn, slice_of(events, sizeof(events)));
	http_stream_end(jobs[0].exchange.conn);
	http_server_drain(server);
	turns(2);
	advance(4999);
	assert_true(http_server_is_writing(server));
	advance(1);
	assert_false(http_server_is_writing(server)); /* it seems to hang */
	assert_true(read(c->fd, events, sizeof(events)) > 0);
	turns(1);
	assert_true(http_server_is_writing(server));
	while (read(c->fd, events, sizeof(events)) > 0)
		turns(1);
	assert_false(http_server_is_writing(server));
}

/* ---- heads and events as text ---- */

static void heads_are_as_promised(void **state)
{
	struct buf out = { 0 };
	const char *text;

	reply_append_head(&out, &(struct http_reply){ .status = 204 }, REPLY_END_NONE, 0, true);
	text = buf_terminate(&out);
	assert_true(
		slice_has_prefix(slice_str(text), SLICE_LIT("HTTP/1.1 204 No Content\r\nDate: ")));
	assert_int_equal(strlen(text), strlen("HTTP/1.1 204 No Content\r\n"
					      "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
					      "Connection: close\r\n\r\n"));
	assert_null(strstr(text, "Content-"));
	assert_string_equal(reply_status_text(413), "Content Too Large");
	assert_string_equal(reply_status_text(299), "Unknown");
	buf_fini(&out);
}

/* FRONT-SSE-02, FRONT-HTTP-13, SEC-32: one event per message, its data on one line. */
static void events_are_one_line_of_data(void **state)
{
	struct buf out = { 0 };

	sse_append_message(&out, (struct slice){ NULL, 0 }, SLICE_LIT("{\"a\":1}"));
	sse_append_message(&out, SLICE_LIT("7"), SLICE_LIT("{}"));
	sse_append_comment(&out);
	assert_string_equal(buf_terminate(&out), "event: message\ndata: {\"a\":1}\n\n"
						 "event: message\nid: 7\ndata: {}\n\n"
						 ": keep-alive\n\n");
	buf_fini(&out);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(requests_follow_each_other),
		TEST(any_split_gives_the_same),
		TEST(pipelined_requests_are_answered_in_order),
		TEST(head_gets_no_body),
		TEST(old_client_gets_one_answer_and_the_end),
		TEST(short_answers_of_a_turn_go_together),
		TEST(long_answers_go_at_once),
		TEST(close_is_honoured),
		TEST(protocol_is_never_switched),
		TEST(continue_is_said_when_it_is_waited_for),
		TEST(bad_requests_end_the_connection),
		TEST(tls_on_a_plain_connection_ends_it),
		TEST(no_token_stays_behind),
		TEST(heads_are_limited),
		TEST(bodies_are_limited),
		TEST(refused_request_takes_its_body_along),
		TEST(refused_client_may_finish_sending),
		TEST(slow_head_is_408),
		TEST(slow_body_is_408),
		TEST(slow_body_is_408_beside_a_full_socket),
		TEST(idle_connection_is_closed),
		TEST(waiting_exchange_has_no_deadline_of_ours),
		TEST(stalled_reader_is_ended),
		TEST(half_closed_client_gets_its_answers),
		TEST(half_close_and_answer_may_meet),
		TEST(reader_of_a_stream_that_leaves_is_noticed),
		TEST(storms_leave_nothing),
		TEST(large_bodies_arrive_whole),
		TEST(small_bodies_are_handed_on),
		TEST(unread_answer_holds_requests_back),
		TEST(read_ahead_pauses_and_goes_on),
		TEST(read_ahead_is_bounded_while_requests_are_slow),
		TEST(read_ahead_beside_a_stream_is_bounded),
		TEST(stream_is_chunked_and_the_connection_goes_on),
		TEST(stream_asks_for_more_when_there_is_room),
		TEST(room_is_only_told_to_who_asked),
		TEST(client_that_resets_ends_the_stream),
		TEST(connection_may_be_ended_from_its_callbacks),
		TEST(one_end_may_bring_others),
		TEST(freed_server_ends_everything),
		TEST(judged_request_waits_with_its_body),
		TEST(judged_request_finds_what_was_sent),
		TEST(judged_request_may_be_refused_or_left),
		TEST(steps_are_logged),
		TEST(connections_are_limited),
		TEST(turned_away_client_can_read_why),
		TEST(unused_connections_give_way),
		TEST(unsent_answer_does_not_give_way),
		TEST(request_in_the_socket_does_not_give_way),
		TEST(request_behind_an_answer_does_not_give_way),
		TEST(newcomers_must_hurry_where_places_are_scarce),
		TEST(drain_lets_answers_finish),
		TEST(leaving_keeps_what_was_said),
		TEST(a_port_is_left),
		TEST(drain_hears_newcomers),
		TEST(drain_knows_of_slow_answers),
		TEST(heads_are_as_promised),
		TEST(events_are_one_line_of_data),
	};

	signal(SIGPIPE, SIG_IGN);
	alarm(60);
	log_set(STDERR_FILENO, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
