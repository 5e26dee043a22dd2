/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections and the server that holds them: their states and deadlines, requests, answers, the limit and the drain. Reads
 * into the loop's shared buffer, keeps what it cannot use yet, and hands each request on. It removes the framing of a body
 * but never looks at what it carries, and knows no path.
 *
 * Invariants: an exchange is set exactly from the end of a head to the end of its answer; `in` holds an
 * incomplete head, or requests whose turn has not come (pipelining), and is empty otherwise; a deadline
 * runs in every state but judging and busy, which the layers above limit, and streaming with nothing queued.
 *
 * RFC 9112; design/stack.md §3. Deadlines are absolute: bytes that trickle do not extend them.
 */
#include "http/conn.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "http/parse.h"
#include "http/places.h"
#include "http/reply.h"
#include "io/aside.h"
#include "io/outq.h"
#include "io/wire.h"
#include "obs/counters.h"
#include "obs/log.h"

#define CONN_LINGER_MS 2000

struct http_server {
	struct loop *loop;
	struct http_conf conf;
	struct http_handler *handler;
	struct list conns;
	size_t count;
	uint64_t read_bytes; /* of HTTP, without TLS */
	uint64_t written_bytes;
	struct places places; /* of connections here and in the acceptor */
	bool is_leaving;      /* each answer is the last of its connection */
	bool is_draining;
	uint64_t refusal_said_ms; /* when refusals were last logged; 0: never */
	uint64_t tls_said_ms;     /* likewise for TLS on a plain port */
	struct buf scratch;       /* the head currently being written */
	struct buf gathered;      /* answers to write at the end of the turn */
	size_t gathered_count;    /* how many of them are still to be written */
};

enum conn_state {
	CONN_IDLE,      /* between requests */
	CONN_HEAD,      /* a head has arrived, in part or completely */
	CONN_JUDGING,   /* the head waits for an asynchronous decision */
	CONN_BODY,      /* the body is being read */
	CONN_BUSY,      /* the exchange prepares its answer */
	CONN_STREAMING, /* the answer is sent piece by piece */
	CONN_FULL,      /* likewise, and the exchange waits for room in the queue */
	CONN_REPLYING,  /* the answer is complete and being written */
	CONN_LINGERING, /* all is sent; input is discarded until the peer closes */
	CONN_CLOSED,
};

/* What the peer has done so far; each step implies the earlier ones or makes them irrelevant. */
enum conn_peer_state {
	CONN_PEER_NEW,    /* no request yet */
	CONN_PEER_USED,   /* at least one request */
	CONN_PEER_CLOSED, /* it sends no more: it reads the answer, or is gone */
};

/* What follows the answer. */
enum conn_persistence {
	CONN_PERSISTS, /* the next request */
	CONN_ENDS,     /* the connection is closed */
};

struct http_conn {
	struct list link;
	struct conn_place place;
	struct http_server *server;
	struct peer peer;
	struct peer client; /* of the last request */
	struct wire wire;
	struct timer deadline;
	struct task task;   /* flush, or continue with buffered input */
	struct aside aside; /* takes a long body */
	enum conn_state state;
	enum conn_peer_state peer_state;
	enum conn_persistence persistence;
	unsigned int port; /* as in http_arrival */
	/* its port is closed: the next answer is the last; an idle connection closes at once */
	bool is_leaving;
	struct http_exchange *exchange;
	struct buf in;
	size_t head_seen;
	struct outq out;
	/* The answer waiting for the end of the turn, in `gathered` of the server; length 0: none. */
	size_t gathered_at;
	size_t gathered_length;
	/* Of the current request. */
	struct buf target; /* method and path, for the access log; empty: no request */
	uint64_t began_at_ms;
	enum http_method method;
	bool is_old; /* HTTP/1.0 */
	bool expects_continue;
	struct http_body_reader body_reader;
	int body_status; /* result of http_body_init */
	struct buf body;
	size_t lingered;
	bool is_processing; /* conn_process is on the call stack and will take the next request */
};

/* Whether each answer is the connection's last. */
static inline bool conn_is_leaving(const struct http_conn *conn)
{
	return conn->is_leaving || conn->server->is_leaving;
}

#define READS_PER_TURN 4
#define DIRECT_BODY_BYTES (16 * 1024) /* more than this to come: read it where it will stay */
#define DIRECT_READ_BYTES (256 * 1024)
#define DIRECT_RESERVE_BYTES (2 * 1024 * 1024)
/* What a refused peer may still send. Closing earlier would reset the connection, and the answer would be lost. */
#define LINGER_BYTES (16 * 1024 * 1024)
#define LINE_BYTES (8 * 1024)
#define FIELDS_MAX 64
#define TLS_LOG_MS 1000

/* ---- the states of a connection, and its end ---- */

#define TO(state) (1u << CONN_##state)
static const struct state_row states[] = {
	[CONN_IDLE] = { "idle", TO(HEAD) | TO(CLOSED) },
	[CONN_HEAD] = { "head", TO(JUDGING) | TO(BODY) | TO(BUSY) | TO(REPLYING) | TO(CLOSED) },
	[CONN_JUDGING] = { "judging", TO(BODY) | TO(BUSY) | TO(REPLYING) | TO(CLOSED) },
	[CONN_BODY] = { "body", TO(BUSY) | TO(REPLYING) | TO(CLOSED) },
	[CONN_BUSY] = { "busy", TO(STREAMING) | TO(REPLYING) | TO(CLOSED) },
	[CONN_STREAMING] = { "streaming", TO(FULL) | TO(REPLYING) | TO(CLOSED) },
	[CONN_FULL] = { "full", TO(STREAMING) | TO(REPLYING) | TO(CLOSED) },
	[CONN_REPLYING] = { "replying", TO(IDLE) | TO(LINGERING) | TO(CLOSED) },
	[CONN_LINGERING] = { "lingering", TO(CLOSED) },
	[CONN_CLOSED] = { "closed", 0 },
};
#undef TO

static const char *const peer_states[] = {
	[CONN_PEER_NEW] = "peer_new",
	[CONN_PEER_USED] = "peer_used",
	[CONN_PEER_CLOSED] = "peer_closed",
};

/* For log fields: LOG evaluates them only if the line is written. */
static const char *conn_client_text(const struct http_conn *conn, char text_r[PEER_TEXT_BYTES])
{
	peer_format(&conn->client, text_r);
	return text_r;
}

/* Writes the access log line of the current request unless it has one. Status 0: there was no answer. */
static void conn_log_access(struct http_conn *conn, int status)
{
	struct slice path = buf_slice(&conn->target);
	struct slice method = slice_cut(&path, ' ');
	char client[PEER_TEXT_BYTES];

	if (conn->target.len == 0)
		return;
	LOG_BY(ACCESS, peer_key(&conn->client, 0),
	       LOG_STR("client", conn_client_text(conn, client)), LOG_SLICE("method", method),
	       LOG_SLICE("path", path), LOG_INT("status", status),
	       LOG_INT("ms", clock_now_ms() - conn->began_at_ms));
	conn->target.len = 0;
}

/* Updates whether the connection would give up its place. Called on each state change, and when `in` becomes empty. */
static void conn_settle_place(struct http_conn *conn)
{
	/* Most heads come whole, and the next state follows at once; conn.c sees to the others. */
	if (conn->state == CONN_HEAD || conn->state == CONN_CLOSED)
		return;
	/* A request that has come and waits for its turn is owed an answer. */
	place_set_use(&conn->place,
		      conn->state == CONN_IDLE && conn->in.len == 0 ? PLACE_KEPT : PLACE_USED);
}

/* Only these functions change the three fields. */
static void conn_set_state(struct http_conn *conn, enum conn_state state)
{
	char client[PEER_TEXT_BYTES];

	CHECK(states[conn->state].next & 1u << state);
	LOG(CONN_STATE, LOG_STR("client", conn_client_text(conn, client)),
	    LOG_INT("fd", conn->wire.fd), LOG_STR("from", states[conn->state].name),
	    LOG_STR("to", states[state].name));
	conn->state = state;
	conn_settle_place(conn);
}

static void conn_set_peer_state(struct http_conn *conn, enum conn_peer_state peer_state)
{
	char client[PEER_TEXT_BYTES];

	CHECK(peer_state > conn->peer_state);
	LOG(CONN_STATE, LOG_STR("client", conn_client_text(conn, client)),
	    LOG_INT("fd", conn->wire.fd), LOG_STR("from", peer_states[conn->peer_state]),
	    LOG_STR("to", peer_states[peer_state]));
	conn->peer_state = peer_state;
}

static void conn_set_last(struct http_conn *conn)
{
	char client[PEER_TEXT_BYTES];

	if (conn->persistence == CONN_ENDS)
		return;
	CHECK(conn->state != CONN_CLOSED);
	LOG(CONN_STATE, LOG_STR("client", conn_client_text(conn, client)),
	    LOG_INT("fd", conn->wire.fd), LOG_STR("from", "persists"), LOG_STR("to", "ends"));
	conn->persistence = CONN_ENDS;
}

/* Whether an answer begun with http_stream_begin is in progress. */
static bool conn_is_streaming(const struct http_conn *conn)
{
	return conn->state == CONN_STREAMING || conn->state == CONN_FULL;
}

/* After so many milliseconds conn.c ends what takes too long. */
static void conn_set_deadline(struct http_conn *conn, uint64_t after_ms)
{
	CHECK(conn->state != CONN_CLOSED);
	timer_start(conn->server->loop, &conn->deadline, after_ms);
}

/* Removes the exchange from the connection and returns it; NULL if there is none. */
static struct http_exchange *conn_detach_exchange(struct http_conn *conn)
{
	struct http_exchange *exchange = conn->exchange;

	CHECK(exchange == NULL || exchange->conn == conn);
	conn->exchange = NULL;
	if (exchange != NULL)
		exchange->conn = NULL;
	return exchange;
}

/* Tells the exchange that nothing more can be sent. */
static void conn_drop_exchange(struct http_conn *conn, enum reason reason)
{
	struct http_exchange *exchange = conn_detach_exchange(conn);

	if (exchange != NULL)
		exchange->ops->on_gone(exchange, reason);
}

/* Takes the answer that waits for the end of the turn, or nothing. Valid until another answer is gathered. */
static struct slice conn_take_gathered(struct http_conn *conn)
{
	struct http_server *server = conn->server;
	struct slice answer = slice_of(server->gathered.data, 0);

	if (conn->gathered_length == 0)
		return answer;
	CHECK(server->gathered_count > 0);
	CHECK(conn->gathered_at + conn->gathered_length <= server->gathered.len);
	answer = slice_of(server->gathered.data + conn->gathered_at, conn->gathered_length);
	conn->gathered_length = 0;
	if (--server->gathered_count == 0)
		server->gathered.len = 0;
	return answer;
}

void http_conn_end(struct http_conn *conn, enum reason reason)
{
	struct http_server *server = conn->server;
	char client[PEER_TEXT_BYTES];

	if (conn->state == CONN_CLOSED)
		return;
	CHECK(server->count > 0 && reason != REASON_NONE);
	LOG(CONN_END, LOG_STR("client", conn_client_text(conn, client)),
	    LOG_STR("state", states[conn->state].name),
	    LOG_STR("reason", reason_get(reason)->text));
	conn_log_access(conn, 0);
	conn_set_state(conn, CONN_CLOSED);
	wire_close(&conn->wire);
	timer_stop(&conn->deadline);
	task_cancel(&conn->task);
	aside_cancel(&conn->aside);
	place_leave(&conn->place);
	list_remove(&conn->link);
	server->count--;
	conn_drop_exchange(conn, reason);
	outq_fini(&conn->out);
	(void)conn_take_gathered(conn);
	if (!conn->is_processing)
		buf_wipe(&conn->in); /* half a head. AUTH-DWN-01 */
	/* Slices of these may still be on the stack; of a body that is being taken, on the other one. */
	loop_free_with_turn(server->loop, conn->in.data);
	(aside_is_pending(&conn->aside) ? loop_defer_free : loop_free_with_turn)(server->loop,
										 conn->body.data);
	loop_defer_free(server->loop, conn->target.data);
	loop_defer_free(server->loop, conn);
}

/* ---- answers: what the socket takes is written at once, the rest is queued ---- */

#define ROOM_HIGH_BYTES (256 * 1024)
#define ROOM_LOW_BYTES (128 * 1024)
#define COPIED_MAX 2048 /* of a body: copied behind its head, which is cheaper than several parts */
#define GATHERED_MAX (256 * 1024) /* of answers of one turn; others are written at once */

/* Whether so much has been read ahead that it has to be worked off before more is read. */
static bool conn_holds_enough(const struct http_conn *conn)
{
	return conn->in.len > conn->server->conf.header_bytes;
}

/* The answer is sent: the next request follows, also one that came before a half-close, or the end. */
static void conn_finish(struct http_conn *conn)
{
	CHECK(conn->state == CONN_REPLYING && conn->exchange == NULL && conn->out.bytes == 0);
	if (conn->peer_state == CONN_PEER_CLOSED && conn->in.len == 0) {
		http_conn_end(conn, REASON_PEER_CLOSED);
		return;
	}
	if (conn->persistence == CONN_ENDS) {
		conn_set_state(conn, CONN_LINGERING);
		wire_shutdown(&conn->wire);
		wire_watch_reading(&conn->wire, true);
		conn_set_deadline(conn, CONN_LINGER_MS);
		return;
	}
	conn_set_state(conn, CONN_IDLE);
	wire_watch_reading(&conn->wire, !conn_holds_enough(conn));
	conn_set_deadline(conn, conn->server->conf.idle_timeout_ms);
	/* An answer that began before has not said that it is the last: a request may be on its way. */
	if ((conn->in.len > 0 && !conn->is_processing) || conn_is_leaving(conn))
		task_schedule(conn->server->loop, &conn->task);
}

static void queue(struct http_conn *conn, struct slice bytes)
{
	conn->server->written_bytes += bytes.n;
	outq_append(&conn->out, bytes);
}

static void announce_write(struct http_conn *conn)
{
	struct http_handler *handler = conn->server->handler;

	if (handler->before_write != NULL)
		handler->before_write(handler);
}

/* Writes what the socket takes at once and queues the rest. Returns false if the connection ended. */
static bool conn_write_parts(struct http_conn *conn, struct iovec *parts, int count)
{
	size_t written = 0;

	if (conn->out.bytes == 0) {
		ssize_t n;

		announce_write(conn);
		n = wire_write(&conn->wire, parts, count);
		if (n == WIRE_BROKEN) {
			http_conn_end(conn, REASON_PEER_ERROR);
			return false;
		}
		written = (size_t)n;
	}
	for (int i = 0; i < count; i++) {
		size_t skip = written < parts[i].iov_len ? written : parts[i].iov_len;

		conn->server->written_bytes += skip;
		written -= skip;
		queue(conn, slice_of((char *)parts[i].iov_base + skip, parts[i].iov_len - skip));
	}
	return true;
}

/* Returns false if the connection ended. */
static bool conn_write_gathered(struct http_conn *conn)
{
	struct slice answer = conn_take_gathered(conn);
	struct iovec part = { (void *)(uintptr_t)answer.p, answer.n };

	return answer.n == 0 || conn_write_parts(conn, &part, 1);
}

/* Writes queued output as far as the socket accepts it. May end the connection. */
static void conn_flush(struct http_conn *conn)
{
	ssize_t n;

	if (!conn_write_gathered(conn))
		return;
	if (conn->out.bytes > 0)
		announce_write(conn);
	n = outq_flush(&conn->out, &conn->wire);
	if (n == WIRE_BROKEN) {
		http_conn_end(conn, REASON_PEER_ERROR);
		return;
	}
	wire_watch_writing(&conn->wire, conn->out.bytes > 0);
	if (conn->state == CONN_BODY)
		return; /* its deadline runs on, even if a `100 Continue` waits to be sent */
	if (conn->out.bytes == 0)
		timer_stop(&conn->deadline);
	else if (n > 0 || !timer_is_running(&conn->deadline))
		conn_set_deadline(conn, conn->server->conf.stall_timeout_ms);
	if (conn->state == CONN_REPLYING && conn->out.bytes == 0) {
		conn_finish(conn);
	} else if (conn->state == CONN_FULL && conn->out.bytes < ROOM_LOW_BYTES) {
		conn_set_state(conn, CONN_STREAMING);
		CHECK(conn->exchange != NULL);
		if (conn->exchange->ops->on_room != NULL)
			conn->exchange->ops->on_room(conn->exchange);
	}
}

/* Writes the body behind the head, which begins in parts[0]. Returns how many parts they are. */
static int add_body(struct iovec *parts, struct buf *head, const struct http_reply *reply,
		    uint64_t length)
{
	bool is_copied = length <= COPIED_MAX;
	int count = 1;

	for (size_t i = 0; i < reply->part_count; i++) {
		struct slice part = reply->parts[i];

		if (is_copied)
			buf_append_slice(head, part);
		else if (part.n > 0)
			parts[count++] = (struct iovec){ (void *)(uintptr_t)part.p, part.n };
	}
	parts[0] = (struct iovec){ head->data, head->len };
	return count;
}

/* Whether an answer with a body so long waits for the end of the turn. */
static bool conn_may_gather(const struct http_conn *conn, uint64_t length)
{
	return length <= COPIED_MAX && conn->out.bytes == 0 &&
	       conn->server->gathered.len < GATHERED_MAX;
}

/* The end of what is gathered is the answer of this connection, from `begin` on. */
static void conn_gather(struct http_conn *conn, size_t begin)
{
	struct http_server *server = conn->server;

	CHECK(conn->gathered_length == 0 && server->gathered.len > begin);
	conn->gathered_at = begin;
	conn->gathered_length = server->gathered.len - begin;
	server->gathered_count++;
	task_schedule(server->loop, &conn->task);
}

void http_reply(struct http_conn *conn, const struct http_reply *reply)
{
	struct buf *head = &conn->server->scratch;
	struct iovec parts[HTTP_REPLY_PARTS_MAX + 1];
	bool is_gathered;
	size_t begin;
	uint64_t length = 0;
	int count = 1;

	CHECK(reply->part_count <= HTTP_REPLY_PARTS_MAX && !conn_is_streaming(conn));
	CHECK(reply->status >= 200 && reply->status <= 599);
	conn_log_access(conn, reply->status);
	for (size_t i = 0; i < reply->part_count; i++)
		length += reply->parts[i].n;
	if (!http_body_is_complete(&conn->body_reader) || conn_is_leaving(conn))
		conn_set_last(conn);
	is_gathered = conn_may_gather(conn, length);
	if (is_gathered)
		head = &conn->server->gathered;
	else
		head->len = 0;
	begin = head->len;
	reply_append_head(head, reply, reply->status != 204 ? REPLY_END_LENGTH : REPLY_END_NONE,
			  length, conn->persistence == CONN_ENDS);
	if (conn->method != HTTP_HEAD)
		count = add_body(parts, head, reply, length);
	else
		parts[0] = (struct iovec){ head->data, head->len };
	conn_detach_exchange(conn);
	conn_set_state(conn, CONN_REPLYING);
	timer_stop(&conn->deadline);
	if (is_gathered) {
		conn_gather(conn, begin);
		return;
	}
	if (!conn_write_parts(conn, parts, count))
		return;
	if (conn->out.bytes == 0) {
		conn_finish(conn);
		return;
	}
	wire_watch_writing(&conn->wire, true);
	conn_set_deadline(conn, conn->server->conf.stall_timeout_ms);
}

/* Sends an error of this layer, with the handler's text; the connection ends after it. */
static void conn_refuse(struct http_conn *conn, int status, const char *reason)
{
	at_end(buf_fini) struct buf body = { 0 };

	CHECK(status >= 400);
	LOG(REQUEST_REFUSED, LOG_INT("status", status), LOG_STR("reason", reason));
	conn_drop_exchange(conn, REASON_PROTOCOL_ERROR);
	conn_set_last(conn);
	conn->server->handler->write_error(conn->server->handler, status, reason, &body);
	http_reply(conn, &(struct http_reply){ .status = status,
					       .content_type = "application/json",
					       .parts = (struct slice[]){ buf_slice(&body) },
					       .part_count = 1 });
}

void http_stream_begin(struct http_conn *conn, struct slice fields)
{
	struct buf *head = &conn->server->scratch;

	CHECK(conn->exchange != NULL && conn->method != HTTP_HEAD);
	conn_log_access(conn, 200);
	conn_set_state(conn, CONN_STREAMING);
	/* Reading ahead may have paused, but only reading shows that the client has left. */
	wire_watch_reading(&conn->wire, conn->peer_state != CONN_PEER_CLOSED);
	wire_limit_unsent(&conn->wire, conn->server->conf.stall_timeout_ms);
	/* Without chunks only the end of the connection ends the answer. */
	if (conn->is_old)
		conn_set_last(conn);
	head->len = 0;
	reply_append_head(head,
			  &(struct http_reply){ .status = 200,
						.content_type = "text/event-stream",
						.fields = &fields,
						.field_count = 1 },
			  conn->is_old ? REPLY_END_NONE : REPLY_END_CHUNK, 0,
			  conn->persistence == CONN_ENDS);
	queue(conn, buf_slice(head));
	task_schedule(conn->server->loop, &conn->task);
}

void http_stream_write(struct http_conn *conn, struct slice bytes)
{
	char line[16 + 2];
	size_t n = text_format_hex(bytes.n, 1, line);

	CHECK(conn_is_streaming(conn));
	if (bytes.n == 0)
		return;
	memcpy(line + n, "\r\n", 2);
	if (!conn->is_old)
		queue(conn, slice_of(line, n + 2));
	queue(conn, bytes);
	if (!conn->is_old)
		queue(conn, SLICE_LIT("\r\n"));
	task_schedule(conn->server->loop, &conn->task);
}

void http_stream_end(struct http_conn *conn)
{
	CHECK(conn_is_streaming(conn) && conn->exchange != NULL);
	if (!conn->is_old)
		queue(conn, SLICE_LIT("0\r\n\r\n"));
	conn_detach_exchange(conn);
	conn_set_state(conn, CONN_REPLYING);
	task_schedule(conn->server->loop, &conn->task);
}

bool http_conn_has_room(struct http_conn *conn)
{
	if (conn->out.bytes < ROOM_HIGH_BYTES)
		return true;
	if (conn->state == CONN_STREAMING)
		conn_set_state(conn, CONN_FULL);
	return false;
}

/* ---- requests ---- */

static void conn_give_body(struct http_conn *conn, struct slice body)
{
	conn->exchange->ops->on_body(conn->exchange, body);
	if (conn->state != CONN_CLOSED)
		buf_fini(&conn->body);
}

static void conn_on_aside(struct aside *aside)
{
	struct http_conn *conn = container_of(aside, struct http_conn, aside);

	conn_give_body(conn, buf_slice(&conn->body));
}

static void conn_complete_body(struct http_conn *conn, struct slice body)
{
	const struct http_exchange *exchange = conn->exchange;

	CHECK(exchange != NULL && http_body_is_complete(&conn->body_reader));
	timer_stop(&conn->deadline);
	conn_set_state(conn, CONN_BUSY);
	if (body.n >= ASIDE_BYTES && conn->body.len == 0)
		buf_append_slice(&conn->body, body); /* others use where it is */
	if (body.n >= ASIDE_BYTES)
		aside_start(conn->server->loop, &conn->aside,
			    exchange->ops->caller != NULL ? exchange->ops->caller(exchange) : 0);
	else
		conn_give_body(conn, body);
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
	wire_watch_reading(&conn->wire, !conn_holds_enough(conn));
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
static void conn_settle_reading(struct http_conn *conn)
{
	bool waits = conn->state == CONN_JUDGING || conn->state == CONN_BUSY ||
		     conn->state == CONN_REPLYING || conn_is_streaming(conn);

	if (waits && conn_is_streaming(conn) && conn_holds_enough(conn))
		http_conn_end(conn, REASON_READ_AHEAD);
	else if (!waits || conn_holds_enough(conn))
		wire_watch_reading(&conn->wire, !waits);
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
	conn_settle_reading(conn);
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
	conn_settle_reading(conn);
}

/* ---- reading ---- */

static void conn_on_peer_closed(struct http_conn *conn)
{
	if (conn->state == CONN_IDLE && conn->in.len > 0)
		return; /* the task that answers what came before the end is about to run */
	if ((conn->state != CONN_BUSY && conn->state != CONN_REPLYING) ||
	    (conn->state == CONN_BUSY && conn->exchange->ops->ends_when_left)) {
		http_conn_end(conn, REASON_PEER_CLOSED);
		return;
	}
	/* Perhaps only half-closed: the answer is still written, and leaving is no cancellation (CXL-01). It is read again. */
	if (conn->peer_state != CONN_PEER_CLOSED)
		conn_set_peer_state(conn, CONN_PEER_CLOSED);
	wire_watch_reading(&conn->wire, false);
}

/* A large body goes straight to where it stays. Room for all of it is taken at once where it is of usual size; the kernel
 * gives memory only to what was read. Returns as wire_read. */
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

		if (n == WIRE_BROKEN)
			http_conn_end(conn, REASON_PEER_ERROR);
		else if (n == 0)
			conn_on_peer_closed(conn);
		if (n <= 0 || (!is_direct && n < LOOP_BUFFER_BYTES) || !wire_is_read(&conn->wire))
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
static void conn_on_give_way(struct conn_place *place)
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

/* Takes over the arrival and adds its connection to the list. */
static void conn_start(struct http_server *server, const struct http_arrival *arrival)
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
	aside_init(&conn->aside, conn_on_aside);
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

/* ---- all connections: how many there may be, and that they end ---- */

/* While draining, a client that takes nothing for so long is not waited for. */
#define DRAIN_STALL_MS 5000
#define REFUSAL_LOG_MS 10000

struct http_server *http_server_new(struct loop *loop, const struct http_conf *conf,
				    struct http_handler *handler)
{
	struct http_server *server = mem_zalloc(sizeof(*server));

	CHECK(handler != NULL && conf->max_connections > 0);
	server->loop = loop;
	server->conf = *conf;
	server->handler = handler;
	list_init(&server->conns);
	places_init(&server->places, conf->max_connections, &server->conf.trust);
	return server;
}

void http_server_renew(struct http_server *server, const struct http_conf *conf)
{
	CHECK(conf->max_connections > 0);
	server->conf = *conf;
	server->places.max = conf->max_connections;
}

void http_server_free(struct http_server **server)
{
	struct http_server *s = *server;

	if (s == NULL)
		return;
	LIST_DRAIN(struct http_conn, conn, &s->conns, link)
		http_conn_end(conn, REASON_DRAINING);
	CHECK(s->count == 0 && s->gathered_count == 0);
	places_fini(&s->places);
	buf_fini(&s->scratch);
	buf_fini(&s->gathered);
	free(s);
	*server = NULL;
}

/* There is no room: says so, if the socket takes the answer at once, and closes. */
static void server_turn_away(struct http_server *server, const struct http_arrival *arrival,
			     const char *reason)
{
	static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\n"
				   "Content-Length: 0\r\nConnection: close\r\n\r\n";
	struct tls *tls = arrival->tls;
	uint64_t now_ms = clock_now_ms();
	char client[PEER_TEXT_BYTES];

	counter_add(COUNTER_CONNECTIONS_REFUSED);
	if (server->refusal_said_ms == 0 || now_ms - server->refusal_said_ms >= REFUSAL_LOG_MS) {
		server->refusal_said_ms = now_ms;
		peer_format(&arrival->peer, client);
		LOG_BY(CONN_REFUSED, peer_key(&arrival->peer, 0), LOG_STR("client", client),
		       LOG_STR("reason", reason));
	}
	/* Unread bytes would turn the end into a reset, which may overtake the answer. */
	if (tls == NULL && read(arrival->fd, loop_buffer(server->loop), LOOP_BUFFER_BYTES) != 0 &&
	    write(arrival->fd, text, sizeof(text) - 1) >= 0)
		shutdown(arrival->fd, SHUT_WR);
	tls_free(&tls);
	close(arrival->fd);
}

struct places *http_server_places(struct http_server *server)
{
	return &server->places;
}

void http_server_take(struct http_server *server, const struct http_arrival *arrival)
{
	counter_add(COUNTER_CONNECTIONS);
	conn_start(server, arrival);
}

void http_server_accept(struct http_server *server, const struct http_arrival *arrival)
{
	const char *reason = places_make_room(&server->places, &arrival->peer);

	if (reason == NULL)
		http_server_take(server, arrival);
	else
		server_turn_away(server, arrival, reason);
}

void http_server_leave(struct http_server *server)
{
	server->is_leaving = true;
}

void http_server_leave_port(struct http_server *server, unsigned int port)
{
	CHECK(port > 0);
	LIST_EACH(struct http_conn, conn, &server->conns, link) {
		if (conn->port != port)
			continue;
		conn->is_leaving = true;
		if (conn->state == CONN_IDLE)
			task_schedule(server->loop, &conn->task);
	}
}

void http_server_drain(struct http_server *server)
{
	server->is_leaving = true;
	server->is_draining = true;
	LIST_EACH(struct http_conn, conn, &server->conns, link) {
		if (conn->state == CONN_IDLE) /* it ends with the turn, if no request comes in it */
			task_schedule(server->loop, &conn->task);
	}
}

bool http_server_is_writing(const struct http_server *server)
{
	uint64_t latest_ms = clock_now_ms() + server->conf.stall_timeout_ms;

	LIST_EACH(const struct http_conn, conn, &server->conns, link)
		if (conn->out.bytes > 0 && conn->deadline.due_ms + DRAIN_STALL_MS > latest_ms)
			return true;
	return false;
}

size_t http_server_connection_count(const struct http_server *server)
{
	return server->count;
}

struct http_usage http_server_usage(const struct http_server *server)
{
	return (struct http_usage){ server->conf.max_connections, server->read_bytes,
				    server->written_bytes };
}
