/* SPDX-License-Identifier: Apache-2.0 */
/* All events of a turn leave in one write. */
#include "endpoint/events.h"

#include "base/buf.h"
#include "http/sse.h"

/* What is gathered before it is handed to the connection. */
#define BATCH_BYTES (64 * 1024)

static void writer_renew_keepalive(struct event_writer *writer)
{
	timer_start(http_conn_loop(writer->exchange->conn), &writer->keepalive,
		    writer->keepalive_ms);
}

/* The last event is out. */
static void writer_finish(struct event_writer *writer)
{
	enum reason reason = writer->reader.stream->end_reason;

	event_writer_stop(writer);
	http_stream_end(writer->exchange->conn);
	writer->on_end(writer, reason);
}

static void writer_pull(struct event_writer *writer)
{
	struct buf batch = { 0 };
	struct msg *msg;

	while (http_conn_has_room(writer->exchange->conn)) {
		while (batch.len < BATCH_BYTES && (msg = stream_take(&writer->reader)) != NULL) {
			sse_append_message(&batch, (struct slice){ NULL, 0 }, msg->text);
			msg_unref(&msg);
		}
		if (batch.len == 0)
			break;
		http_stream_write(writer->exchange->conn, buf_slice(&batch));
		writer_renew_keepalive(writer);
		batch.len = 0;
	}
	buf_fini(&batch);
	if (stream_is_drained(writer->reader.stream))
		writer_finish(writer);
}

static void writer_on_wake(struct stream_reader *reader)
{
	writer_pull(container_of(reader, struct event_writer, reader));
}

static void writer_on_detached(struct stream_reader *reader, enum reason reason)
{
	struct event_writer *writer = container_of(reader, struct event_writer, reader);

	timer_stop(&writer->keepalive);
	if (reason == REASON_SLOW_READER) {
		http_conn_end(writer->exchange->conn, reason); /* tells the exchange by on_gone */
		return;
	}
	http_stream_end(writer->exchange->conn);
	writer->on_end(writer, reason);
}

static void writer_on_keepalive(struct timer *timer)
{
	struct event_writer *writer = container_of(timer, struct event_writer, keepalive);
	struct buf comment = { 0 };

	if (http_conn_has_room(writer->exchange->conn)) {
		sse_append_comment(&comment);
		http_stream_write(writer->exchange->conn, buf_slice(&comment));
		buf_fini(&comment);
	}
	writer_renew_keepalive(writer);
}

static const struct stream_reader_ops writer_reader_ops = {
	.on_wake = writer_on_wake,
	.on_detached = writer_on_detached,
};

void event_writer_start(struct event_writer *writer, struct http_exchange *exchange,
			struct stream *stream, struct slice fields, uint64_t keepalive_ms)
{
	struct buf all = { 0 };

	writer->exchange = exchange;
	writer->keepalive_ms = keepalive_ms;
	timer_init(&writer->keepalive, writer_on_keepalive);
	buf_append_slice(&all, sse_fields);
	buf_append_slice(&all, fields);
	http_stream_begin(exchange->conn, buf_slice(&all));
	buf_fini(&all);
	stream_attach(stream, &writer->reader, &writer_reader_ops);
	writer_renew_keepalive(writer);
}

void event_writer_on_room(struct event_writer *writer)
{
	if (writer->reader.stream != NULL)
		writer_pull(writer);
}

void event_writer_stop(struct event_writer *writer)
{
	timer_stop(&writer->keepalive);
	stream_detach(&writer->reader);
}
