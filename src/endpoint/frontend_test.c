/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The endpoint between connections that the test holds at their other end and servers that it plays line
 * by line.
 */
#include "endpoint/frontend.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/socket.h>
#include <unistd.h>

#include "auth/verifier.h"
#include "base/clock.h"
#include "endpoint/aggregate.h"
#include "endpoint/answer.h"
#include "endpoint/http_sse.h"
#include "obs/audit.h"
#include "router/stage.h"

#define GRACE_MS 1000
#define KEEPALIVE_MS 15000
#define HOLD_MS 60000
#define IDLE_MS 3600000 /* of sessions, the stage's */
#define QUEUE_BYTES (256 * 1024)
#define CLIENTS_MAX 16

/* A connection as its client sees it. */
struct http_client {
	int fd;
	struct buf in;     /* came and was not looked at */
	struct buf head;   /* of the last answer */
	struct buf body;   /* of the last answer; of a stream: what was not looked at */
	bool sent_head;    /* it asked with HEAD */
	bool is_streaming; /* its head has come */
	bool is_over;      /* the stream has ended properly */
	bool is_closed;    /* the gateway has closed */
};

static struct endpoint endpoints[3];
static struct frontend frontend;
static struct http_server *server;
static struct http_client clients[CLIENTS_MAX];
static struct peer peer; /* of the next connections */
static size_t client_count;
static char session[SESSION_ID_LENGTH + 1]; /* of the last initialize */

/* ---- words for the stories ---- */

static struct http_client *connect_client(void)
{
	struct http_client *client = &clients[client_count++];
	int fds[2];

	assert_true(client_count < CLIENTS_MAX);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
			 0);
	memset(client, 0, sizeof(*client));
	client->fd = fds[0];
	http_server_accept(server, &(struct http_arrival){ .fd = fds[1], .peer = peer });
	return client;
}

static void leave(struct http_client *client)
{
	close(client->fd);
	client->fd = -1;
	settle();
}

static void send_bytes(struct http_client *client, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t n = write(client->fd, text, size);

		assert_true(n > 0 || errno == EAGAIN);
		if (n > 0) {
			text += n;
			size -= (size_t)n;
		}
		loop_turn(loop, false);
	}
	settle();
}

static void send_text(struct http_client *client, const char *text)
{
	send_bytes(client, text, strlen(text));
}

#define BOTH "Accept: application/json, text/event-stream\r\n"
#define JSON_ONLY "Accept: application/json\r\n"
#define EVENTS_ONLY "Accept: text/event-stream\r\n"

static void post_to(struct http_client *client, const char *path, const char *fields,
		    const char *body)
{
	struct buf text = { 0 };

	buf_printf(&text,
		   "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s"
		   "Content-Length: %zu\r\n\r\n%s",
		   path, fields, strlen(body), q(body));
	send_bytes(client, text.data, text.len);
	buf_fini(&text);
}

/* A POST within the session. */
static void post(struct http_client *client, const char *accept, const char *body)
{
	char fields[256];

	snprintf(fields, sizeof(fields), "%sMcp-Session-Id: %s\r\n", accept, session);
	post_to(client, "/mcp", fields, body);
}

static void get_or_delete(struct http_client *client, const char *method)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "%s /mcp HTTP/1.1\r\nHost: localhost\r\n" EVENTS_ONLY "Mcp-Session-Id: %s\r\n\r\n",
		 method, session);
	send_text(client, text);
}

/* GET behind event `after` of the session's stream `number`. */
static void resume(struct http_client *client, unsigned int number, unsigned int after)
{
	struct session *found = session_find(&router.sessions, slice_str(session),
					     &router.sessions.principals.anonymous);
	char text[320];

	snprintf(text, sizeof(text),
		 "GET /mcp HTTP/1.1\r\nHost: localhost\r\n" EVENTS_ONLY
		 "Mcp-Session-Id: %s\r\nLast-Event-ID: %08x-%x-%x\r\n\r\n",
		 session, found->replay_store.epoch, number, after);
	send_text(client, text);
}

static void receive(struct http_client *client)
{
	ssize_t n;

	settle();
	do {
		char *into = buf_reserve(&client->in, 65536);

		n = read(client->fd, into, 65536);
		client->in.len += n > 0 ? (size_t)n : 0;
		settle();
	} while (n > 0);
	client->is_closed = n == 0 || (n < 0 && errno == ECONNRESET);
}

/* Moves the head of the next answer from `in` to `head`; its status, 0: none has come. */
static int take_head(struct http_client *client)
{
	char *end;

	receive(client);
	end = client->in.len > 0 ? memmem(client->in.data, client->in.len, "\r\n\r\n", 4) : NULL;
	if (end == NULL)
		return 0;
	client->head.len = 0;
	buf_append(&client->head, client->in.data, (size_t)(end - client->in.data) + 4);
	buf_consume(&client->in, client->head.len);
	assert_null(strstr(buf_terminate(&client->head), ": \r\n")); /* no field is empty */
	return atoi(buf_terminate(&client->head) + strlen("HTTP/1.1 "));
}

static bool has_field(struct http_client *client, const char *line)
{
	char text[256];

	snprintf(text, sizeof(text), "\r\n%s\r\n", line);
	return strstr(buf_terminate(&client->head), text) != NULL;
}

/* The whole answer: its status is this and its body that. */
static void is_answered(struct http_client *client, int status, const char *body)
{
	const char *length;
	size_t n = 0;

	assert_int_equal(take_head(client), status);
	length = strcasestr(client->head.data, "\r\nContent-Length: ");
	if (length != NULL && !client->sent_head)
		n = strtoul(length + strlen("\r\nContent-Length: "), NULL, 10);
	assert_true(client->in.len >= n);
	client->body.len = 0;
	buf_append(&client->body, client->in.data, n);
	buf_consume(&client->in, n);
	buf_terminate(&client->body);
	if (body != NULL)
		assert_string_equal(client->body.data, q(body));
}

/* An answer of this status with a JSON-RPC error of this code. */
static void is_refused(struct http_client *client, int status, int code)
{
	char text[64];

	is_answered(client, status, NULL);
	snprintf(text, sizeof(text), "\"error\":{\"code\":%d,", code);
	if (strstr(buf_terminate(&client->body), text) == NULL)
		fail_msg("no error %d in %s", code, client->body.data);
}

static void is_unanswered(struct http_client *client)
{
	receive(client);
	assert_int_equal(client->in.len, 0);
	assert_false(client->is_closed);
}

/* Decodes what has come of a stream. */
static void take_chunks(struct http_client *client)
{
	if (!client->is_streaming) {
		assert_int_equal(take_head(client), 200);
		assert_true(has_field(client, "Content-Type: text/event-stream"));
		client->is_streaming = true;
		client->body.len = 0;
	}
	receive(client);
	while (client->in.len > 0 && !client->is_over) {
		char *line_end = memmem(client->in.data, client->in.len, "\r\n", 2);
		size_t n = strtoul(buf_terminate(&client->in), NULL, 16);
		size_t head =
			line_end != NULL ? (size_t)(line_end - client->in.data) + 2 : SIZE_MAX;

		if (line_end == NULL || client->in.len < head + n + 2)
			return;
		client->is_over = n == 0;
		buf_append(&client->body, client->in.data + head, n);
		buf_consume(&client->in, head + n + 2);
	}
}

/* What came on the stream since the last look, each message followed by a bar. */
static const char *events(struct http_client *client)
{
	static char copy[2 << 20];
	struct buf text = { 0 };
	struct slice rest;

	take_chunks(client);
	rest = buf_slice(&client->body);
	while (rest.n > 0) {
		struct slice line = slice_cut(&rest, '\n');

		if (slice_has_prefix(line, SLICE_LIT("data: ")) && line.n > 6) {
			buf_append(&text, line.p + 6, line.n - 6);
			buf_append_char(&text, '|');
		} else if (line.n > 0 && line.p[0] == ':') {
			buf_append_char(&text, ':');
		}
	}
	client->body.len = 0;
	assert_true(text.len < sizeof(copy));
	memcpy(copy, buf_terminate(&text), text.len + 1);
	buf_fini(&text);
	return copy;
}

static void has_events(struct http_client *client, const char *expected)
{
	assert_string_equal(events(client), q(expected));
}

static void stream_is_over(struct http_client *client)
{
	take_chunks(client);
	assert_int_equal(client->body.len, 0);
	assert_true(client->is_over);
	client->is_streaming = client->is_over = false;
}

/* ---- what is said ---- */

#define INITIALIZE(version)                                                                   \
	"{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':'" version \
	"','capabilities':{'roots':{}},'clientInfo':{}}}"
#define WELCOME                                                                             \
	"{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':'2025-11-25','capabilities':{" \
	"'logging':{},'tools':{'listChanged':true}}}}"
#define WELCOMED(version)                                               \
	"{'jsonrpc':'2.0','id':0,'result':{'protocolVersion':'" version \
	"','capabilities':{'logging':{},'tools':{'listChanged':true}}}}"
#define INITIALIZED "{'jsonrpc':'2.0','method':'notifications/initialized'}"
#define CALL(id)                    \
	"{'jsonrpc':'2.0','id':" id \
	",'method':'tools/call','params':{'name':'t','_meta':{'progressToken':'t'}}}"
#define CALLED(id)                  \
	"{'jsonrpc':'2.0','id':" id \
	",'method':'tools/call','params':{'name':'t','_meta':{'progressToken':" id "}}}"
#define LIST(id) "{'jsonrpc':'2.0','id':" id ",'method':'tools/list'}"
#define RESULT(id) "{'jsonrpc':'2.0','id':" id ",'result':{}}"
#define PROGRESS(token, value)                                                                \
	"{'jsonrpc':'2.0','method':'notifications/progress','params':{'progressToken':" token \
	",'progress':" value "}}"
#define CANCEL(id) \
	"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':" id "}}"
#define ASK(id) "{'jsonrpc':'2.0','id':" id ",'method':'roots/list'}"
#define CHANGED "{'jsonrpc':'2.0','method':'notifications/tools/list_changed'}"

/* Sends initialize and lets the server accept it; the session is the one of the next posts. */
static struct fake_process *begin_with(struct http_client *client, const char *initialize,
				       const char *welcomed)
{
	struct fake_process *p;
	const char *id;

	post_to(client, "/mcp", BOTH, initialize);
	p = process(keeper.count - 1);
	says(p, WELCOME);
	is_answered(client, 200, welcomed);
	assert_true(has_field(client, "Content-Type: application/json"));
	id = strstr(client->head.data, "Mcp-Session-Id: ");
	assert_non_null(id);
	memcpy(session, id + strlen("Mcp-Session-Id: "), SESSION_ID_LENGTH);
	post(client, BOTH, INITIALIZED);
	is_answered(client, 202, "");
	assert_non_null(fake_process_read(p));
	hears(p, INITIALIZED);
	return p;
}

static struct fake_process *begin(struct http_client *client)
{
	return begin_with(client, INITIALIZE("2025-11-25"), WELCOMED("2025-11-25"));
}

static struct fake_process *begin_with_batches(struct http_client *client)
{
	return begin_with(client, INITIALIZE("2025-03-26"), WELCOMED("2025-03-26"));
}

/* ---- before and after ---- */

static const struct slice hosts[] = { SLICE("localhost"), SLICE("[::1]"), SLICE("mcp.example") };
static const struct slice origins[] = { SLICE("https://app.example") };

static void make_frontend(void)
{
	const struct frontend_conf conf = {
		.endpoints = endpoints,
		.endpoint_count = ARRAY_LEN(endpoints),
		.hosts = { hosts, ARRAY_LEN(hosts) },
		.origins = { origins, ARRAY_LEN(origins) },
		.response = FRONTEND_RESPONSE_AUTO,
		.grace_ms = GRACE_MS,
		.keepalive_ms = KEEPALIVE_MS,
	};
	const struct http_conf http = {
		.header_bytes = 16384,
		.body_bytes = 4 << 20,
		.header_timeout_ms = 10000,
		.body_timeout_ms = 30000,
		.idle_timeout_ms = 86400000,
		.stall_timeout_ms = 30000,
		.max_connections = 100,
	};

	frontend_init(&frontend, &router, &conf);
	server = http_server_new(loop, &http, &frontend.handler);
}

static int setup(void **state)
{
	router_stage_open();
	router.sessions.conf.store.stream.max_bytes = QUEUE_BYTES;
	router.sessions.conf.store.stream.replay_events = 1024;
	endpoints[0] = (struct endpoint){ .path = SLICE("/mcp"),
					  .sse_path = SLICE("/sse"),
					  .message_path = SLICE("/message"),
					  .server = &servers[0] };
	endpoints[2] = (struct endpoint){ .server = NULL };
	endpoints[1] = (struct endpoint){ .path = SLICE("/other"),
					  .sse_path = SLICE("/other/sse"),
					  .message_path = SLICE("/other/message"),
					  .server = &servers[1] };
	make_frontend();
	client_count = 0;
	memset(session, 0, sizeof(session));
	return 0;
}

/* Ends everything, the connections first or last; LeakSanitizer tells what is left. */
static int teardown(void **state)
{
	bool connections_first = client_count % 2 == 0;

	if (connections_first)
		http_server_free(&server);
	router_end_sessions(&router, REASON_DRAINING);
	stage_end_processes();
	http_server_free(&server);
	assert_int_equal(frontend.sse_clients.by_key.count, 0);
	frontend_fini(&frontend);
	for (size_t i = 0; i < client_count; i++) {
		if (clients[i].fd >= 0)
			close(clients[i].fd);
		buf_fini(&clients[i].in);
		buf_fini(&clients[i].head);
		buf_fini(&clients[i].body);
	}
	return router_stage_close(state);
}

/* ---- the frontend ---- */

static void head_is_answered(const char *head, int status, const char *field)
{
	struct http_client *client = connect_client();

	client->sent_head = strncmp(head, "HEAD ", 5) == 0;
	send_text(client, head);
	is_answered(client, status, NULL);
	assert_int_equal(client->in.len, 0);
	if (field != NULL && !has_field(client, field))
		fail_msg("no %s in %s", field, client->head.data);
	if (status == 405 && field != NULL &&
	    client->body.len > 0) /* the methods, as in the field */
		assert_non_null(strstr(client->body.data, field + strlen("Allow: ")));
	leave(client);
	client_count--;
	buf_fini(&client->in);
	buf_fini(&client->head);
	buf_fini(&client->body);
	assert_int_equal(keeper.count, 0); /* a refusal starts nothing */
}

/* FRONT-SEC-01, FRONT-SEC-02, SEC-01, SEC-23: Host and Origin are ours, or nothing happens. */
static void strangers_stay_outside(void **state)
{
	static const char *const bad_hosts[] = { "evil.example", "localhost.evil.example",
						 "[::1].evil",   "127.0.0.1",
						 "[::2]",        "localhost.",
						 "xlocalhost" };
	static const char *const bad_origins[] = { "null",
						   "http://evil.example",
						   "http://localhost.evil.example",
						   "http://[::1].evil.example",
						   "http://localhost:1:2",
						   "http://localhost@evil.example",
						   "file://",
						   "localhost",
						   "ftp://localhost",
						   "http://app.example",
						   "http://localhost:6274",
						   "http://[::1]:80",
						   "http://localhost/x" };
	static const char *const good_origins[] = { "https://app.example", "http://localhost",
						    "https://MCP.example", "http://[::1]" };
	char text[512];

	for (size_t i = 0; i < ARRAY_LEN(bad_hosts); i++) {
		snprintf(text, sizeof(text), "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n",
			 bad_hosts[i]);
		head_is_answered(text, strcmp(bad_hosts[i], "[::1].evil") == 0 ? 400 : 403, NULL);
	}
	head_is_answered("GET /healthz HTTP/1.1\r\nHost: LOCALHOST:8080\r\n\r\n", 200, NULL);
	head_is_answered("GET /healthz HTTP/1.1\r\nHost: localhost:80800\r\n\r\n", 400, NULL);
	for (size_t i = 0; i < ARRAY_LEN(bad_origins); i++) {
		snprintf(text, sizeof(text),
			 "GET /healthz HTTP/1.1\r\nHost: localhost\r\nOrigin: %s\r\n\r\n",
			 bad_origins[i]);
		head_is_answered(text, 403, NULL);
	}
	for (size_t i = 0; i < ARRAY_LEN(good_origins); i++) {
		snprintf(text, sizeof(text),
			 "GET /x HTTP/1.1\r\nHost: localhost\r\nOrigin: %s\r\n\r\n",
			 good_origins[i]);
		head_is_answered(text, 404, "Vary: Origin");
	}
	head_is_answered("GET /x HTTP/1.1\r\nHost: [::1]:88\r\nOrigin: http://localhost:88\r\n\r\n",
			 404, "Vary: Origin");
	head_is_answered("GET /x HTTP/1.1\r\nHost: [::1]:88\r\nOrigin: http://localhost:8\r\n\r\n",
			 403, NULL);
	frontend.conf.authorization.public_url = SLICE_LIT("https://gw.example:8443/mcp");
	head_is_answered(
		"GET /x HTTP/1.1\r\nHost: localhost:1\r\nOrigin: https://gw.example:8443\r\n\r\n",
		404, "Vary: Origin");
}

/* RFC 9112 §3.2.2: what is checked is the authority of the target. */
static void a_url_as_the_target(void **state)
{
	head_is_answered("GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 403,
			 NULL);
	head_is_answered("GET http://localhost/healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", 200,
			 NULL);
	head_is_answered("GET http://localhost:8/healthz HTTP/1.1\r\nHost: localhost:9\r\n"
			 "Origin: http://localhost:9\r\n\r\n",
			 403, NULL);
	head_is_answered("GET http://localhost:8/healthz HTTP/1.1\r\nHost: localhost:9\r\n"
			 "Origin: http://localhost:8\r\n\r\n",
			 200, NULL);
}

/* FRONT-HTTP-01, FRONT-HTTP-08, FRONT-HTTP-14 */
static void paths_methods_and_fields(void **state)
{
	head_is_answered("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, NULL);
	head_is_answered("PUT /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 405,
			 "Allow: GET, POST, DELETE, OPTIONS");
	head_is_answered("HEAD /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, NULL);
	head_is_answered("BREW /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 501, NULL);
	head_is_answered(
		"GET /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: a\r\nMcp-Session-Id: a\r\n\r\n",
		400, NULL);
	head_is_answered(
		"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: https://app.example\r\n\r\n",
		204, "Access-Control-Allow-Origin: https://app.example");
	head_is_answered(
		"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: https://app.example\r\n\r\n",
		204,
		"Access-Control-Allow-Headers: Authorization, Content-Type, Accept, Mcp-Session-Id, "
		"MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, DPoP, traceparent, tracestate");
	head_is_answered("OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 204,
			 "Allow: GET, POST, DELETE, OPTIONS");
	head_is_answered("GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n",
			 406, NULL);
	head_is_answered(
		"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n",
		415, NULL);
	head_is_answered(
		"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		"Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n",
		415, NULL);
	head_is_answered(
		"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		"Accept: text/html\r\nContent-Length: 0\r\n\r\n",
		406, NULL);
}

static void health_is_told(void **state)
{
	head_is_answered("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, NULL);
	head_is_answered("HEAD /readyz HTTP/1.0\r\n\r\n", 200, NULL);
	head_is_answered("POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
			 405, "Allow: GET, HEAD");
	router.is_draining = true;
	head_is_answered("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", 503, NULL);
	head_is_answered("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, NULL);
}

/* ---- sessions ---- */

/* FRONT-SESS-01, FRONT-INIT-04, FRONT-INIT-05, FRONT-SESS-06, FRONT-SESS-07: from initialize to DELETE. */
static void session_begins_and_ends(void **state)
{
	struct http_client *client = connect_client();
	struct fake_process *p = begin(client);

	/* Its id beside another initialize does not matter. */
	post(client, BOTH, INITIALIZE("2025-06-18"));
	says(process(1), WELCOME);
	is_answered(client, 200, WELCOMED("2025-06-18"));
	assert_null(strstr(client->head.data, session));

	get_or_delete(client, "DELETE");
	is_answered(client, 204, "");
	assert_null(fake_process_read(p));
	assert_true(p->is_eof);
	post(client, BOTH, LIST("1"));
	is_refused(client, 404, -32001);
	assert_non_null(strstr(client->body.data, "\"id\":1"));
	get_or_delete(client, "GET");
	is_refused(client, 404, -32001);
	get_or_delete(client, "DELETE");
	is_refused(client, 404, -32001);
}

/* FRONT-SESS-03, FRONT-SESS-04, FRONT-POST-02: missing is 400, unknown is 404, also another server's. */
static void sessions_are_looked_up(void **state)
{
	static const char *const unknown[] = { "x", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
					       "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" };
	struct http_client *client = connect_client();
	char fields[256];

	begin(client);
	post_to(client, "/mcp", BOTH, LIST("1"));
	is_refused(client, 400, -32600);
	send_text(client, "GET /mcp HTTP/1.1\r\nHost: localhost\r\n" EVENTS_ONLY "\r\n");
	is_refused(client, 400, -32600);
	send_text(client, "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n");
	is_refused(client, 400, -32600);
	for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
		snprintf(fields, sizeof(fields), BOTH "Mcp-Session-Id: %s\r\n", unknown[i]);
		post_to(client, "/mcp", fields, INITIALIZED);
		is_refused(client, 404, -32001);
	}
	snprintf(fields, sizeof(fields), BOTH "Mcp-Session-Id: %s\r\n", session);
	post_to(client, "/other", fields, LIST("1"));
	is_refused(client, 404, -32001);
}

/* FRONT-VER-01, FRONT-VER-02, FRONT-VER-03, FRONT-VER-04 */
static void versions_are_checked(void **state)
{
	struct http_client *client = connect_client();
	char fields[256];

	begin(client);
	snprintf(fields, sizeof(fields),
		 BOTH "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: 2025-06-18\r\n", session);
	post_to(client, "/mcp", fields, INITIALIZED);
	is_answered(client, 202, "");
	snprintf(fields, sizeof(fields),
		 BOTH "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: 1999-01-01\r\n", session);
	post_to(client, "/mcp", fields, LIST("1"));
	is_refused(client, 400, -32022);
	assert_non_null(strstr(client->body.data, "\"requested\":\"1999-01-01\""));
	snprintf(fields, sizeof(fields),
		 BOTH "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: %040d\r\n", session, 7);
	post_to(client, "/mcp", fields, LIST("1"));
	is_refused(client, 400, -32022); /* of one longer than any, the beginning is told */
	assert_non_null(
		strstr(client->body.data, "\"requested\":\"00000000000000000000000000000000\""));
}

#define MODERN "2026-07-28"
#define MODERN_FIELD "MCP-Protocol-Version: " MODERN "\r\n"
#define CLAIM(version) \
	"'params':{'_meta':{'io.modelcontextprotocol/protocolVersion':'" version "'}}}"
#define MODERN_LIST                                                         \
	"{'jsonrpc':'2.0','id':1,'method':'tools/list','params':{'_meta':{" \
	"'io.modelcontextprotocol/protocolVersion':'" MODERN                \
	"','io.modelcontextprotocol/clientCapabilities':{}}}}"
#define DISCOVER "{'jsonrpc':'2.0','id':1,'method':'server/discover'," CLAIM(MODERN)
#define METHOD_FIELD(name) "Mcp-Method: " name "\r\n"

/* FRONT-ERA-02, FRONT-ERA-03, FRONT-ERA-04, FRONT-POST-09: known from the field or from the body, with a session and without. */
static void modern_requests_are_held_to_their_rules(void **state)
{
	static const struct {
		const char *fields;
		const char *body;
		int status;
		int code;
	} posts[] = {
		{ BOTH MODERN_FIELD, DISCOVER, 400, -32602 }, /* no clientCapabilities */
		{ BOTH MODERN_FIELD, LIST("'a'"), 400, -32602 },
		{ BOTH, DISCOVER, 400, -32602 },
		{ BOTH, MODERN_LIST, 400, -32020 },
		{ BOTH MODERN_FIELD, MODERN_LIST, 400, -32020 },
		{ BOTH MODERN_FIELD METHOD_FIELD("tools/call"), MODERN_LIST, 400, -32020 },
		{ BOTH METHOD_FIELD("tools/list"), MODERN_LIST, 400, -32020 },
		{ BOTH "MCP-Protocol-Version: 1999-01-01\r\n" METHOD_FIELD("tools/list"),
		  MODERN_LIST, 400, -32020 },
		{ BOTH "MCP-Protocol-Version: 2025-11-25\r\n", MODERN_LIST, 400, -32020 },
		{ BOTH MODERN_FIELD "Mcp-Session-Id: unknown\r\n", LIST("2"), 400, -32602 },
		{ JSON_ONLY MODERN_FIELD, RESULT("3"), 400, -32600 },
		{ BOTH MODERN_FIELD, "[" LIST("1") "]", 400, -32600 },
		{ BOTH MODERN_FIELD, INITIALIZE("2025-11-25"), 400, -32602 },
		{ BOTH, "{'jsonrpc':'2.0','method':'x'," CLAIM("2027-01-01"), 400, -32022 },
	};
	struct http_client *client = connect_client();
	struct fake_process *p;
	char text[256];

	for (size_t i = 0; i < ARRAY_LEN(posts); i++) {
		post_to(client, "/mcp", posts[i].fields, posts[i].body);
		is_refused(client, posts[i].status, posts[i].code);
		assert_false(has_field(client, "Mcp-Session-Id"));
	}
	post_to(client, "/mcp", BOTH MODERN_FIELD, "{'jsonrpc':'2.0','method':'x'}");
	is_answered(client, 202, "");
	post_to(client, "/mcp", BOTH, "{'jsonrpc':'2.0','method':'x'," CLAIM(MODERN));
	is_answered(client, 202, "");
	assert_int_equal(keeper.count, 0);
	p = begin(client);
	post(client, BOTH "MCP-Protocol-Version: 2025-11-25\r\n", DISCOVER);
	is_refused(client, 400, -32602);
	for (size_t i = 0; i < 2; i++) {
		snprintf(text, sizeof(text),
			 "%s /mcp HTTP/1.1\r\nHost: localhost\r\n" EVENTS_ONLY MODERN_FIELD
			 "Mcp-Session-Id: %s\r\n\r\n",
			 i == 0 ? "GET" : "DELETE", session);
		send_text(client, text);
		is_refused(client, 405, -32600); /* FRONT-HTTP-02 */
	}
	assert_null(fake_process_read(p));
	assert_false(p->is_eof);
}

/* FRONT-VER-02, FRONT-ERA-05, FRONT-ERA-10: what only resembles a modern request. */
static void other_requests_are_not_modern(void **state)
{
	struct http_client *client = connect_client();
	struct fake_process *p;

	p = begin_with(client, INITIALIZE(MODERN), WELCOMED("2025-11-25"));
	post(client, BOTH "MCP-Protocol-Version: 2026-07-29\r\n", LIST("1"));
	is_refused(client, 400, -32022);
	post(client, BOTH "MCP-Protocol-Version: " MODERN "x\r\n", LIST("1"));
	is_refused(client, 400, -32022);
	assert_null(fake_process_read(p));
	post(client, BOTH, "{'jsonrpc':'2.0','method':'x'," CLAIM("2025-11-25"));
	is_answered(client, 202, "");
	assert_non_null(fake_process_read(p));
	post_to(client, "/mcp", BOTH METHOD_FIELD("initialize"), INITIALIZE("2025-11-25"));
	says(process(1), WELCOME);
	is_answered(client, 200, WELCOMED("2025-11-25"));
}

/* FRONT-INIT-02, FRONT-INIT-03, FRONT-HTTP-10, FRONT-HTTP-11, FRONT-POST-02, FRONT-POST-11 */
static void bad_messages_are_refused(void **state)
{
	static const struct {
		const char *body;
		int status;
		int code;
	} bad[] = {
		{ "{'jsonrpc':'2.0','id':1,'method':'initialize','params':{}}", 200, -32602 },
		{ "{'jsonrpc':'2.0','id':1,'method':'initialize'}", 200, -32602 },
		{ "{'jsonrpc':'2.0','id':1,'method':'initialize','params':{'protocolVersion':1,"
		  "'capabilities':{},'clientInfo':{}}}",
		  200, -32602 },
		{ "[" INITIALIZE("2025-03-26") "]", 400, -32600 },
		{ "{'jsonrpc'", 400, -32700 },
		{ "", 400, -32700 },
		{ "{}", 400, -32600 },
		{ "{'jsonrpc':'2.0','id':null,'method':'x'}", 400, -32600 },
		{ "{'jsonrpc':'2.0','id':1.5,'method':'x'}", 400, -32600 },
		{ "{'jsonrpc':'2.0','id':1,'id':2,'method':'x'}", 400, -32600 },
	};
	struct http_client *client = connect_client();
	static char text[80000];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		post_to(client, "/mcp", BOTH, bad[i].body);
		is_refused(client, bad[i].status, bad[i].code);
		assert_false(has_field(client, "Mcp-Session-Id"));
	}
	snprintf(text, sizeof(text), "%s",
		 "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':"
		 "'2025-06-18','capabilities':{},'clientInfo':{'name':'");
	memset(text + strlen(text), 'x', 65536);
	strcpy(text + 65536, "'}}}");
	post_to(client, "/mcp", BOTH, text); /* DEF-11 */
	is_refused(client, 200, -32602);
	assert_int_equal(router.sessions.count + router.sessions.reserved, 0);
	assert_int_equal(keeper.count, 0);
}

/* requirements §19: not executed is 503 with Retry-After; failed after dispatch is in band. */
static void failures_have_their_form(void **state)
{
	struct http_client *client = connect_client();
	struct fake_process *p;

	keeper.refuses = ENOENT;
	post_to(client, "/mcp", BOTH, INITIALIZE("2025-11-25"));
	is_refused(client, 503, -32603);
	assert_true(has_field(client, "Retry-After: 2"));
	assert_non_null(strstr(client->body.data, "\"reason\":\"backend_unavailable\""));
	keeper.refuses = 0;
	pass(1000);
	p = begin(client);
	post(client, BOTH, LIST("1"));
	fake_process_exit(&keeper, p, 256);
	is_refused(client, 200, -32603);
	assert_non_null(strstr(client->body.data, "\"reason\":\"child_exited\""));
}

/* ---- one request, one answer ---- */

/* FRONT-POST-01, FRONT-POST-05, FRONT-SSE-01: quick answers are JSON. */
static void quick_answer_is_json(void **state)
{
	struct http_client *client = connect_client();
	struct fake_process *p = begin(client);

	post(client, BOTH, CALL("'a'"));
	is_unanswered(client);
	hears(p, CALLED("2"));
	says(p, RESULT("2"));
	is_answered(client, 200, RESULT("'a'"));
	assert_true(has_field(client, "Content-Type: application/json"));
	post(client, BOTH, "{'jsonrpc':'2.0','id':2,'method':'ping'}");
	is_answered(client, 200, RESULT("2"));
	pass(GRACE_MS * 2);
	is_unanswered(client);
}

/* FRONT-SSE-01, FRONT-SSE-02, FRONT-SSE-09: after the grace it becomes a stream, which ends with the answer. */
static void slow_answer_is_a_stream(void **state)
{
	struct http_client *client = connect_client();
	struct fake_process *p = begin(client);

	post(client, BOTH, CALL("1"));
	pass(GRACE_MS - 1);
	is_unanswered(client);
	pass(1);
	has_events(client, "");
	pass(KEEPALIVE_MS); /* FRONT-HTTP-13 */
	has_events(client, ":");
	says(p, RESULT("2"));
	has_events(client, RESULT("1") "|");
	stream_is_over(client);
	post(client, BOTH, LIST("2")); /* the connection goes on */
	says(p, RESULT("3"));
	is_answered(client, 200, RESULT("2"));
}

/* FRONT-SSE-01, FRONT-SSE-07, UTIL-PROG-01: so does the first message before it. */
static void first_message_makes_a_stream(void **state)
{
	struct http_client *client = connect_client();
	struct http_client *other = connect_client();
	struct fake_process *p = begin(client);

	post(client, BOTH, CALL("1"));
	says(p, PROGRESS("2", "1"));
	has_events(client, PROGRESS("'t'", "1") "|");
	says(p, ASK("'q'"));
	has_events(client, ASK("1000001") "|");
	hears(p, CALLED("2"));
	post(other, BOTH, "{'jsonrpc':'2.0','id':1000001,'result':{'roots':[]}}");
	is_answered(other, 202, "");
	hears(p, "{'jsonrpc':'2.0','id':'q','result':{'roots':[]}}");
	says(p, PROGRESS("2", "2"));
	says(p, RESULT("2"));
	says(p, PROGRESS("2", "3"));
	has_events(client, PROGRESS("'t'", "2") "|" RESULT("1") "|");
	stream_is_over(client);
}

/* What one of the two forms cannot carry goes without it. */
static void clients_of_one_form(void **state)
{
	struct http_client *json = connect_client();
	struct http_client *sse = connect_client();
	struct fake_process *p = begin(json);

	post(json, JSON_ONLY, CALL("1"));
	says(p, PROGRESS("2", "1"));
	pass(GRACE_MS);
	is_unanswered(json);
	says(p, RESULT("2"));
	is_answered(json, 200, RESULT("1"));
	post(sse, EVENTS_ONLY, "{'jsonrpc':'2.0','id':1,'method':'ping'}");
	has_events(sse, RESULT("1") "|");
	stream_is_over(sse);
	post(sse, EVENTS_ONLY, LIST("2"));
	has_events(sse, "");
	says(p, RESULT("3"));
	has_events(sse, RESULT("2") "|");
	stream_is_over(sse);
}

/* streams.response */
static void form_can_be_configured(void **state)
{
	struct http_client *client = connect_client();
	struct fake_process *p;

	frontend.conf.response = FRONTEND_RESPONSE_SSE;
	p = begin(client); /* FRONT-INIT-04: JSON all the same */
	post(client, BOTH, LIST("1"));
	has_events(client, "");
	says(p, RESULT("2"));
	has_events(client, RESULT("1") "|");
	stream_is_over(client);
	frontend.conf.response = FRONTEND_RESPONSE_JSON;
	post(client, BOTH, CALL("1"));
	says(p, PROGRESS("3", "1"));
	pass(GRACE_MS);
	says(p, RESULT("3"));
	is_answered(client, 200, RESULT("1"));
}

/* CXL-02, CXL-03: what the client of a cancelled call gets, in each form of its answer. */
static void cancelled_calls_end(void **state)
{
	struct http_client *client = connect_client();
	struct http_client *other = connect_client();
	struct fake_process *p = begin(client);

	post(client, BOTH, CALL("1"));
	post(other, BOTH, CANCEL("2"));
	is_answered(other, 202, "");
	post(other, BOTH, CANCEL("1"));
	is_answered(other, 202, "");
	has_events(client, "");
	stream_is_over(client);
	hears(p, CALLED("2"));
	hears(p, CANCEL("2"));

	post(client, BOTH, CALL("1"));
	says(p, PROGRESS("3", "1"));
	has_events(client, PROGRESS("'t'", "1") "|");
	post(other, BOTH, CANCEL("1"));
	is_answered(other, 202, "");
	has_events(client, "");
	stream_is_over(client);

	post(client, JSON_ONLY, CALL("1"));
	post(other, BOTH, CANCEL("1"));
	is_answered(other, 202, "");
	is_refused(client, 200, -32603);
	assert_non_null(strstr(client->body.data, "\"reason\":\"cancelled\""));
	says(p, RESULT("2"));
	says(p, RESULT("3"));
	says(p, RESULT("4"));
	is_unanswered(client);
}

/* FRONT-POST-12, FRONT-SSE-12, FRONT-SSE-11: one id on two connections; each its own. */
static void concurrent_calls_stay_apart(void **state)
{
	struct http_client *a = connect_client();
	struct http_client *b = connect_client();
	struct fake_process *p = begin(a);

	post(a, BOTH, CALL("1"));
	post(b, BOTH, CALL("1"));
	says(p, PROGRESS("3", "1"));
	says(p, PROGRESS("2", "2"));
	says(p, "{'jsonrpc':'2.0','id':3,'result':'b'}");
	has_events(a, PROGRESS("'t'", "2") "|");
	has_events(b, PROGRESS("'t'", "1") "|{'jsonrpc':'2.0','id':1,'result':'b'}|");
	stream_is_over(b);
	says(p, "{'jsonrpc':'2.0','id':2,'result':'a'}");
	has_events(a, "{'jsonrpc':'2.0','id':1,'result':'a'}|");
	stream_is_over(a);
}

/* ---- batches ---- */

/* FRONT-POST-06: one array with all answers, ours among them; only notifications or answers: 202. */
static void batch_is_answered_by_an_array(void **state)
{
	struct http_client *client = connect_client();
	struct fake_process *p = begin_with_batches(client);

	post(client, BOTH,
	     "[" LIST("1") "," CANCEL("9") ",{'jsonrpc':'2.0','id':2,'method':'ping'}," LIST(
		     "3") "]");
	is_unanswered(client);
	hears(p, LIST("2")); /* BACK-FRAME-02: split */
	hears(p, LIST("3"));
	says(p, RESULT("3"));
	is_unanswered(client);
	says(p, RESULT("2"));
	is_answered(client, 200, "[" RESULT("1") "," RESULT("2") "," RESULT("3") "]");
	post(client, BOTH, "[{'jsonrpc':'2.0','id':2,'method':'ping'}]");
	is_answered(client, 200, "[" RESULT("2") "]");
	post(client, BOTH, "[" INITIALIZED "," CANCEL("1") "]");
	is_answered(client, 202, "");
	says(p, ASK("'q'"));
	post(client, BOTH,
	     "[{'jsonrpc':'2.0','id':1000001,'result':{}},{'jsonrpc':'2.0','id':5,'result':{}}]");
	is_answered(client, 202, "");
	hears(p, RESULT("'q'"));
}

/* FRONT-POST-06, bridging I3: what was answered before it becomes a stream is not lost. */
static void batch_becomes_a_stream(void **state)
{
	struct http_client *client = connect_client();
	struct fake_process *p = begin_with_batches(client);

	post(client, BOTH,
	     "[" CALL("1") "," CALL("2") ",{'jsonrpc':'2.0','id':3,'method':'ping'}]");
	says(p, RESULT("3"));
	is_unanswered(client);
	says(p, PROGRESS("2", "1"));
	has_events(client, RESULT("2") "|" RESULT("3") "|" PROGRESS("'t'", "1") "|");
	says(p, RESULT("2"));
	has_events(client, RESULT("1") "|");
	stream_is_over(client);

	post(client, BOTH, "[" CALL("1") "," CALL("2") "]");
	says(p, RESULT("4"));
	pass(GRACE_MS);
	has_events(client, RESULT("1") "|");
	says(p, RESULT("5"));
	has_events(client, RESULT("2") "|");
	stream_is_over(client);

	post(client, EVENTS_ONLY,
	     "[{'jsonrpc':'2.0','id':1,'method':'ping'},{'jsonrpc':'2.0','id':2,'method':'ping'}]");
	has_events(client, RESULT("1") "|" RESULT("2") "|");
	stream_is_over(client);
}

/* CXL-02 within a batch: the others are answered; all cancelled: nothing is. A failure is an element. */
static void batch_with_cancelled_and_failed_calls(void **state)
{
	struct http_client *client = connect_client();
	struct http_client *other = connect_client();
	struct fake_process *p = begin_with_batches(client);

	post(client, BOTH, "[" CALL("1") "," CALL("2") "]");
	post(other, BOTH, CANCEL("1"));
	is_answered(other, 202, "");
	says(p, RESULT("3"));
	is_answered(client, 200, "[" RESULT("2") "]");
	post(client, BOTH, "[" CALL("1") "," CANCEL("1") "]");
	is_answered(client, 202, "");
	post(client, JSON_ONLY, "[" CALL("1") "]");
	post(other, BOTH, CANCEL("1"));
	is_answered(other, 202, "");
	is_answered(client, 200, NULL);
	assert_non_null(strstr(buf_terminate(&client->body), "\"reason\":\"cancelled\""));
	post(client, BOTH, "[" CALL("1") "," CALL("2") "]");
	says(p, RESULT("6"));
	fake_process_exit(&keeper, p, 0);
	is_answered(client, 200, NULL);
	assert_non_null(strstr(buf_terminate(&client->body),
			       q("[" RESULT("1") ",{'jsonrpc':'2.0','id':2,'error'")));
	keeper.refuses = ENOENT;
	post(client, BOTH, "[" LIST("1") ",{'jsonrpc':'2.0','id':2,'method':'ping'}]");
	is_answered(client, 200, NULL); /* a batch is answered as a whole, not with 503 */
	assert_non_null(strstr(buf_terminate(&client->body), "backend_unavailable"));
	assert_non_null(strstr(client->body.data, q(RESULT("2"))));
}

/* FRONT-POST-07, FRONT-POST-08, FRONT-INIT-03 */
static void bad_batches_are_refused(void **state)
{
	struct http_client *client = connect_client();
	char many[4096] = "[";

	begin_with_batches(client);
	for (int i = 0; i < 65; i++)
		strcat(many, i < 64 ? INITIALIZED "," : INITIALIZED "]");
	post(client, BOTH, many);
	is_refused(client, 400, -32600);
	post(client, BOTH, "[]");
	is_refused(client, 400, -32600);
	assert_non_null(strstr(client->body.data, "a batch is not empty"));
	post(client, BOTH, "[" LIST("1") "," RESULT("1000001") "]");
	is_refused(client, 400, -32600);
	post(client, BOTH, "[[" LIST("1") "]]");
	is_refused(client, 400, -32600);
	post(client, BOTH, "[" LIST("1") ",");
	is_refused(client, 400, -32700);
	post(client, BOTH, "[" LIST("1") "," INITIALIZE("2025-03-26") "]");
	is_refused(client, 400, -32600);
	assert_null(fake_process_read(process(0)));
	begin(client);
	post(client, BOTH, "[" LIST("1") "]");
	is_refused(client, 400, -32600);
}

/* CXL-01: whoever leaves keeps his calls running, so that connections do not bound them. A batch is taken whole or not. */
static void calls_in_flight_are_bounded(void **state)
{
	struct http_client *client = connect_client();
	struct fake_process *p = begin_with_batches(client);
	char batch[4096] = "[";

	for (int i = 0; i < 64; i++)
		strcat(batch, i < 63 ? LIST("1") "," : LIST("1") "]");
	for (int i = 0; i < 64; i++) {
		struct http_client *leaver = connect_client();

		post(leaver, BOTH, batch);
		leave(leaver);
		client_count--;
		while (fake_process_read(p) != NULL)
			continue;
	}
	assert_int_equal(router.calls, 4096);
	post(client, BOTH, LIST("1"));
	is_refused(client, 503, -32603);
	assert_non_null(strstr(client->body.data, "\"reason\":\"overloaded\""));
	post(client, BOTH, "[" LIST("1") "]");
	is_refused(client, 503, -32603);
	post(client, BOTH, CANCEL("77"));
	is_answered(client, 202, "");
	says(p, RESULT("2"));
	post(client, BOTH, "[" LIST("1") "," LIST("2") "]");
	is_refused(client, 503, -32603);
	assert_null(fake_process_read(p));
	assert_int_equal(router.calls, 4095);
	post(client, BOTH, LIST("1"));
	hears(p, LIST("4098"));
}

/* ---- who leaves ---- */

/* CXL-01, REL-04: the call runs on, nobody gets its result, nothing crosses to who comes next. */
static void client_leaves(void **state)
{
	struct http_client *waits = connect_client();
	struct http_client *streams = connect_client();
	struct http_client *batch = connect_client();
	struct http_client *stays = connect_client();
	struct fake_process *p = begin_with_batches(stays);

	post(waits, BOTH, CALL("1"));
	post(streams, BOTH, CALL("2"));
	post(batch, BOTH, "[" CALL("3") "," CALL("4") "]");
	says(p, PROGRESS("3", "1"));
	says(p, RESULT("4"));
	leave(waits);
	leave(streams);
	leave(batch);
	pass(GRACE_MS);
	for (int i = 2; i <= 5; i++)
		assert_non_null(fake_process_read(p));
	assert_null(fake_process_read(p)); /* no cancel */
	assert_int_equal(router.calls, 3);
	says(p, PROGRESS("3", "2"));
	says(p, ASK("'q'"));
	says(p, RESULT("2"));
	says(p, RESULT("3"));
	says(p, RESULT("5"));
	assert_int_equal(router.calls, 0);
	is_unanswered(stays);
	/* It was asked during the call whose client has seen an event: there it waits. CXL-01 */
	resume(stays, 1, 1);
	has_events(stays, PROGRESS("'t'", "2") "|" ASK("1000001") "|" RESULT("2") "|");
	stream_is_over(stays);
}

/* bridging §1.6: what it was asked is not waited for till the end of days. */
static void client_leaves_while_it_is_asked(void **state)
{
	struct http_client *client = connect_client();
	struct fake_process *p = begin(client);

	post(client, BOTH, CALL("1"));
	hears(p, CALLED("2"));
	says(p, ASK("'q'"));
	pass(HOLD_MS); /* while it is there, it has the time that its call has */
	leave(client);
	pass(HOLD_MS);
	hears(p,
	      "{'jsonrpc':'2.0','id':'q','error':{'code':-32603,'message':'no client is there to be asked'}}");
	assert_int_equal(router.calls, 1);
	says(p, RESULT("2"));
	assert_int_equal(router.calls, 0);
}

/* Nobody will know the id: the session ends as soon as it would begin. */
static void client_leaves_before_its_session_begins(void **state)
{
	struct http_client *client = connect_client();

	send_text(client, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
	post_to(client, "/mcp", BOTH, INITIALIZE("2025-11-25"));
	leave(client); /* with an answer unread: that is a reset */
	assert_int_equal(router.sessions.reserved, 1);
	says(process(0), WELCOME);
	assert_int_equal(router.sessions.count + router.sessions.reserved, 0);
	assert_int_equal(http_server_connection_count(server), 0);
}

/* FRONT-SESS-08: who has closed his direction may be gone, or not: his session is given a minute to be used. */
static void client_that_may_have_left_gets_a_minute(void **state)
{
	struct http_client *gone = connect_client();
	struct http_client *there = connect_client();

	post_to(gone, "/mcp", BOTH, INITIALIZE("2025-11-25"));
	post_to(there, "/mcp", BOTH, INITIALIZE("2025-11-25"));
	assert_int_equal(shutdown(gone->fd, SHUT_WR), 0);
	settle();
	says(process(0), WELCOME);
	says(process(1), WELCOME);
	assert_int_equal(take_head(gone), 200);
	assert_int_equal(router.sessions.count, 2);
	pass(59000);
	assert_int_equal(router.sessions.count, 2);
	pass(1000);
	assert_int_equal(router.sessions.count, 1);
}

/* FRONT-SSE-13: who does not read loses progress and logs, never the answer; others are not held up. */
static void slow_reader_keeps_its_answer(void **state)
{
	struct http_client *slow = connect_client();
	struct http_client *other = connect_client();
	struct fake_process *p = begin(other);
	char text[20000];
	const char *got;

	post(slow, BOTH, CALL("1"));
	hears(p, CALLED("2"));
	snprintf(
		text, sizeof(text), "%s",
		"{'jsonrpc':'2.0','method':'notifications/message','params':{'level':'info','data':'");
	memset(text + strlen(text), 'x', 15000);
	strcpy(text + 15000, "'}}");
	for (int i = 0; i < 200; i++)
		says(p, text);
	post(other, BOTH, LIST("2"));
	hears(p, LIST("3"));
	says(p, RESULT("3"));
	is_answered(other, 200, RESULT("2"));
	says(p, RESULT("2"));
	got = events(slow);
	assert_true(strlen(got) < 100 * 15000);
	assert_string_equal(got + strlen(got) - strlen(RESULT("1") "|"), q(RESULT("1") "|"));
	stream_is_over(slow);
}

/* FRONT-SSE-13: what may not be lost and does not fit ends the connection; the call itself goes on. */
static void slow_reader_of_requests_is_ended(void **state)
{
	struct http_client *slow = connect_client();
	struct http_client *other = connect_client();
	struct fake_process *p = begin(other);
	char text[60000];

	post(slow, BOTH, CALL("1"));
	snprintf(text, sizeof(text), "%s",
		 "{'jsonrpc':'2.0','id':1,'method':'roots/list','params':{'x':'");
	memset(text + strlen(text), 'x', 50000);
	strcpy(text + 50000, "'}}");
	for (int i = 0; i < 40 && http_server_connection_count(server) == 2; i++)
		says(p, text);
	assert_int_equal(http_server_connection_count(server), 1);
	assert_int_equal(router.calls, 1);
	says(p, text);
	says(p, RESULT("2"));
	assert_int_equal(router.calls, 0);
	receive(slow);
	assert_true(slow->is_closed);
	get_or_delete(other, "GET"); /* the one that did not fit found another way */
	assert_in_range(strlen(events(other)), 50000, 60000);
}

/* ---- GET ---- */

/* FRONT-GET-01, FRONT-GET-02, FRONT-GET-03, FRONT-GET-04, FRONT-SSE-11 */
static void get_hears_the_session(void **state)
{
	struct http_client *client = connect_client();
	struct http_client *first = connect_client();
	struct http_client *second = connect_client();
	struct fake_process *p = begin(client);

	says(p, CHANGED);
	says(p, CHANGED);
	get_or_delete(first, "GET");
	has_events(first, CHANGED "|");
	says(p, ASK("'q'"));
	has_events(first, ASK("1000001") "|");
	pass(KEEPALIVE_MS);
	has_events(first, ":");
	get_or_delete(second, "GET");
	stream_is_over(first);
	says(p, CHANGED);
	has_events(second, CHANGED "|");
	leave(second);
	says(p, CHANGED);
	get_or_delete(first, "GET"); /* its connection was kept */
	has_events(first, CHANGED "|");
	post(client, BOTH, LIST("1"));
	says(p, RESULT("2"));
	is_answered(client, 200, RESULT("1"));
	has_events(first, "");
}

/* FRONT-SESS-06, FRONT-SESS-09, REL-05: DELETE ends calls with an error each, and streams. */
static void delete_ends_everything(void **state)
{
	struct http_client *waits = connect_client();
	struct http_client *streams = connect_client();
	struct http_client *listens = connect_client();
	struct http_client *client = connect_client();
	struct fake_process *p = begin(client);

	get_or_delete(listens, "GET");
	post(waits, BOTH, CALL("1"));
	post(streams, BOTH, CALL("2"));
	says(p, PROGRESS("3", "1"));
	get_or_delete(client, "DELETE");
	is_answered(client, 204, "");
	is_refused(waits, 200, -32603);
	has_events(listens, "");
	stream_is_over(listens);
	assert_non_null(strstr(events(streams), "\"reason\":\"cancelled\""));
	stream_is_over(streams);
	assert_int_equal(router.calls, 0);
	hears(p, CALLED("2"));
	hears(p, CALLED("3"));
	hears(p,
	      "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':2,'reason':'the session has ended'}}");
	assert_non_null(fake_process_read(p));
	assert_null(fake_process_read(p));
	assert_true(p->is_eof);
}

/* FRONT-SESS-08: an open stream keeps the session; without it it idles out. */
static void open_stream_keeps_the_session(void **state)
{
	struct http_client *client = connect_client();
	struct http_client *listens = connect_client();

	begin(client);
	get_or_delete(listens, "GET");
	pass(3600000);
	post(client, BOTH, "{'jsonrpc':'2.0','id':1,'method':'ping'}");
	is_answered(client, 200, RESULT("1"));
	leave(listens);
	pass(3599999);
	post(client, BOTH, "{'jsonrpc':'2.0','id':1,'method':'ping'}");
	is_answered(client, 200, RESULT("1"));
	pass(3599999);
	assert_int_equal(router.sessions.count, 1);
	pass(1);
	post(client, BOTH, "{'jsonrpc':'2.0','id':1,'method':'ping'}");
	is_refused(client, 404, -32001);
}

/* FRONT-SESS-08: whatever a client sends in a session is a sign of it, also what is not a request. */
static void notifications_keep_the_session(void **state)
{
	struct http_client *client = connect_client();

	begin(client);
	pass(IDLE_MS - 1000);
	post(client, BOTH, CANCEL("77"));
	is_answered(client, 202, "");
	pass(IDLE_MS - 1000);
	assert_int_equal(router.sessions.count, 1);
	pass(1000);
	assert_int_equal(router.sessions.count, 0);
}

/* FRONT-RES-01, -07: only what we wrote is read. */
static void event_ids_are_read_strictly(void **state)
{
	static const char *const bad[] = { "",
					   "0000002a",
					   "0000002a-1",
					   "0000002a-1-",
					   "0000002a--1",
					   "2a-1-2",
					   "0000002A-1-2",
					   "0000002a-g-2",
					   "0000002a-1-2-3",
					   "0000002a-1-1234567890123456",
					   " 0000002a-1-2" };
	struct event_source source;

	assert_int_equal(event_id_parse(SLICE_LIT("0000002a-1f-10"), &source), 0);
	assert_int_equal(source.epoch, 42);
	assert_int_equal(source.number, 31);
	assert_int_equal(source.after, 16);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(event_id_parse(slice_str(bad[i]), &source), -1);
}
/* REL-41: calls in flight finish; nothing new begins; streams end. */
static void drain_lets_calls_finish(void **state)
{
	struct http_client *waits = connect_client();
	struct http_client *listens = connect_client();
	struct http_client *client = connect_client();
	struct http_client *batch = connect_client();
	struct fake_process *p = begin_with_batches(client);
	struct session *ends = session_find(&router.sessions, slice_str(session),
					    &router.sessions.principals.anonymous);

	get_or_delete(listens, "GET");
	post(waits, BOTH, CALL("1"));
	router.is_draining = true;
	stream_end(&ends->standalone, REASON_DRAINING);
	has_events(listens, "");
	stream_is_over(listens);
	post(client, BOTH, LIST("2"));
	is_refused(client, 503, -32603);
	post(client, BOTH, INITIALIZE("2025-03-26"));
	is_refused(client, 503, -32603);
	post(batch, BOTH, "[" LIST("2") "]");
	is_refused(batch, 503, -32603);
	get_or_delete(client, "GET");
	is_refused(client, 503, -32603);
	send_text(client, "GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n"); /* REL-41 */
	is_refused(client, 503, -32603);
	post(client, BOTH, CANCEL("77"));
	is_answered(client, 202, "");
	resume(client, 0, 0);
	has_events(client, "");
	stream_is_over(client);
	says(p, CHANGED);
	says(p, RESULT("2"));
	is_answered(waits, 200, RESULT("1"));
}

/* ---- HTTP+SSE ---- */

/* Opens a stream; where its messages go. */
static const char *open_sse(struct http_client *client)
{
	static char uri[64];
	const char *text;

	send_text(client, "GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n");
	text = events(client);
	assert_int_equal(strlen(text), strlen("/message?sessionId=|") + SESSION_ID_LENGTH);
	snprintf(uri, sizeof(uri), "%.*s", (int)strlen(text) - 1, text);
	return uri;
}

static struct fake_process *begin_sse(struct http_client *stream, struct http_client *sender,
				      const char *uri)
{
	struct fake_process *p;

	post_to(sender, uri, "", INITIALIZE("2024-11-05"));
	is_answered(sender, 202, "");
	p = process(keeper.count - 1);
	says(p, WELCOME);
	has_events(stream, WELCOMED("2024-11-05") "|");
	assert_non_null(fake_process_read(p));
	hears(p, INITIALIZED);
	return p;
}

/* FRONT-OLD-02, FRONT-OLD-04: what ends a session is told on its stream before that ends. */
static void sse_session_ends_with_its_answers(void **state)
{
	struct http_client *stream = connect_client();
	struct http_client *sender = connect_client();
	const char *uri = open_sse(stream);
	struct fake_process *p = begin_sse(stream, sender, uri);

	post_to(sender, uri, "", CALL("7"));
	is_answered(sender, 202, "");
	hears(p, CALLED("2"));
	says(p, PROGRESS("2", "1"));
	has_events(stream, PROGRESS("'t'", "1") "|");
	session_end(container_of(router.sessions.sessions.next, struct session, link),
		    REASON_DRAINING);
	settle();
	assert_non_null(strstr(events(stream), "draining"));
	stream_is_over(stream);
	post_to(sender, uri, "", CALL("8"));
	is_refused(sender, 404, -32001);
}

/* Comes back with an event's id, of the same client, or with what `fields` say. */
static void come_back(struct http_client *client, const char *fields)
{
	char text[320];

	snprintf(text, sizeof(text), "GET /sse HTTP/1.1\r\nHost: localhost\r\n%s\r\n", fields);
	send_text(client, text);
}

static const char *event_field(const char *uri, unsigned int number)
{
	static char text[100];

	snprintf(text, sizeof(text), "Last-Event-ID: %s-%u\r\n", strchr(uri, '=') + 1, number);
	return text;
}

/* FRONT-OLD-04: who loses its connection goes on where it was, or is forgotten in time. */
static void sse_client_comes_back(void **state)
{
	struct http_client *sender = connect_client();
	struct http_client *first = connect_client();
	struct http_client *second = connect_client();
	struct http_client *late = connect_client();
	const char *uri;
	struct fake_process *p;

	frontend.conf.reconnect_ms = 60000;
	uri = open_sse(first);
	p = begin_sse(first, sender, uri);
	post_to(sender, uri, "", CALL("7"));
	is_answered(sender, 202, "");
	hears(p, CALLED("2"));
	leave(first);
	assert_int_equal(router.sessions.count, 1);
	says(p, RESULT("2"));
	pass(59000);
	come_back(second, event_field(uri, 1));
	assert_non_null(strstr(events(second), "\"id\":7"));
	pass(61000);
	assert_int_equal(router.sessions.count, 1);
	leave(second);
	pass(61000);
	assert_int_equal(router.sessions.count, 0);
	assert_int_equal(frontend.sse_clients.by_key.count, 0);
	come_back(late, event_field(uri, 2));
	is_refused(late, 404, -32001);
}

/* FRONT-OLD-04: a session that ends while its client is away takes the client with it. */
static void sse_client_is_away_when_its_session_ends(void **state)
{
	struct http_client *sender = connect_client();
	struct http_client *stream = connect_client();

	frontend.conf.reconnect_ms = 60000;
	begin_sse(stream, sender, open_sse(stream));
	leave(stream);
	assert_int_equal(frontend.sse_clients.by_key.count, 1);
	/* Nobody uses it: it may give way to another one. */
	assert_false(list_is_empty(&router.sessions.idle));
	session_end(container_of(router.sessions.sessions.next, struct session, link),
		    REASON_RECLAIMED);
	settle();
	assert_int_equal(frontend.sse_clients.by_key.count, 0);
}

/* `head`, so many bytes that a few of them fill a stream, and `tail`. */
static const char *large(const char *head, const char *tail)
{
	static char text[60000];

	snprintf(text, sizeof(text), "%s", head);
	memset(text + strlen(text), 'x', 50000);
	strcpy(text + 50000, tail);
	return text;
}

/* FRONT-OLD-04: who comes back while the old connection still stands takes over from it, however often. */
static void sse_client_takes_over_from_itself(void **state)
{
	struct http_client *sender = connect_client();
	struct http_client *readers[6];
	const char *uri;
	struct fake_process *p;

	frontend.conf.reconnect_ms = 60000;
	readers[0] = connect_client();
	uri = open_sse(readers[0]);
	for (size_t i = 1; i < 3; i++) { /* before it has a session, too */
		readers[i] = connect_client();
		come_back(readers[i], event_field(uri, 0));
		assert_non_null(strstr(events(readers[i]), strchr(uri, '?')));
		stream_is_over(readers[i - 1]);
	}
	p = begin_sse(readers[2], sender, uri);
	post_to(sender, uri, "", CALL("7"));
	is_answered(sender, 202, "");
	hears(p, CALLED("2"));
	for (size_t i = 3; i < ARRAY_LEN(readers); i++) {
		readers[i] = connect_client();
		come_back(readers[i], event_field(uri, 1));
		assert_non_null(strstr(events(readers[i]), strchr(uri, '?')));
		stream_is_over(readers[i - 1]);
	}
	assert_int_equal(frontend.sse_clients.by_key.count, 1);
	leave(readers[3]); /* what is over already is nobody's any more */
	leave(readers[2]);
	says(p, RESULT("2"));
	assert_non_null(strstr(events(readers[5]), "\"id\":7"));
	pass(61000);
	assert_int_equal(router.sessions.count, 1);
	session_end(container_of(router.sessions.sessions.next, struct session, link),
		    REASON_EXPIRED);
	settle();
	has_events(readers[5], ":");
	stream_is_over(readers[5]);
}

/* FRONT-OLD-04, FRONT-RES-07: positions that never were, and ids that are none of this server's. */
static void sse_client_makes_ids_up(void **state)
{
	static const char *const unknown[] = { "-",  "",    "-g", "-1-1", "-ffffffffffffffff",
					       "-A", "--1", "x1" };
	struct http_client *sender = connect_client();
	struct http_client *first = connect_client();
	struct http_client *reader;
	char fields[200];
	const char *uri;

	frontend.conf.reconnect_ms = 60000;
	uri = open_sse(first);
	begin_sse(first, sender, uri);
	leave(first);
	reader = connect_client();
	for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
		snprintf(fields, sizeof(fields), "Last-Event-ID: %s%s\r\n", strchr(uri, '=') + 1,
			 unknown[i]);
		come_back(reader, fields);
		is_refused(reader, 404, -32001);
	}
	send_text(reader, "GET /other/sse HTTP/1.1\r\nHost: localhost\r\n");
	send_text(reader, event_field(uri, 1));
	send_text(reader, "\r\n");
	is_refused(reader, 404, -32001);
	snprintf(fields, sizeof(fields), "Last-Event-ID: %s-fffffffffffffff\r\n",
		 strchr(uri, '=') + 1);
	come_back(reader, fields);
	assert_non_null(strstr(events(reader), "stream_expired"));
	post_to(sender, uri, "", LIST("9"));
	is_answered(sender, 202, "");
	hears(process(0), LIST("2"));
	says(process(0), RESULT("2"));
	has_events(reader, RESULT("9") "|");
}

/* SEC-16: answers wait for lost clients; when they are too much for all, whoever has most goes, and nobody else. */
static void sse_answers_for_lost_clients_are_bounded(void **state)
{
	struct http_client *sender = connect_client();
	const char *uris[3];
	struct http_client *reader;
	struct fake_process *p;
	char head[64];

	frontend.conf.reconnect_ms = 60000;
	router.sessions.store.budget.max_bytes = 210000;
	for (size_t i = 0; i < ARRAY_LEN(uris); i++) {
		unsigned int answers = i == 1 ? 3 : 1;

		reader = connect_client();
		uris[i] = strdup(open_sse(reader));
		p = begin_sse(reader, sender, uris[i]);
		for (unsigned int n = 0; n < answers; n++) {
			post_to(sender, uris[i], "", LIST("7"));
			is_answered(sender, 202, "");
		}
		leave(reader);
		for (unsigned int n = 0; n < answers; n++) {
			snprintf(head, sizeof(head), "{'jsonrpc':'2.0','id':%u,'result':{'x':'",
				 n + 2);
			says(p, large(head, "'}}"));
		}
	}
	settle();
	assert_true(router.sessions.store.budget.bytes <= 210000);
	assert_int_equal(router.sessions.count, 2);
	for (size_t i = 0; i < ARRAY_LEN(uris); i++) {
		reader = connect_client();
		come_back(reader, event_field(uris[i], 1));
		if (i == 1)
			is_refused(reader, 404, -32001);
		else
			assert_non_null(strstr(events(reader), "xxxx"));
		free((char *)(uintptr_t)uris[i]);
	}
}

/* As many as it takes, but none that has nothing. */
static void sse_lost_clients_make_room_together(void **state)
{
	struct http_client *sender = connect_client();
	struct http_client *readers[4];
	struct fake_process *processes[4];
	char uri[64];

	frontend.conf.reconnect_ms = 60000;
	for (size_t i = 0; i < ARRAY_LEN(readers); i++) {
		readers[i] = connect_client();
		snprintf(uri, sizeof(uri), "%s", open_sse(readers[i]));
		processes[i] = begin_sse(readers[i], sender, uri);
		post_to(sender, uri, "", LIST("7"));
		is_answered(sender, 202, "");
		leave(readers[i]);
	}
	for (size_t i = 0; i < 2; i++)
		says(processes[i], large("{'jsonrpc':'2.0','id':2,'result':{'x':'", "'}}"));
	assert_int_equal(router.sessions.count, 4);
	router.sessions.store.budget.max_bytes = 2000;
	says(processes[2], RESULT("2"));
	assert_int_equal(router.sessions.count, 2);
	router.sessions.store.budget.max_bytes =
		1; /* all that is left is what waits for the third */
	says(processes[2], PROGRESS("1", "1"));
	readers[0] = connect_client();
	open_sse(readers[0]);
	assert_int_equal(router.sessions.count, 2);
}

/* One alone may have more than all may: it goes, too, and it costs the others nothing. */
static void sse_client_that_is_read_is_not_ended_for_room(void **state)
{
	struct http_client *sender = connect_client();
	struct http_client *stream = connect_client();
	const char *uri;
	struct fake_process *p;

	frontend.conf.reconnect_ms = 60000;
	router.sessions.store.budget.max_bytes = 1000;
	uri = open_sse(stream);
	p = begin_sse(stream, sender, uri);
	post_to(sender, uri, "", LIST("7"));
	is_answered(sender, 202, "");
	says(p, large("{'jsonrpc':'2.0','id':2,'result':{'x':'", "'}}"));
	assert_non_null(strstr(events(stream), "xxxx"));
	assert_int_equal(router.sessions.count, 1);
	leave(stream); /* nor is it later: what it has read gives way by itself */
	assert_true(router.sessions.store.budget.bytes > 1000);
	assert_int_equal(router.sessions.count, 1);
}

/* Its server waits no longer for an answer than that of any other client that has left. */
static void sse_client_leaves_while_it_is_asked(void **state)
{
	struct http_client *sender = connect_client();
	struct http_client *stream = connect_client();
	const char *uri;
	struct fake_process *p;

	frontend.conf.reconnect_ms = 10 * HOLD_MS;
	uri = open_sse(stream);
	p = begin_sse(stream, sender, uri);
	post_to(sender, uri, "", CALL("7"));
	is_answered(sender, 202, "");
	hears(p, CALLED("2"));
	says(p, ASK("'q'"));
	leave(stream);
	pass(HOLD_MS - 1000);
	hears_nothing(p);
	pass(1000);
	hears(p,
	      "{'jsonrpc':'2.0','id':'q','error':{'code':-32603,'message':'no client is there to be asked'}}");
	for (size_t bytes = 0; bytes < QUEUE_BYTES; bytes += 50000)
		says(p,
		     large("{'jsonrpc':'2.0','id':1,'method':'roots/list','params':{'x':'", "'}}"));
	hears_nothing(p);
	says(p, ASK("2"));
	hears(p, "{'jsonrpc':'2.0','id':2,'error':{'code':-32603,'message':"
		 "'no client takes the requests that wait already'}}");
	assert_int_equal(router.calls, 1);
}

#define VERSION_FIELD "MCP-Protocol-Version: 2024-11-05\r\n"

/* FRONT-OLD-09: who says that it has initialized, and then nothing, gets a session; it hears nothing of how. */
static void sse_client_is_begun_anew(void **state)
{
	struct http_client *sender = connect_client();
	struct http_client *stream = connect_client();
	const char *line;
	char uri[64];

	frontend.conf.reconnect_ms = 60000;
	come_back(stream, VERSION_FIELD);
	snprintf(uri, sizeof(uri), "%s", events(stream));
	uri[strlen(uri) - 1] = '\0';
	pass(1900);
	assert_int_equal(keeper.count, 0);
	pass(200);
	assert_int_equal(keeper.count, 1);
	line = fake_process_read(process(0));
	assert_non_null(strstr(line, "\"initialize\""));
	assert_non_null(strstr(line, "\"capabilities\":{}"));
	post_to(sender, uri, "", LIST("3"));
	is_refused(sender, 503, -32603);
	says(process(0), WELCOME);
	has_events(stream, "");
	hears(process(0), INITIALIZED);
	post_to(sender, uri, "", LIST("3"));
	is_answered(sender, 202, "");
	hears(process(0), LIST("2"));
	says(process(0), RESULT("2"));
	has_events(stream, RESULT("3") "|");
	pass(120000);
	assert_int_equal(router.sessions.count, 1);
}

/* FRONT-OLD-09: who names a revision and initializes is new: what comes before the answer begins nothing anew. */
static void sse_client_that_initializes_is_not_begun_anew(void **state)
{
	struct http_client *sender = connect_client();
	struct http_client *stream = connect_client();
	char uri[64];

	frontend.conf.reconnect_ms = 60000;
	come_back(stream, VERSION_FIELD);
	snprintf(uri, sizeof(uri), "%s", events(stream));
	uri[strlen(uri) - 1] = '\0';
	post_to(sender, uri, "", INITIALIZE("2024-11-05"));
	is_answered(sender, 202, "");
	post_to(sender, uri, "", LIST("3"));
	is_answered(sender, 202, "");
	assert_non_null(strstr(events(stream), "initialize must come first"));
	says(process(0), WELCOME);
	has_events(stream, WELCOMED("2024-11-05") "|");
	assert_int_equal(keeper.count, 1);
}

/* FRONT-OLD-09: it is told by the end of its stream that this has failed, and tries again. */
static void sse_client_cannot_be_begun_anew(void **state)
{
	struct http_client *stream = connect_client();

	frontend.conf.reconnect_ms = 60000;
	come_back(stream, VERSION_FIELD);
	assert_non_null(strstr(events(stream), "/message"));
	pass(2100);
	fake_process_read(process(0));
	says(process(0), "{'jsonrpc':'2.0','id':1,'error':{'code':-32602,'message':'no'}}");
	stream_is_over(stream);
	assert_int_equal(frontend.sse_clients.by_key.count, 0);
	assert_int_equal(router.sessions.count + router.sessions.reserved, 0);
}

/* FRONT-OLD-09: it leaves while that is under way; what was begun for it waits like anything that is lost. */
static void sse_client_leaves_while_it_is_begun_anew(void **state)
{
	struct http_client *stream = connect_client();

	frontend.conf.reconnect_ms = 60000;
	come_back(stream, VERSION_FIELD);
	assert_non_null(strstr(events(stream), "/message"));
	pass(2100);
	leave(stream);
	fake_process_read(process(0));
	says(process(0), WELCOME);
	assert_int_equal(router.sessions.count, 1);
	pass(61000);
	assert_int_equal(router.sessions.count, 0);
	assert_int_equal(frontend.sse_clients.by_key.count, 0);
}

/* FRONT-OLD-09: anonymous callers are all one principal: what one has lost no other gets. */
static void sse_lost_sessions_are_not_given_to_anybody(void **state)
{
	struct http_client *sender = connect_client();
	struct http_client *first = connect_client();
	struct http_client *second = connect_client();
	char uri[64];

	frontend.conf.reconnect_ms = 60000;
	begin_sse(first, sender, open_sse(first));
	leave(first);
	come_back(second, VERSION_FIELD);
	snprintf(uri, sizeof(uri), "%s", events(second));
	uri[strlen(uri) - 1] = '\0';
	post_to(sender, uri, "", INITIALIZED);
	take_head(sender);
	settle();
	assert_int_equal(keeper.count, 2);
	assert_int_equal(router.sessions.count + router.sessions.reserved, 2);
}

/* REL-41: a stop ends what has not begun; who has a session comes back for the answers of its calls. */
static void sse_clients_while_the_gateway_stops(void **state)
{
	struct http_client *fresh = connect_client();
	struct http_client *sender = connect_client();
	struct http_client *lost = connect_client();
	struct http_client *again = connect_client();
	char uri[64];
	struct fake_process *p;

	frontend.conf.reconnect_ms = 60000;
	open_sse(fresh);
	snprintf(uri, sizeof(uri), "%s", open_sse(lost));
	p = begin_sse(lost, sender, uri);
	post_to(sender, uri, "", CALL("7"));
	is_answered(sender, 202, "");
	hears(p, CALLED("2"));
	leave(lost);
	router_drain(&router);
	http_sse_drain(&frontend);
	stream_is_over(fresh);
	assert_int_equal(frontend.sse_clients.by_key.count, 1);
	come_back(again, event_field(uri, 1));
	assert_non_null(strstr(events(again), strchr(uri, '?')));
	says(p, RESULT("2"));
	assert_non_null(strstr(events(again), "\"id\":7"));
	come_back(connect_client(), "");
	assert_int_equal(take_head(&clients[client_count - 1]), 503);
}

/* FRONT-OLD-04: sessions.reconnect_timeout 0: nothing is kept, no event has an id, an id is of no use. */
static void sse_client_may_not_come_back(void **state)
{
	struct http_client *sender = connect_client();
	struct http_client *stream = connect_client();
	struct http_client *again = connect_client();
	const char *uri = open_sse(stream);
	struct fake_process *p = begin_sse(stream, sender, uri);

	post_to(sender, uri, "", LIST("7"));
	is_answered(sender, 202, "");
	hears(p, LIST("2"));
	says(p, RESULT("2"));
	take_chunks(stream);
	assert_non_null(strstr(buf_terminate(&stream->body), "data: {"));
	assert_null(strstr(stream->body.data, "id: "));
	stream->body.len = 0;
	leave(stream);
	assert_int_equal(router.sessions.count, 0);
	come_back(again, event_field(uri, 1));
	is_refused(again, 404, -32001);
	come_back(again, VERSION_FIELD);
	assert_non_null(strstr(events(again), "/message"));
	pass(3000);
	assert_int_equal(keeper.count, 1); /* nor is one begun anew */
}

/* FRONT-OLD-04, SEC-08: who never initializes does not stay. */
static void sse_client_must_initialize(void **state)
{
	struct http_client *stream = connect_client();
	struct http_client *sender = connect_client();
	const char *uri = open_sse(stream);

	pass(59000);
	post_to(sender, uri, "", LIST("1"));
	is_answered(sender, 202, "");
	assert_non_null(strstr(events(stream), "-32600"));
	pass(2000);
	stream_is_over(stream);
	assert_int_equal(frontend.sse_clients.by_key.count, 0);
}

/* FRONT-INIT-05: a second initialize is refused on the stream, also while the first one's server starts. */
static void sse_client_initializes_once(void **state)
{
	struct http_client *stream = connect_client();
	struct http_client *sender = connect_client();
	const char *uri = open_sse(stream);

	for (int i = 0; i < 2; i++) {
		post_to(sender, uri, "", INITIALIZE("2024-11-05"));
		is_answered(sender, 202, "");
	}
	assert_non_null(strstr(events(stream), "-32600"));
	assert_int_equal(keeper.count, 1);
	says(process(0), WELCOME);
	has_events(stream, WELCOMED("2024-11-05") "|");
	post_to(sender, uri, "", INITIALIZE("2024-11-05"));
	is_answered(sender, 202, "");
	assert_non_null(strstr(events(stream), "-32600"));
	assert_int_equal(keeper.count, 1);
}

/* FRONT-OLD-04: while its server starts it is waited for; a client that leaves then leaves nothing. */
static void sse_client_leaves_while_its_server_starts(void **state)
{
	struct http_client *stream = connect_client();
	struct http_client *sender = connect_client();
	const char *uri = open_sse(stream);

	pass(59000);
	post_to(sender, uri, "", INITIALIZE("2024-11-05"));
	is_answered(sender, 202, "");
	pass(2000);
	assert_int_equal(frontend.sse_clients.by_key.count, 1);
	leave(stream);
	assert_int_equal(frontend.sse_clients.by_key.count, 0);
	assert_int_equal(router.calls, 0);
	post_to(sender, uri, "", LIST("1"));
	is_refused(sender, 404, -32001);
}

/* FRONT-OLD-04: nothing is queued without a bound for a client that sends and does not read. */
static void sse_client_must_read(void **state)
{
	struct http_client *sender = connect_client();
	struct http_client *stream = connect_client();
	const char *uri = open_sse(stream);

	for (int i = 0; i < 20000 && frontend.sse_clients.by_key.count > 0; i++) {
		post_to(sender, uri, "", LIST("1"));
		is_answered(sender, 202, "");
	}
	assert_int_equal(frontend.sse_clients.by_key.count, 0);
	receive(stream);
	assert_true(stream->is_closed);
}

/* Whether the stream of the only session has room for one more that is large. */
static bool has_room_for_large(void)
{
	const struct session *only =
		container_of(router.sessions.sessions.next, struct session, link);

	return only->standalone.bytes + 51000 < QUEUE_BYTES;
}

#define LARGE_ASK "{'jsonrpc':'2.0','id':1,'method':'roots/list','params':{'x':'"

/* FRONT-OLD-04, SEC-08: what is told last, the server taking back a request, is too much for its reader. */
static void sse_client_is_lost_over_a_cancelled_request(void **state)
{
	struct http_client *stream = connect_client();
	struct http_client *sender = connect_client();
	const char *uri;
	struct fake_process *p;

	frontend.conf.reconnect_ms = 60000;
	uri = open_sse(stream);
	p = begin_sse(stream, sender, uri);

	post_to(sender, uri, "", CALL("7"));
	is_answered(sender, 202, "");
	for (int i = 0; i < 40 && has_room_for_large(); i++)
		says(p, large(LARGE_ASK, "'}}"));
	says(p, large("{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':1,"
		      "'reason':'",
		      "'}}"));
	assert_int_equal(router.sessions.count, 0);
	assert_int_equal(frontend.sse_clients.by_key.count, 0);
}

/* FRONT-OLD-05: of a batch that is refused each request is answered, and nothing else. */
static void sse_batch_is_refused(void **state)
{
	struct http_client *stream = connect_client();
	struct http_client *sender = connect_client();
	const char *uri = open_sse(stream);
	const char *text;

	post_to(sender, uri, "", INITIALIZE("2025-03-26"));
	is_answered(sender, 202, "");
	says(process(0), WELCOME);
	has_events(stream, WELCOMED("2025-03-26") "|");
	servers[0].conf.limits.all.concurrency = 1;
	call_limits_finish(&servers[0].conf.limits, SLICE_LIT("test"));
	post_to(sender, uri, "", "[" CALL("7") "," CANCEL("9") "," CALL("8") "]");
	is_answered(sender, 202, "");
	text = events(stream);
	assert_non_null(strstr(text, "\"id\":7,\"error\""));
	assert_non_null(strstr(text, "\"id\":8,\"error\""));
	assert_string_equal(strchr(strchr(text, '|') + 1, '|'), "|");
	call_limits_free(&servers[0].conf.limits);
}

/* bridging.md §1.5: so is the answer to one subscription, which another one of the session waits for as well. */
static void sse_client_is_lost_over_an_answer_for_two(void **state)
{
	static const char welcome[] = "{'jsonrpc':'2.0','id':1,'result':{'protocolVersion':"
				      "'2025-11-25','capabilities':{'tools':{},'resources':{"
				      "'subscribe':true}}}}";
	struct http_client *stream = connect_client();
	struct http_client *sender = connect_client();
	const char *uri = open_sse(stream);
	struct fake_process *p;
	unsigned int upstream_id = 2;
	char head[100];

	servers[0].conf.isolation = ISOLATION_SHARED;
	servers[0].conf.calls_per_process = 100;
	servers[0].conf.idle_ms = 300000;
	post_to(sender, uri, "", INITIALIZE("2024-11-05"));
	is_answered(sender, 202, "");
	p = process(0);
	says(p, welcome);
	for (; upstream_id < 40 && has_room_for_large(); upstream_id++) {
		post_to(sender, uri, "", CALL("7"));
		is_answered(sender, 202, "");
		snprintf(head, sizeof(head), "{'jsonrpc':'2.0','id':%u,'result':{'x':'",
			 upstream_id);
		says(p, large(head, "'}}"));
	}
	for (int i = 0; i < 3; i++) {
		post_to(sender, uri, "",
			"{'jsonrpc':'2.0','id':8,'method':'resources/subscribe','params':{'uri':'r:a'}}");
		is_answered(sender, 202, "");
	}
	snprintf(head, sizeof(head), "{'jsonrpc':'2.0','id':%u,'result':{'x':'", upstream_id);
	says(p, large(head, "'}}"));
	assert_int_equal(router.sessions.count, 0);
}

static unsigned int gatherings;

static void on_gathering(struct audit *audit)
{
	assert_ptr_equal(audit, router.audit);
	gatherings++;
}

/* SEC-63: nobody but the answer takes the record along here. */
static void an_answer_comes_after_its_record(void **state)
{
	struct http_client *client = connect_client();
	char text[2 * TEXT_LINE_BYTES];
	struct audit audit = { .on_gathering = on_gathering };
	struct fake_process *p;
	int fds[2];
	ssize_t n;

	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	audit.fd = fds[1];
	router.audit = &audit;
	p = begin(client);
	assert_true(read(fds[0], text, sizeof(text)) > 0);
	gatherings = 0;
	post(client, BOTH, CALL("'a'"));
	hears(p, CALLED("2"));
	assert_int_equal(read(fds[0], text, sizeof(text)), -1);
	says(p, RESULT("2"));
	is_answered(client, 200, RESULT("'a'"));
	n = read(fds[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, ",\"event\":\"end\",\"verdict\":\"allowed\","));
	assert_non_null(strstr(text, ",\"method\":\"tools/call\",\"tool\":\"t\"}\n"));
	assert_int_equal(gatherings, 1);
	router.audit = NULL;
	close(fds[0]);
	close(fds[1]);
}

/* ---- where a token is needed ---- */

static const struct slice allowed_uris[] = { SLICE("https://app.example/cb") };

/* OAuth at both endpoints, or at the first alone, below a path; with a client for those who want one. */
static void need_tokens(struct frontend_conf *conf, size_t endpoint_count,
			enum authorization_dpop dpop)
{
	static struct verifier_issuer_conf issuers[] = { { .issuer = "https://id.example" } };
	static const struct metadata_resource resources[] = {
		{ SLICE("/mcp"), SLICE("https://gw.example/p/mcp"), SLICE("use more") },
		{ SLICE("/other"), SLICE("https://gw.example/p/other"), SLICE("") },
	};

	*conf = frontend.conf;
	conf->authorization.mode = AUTHORIZATION_OAUTH;
	conf->authorization.issuers = (struct verifier_conf){ .items = issuers, .count = 1 };
	conf->authorization.public_url = SLICE_LIT("https://gw.example/p");
	conf->authorization.dpop = dpop;
	conf->metadata = (struct metadata_conf){
		.facade = METADATA_FACADE_OFF,
		.client_id = SLICE_LIT("cli"),
		.redirect_uris = { allowed_uris, ARRAY_LEN(allowed_uris) },
		.resources = resources,
		.resource_count = endpoint_count,
	};
	endpoints[0].place.metadata = SLICE_LIT("https://gw.example/x");
	frontend_renew(&frontend, conf);
}

/* AUTH-PRM-01 … -06, -12, AUTH-CH-01 */
static void documents_are_found(void **state)
{
	static const char whole[] =
		"{'resource':'https://gw.example/p/mcp','authorization_servers':['https://id.example'],"
		"'scopes_supported':['use','more'],'bearer_methods_supported':['header']}";
	static const struct {
		const char *path;
		size_t status[2]; /* with one resource, with two */
		const char *body; /* with one */
	} rows[] = {
		{ "/.well-known/oauth-protected-resource", { 200, 404 }, whole },
		{ "/.well-known/oauth-protected-resource/mcp", { 200, 200 }, whole },
		{ "/.well-known/oauth-protected-resource/p/mcp", { 200, 200 }, whole },
		{ "/.well-known/oauth-protected-resource/other", { 404, 200 }, NULL },
		{ "/.well-known/oauth-protected-resource/p/none", { 404, 404 }, NULL },
		{ "/.well-known/oauth-protected-resources", { 404, 404 }, NULL },
		{ "/.well-known/oauth-authorization-server", { 404, 404 }, NULL },
		{ "/authorize", { 404, 404 }, NULL },
		{ "/token", { 404, 404 }, NULL },
	};
	struct http_client *client;
	struct frontend_conf conf;
	char text[256];

	for (size_t count = 1; count <= 2; count++) {
		need_tokens(&conf, count, AUTHORIZATION_DPOP_OFF);
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			client = connect_client();
			snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
				 rows[i].path);
			send_text(client, text);
			is_answered(client, (int)rows[i].status[count - 1],
				    count == 1 ? rows[i].body : NULL);
			if (rows[i].status[count - 1] == 404)
				assert_non_null(
					strstr(client->body.data, "\"error\":\"not_found\""));
			buf_fini(&client->in);
			buf_fini(&client->head);
			buf_fini(&client->body);
			leave(client);
			client_count--;
		}
	}
	client = connect_client();
	post_to(client, "/.well-known/oauth-protected-resource/mcp", "", "");
	is_answered(client, 405, NULL);
	assert_true(has_field(client, "Allow: GET, HEAD, OPTIONS"));
	head_is_answered("GET /mcp HTTP/1.1\r\nHost: localhost\r\n" EVENTS_ONLY "\r\n", 401,
			 "WWW-Authenticate: Bearer resource_metadata=\"https://gw.example/x\"");
	need_tokens(&conf, 1, AUTHORIZATION_DPOP_REQUIRED);
	head_is_answered(
		"GET /mcp HTTP/1.1\r\nHost: localhost\r\n" EVENTS_ONLY "\r\n", 401,
		"WWW-Authenticate: Bearer resource_metadata=\"https://gw.example/x\", DPoP algs=\"ES256 EdDSA PS256 RS256 "
		"ES384 ES512 PS384 PS512 RS384 RS512\"");
}

/* REL-53: while another caller is there, one whose requests took long waits, as long as it has to. */
static void callers_take_turns(void **state)
{
	static struct static_token tokens[] = { { .name = SLICE("a") }, { .name = SLICE("b") } };
	static const char a[] = BOTH "Authorization: Bearer a\r\n";
	static const char b[] = BOTH "Authorization: Bearer b\r\n";
	struct http_client *waits = connect_client(), *leaves = connect_client();
	struct frontend_conf conf = frontend.conf;
	struct principal *slow;
	size_t users;

	for (size_t i = 0; i < ARRAY_LEN(tokens); i++)
		SHA256((const unsigned char *)tokens[i].name.p, 1, tokens[i].hash);
	conf.authorization.mode = AUTHORIZATION_TOKEN;
	conf.authorization.tokens = (struct static_tokens){ tokens, ARRAY_LEN(tokens) };
	frontend_renew(&frontend, &conf);
	router.sessions.conf.max_per_principal = 1;
	post_to(waits, "/mcp", a, INITIALIZE("2025-11-25"));
	says(process(0), WELCOME);
	is_answered(waits, 200, NULL);
	slow = container_of(router.sessions.sessions.next, struct session, link)->principal;
	slow->paid_at_ms = clock_now_ms() + 5000;
	post_to(waits, "/mcp", a, "x"); /* nobody else is there */
	is_refused(waits, 400, -32700);
	post_to(waits, "/mcp", b, "x");
	is_refused(waits, 400, -32700);
	slow->paid_at_ms = clock_now_ms() + 99;
	post_to(waits, "/mcp", a, "x"); /* it is not far ahead */
	is_refused(waits, 400, -32700);
	slow->paid_at_ms = clock_now_ms() + 100;
	post_to(waits, "/mcp", a, "x");
	pass(99);
	is_unanswered(waits);
	pass(1);
	is_refused(waits, 400, -32700);
	pass(899);
	slow->paid_at_ms = clock_now_ms() + 100;
	post_to(leaves, "/mcp", a, "x");
	is_unanswered(leaves);
	users = servers[0].users;
	leave(leaves);
	assert_int_equal(servers[0].users, users - 1);
	pass(1);
	slow->paid_at_ms = clock_now_ms() + 100;
	post_to(waits, "/mcp", a, "x"); /* the other has not come for a second */
	is_refused(waits, 400, -32700);
}

static void use_key(const char *jwk)
{
	struct frontend_conf conf = frontend.conf;

	conf.metadata.own_key = slice_str(jwk);
	frontend_renew(&frontend, &conf);
}

static void keys_are(int status, const char *body)
{
	struct http_client *client = connect_client();

	send_text(client, "GET /.well-known/jwks.json HTTP/1.1\r\nHost: localhost\r\n\r\n");
	is_answered(client, status, NULL);
	if (body != NULL)
		assert_string_equal(buf_terminate(&client->body), body);
	buf_fini(&client->in);
	buf_fini(&client->head);
	buf_fini(&client->body);
	leave(client);
	client_count--;
}

/* BACK-URL-12: of a key that has gone, until the tokens that it signed are over; also while no tokens are needed here. */
static void keys_are_served_while_their_tokens_are_good(void **state)
{
	char text[32];

	keys_are(404, NULL);
	use_key("{\"kid\":1}");
	keys_are(200, "{\"keys\":[{\"kid\":1}]}");
	use_key("{\"kid\":2}");
	use_key("{\"kid\":2}");
	keys_are(200, "{\"keys\":[{\"kid\":1},{\"kid\":2}]}");
	clock_advance(359 * 1000);
	keys_are(200, "{\"keys\":[{\"kid\":1},{\"kid\":2}]}");
	clock_advance(2 * 1000);
	keys_are(200, "{\"keys\":[{\"kid\":2}]}");
	use_key("{\"kid\":1}");
	use_key("{\"kid\":2}"); /* back again: it is in use, however long */
	clock_advance(400 * 1000);
	keys_are(200, "{\"keys\":[{\"kid\":2}]}");
	for (int i = 10; i < 30; i++) {
		snprintf(text, sizeof(text), "{\"kid\":%d}", i);
		use_key(text);
		clock_advance(1);
	}
	keys_are(200, "{\"keys\":[{\"kid\":24},{\"kid\":25},{\"kid\":26},{\"kid\":27},"
		      "{\"kid\":28},{\"kid\":29},{\"kid\":22},{\"kid\":23}]}");
	use_key("");
	clock_advance(361 * 1000);
	keys_are(404, NULL);
}

/* AUTH-DCR-01 … -03: for redirects to this machine, or to what the configuration lists. */
static void clients_are_registered(void **state)
{
	static const struct {
		const char *uris;
		int status;
	} rows[] = {
		{ "['http://127.0.0.1:1/cb']", 201 },
		{ "['http://127.0.0.1']", 201 },
		{ "['http://localhost:65535']", 201 },
		{ "['http://[::1]/cb']", 201 },
		{ "['https://app.example/cb','http://localhost/']", 201 },
		{ "[]", 400 },
		{ "{}", 400 },
		{ "7", 400 },
		{ "[7]", 400 },
		{ "['http://localhost/','https://evil.example/cb']", 400 },
		{ "['https://app.example/cb/']", 400 },
		{ "['http://localhost:65536/']", 400 },
		{ "['http://localhost:0/']", 400 },
		{ "['http://localhost:/']", 400 },
		{ "['http://localhost:1x/']", 400 },
		{ "['http://localhost.evil.example/']", 400 },
		{ "['http://127.0.0.1@evil.example/']", 400 },
		{ "['https://localhost/']", 400 },
		{ "['http://localhost/ ']", 400 },
		{ "['http://localhost/#x']", 400 },
		{ "['http://localhost\\\\@evil.example/']", 400 },
		{ "['http://localhost/\\u007f']", 400 },
	};
	struct http_client *client = connect_client();
	struct frontend_conf conf;
	static char text[20000];

	need_tokens(&conf, 1, AUTHORIZATION_DPOP_OFF);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(text, sizeof(text), "{'redirect_uris':%s}", rows[i].uris);
		post_to(client, "/register", BOTH, text);
		if (take_head(client) != rows[i].status)
			fail_msg("%s: %s", rows[i].uris, client->head.data);
		client->in.len = 0;
	}
	post_to(client, "/register", BOTH, "{'redirect_uris':['http://localhost/']}");
	is_answered(client, 201,
		    "{'client_id':'cli','redirect_uris':['http://localhost/'],"
		    "'token_endpoint_auth_method':'none','grant_types':['authorization_code',"
		    "'refresh_token'],'response_types':['code']}");
	for (size_t more = 0; more < 2; more++) {
		snprintf(text, sizeof(text), "%-*s", 16384 + (int)more,
			 "{'redirect_uris':['http://localhost/']}");
		post_to(client, "/register", BOTH, text);
		is_answered(client, more == 0 ? 201 : 400, NULL);
	}
	client = connect_client(); /* the last one's body is not read */
	post_to(client, "/register", BOTH, "{'redirect_uris':['http://localhost/']");
	is_answered(client, 400, NULL);
	send_text(client,
		  "POST /register HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{");
	leave(client); /* in the middle */
	client = connect_client();
	send_text(client, "GET /register HTTP/1.1\r\nHost: localhost\r\n\r\n");
	is_answered(client, 405, NULL);
	assert_true(has_field(client, "Allow: POST, OPTIONS"));
}

/* A browser gets a page, which tells its own machine the addresses if no token is needed. */
static void browsers_get_a_page(void **state)
{
	static const char request[] =
		"GET /x HTTP/1.1\r\nHost: localhost:8\r\nAccept: text/html, */*\r\n\r\n";
	struct http_client *client, *stranger = connect_client();
	struct frontend_conf conf;

	peer = (struct peer){ .family = AF_INET, .address = { 127, 0, 0, 1 } };
	client = connect_client();
	peer.family = 0;
	servers[1].is_retired = true;
	send_text(stranger, request);
	is_answered(stranger, 200, NULL);
	assert_null(strstr(stranger->body.data, "<li>"));
	send_text(client, request);
	is_answered(client, 200, NULL);
	assert_true(has_field(client, "Content-Type: text/html; charset=utf-8"));
	if (strstr(client->body.data, "<li><code>http://localhost:8/mcp</code></li>\n</ul>") ==
	    NULL)
		fail_msg("%s", client->body.data);
	need_tokens(&conf, 1, AUTHORIZATION_DPOP_OFF);
	send_text(client, request);
	is_answered(client, 200, NULL);
	assert_null(strstr(client->body.data, "<li>"));
	assert_non_null(strstr(client->body.data, "whether a token is needed"));
	head_is_answered(
		"GET /x HTTP/1.1\r\nHost: localhost\r\nAccept: text/html, text/event-stream\r\n\r\n",
		404, NULL);
	head_is_answered("GET /x HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n", 404, NULL);
	servers[1].is_retired = false;
}

/* ---- an endpoint over several servers ---- */

#define OVER_CAPABILITIES                                                          \
	"'tools':{'listChanged':true},'prompts':{'listChanged':true},'resources':" \
	"{'listChanged':true,'subscribe':true},'completions':{},'logging':{}"
#define OVER_WELCOME(capabilities, more)                                           \
	"{'protocolVersion':'2025-11-25','serverInfo':{'name':'s','version':'1'}," \
	"'capabilities':{" capabilities "}" more "}"
#define ASKS(id, method, params) \
	"{'jsonrpc':'2.0','id':" id ",'method':'" method "','params':{" params "}}"
#define PROMPTS_CHANGED "{'jsonrpc':'2.0','method':'notifications/prompts/list_changed'}"
#define RESOURCES_CHANGED "{'jsonrpc':'2.0','method':'notifications/resources/list_changed'}"
#define TOOL(name) "{'name':'" name "','inputSchema':{}}"

static struct server whole;
static struct server_leg legs[2];

/* Over both servers: the second begins with three endpoints. */
static int setup_over(void **state)
{
	static const struct server_leg usual[] = { { SLICE("a"), SLICE("a__") },
						   { SLICE("b"), SLICE("b__") } };
	struct server_conf conf;

	setup(state);
	memcpy(legs, usual, sizeof(legs));
	router.aggregate_new = aggregate_new;
	servers[0].conf.name = "a";
	servers[1].conf.name = "b";
	conf = servers[0].conf;
	conf.name = "all";
	conf.fleet = NULL;
	conf.legs = (struct server_legs){ legs, ARRAY_LEN(legs) };
	server_init(&whole, loop, keeper.spawner, &conf);
	endpoints[2] = (struct endpoint){ .path = SLICE("/all"), .server = &whole };
	return 0;
}

static int teardown_over(void **state)
{
	int result = teardown(state);

	assert_int_equal(whole.users, 0);
	server_fini(&whole);
	return result;
}

/* The server is asked this next, and the answer has this member, 'result':… or 'error':…. */
static void answers(struct fake_process *p, const char *asked, const char *member)
{
	const char *line = fake_process_read(p), *id;
	struct buf text = { 0 };

	if (line == NULL || strstr(line, q(asked)) == NULL)
		fail_msg("%s instead of %s", line != NULL ? line : "nothing", asked);
	id = strstr(line, "\"id\":");
	assert_non_null(id);
	buf_printf(&text, "{'jsonrpc':'2.0','id':%.*s,%s}", (int)strcspn(id + 5, ",}"), id + 5,
		   member);
	for (size_t at = 0; at < text.len; at += 32768) { /* a pipe holds no more than two */
		char part[32769];

		snprintf(part, sizeof(part), "%s", q(buf_terminate(&text)) + at);
		fake_process_write(p, part);
		settle();
	}
	fake_process_write(p, "\n");
	settle();
	buf_fini(&text);
}

static void post_all(struct http_client *client, const char *body)
{
	char fields[256];

	snprintf(fields, sizeof(fields), BOTH "Mcp-Session-Id: %s\r\n", session);
	post_to(client, "/all", fields, body);
}

/* Second by second, as the timers expect it. */
static void pass_slowly(uint64_t ms)
{
	for (; ms > 1000; ms -= 1000)
		pass(1000);
	pass(ms);
}

/* The answer to the last request has this text. */
static void is_told(struct http_client *client, const char *text)
{
	is_answered(client, 200, NULL);
	if (strstr(buf_terminate(&client->body), q(text)) == NULL)
		fail_msg("no %s in %s", text, client->body.data);
}

/* A session of the endpoint, whose servers say this of themselves; the text that the client gets has this. */
static void begin_over(struct http_client *client, const char *first, const char *second,
		       const char *welcomed)
{
	const char *id;

	post_to(client, "/all", BOTH, INITIALIZE("2025-11-25"));
	assert_int_equal(keeper.count, 2);
	answers(process(0), "'initialize'", first);
	is_unanswered(client);
	answers(process(1), "'initialize'", second);
	is_told(client, welcomed);
	id = strstr(client->head.data, "Mcp-Session-Id: ");
	assert_non_null(id);
	memcpy(session, id + strlen("Mcp-Session-Id: "), SESSION_ID_LENGTH);
	post_all(client, INITIALIZED);
	is_answered(client, 202, "");
	for (size_t i = 0; i < 2; i++)
		hears(process(i), INITIALIZED);
}

static void begin_over_both(struct http_client *client, const char *capabilities)
{
	char text[1024];

	snprintf(text, sizeof(text), "'result':" OVER_WELCOME("%s", ""), capabilities);
	begin_over(client, text, text, "'serverInfo':{'name':'all','version':");
}

static void get_over(struct http_client *client)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "GET /all HTTP/1.1\r\nHost: localhost\r\n" EVENTS_ONLY
		 "Mcp-Session-Id: %s\r\n\r\n",
		 session);
	send_text(client, text);
}

/* Each server is asked this next, and has these items. */
static void both_list(const char *asked, const char *first, const char *second)
{
	answers(process(0), asked, first);
	answers(process(1), asked, second);
}

/* END-01, END-02: what both offer, and what they say of themselves; the end of one is the end of all. */
static void over_servers_the_handshake(void **state)
{
	struct http_client *client = connect_client();
	char text[256];

	begin_over(client, "'result':" OVER_WELCOME("'tools':{}", ",'instructions':'of a'"),
		   "'result':" OVER_WELCOME("'prompts':{}", ",'instructions':'of b'"),
		   "'capabilities':{'tools':{'listChanged':true},'prompts':{'listChanged':true}},"
		   "'serverInfo':{'name':'all','version':'" PACKAGE_VERSION
		   "'},'instructions':'a (its tools begin with \\'a__\\'):\\nof a\\n\\n"
		   "b (its tools begin with \\'b__\\'):\\nof b'}");
	post_all(client, ASKS("1", "ping", ""));
	is_answered(client, 200, RESULT("1"));
	post_all(client, ASKS("2", "x/y", ""));
	is_told(client, "'id':2,'error':{'code':-32601,");
	post_all(client, "{'jsonrpc':'2.0','method':'tools/call','params':{'name':'a__t'}}");
	is_answered(client, 202, "");
	for (size_t i = 0; i < 2; i++)
		hears_nothing(process(i));
	snprintf(text, sizeof(text),
		 "DELETE /all HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: %s\r\n\r\n", session);
	send_text(client, text);
	is_answered(client, 204, "");
	for (size_t i = 0; i < 2; i++) {
		hears_nothing(process(i));
		assert_true(process(i)->is_eof);
	}
}

/* END-03: names of all pages lead to their server, under its own name; two of one name lead nowhere. */
static void over_servers_names(void **state)
{
	static const struct {
		const char *ask;
		size_t leg;
		const char *heard;
	} asks[] = {
		{ ASKS("9", "tools/call", "'name':'a__t'"), 0, "'params':{'name':'t'}" },
		{ ASKS("9", "tools/call", "'name':'a__u'"), 0, "'params':{'name':'u'}" },
		{ ASKS("9", "tools/call", "'name':'b__t'"), 1, "'params':{'name':'t'}" },
		{ ASKS("9", "tools/call", "'name':'b__unlisted'"), 1, "'name':'unlisted'" },
		{ ASKS("9", "prompts/get", "'name':'b__p'"), 1, "'params':{'name':'p'}" },
		{ ASKS("9", "completion/complete",
		       "'ref':{'type':'ref/prompt','name':'a__p'},'argument':{}"),
		  0, "'ref':{'type':'ref/prompt','name':'p'}" },
	};
	static const char *const unknown[] = { "a__twin", "a__", "b__", "c__t", "t", "A__t", "" };
	struct http_client *client = connect_client();
	char text[256];

	begin_over_both(client, OVER_CAPABILITIES);
	post_all(client, LIST("1"));
	answers(process(0), "'tools/list'",
		"'result':{'tools':[" TOOL("t") ",7," TOOL("twin") "," TOOL(
			"") "],'nextCursor':'c'}");
	is_unanswered(client);
	answers(process(1), "'tools/list'",
		"'result':{'tools':[" TOOL("t") "," TOOL("azAZ09_-") "]}");
	is_unanswered(client);
	answers(process(0), "'params':{'cursor':'c'}",
		"'result':{'tools':[" TOOL("u") "," TOOL("twin") "]}");
	is_answered(client, 200,
		    "{'jsonrpc':'2.0','id':1,'result':{'tools':[" TOOL("a__t") "," TOOL(
			    "a__u") "," TOOL("b__t") "," TOOL("b__azAZ09_-") "]}}");
	assert_int_equal(
		count_logged("names_collide endpoint=all list=tools server=a name=a__twin items=1"),
		1);
	for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
		post_all(client, asks[i].ask);
		answers(process(asks[i].leg), asks[i].heard, "'result':{}");
		is_answered(client, 200, RESULT("9"));
	}
	for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
		snprintf(text, sizeof(text), ASKS("2", "tools/call", "'name':'%s'"), unknown[i]);
		post_all(client, text);
		is_told(client, "'id':2,'error':{'code':-32602,");
	}
	for (size_t i = 0; i < 2; i++)
		hears_nothing(process(i));
}

/* END-03: where a resource is, its server's list or template says, or that only one has any. */
static void over_servers_resources(void **state)
{
	static const struct {
		const char *uri;
		size_t leg; /* 2: none */
	} uris[] = { { "res://x", 0 },   { "res://1", 0 }, { "res://2", 1 },
		     { "file:///p", 1 }, { "other", 2 },   { "file://", 2 } };
	static const char *const ways[] = {
		"'method':'resources/read','params':{",
		"'method':'resources/subscribe','params':{",
		"'method':'completion/complete','params':{'argument':{},'ref':{'type':'ref/resource',",
	};
	struct http_client *client = connect_client();
	char text[256];

	begin_over_both(client, OVER_CAPABILITIES);
	post_all(client, ASKS("1", "resources/read", "'uri':'res://x'"));
	both_list("'resources/list'",
		  "'result':{'resources':[{'uri':'res://x'},{'uri':'res://1'}]}",
		  "'result':{'resources':[{'uri':'res://x'},{'uri':'res://2'}]}");
	is_unanswered(client); /* it takes the templates as well */
	both_list("'resources/templates/list'", "'result':{'resourceTemplates':[]}",
		  "'result':{'resourceTemplates':[{'uriTemplate':'file:///{path}'}]}");
	answers(process(0), "'uri':'res://x'", "'result':{}");
	is_answered(client, 200, RESULT("1"));
	assert_true(is_logged("names_collide endpoint=all list=resources server=b name=res://x"));
	for (size_t i = 0; i < ARRAY_LEN(uris) * ARRAY_LEN(ways); i++) {
		size_t leg = uris[i / ARRAY_LEN(ways)].leg;

		snprintf(text, sizeof(text), "{'jsonrpc':'2.0','id':9,%s'uri':'%s'}}%s",
			 ways[i % ARRAY_LEN(ways)], uris[i / ARRAY_LEN(ways)].uri,
			 i % ARRAY_LEN(ways) == 2 ? "}" : "");
		post_all(client, text);
		if (leg < 2) {
			answers(process(leg), uris[i / ARRAY_LEN(ways)].uri, "'result':{}");
			is_answered(client, 200, RESULT("9"));
		} else {
			is_told(client, "'id':9,'error':{'code':-32002,");
		}
	}
	for (size_t i = 0; i < 2; i++)
		hears_nothing(process(i));
}

/* END-03: a URI that no list has is a matter of the only server with resources, if there is one. */
static void over_servers_resources_of_one(void **state)
{
	struct http_client *client = connect_client();

	begin_over(client, "'result':" OVER_WELCOME("'tools':{}", ""),
		   "'result':" OVER_WELCOME("'resources':{}", ""),
		   "'capabilities':{'tools':{'listChanged':true},'resources':{");
	post_all(client, ASKS("1", "resources/read", "'uri':'other'"));
	answers(process(1), "'resources/list'", "'result':{'resources':[]}");
	answers(process(1), "'resources/templates/list'", "'result':{'resourceTemplates':[]}");
	answers(process(1), "'uri':'other'", "'result':{}");
	is_answered(client, 200, RESULT("1"));
}

/* END-05: what belongs to a call stays with it and its server. */
static void over_servers_calls_stay_apart(void **state)
{
	struct http_client *client = connect_client();
	struct http_client *second = connect_client();
	struct http_client *other = connect_client();

	begin_over_both(client, OVER_CAPABILITIES);
	post_all(client, ASKS("1", "tools/call", "'name':'a__t','_meta':{'progressToken':'p'}"));
	post_all(second, ASKS("2", "tools/call", "'name':'b__t','_meta':{'progressToken':'q'}"));
	hears(process(0), ASKS("2", "tools/call", "'name':'t','_meta':{'progressToken':2}"));
	hears(process(1), ASKS("2", "tools/call", "'name':'t','_meta':{'progressToken':2}"));
	says(process(0), PROGRESS("2", "1"));
	says(process(1), PROGRESS("2", "7"));
	has_events(client, PROGRESS("'p'", "1") "|");
	has_events(second, PROGRESS("'q'", "7") "|");

	/* Questions. */
	says(process(0),
	     "{'jsonrpc':'2.0','id':5,'method':'roots/list','params':{'_meta':{'progressToken':5}}}");
	says(process(1), ASK("5"));
	has_events(
		client,
		"{'jsonrpc':'2.0','id':1000001,'method':'roots/list','params':{'_meta':{'progressToken':1000001}}}|");
	has_events(second, ASK("1000002") "|");
	pass(HOLD_MS); /* for whoever reads, only the call's time counts */
	has_events(client, ":");
	has_events(second, ":");
	post_all(other, PROGRESS("1000001", "3"));
	is_answered(other, 202, "");
	hears(process(0), PROGRESS("5", "3"));
	post_all(other, "{'jsonrpc':'2.0','id':1000002,'result':{'roots':[]}}");
	is_answered(other, 202, "");
	hears(process(1), "{'jsonrpc':'2.0','id':5,'result':{'roots':[]}}");
	says(process(0), CANCEL("5"));
	has_events(client, CANCEL("1000001") "|");
	for (size_t i = 0; i < 2; i++)
		hears_nothing(process(i));

	/* The client cancels one. */
	post_all(
		other,
		"{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':1,'reason':'bored'}}");
	is_answered(other, 202, "");
	hears(process(0),
	      "{'jsonrpc':'2.0','method':'notifications/cancelled','params':{'requestId':2,'reason':'bored'}}");
	hears_nothing(process(1));
	assert_false(is_logged("child_stray")); /* nothing answers it */
	says(process(0), RESULT("2"));
	has_events(client, "");
	stream_is_over(client);
	says(process(1), RESULT("2"));
	has_events(second, RESULT("2") "|");
	stream_is_over(second);
}

/* END-05: the task's server is the one whose call has become it, or the only one with tasks. */
static void over_servers_tasks(void **state)
{
	struct http_client *client = connect_client();
	static char text[10000];

	begin_over_both(client, OVER_CAPABILITIES
			",'tasks':{'list':{},'cancel':{},'requests':{'tools':{'call':{}}}}");
	post_all(client, ASKS("1", "tools/call", "'name':'b__t','task':{}"));
	answers(process(1), "'tools/call'", "'result':{'task':{'taskId':'k','status':'working'}}");
	is_told(client, "'id':1,'result':{'task':{'taskId':'k',");
	post_all(client, ASKS("2", "tasks/get", "'taskId':'k'"));
	answers(process(1), "'taskId':'k'", "'result':{'taskId':'k','status':'working'}");
	is_told(client, "'id':2,'result':");
	post_all(client, ASKS("3", "tasks/get", "'taskId':'other'"));
	is_told(client, "'id':3,'error':{'code':-32602,");
	/* One that is too long to be remembered; the others still are. */
	post_all(client, ASKS("4", "tools/call", "'name':'b__t','task':{}"));
	snprintf(text, sizeof(text), "'result':{'task':{'taskId':'%09000d','status':'working'}}",
		 0);
	answers(process(1), "'tools/call'", text);
	is_told(client, "'id':4,'result':{'task':{'taskId':'0000");
	post_all(client, ASKS("5", "tasks/get", "'taskId':'k'"));
	answers(process(1), "'taskId':'k'", "'result':{'taskId':'k','status':'working'}");
	is_told(client, "'id':5,'result':");
}

static void over_servers_without_tasks(void **state)
{
	struct http_client *client = connect_client();

	begin_over(client, "'result':" OVER_WELCOME("'tools':{}", ""),
		   "'result':" OVER_WELCOME("'tasks':{'list':{}}", ""), "'capabilities':{");
	post_all(client, ASKS("1", "tasks/get", "'taskId':'k'"));
	answers(process(1), "'taskId':'k'", "'result':{}");
	is_answered(client, 200, RESULT("1"));
}

/* END-04, END-06: one that ends costs its own part, is opened anew, and gets what the client has set. */
static void over_servers_one_is_lost(void **state)
{
	struct http_client *client = connect_client();
	struct http_client *listener = connect_client();
	struct http_client *waiting = connect_client();
	size_t count;

	begin_over_both(client, OVER_CAPABILITIES);
	get_over(listener);
	for (size_t i = 0; i < 2; i++) {
		post_all(client, i == 0 ? ASKS("1", "logging/setLevel", "'level':'debug'") :
					  ASKS("1", "logging/setLevel", "'level':'error'"));
		is_answered(client, 200, RESULT("1"));
		both_list("'logging/setLevel'", "'result':{}", "'result':{}");
	}
	post_all(client, ASKS("2", "resources/subscribe", "'uri':'res://b'"));
	both_list("'resources/list'", "'result':{'resources':[]}",
		  "'result':{'resources':[{'uri':'res://b'},{'uri':'res://c'}]}");
	both_list("'resources/templates/list'", "'result':{'resourceTemplates':[]}",
		  "'result':{'resourceTemplates':[]}");
	answers(process(1), "'resources/subscribe'", "'result':{}");
	is_answered(client, 200, RESULT("2"));
	for (size_t i = 0; i < 2; i++) { /* a second one, which ends again */
		post_all(client, i == 0 ? ASKS("2", "resources/subscribe", "'uri':'res://c'") :
					  ASKS("2", "resources/unsubscribe", "'uri':'res://c'"));
		answers(process(1), "'uri':'res://c'", "'result':{}");
		is_answered(client, 200, RESULT("2"));
	}
	has_events(listener, "");
	post_all(waiting, ASKS("3", "tools/call", "'name':'b__t'"));
	assert_non_null(fake_process_read(process(1)));
	exits(process(1), 1);
	is_told(waiting, "'id':3,'error':{'code':-32603,");
	count = keeper.count;
	while (!is_logged("leg_lost endpoint=all server=b reason=")) {
		pass(8000);
		if (keeper.count > count)
			exits(process(count++), 1);
		assert_in_range(count, 2, 8);
	}
	assert_non_null(strstr(events(listener), q(CHANGED "|" PROMPTS_CHANGED "|")));
	post_all(client, ASKS("4", "tools/call", "'name':'b__t'"));
	is_told(client, "'id':4,'error':{'code':-32603,");
	assert_non_null(
		strstr(client->body.data, q("'reason':'backend_unavailable','server':'b'")));
	post_all(client, LIST("5"));
	answers(process(0), "'tools/list'", "'result':{'tools':[" TOOL("t") "]}");
	is_answered(client, 200, "{'jsonrpc':'2.0','id':5,'result':{'tools':[" TOOL("a__t") "]}}");
	pass(9999);
	assert_int_equal(keeper.count, count);
	pass(1);
	assert_int_equal(keeper.count, count + 1);
	has_events(listener, "");
	answers(process(count), "'initialize'", "'result':" OVER_WELCOME(OVER_CAPABILITIES, ""));
	hears(process(count), INITIALIZED);
	answers(process(count), "'level':'error'", "'result':{}");
	answers(process(count), "'uri':'res://b'", "'result':{}");
	hears_nothing(process(count));
	has_events(listener, CHANGED "|" PROMPTS_CHANGED "|" RESOURCES_CHANGED "|");
	assert_int_equal(count_logged("leg_back endpoint=all server=b"), 1);
	assert_int_equal(count_logged("leg_back"), 1);
	assert_int_equal(count_logged("leg_lost endpoint=all"), 1);
	hears_nothing(process(0));
}

/* END-04: nobody waits longer than ten seconds for one, and the client learns when it is there. */
static void over_servers_one_is_slow(void **state)
{
	struct http_client *client = connect_client();
	struct http_client *listener = connect_client();
	const char *id;

	post_to(client, "/all", BOTH, INITIALIZE("2025-11-25"));
	answers(process(0), "'initialize'", "'result':" OVER_WELCOME("'tools':{}", ""));
	pass(9999);
	is_unanswered(client);
	pass(1);
	is_told(client, "'capabilities':{" OVER_CAPABILITIES "}");
	id = strstr(client->head.data, "Mcp-Session-Id: ");
	assert_non_null(id);
	memcpy(session, id + strlen("Mcp-Session-Id: "), SESSION_ID_LENGTH);
	post_all(client, INITIALIZED);
	is_answered(client, 202, "");
	hears(process(0), INITIALIZED);
	get_over(listener);
	post_all(client, ASKS("9", "logging/setLevel", "'level':'error'"));
	is_answered(client, 200, RESULT("9"));
	hears_nothing(process(0)); /* which has no such method */
	post_all(client, LIST("1"));
	answers(process(0), "'tools/list'", "'result':{'tools':[" TOOL("t") "]}");
	pass(999);
	is_unanswered(client);
	pass(1);
	has_events(client, "{'jsonrpc':'2.0','id':1,'result':{'tools':[" TOOL("a__t") "]}}|");
	stream_is_over(client);
	has_events(listener, "");
	answers(process(1), "'initialize'",
		"'result':" OVER_WELCOME("'tools':{},'logging':{}", ""));
	hears(process(1), INITIALIZED);
	answers(process(1), "'level':'error'", "'result':{}");
	has_events(listener, CHANGED "|");

	/* It answers, but no list. */
	post_all(client, LIST("2"));
	answers(process(0), "'tools/list'", "'result':{'tools':[" TOOL("t") "]}");
	assert_non_null(fake_process_read(process(1)));
	pass(GRACE_MS);
	has_events(client, "");
	pass(10000 - GRACE_MS - 1);
	has_events(client, "");
	pass(1);
	has_events(client, "{'jsonrpc':'2.0','id':2,'result':{'tools':[" TOOL("a__t") "]}}|");
	stream_is_over(client);
	assert_int_equal(count_logged("leg_lost endpoint=all server=b"), 1);
}

/* END-04: who was too slow the last time has 45 seconds; in time once, it is waited for as long as any. */
static void over_servers_one_has_slow_lists(void **state)
{
	static const char *const own = "'result':{'tools':[" TOOL("t") "]}";
	struct http_client *client = connect_client();

	begin_over_both(client, OVER_CAPABILITIES);
	for (size_t i = 0; i < 2; i++) {
		post_all(client, LIST("1"));
		both_list("'tools/list'", own, own);
		is_told(client, TOOL("b__t"));
		post_all(client, LIST("2"));
		answers(process(0), "'tools/list'", own);
		pass_slowly(9999);
		has_events(client, "");
		pass(1); /* its answer is for nobody */
		has_events(client,
			   "{'jsonrpc':'2.0','id':2,'result':{'tools':[" TOOL("a__t") "]}}|");
		stream_is_over(client);
		answers(process(1), "'tools/list'", own);
		for (size_t k = 0; k < 2; k++) {
			post_all(client, LIST("3"));
			answers(process(0), "'tools/list'", own);
			pass_slowly(k == 0 ? 44999 : 45000);
			if (k == 0)
				answers(process(1), "'tools/list'", own);
			assert_int_equal(strstr(events(client), q(TOOL("b__t"))) != NULL, k == 0);
			stream_is_over(client);
		}
		answers(process(1), "'tools/list'", own);
	}
	assert_int_equal(count_logged("reason=\"a list of it takes too long\""), 4);
}

/* DEF-11: one fetch serves all who ask; another one begins if a list has changed since, and no third. */
static void over_servers_lists_are_shared(void **state)
{
	struct http_client *asking[6];
	struct http_client *client = connect_client();

	begin_over_both(client, "'tools':{'listChanged':true}");
	for (size_t i = 0; i < ARRAY_LEN(asking); i++) {
		asking[i] = connect_client();
		post_all(asking[i], LIST("1"));
		if (i % 2 == 1)
			says(process(0), CHANGED);
	}
	/* Who asked before the first change; between it and the second; and the last two wait. */
	for (size_t i = 0; i < 2; i++)
		answers(process(1), "'tools/list'", "'result':{'tools':[]}");
	hears_nothing(process(1));
	for (size_t i = 0; i < ARRAY_LEN(asking); i++) {
		if (i % 2 == 0)
			is_unanswered(asking[i]);
		if (i % 2 == 0)
			answers(process(0), "'tools/list'", "'result':{'tools':[]}");
		if (i == 2)
			answers(process(1), "'tools/list'", "'result':{'tools':[]}");
		is_told(asking[i], "'tools':[]");
	}
	for (size_t i = 0; i < 2; i++)
		hears_nothing(process(i));
}

/* END-04: one that lists too much, or nothing, is left out; after ten seconds the client is told to list again. */
static void over_servers_lists_that_fail(void **state)
{
	static const struct {
		const char *answer;
		const char *why;
	} failing[] = {
		{ "'error':{'code':-32603,'message':'no'}", "a list of it could not be had" },
		{ "'result':{'tools':[" TOOL("nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn") "," TOOL(
			  "oooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooooo") "]}",
		  "the lists are longer than limits.response allows" },
	};
	struct http_client *client = connect_client();
	struct http_client *listener = connect_client();
	char text[256];

	whole.conf.line_max = 200;
	begin_over_both(client, "'tools':{'listChanged':true}");
	get_over(listener);
	for (size_t i = 0; i < ARRAY_LEN(failing); i++) {
		post_all(client, LIST("1"));
		both_list("'tools/list'", "'result':{'tools':[" TOOL("t") "]}", failing[i].answer);
		is_answered(client, 200,
			    "{'jsonrpc':'2.0','id':1,'result':{'tools':[" TOOL("a__t") "]}}");
		snprintf(text, sizeof(text), "leg_lost endpoint=all server=b reason=\"%s\"",
			 failing[i].why);
		assert_int_equal(count_logged(text), 1);
		pass((10000u << i) - 1);
		assert_null(strstr(events(listener), "list_changed"));
		pass(1);
		assert_non_null(strstr(events(listener), q(CHANGED)));
	}
}

/* END-04: one that refuses the handshake; if all do, so does the endpoint. */
static void over_servers_that_refuse(void **state)
{
	struct http_client *client = connect_client();
	static char text[80000];
	size_t bytes[] = { 65534, 65535 };

	post_to(client, "/all", BOTH, INITIALIZE("2025-11-25"));
	for (size_t i = 0; i < 2; i++) {
		is_unanswered(client);
		answers(process(i), "'initialize'", "'error':{'code':1,'message':'no'}");
	}
	is_refused(client, 503, -32603);
	assert_int_equal(count_logged("leg_lost endpoint=all"), 2);
	assert_int_equal(count_logged("server=a reason=\"it refused initialize\""), 1);
	for (size_t i = 0; i < ARRAY_LEN(bytes); i++) {
		post_to(client, "/all", BOTH, INITIALIZE("2025-11-25"));
		snprintf(text, sizeof(text),
			 "'result':" OVER_WELCOME("'tools':{}", ",'instructions':'%0*d'"),
			 (int)bytes[i], 0);
		answers(process(keeper.count - 2), "'initialize'",
			"'error':{'code':1,'message':'no'}");
		answers(process(keeper.count - 1), "'initialize'", text);
		is_answered(client, 200, NULL);
		if ((strstr(buf_terminate(&client->body), "instructions") != NULL) != (i == 0))
			fail_msg("%zu %.200s", i, client->body.data);
	}
}

/* END-04: one that the configuration has no more. */
static void over_servers_one_is_not_there(void **state)
{
	struct http_client *client = connect_client();

	legs[1].server = SLICE_LIT("c");
	post_to(client, "/all", BOTH, INITIALIZE("2025-11-25"));
	assert_int_equal(keeper.count, 1);
	answers(process(0), "'initialize'", "'result':" OVER_WELCOME("'tools':{}", ""));
	is_told(client, "'capabilities':{'tools':");
	assert_int_equal(count_logged("server=c reason=\"there is no such server now\""), 1);
}

/* END-03: where prefixes overlap, and of names that were shortened, the lists tell the server: they are fetched first. */
static void over_servers_names_that_need_lists(void **state)
{
	struct http_client *client = connect_client();
	const char *shown;
	char text[256];

	legs[0].prefix = SLICE_LIT("");
	begin_over_both(client, "'tools':{}");
	post_all(client, ASKS("1", "tools/call", "'name':'b__t'"));
	both_list("'tools/list'", "'result':{'tools':[" TOOL("x.y") "]}",
		  "'result':{'tools':[" TOOL("t") "]}");
	answers(process(1), "'name':'t'", "'result':{}");
	is_answered(client, 200, RESULT("1"));
	post_all(client, LIST("2"));
	both_list("'tools/list'", "'result':{'tools':[" TOOL("x.y") "]}",
		  "'result':{'tools':[" TOOL("t") "]}");
	is_answered(client, 200, NULL);
	shown = strstr(buf_terminate(&client->body), "x_y_");
	assert_non_null(shown);
	snprintf(text, sizeof(text), ASKS("3", "tools/call", "'name':'%.12s'"), shown);
	post_all(client, text);
	answers(process(0), "'name':'x.y'", "'result':{}");
	is_answered(client, 200, RESULT("3"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define OVER(name) cmocka_unit_test_setup_teardown(name, setup_over, teardown_over)

static const struct CMUnitTest tests[] = {
	TEST(strangers_stay_outside),
	TEST(paths_methods_and_fields),
	TEST(a_url_as_the_target),
	TEST(health_is_told),
	TEST(session_begins_and_ends),
	TEST(sessions_are_looked_up),
	TEST(versions_are_checked),
	TEST(modern_requests_are_held_to_their_rules),
	TEST(other_requests_are_not_modern),
	TEST(bad_messages_are_refused),
	TEST(failures_have_their_form),
	TEST(quick_answer_is_json),
	TEST(an_answer_comes_after_its_record),
	TEST(slow_answer_is_a_stream),
	TEST(first_message_makes_a_stream),
	TEST(clients_of_one_form),
	TEST(form_can_be_configured),
	TEST(cancelled_calls_end),
	TEST(concurrent_calls_stay_apart),
	TEST(batch_is_answered_by_an_array),
	TEST(batch_becomes_a_stream),
	TEST(batch_with_cancelled_and_failed_calls),
	TEST(bad_batches_are_refused),
	TEST(calls_in_flight_are_bounded),
	TEST(client_leaves),
	TEST(client_leaves_while_it_is_asked),
	TEST(client_leaves_before_its_session_begins),
	TEST(client_that_may_have_left_gets_a_minute),
	TEST(slow_reader_keeps_its_answer),
	TEST(slow_reader_of_requests_is_ended),
	TEST(get_hears_the_session),
	TEST(delete_ends_everything),
	TEST(open_stream_keeps_the_session),
	TEST(notifications_keep_the_session),
	TEST(event_ids_are_read_strictly),
	TEST(drain_lets_calls_finish),
	TEST(sse_session_ends_with_its_answers),
	TEST(sse_client_comes_back),
	TEST(sse_client_is_away_when_its_session_ends),
	TEST(sse_client_takes_over_from_itself),
	TEST(sse_client_makes_ids_up),
	TEST(sse_answers_for_lost_clients_are_bounded),
	TEST(sse_lost_clients_make_room_together),
	TEST(sse_client_that_is_read_is_not_ended_for_room),
	TEST(sse_client_leaves_while_it_is_asked),
	TEST(sse_client_is_begun_anew),
	TEST(sse_client_that_initializes_is_not_begun_anew),
	TEST(sse_client_cannot_be_begun_anew),
	TEST(sse_client_leaves_while_it_is_begun_anew),
	TEST(sse_lost_sessions_are_not_given_to_anybody),
	TEST(sse_clients_while_the_gateway_stops),
	TEST(sse_client_may_not_come_back),
	TEST(sse_client_must_initialize),
	TEST(sse_client_initializes_once),
	TEST(sse_client_leaves_while_its_server_starts),
	TEST(sse_client_must_read),
	TEST(sse_batch_is_refused),
	TEST(sse_client_is_lost_over_an_answer_for_two),
	TEST(sse_client_is_lost_over_a_cancelled_request),
	TEST(documents_are_found),
	TEST(callers_take_turns),
	TEST(keys_are_served_while_their_tokens_are_good),
	TEST(clients_are_registered),
	TEST(browsers_get_a_page),
	OVER(over_servers_the_handshake),
	OVER(over_servers_names),
	OVER(over_servers_resources),
	OVER(over_servers_resources_of_one),
	OVER(over_servers_calls_stay_apart),
	OVER(over_servers_tasks),
	OVER(over_servers_without_tasks),
	OVER(over_servers_one_is_lost),
	OVER(over_servers_one_is_slow),
	OVER(over_servers_one_has_slow_lists),
	OVER(over_servers_lists_are_shared),
	OVER(over_servers_lists_that_fail),
	OVER(over_servers_that_refuse),
	OVER(over_servers_one_is_not_there),
	OVER(over_servers_names_that_need_lists),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
