/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: reads into the loop's shared buffer, keeps what it cannot use yet, and hands each request on. It
 * never looks into a body and knows no path. Answers are written by conn_answer.c.
 *
 * Invariants: an exchange is set exactly from the end of a head to the end of its answer; `in` holds an
 * incomplete head, or requests whose turn has not come (pipelining), and is empty otherwise; a deadline
 * runs in every state but judging and busy, which the layers above limit, and streaming with nothing queued.
 *
 * RFC 9112; design/stack.md §3. Deadlines are absolute: bytes that trickle do not extend them.
 */
#include "http/conn.h"

#include "base/clock.h"
#include "base/mem.h"
#include "http/conn_state.h"
#include "obs/counters.h"
#include "obs/log.h"

#define READS_PER_TURN 4
#define DIRECT_BODY_BYTES (16 * 1024) /* more than this to come: read it where it will stay */
#define DIRECT_READ_BYTES (256 * 1024)
#define DIRECT_RESERVE_BYTES (2 * 1024 * 1024)
/* What a refused peer may still send. Closing earlier would reset the connection, and the answer would be lost. */
#define LINGER_BYTES (16 * 1024 * 1024)
#define LINE_BYTES (8 * 1024)
#define FIELDS_MAX 64
#define TLS_LOG_MS 1000

static void conn_complete_body(struct http_conn *conn, struct slice body)
{
	CHECK(conn->exchange != NULL && http_body_is_complete(&conn->body_reader));
	timer_stop(&conn->deadline);
	conn_set_state(conn, CONN_BUSY);
	conn->exchange->ops->on_body(conn->exchange, body);
	if (conn->state != CONN_CLOSED)
		buf_fini(&conn->body);
}

/* The exchange that on_request or http_conn_resume gave takes the request. */
static void conn_attach_exchange(struct http_conn *conn, struct http_exchange *exchange)
{
	CHECK(conn->exchange == NULL && exchange->conn == NULL);
	conn->exchange = exchange;
	exchange->conn = conn;
}

static void conn_await_body(struct http_conn *conn, bool has_more)
{
	CHECK(conn->exchange != NULL);
	if (http_body_is_complete(&conn->body_reader)) {
		conn_complete_body(conn, slice_of(NULL, 0));
		return;
	}
	if (conn->body_status != 0) {
		conn_refuse(conn, conn->body_status,
			    "the body is larger than limits.message allows");
		return;
	}
	conn_set_state(conn, CONN_BODY);
	if (!has_more) /* or conn_take_body_bytes finds out that it is not all of the body */
		conn_set_deadline(conn, conn->server->conf.body_timeout_ms);
	if (!conn->expects_continue || has_more || conn->is_old)
		return;
	outq_append(&conn->out, SLICE_LIT("HTTP/1.1 100 Continue\r\n\r\n"));
	if (outq_flush(&conn->out, &conn->wire) == WIRE_BROKEN)
		http_conn_end(conn, REASON_PEER_ERROR);
	else
		wire_watch_writing(&conn->wire, conn->out.bytes > 0);
}

static void conn_begin_request(struct http_conn *conn, const struct http_request *request,
			       bool has_more)
{
	struct http_handler *handler = conn->server->handler;
	struct http_exchange *exchange;
	char client[PEER_TEXT_BYTES];

	CHECK(conn->state == CONN_HEAD && conn->persistence == CONN_PERSISTS);
	counter_add(COUNTER_REQUESTS);
	if (conn->peer_state == CONN_PEER_NEW)
		conn_set_peer_state(conn, CONN_PEER_USED);
	if (!request->keep_alive)
		conn_set_last(conn);
	conn->method = request->method;
	conn->is_old = request->minor_version == 0;
	conn->expects_continue = request->expects_continue;
	conn->body_status =
		http_body_init(&conn->body_reader, request, conn->server->conf.body_bytes);
	timer_stop(&conn->deadline);
	conn->client = conn->peer;
	http_forwarded_apply(&conn->server->conf.trust, request, &conn->client);
	LOG(REQUEST, LOG_STR("client", conn_client_text(conn, client)),
	    LOG_SLICE("method", request->method_name), LOG_SLICE("path", request->path));
	if (conn->server->conf.logs_access) {
		conn->target.len = 0;
		buf_append_slice(&conn->target, request->method_name);
		buf_append_char(&conn->target, ' ');
		buf_append_slice(&conn->target,
				 request->path); /* the query may hold what is secret */
		conn->began_at_ms = clock_now_ms();
	}
	exchange = handler->on_request(handler, conn, request);
	if (exchange == NULL)
		return;
	conn_attach_exchange(conn, exchange);
	if (conn->state != CONN_JUDGING)
		conn_await_body(conn, has_more);
}

void http_conn_hold(struct http_conn *conn)
{
	CHECK(conn->exchange == NULL);
	conn_set_state(conn, CONN_JUDGING);
}

void http_conn_resume(struct http_conn *conn, struct http_exchange *exchange)
{
	CHECK(conn->state == CONN_JUDGING && conn->exchange != NULL && !conn->is_processing);
	conn_detach_exchange(conn);
	conn_attach_exchange(conn, exchange);
	wire_watch_reading(&conn->wire, true); /* reading ahead may have paused */
	conn_await_body(conn, conn->in.len > 0);
	if (conn->state == CONN_BODY && conn->in.len > 0)
		task_schedule(conn->server->loop, &conn->task);
}

/* The client could not read an answer without TLS; the operator finds the cause in the log. */
static void conn_end_tls(struct http_conn *conn)
{
	struct http_server *server = conn->server;
	uint64_t now_ms = clock_now_ms();
	char client[PEER_TEXT_BYTES];

	counter_add(COUNTER_REQUESTS_BAD);
	if (server->tls_said_ms == 0 || now_ms - server->tls_said_ms >= TLS_LOG_MS) {
		server->tls_said_ms = now_ms;
		peer_format(&conn->peer, client);
		LOG_BY(TLS_UNEXPECTED, peer_key(&conn->peer, 0), LOG_STR("client", client));
	}
	http_conn_end(conn, REASON_PROTOCOL_ERROR);
}

/* Returns false if more bytes are needed, or none are wanted any more. */
static bool conn_take_head(struct http_conn *conn, struct slice *data)
{
	const struct http_conf *conf = &conn->server->conf;
	const struct http_parse_limits limits = { LINE_BYTES, conf->header_bytes, FIELDS_MAX };
	struct http_request request;
	const char *reason = "";
	int status = 0;
	long n;

	if (conn->state == CONN_IDLE) {
		/* A handshake record's first bytes; no HTTP method begins so. */
		if (conn->wire.tls == NULL && data->p[0] == 0x16 &&
		    (data->n < 2 || data->p[1] == 0x03)) {
			conn_end_tls(conn);
			return false;
		}
		conn_set_state(conn, CONN_HEAD);
		timer_stop(&conn->deadline);
		conn->method = HTTP_OTHER; /* of the request before: this one may be refused */
	}
	n = http_parse_head(*data, &limits, &conn->head_seen, &request, &status, &reason);
	if (n == 0) {
		if (!timer_is_running(&conn->deadline))
			conn_set_deadline(conn, conf->header_timeout_ms);
		place_set_use(&conn->place, PLACE_FRESH);
		return false;
	}
	conn->head_seen = 0;
	if (n < 0) {
		counter_add(COUNTER_REQUESTS_BAD);
		conn_refuse(conn, status, reason);
		explicit_bzero((char *)(uintptr_t)data->p, data->n);
		return false;
	}
	*data = slice_of(data->p + n, data->n - (size_t)n);
	conn_begin_request(conn, &request, data->n > 0);
	explicit_bzero((char *)(uintptr_t)(data->p - n), (size_t)n); /* tokens. AUTH-DWN-01 */
	return true;
}

static bool conn_take_body_bytes(struct http_conn *conn, struct slice *data)
{
	struct slice payload;
	int status = 0;
	enum http_body_status at = http_body_read(&conn->body_reader, data, &payload, &status);
	bool is_whole = conn->body.len == 0 && at == HTTP_BODY_DONE;

	if (at == HTTP_BODY_BAD) {
		conn_refuse(conn, status,
			    status == 413 ? "the body is larger than limits.message allows" :
					    "the body is not correctly framed");
		return false;
	}
	if (!is_whole)
		buf_append_slice(&conn->body, payload);
	if (at == HTTP_BODY_DONE)
		conn_complete_body(conn, is_whole ? payload : buf_slice(&conn->body));
	else if (!timer_is_running(&conn->deadline))
		conn_set_deadline(conn, conn->server->conf.body_timeout_ms);
	return true;
}

/* Uses bytes as far as the state lets it; returns what is left over. */
static struct slice conn_process(struct http_conn *conn, struct slice data)
{
	bool goes_on = true;

	CHECK(!conn->is_processing);
	conn->is_processing = true;
	while (data.n > 0 && goes_on) {
		if (conn->state == CONN_IDLE || conn->state == CONN_HEAD)
			goes_on = conn_take_head(conn, &data);
		else
			goes_on = conn->state == CONN_BODY && conn_take_body_bytes(conn, &data);
	}
	conn->is_processing = false;
	if (conn->state == CONN_LINGERING || conn->state == CONN_CLOSED)
		data.n = 0;
	return data;
}

/* Bytes for a later request: a bounded number of them, and none beside an open stream. */
static void conn_check_read_ahead(struct http_conn *conn)
{
	bool waits = conn->state == CONN_JUDGING || conn->state == CONN_BUSY ||
		     conn->state == CONN_REPLYING || conn_is_streaming(conn);

	if (!waits || conn->in.len <= conn->server->conf.header_bytes)
		return;
	if (conn_is_streaming(conn))
		http_conn_end(conn, REASON_READ_AHEAD);
	else
		wire_watch_reading(&conn->wire, false); /* conn_finish switches it on again */
}

static void conn_process_held(struct http_conn *conn)
{
	struct slice rest = conn_process(conn, buf_slice(&conn->in));

	CHECK(conn->state == CONN_CLOSED || rest.n <= conn->in.len);
	if (conn->state == CONN_CLOSED)
		return;
	buf_consume(&conn->in, conn->in.len - rest.n);
	if (conn->in.len == 0)
		buf_wipe(&conn->in);
	conn_settle_place(conn);
	conn_check_read_ahead(conn);
}

static void conn_feed(struct http_conn *conn, struct slice data)
{
	if (conn->state == CONN_LINGERING) {
		conn->lingered += data.n;
		if (conn->lingered > LINGER_BYTES)
			http_conn_end(conn, REASON_DONE);
		return;
	}
	if (conn->in.len > 0) {
		buf_move(&conn->in, (char *)(uintptr_t)data.p, data.n);
		conn_process_held(conn);
		return;
	}
	data = conn_process(conn, data);
	if (conn->state == CONN_CLOSED || data.n == 0)
		return;
	buf_move(&conn->in, (char *)(uintptr_t)data.p, data.n);
	conn_check_read_ahead(conn);
}

/* ---- reading ---- */

static void conn_on_peer_closed(struct http_conn *conn)
{
	if (conn->state == CONN_IDLE && conn->in.len > 0)
		return; /* the task that answers what came before the end is about to run */
	if (conn->state != CONN_BUSY && conn->state != CONN_REPLYING) {
		http_conn_end(conn, REASON_PEER_CLOSED);
		return;
	}
	if (conn->state == CONN_BUSY && conn->exchange->ops->ends_when_left) {
		http_conn_end(conn, REASON_PEER_CLOSED);
		return;
	}
	/*
	 * Perhaps only half-closed: the answer is still written. Leaving is no cancellation (CXL-01). The end
	 * is read again after each pipelined request.
	 */
	if (conn->peer_state != CONN_PEER_CLOSED)
		conn_set_peer_state(conn, CONN_PEER_CLOSED);
	wire_watch_reading(&conn->wire, false);
}

/*
 * A large body goes straight to where it stays. Room for all of it is taken at once where it is of usual
 * size; the kernel gives memory only to what was read. Returns as wire_read.
 */
static ssize_t conn_read_direct(struct http_conn *conn)
{
	uint64_t left = conn->body_reader.left;
	size_t room = left < DIRECT_RESERVE_BYTES ? (size_t)left : DIRECT_RESERVE_BYTES;
	char *into = buf_reserve(&conn->body, room);
	ssize_t n =
		wire_read(&conn->wire, into, room < DIRECT_READ_BYTES ? room : DIRECT_READ_BYTES);
	struct slice data = slice_of(into, n > 0 ? (size_t)n : 0);
	struct slice payload;
	int status;

	CHECK(room > 0 && (n <= 0 || (size_t)n <= left));
	if (n <= 0)
		return n;
	conn->server->read_bytes += (size_t)n;
	conn->body.len += (size_t)n;
	if (http_body_read(&conn->body_reader, &data, &payload, &status) == HTTP_BODY_DONE)
		conn_complete_body(conn, buf_slice(&conn->body));
	return n;
}

static ssize_t conn_read_shared(struct http_conn *conn)
{
	char *buffer = loop_buffer(conn->server->loop);
	ssize_t n = wire_read(&conn->wire, buffer, LOOP_BUFFER_BYTES);

	if (n <= 0)
		return n;
	conn->server->read_bytes += (size_t)n;
	conn_feed(conn, slice_of(buffer, (size_t)n));
	return n;
}

static void conn_on_readable(struct wire *wire)
{
	struct http_conn *conn = container_of(wire, struct http_conn, wire);

	for (int i = 0; i < READS_PER_TURN && conn->state != CONN_CLOSED; i++) {
		bool is_direct = conn->state == CONN_BODY && conn->in.len == 0 &&
				 conn->body_reader.coding == HTTP_BODY_LENGTH &&
				 conn->body_reader.left > DIRECT_BODY_BYTES;
		ssize_t n = is_direct ? conn_read_direct(conn) : conn_read_shared(conn);

		if (n == WIRE_AGAIN)
			return;
		if (n == WIRE_BROKEN) {
			http_conn_end(conn, REASON_PEER_ERROR);
			return;
		}
		if (n == 0) {
			conn_on_peer_closed(conn);
			return;
		}
		if ((!is_direct && n < LOOP_BUFFER_BYTES) || !wire_is_read(&conn->wire))
			return; /* that was all, or reading has been paused */
	}
}

static void conn_on_writable(struct wire *wire)
{
	conn_flush(container_of(wire, struct http_conn, wire));
}

static void conn_on_task(struct task *task)
{
	struct http_conn *conn = container_of(task, struct http_conn, task);

	if (conn_is_streaming(conn) || conn->state == CONN_REPLYING) {
		conn_flush(conn);
		return;
	}
	if (conn->in.len > 0) {
		conn_process_held(conn);
		return;
	}
	if (conn->state != CONN_IDLE || !(conn->server->is_draining || conn->is_leaving))
		return;
	/* A request that is in the socket already is still answered; a fresh connection gets a short time to send one. */
	wire_try_reading(&conn->wire);
	if (conn->state == CONN_IDLE && conn->peer_state != CONN_PEER_NEW)
		http_conn_end(conn, REASON_DRAINING);
	else if (conn->state == CONN_IDLE)
		conn_set_deadline(conn, CONN_LINGER_MS);
}

static void conn_on_deadline(struct timer *timer)
{
	struct http_conn *conn = container_of(timer, struct http_conn, deadline);

	CHECK(conn->state != CONN_CLOSED && conn->state != CONN_JUDGING);
	if (conn->state == CONN_HEAD)
		conn_refuse(conn, 408, "the request's head did not come in time");
	else if (conn->state == CONN_BODY)
		conn_refuse(conn, 408, "the request's body did not come in time");
	else if (conn->state == CONN_IDLE)
		http_conn_end(conn, REASON_IDLE_TIMEOUT);
	else if (conn->state == CONN_LINGERING)
		http_conn_end(conn, REASON_DONE);
	else
		http_conn_end(conn, REASON_WRITE_STALL);
}

/* ---- for the server and for exchanges ---- */

static const struct wire_ops conn_wire_ops = {
	.on_readable = conn_on_readable,
	.on_writable = conn_on_writable,
};

/* A request may be in the socket already. */
static void conn_on_give_way(struct place *place)
{
	struct http_conn *conn = container_of(place, struct http_conn, place);

	CHECK(conn->state == CONN_IDLE || conn->state == CONN_HEAD);
	wire_try_reading(&conn->wire);
	if (conn->state == CONN_CLOSED || conn->place.use == PLACE_USED)
		return;
	http_conn_end(conn, REASON_GAVE_WAY);
}

static uint64_t conn_first_timeout_ms(const struct http_server *server)
{
	const struct http_conf *conf = &server->conf;

	if (server->is_draining)
		return CONN_LINGER_MS;
	if (places_are_scarce(&server->places) && conf->header_timeout_ms < conf->idle_timeout_ms)
		return conf->header_timeout_ms;
	return conf->idle_timeout_ms;
}

void conn_start(struct http_server *server, const struct http_arrival *arrival)
{
	struct http_conn *conn = mem_zalloc(sizeof(*conn));
	uint64_t timeout_ms = conn_first_timeout_ms(server);

	conn->server = server;
	conn->client = conn->peer = arrival->peer;
	conn->port = arrival->port;
	conn->is_leaving = arrival->is_leaving;
	wire_init(&conn->wire, server->loop, arrival->fd, &conn_wire_ops);
	wire_set_tls(&conn->wire, arrival->tls);
	timer_init(&conn->deadline, conn_on_deadline);
	task_init(&conn->task, conn_on_task);
	outq_init(&conn->out);
	list_append(&server->conns, &conn->link);
	server->count++;
	place_enter(&conn->place, &server->places, &conn->peer, conn_on_give_way);
	conn_set_deadline(conn, timeout_ms);
	wire_watch_reading(&conn->wire, true);
}

const struct peer *http_conn_client(const struct http_conn *conn)
{
	return &conn->client;
}

bool http_conn_peer_thumbprint(const struct http_conn *conn,
			       unsigned char thumbprint_r[TLS_THUMBPRINT_BYTES])
{
	return conn->wire.tls != NULL && tls_peer_thumbprint(conn->wire.tls, thumbprint_r);
}

bool http_conn_may_be_left(const struct http_conn *conn)
{
	return conn->peer_state == CONN_PEER_CLOSED;
}

struct loop *http_conn_loop(const struct http_conn *conn)
{
	return conn->server->loop;
}

bool http_conn_is_trusted(const struct http_conn *conn)
{
	return http_trust_has(&conn->server->conf.trust, &conn->peer);
}

bool http_conn_has_tls(const struct http_conn *conn)
{
	return conn->wire.tls != NULL;
}

bool http_conn_is_draining(const struct http_conn *conn)
{
	return conn->server->is_draining;
}
