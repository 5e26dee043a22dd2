/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: what the socket takes is written at once, the rest is queued. What follows the answer, the next
 * request or the end, is decided here; requests are read by conn.c.
 */
#include <sys/uio.h>

#include "base/clock.h"
#include "base/text.h"
#include "http/conn_state.h"
#include "http/reply.h"
#include "obs/log.h"

#define ROOM_HIGH_BYTES (256 * 1024)
#define ROOM_LOW_BYTES (128 * 1024)
#define COPIED_MAX 2048 /* of a body: copied behind its head, which is cheaper than several parts */
#define GATHERED_MAX (256 * 1024) /* of answers of one turn; others are written at once */

/* The answer is sent: the next request follows, also one that came before a half-close, or the end. */
static void conn_finish(struct http_conn *conn)
{
	CHECK(conn->state == CONN_REPLYING && conn->exchange == NULL && conn->out.bytes == 0);
	if (conn->peer_state == CONN_PEER_CLOSED && conn->in.len == 0) {
		http_conn_end(conn, REASON_PEER_CLOSED);
		return;
	}
	if (conn->persistence == CONN_ENDS || conn_is_leaving(conn)) {
		conn_set_state(conn, CONN_LINGERING);
		wire_shutdown(&conn->wire);
		wire_watch_reading(&conn->wire, true);
		conn_set_deadline(conn, CONN_LINGER_MS);
		return;
	}
	conn_set_state(conn, CONN_IDLE);
	wire_watch_reading(&conn->wire, true);
	conn_set_deadline(conn, conn->server->conf.idle_timeout_ms);
	if (conn->in.len > 0 && !conn->is_processing)
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

void conn_flush(struct http_conn *conn)
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
	reply_append_head(head, &(struct reply_head){
					.status = reply->status,
					.content_type = reply->content_type,
					.fields = reply->fields,
					.field_count = reply->field_count,
					.has_length = reply->status != 204,
					.is_last = conn->persistence == CONN_ENDS,
					.length = length,
				});
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

void conn_refuse(struct http_conn *conn, int status, const char *reason)
{
	struct buf body = { 0 };

	CHECK(status >= 400);
	LOG(REQUEST_REFUSED, LOG_INT("status", status), LOG_STR("reason", reason));
	conn_drop_exchange(conn, REASON_PROTOCOL_ERROR);
	conn_set_last(conn);
	conn->server->handler->write_error(conn->server->handler, status, reason, &body);
	http_reply(conn, &(struct http_reply){ .status = status,
					       .content_type = "application/json",
					       .parts = (struct slice[]){ buf_slice(&body) },
					       .part_count = 1 });
	buf_fini(&body);
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
	reply_append_head(head, &(struct reply_head){
					.status = 200,
					.content_type = "text/event-stream",
					.fields = &fields,
					.field_count = 1,
					.is_chunked = !conn->is_old,
					.is_last = conn->persistence == CONN_ENDS,
				});
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
