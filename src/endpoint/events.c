/* SPDX-License-Identifier: Apache-2.0 */
/* All events of a turn leave in one write. */
#include "endpoint/events.h"

#include "base/buf.h"
#include "base/random.h"
#include "base/text.h"
#include "endpoint/answer.h"
#include "http/sse.h"
#include "session/session.h"

/* How much is gathered before it is handed to the connection. */
#define BATCH_BYTES (64 * 1024)

static void writer_renew_keepalive(struct event_writer *writer)
{
	timer_start(http_conn_loop(writer->exchange->conn), &writer->keepalive,
		    writer->keepalive_ms);
}

/* epoch-stream-number, in hexadecimal. */
struct slice event_id_format(uint32_t epoch, uint64_t stream, uint64_t number, char *out)
{
	size_t n = text_format_hex(epoch, 8, out);

	out[n++] = '-';
	n += text_format_hex(stream, 1, out + n);
	out[n++] = '-';
	n += text_format_hex(number, 1, out + n);
	return slice_of(out, n);
}

struct slice event_id_of_client(struct slice client, uint64_t number, char *out)
{
	size_t n = client.n;

	CHECK(n + 1 + 16 <= EVENT_ID_BYTES);
	memcpy(out, client.p, n);
	out[n++] = '-';
	n += text_format_hex(number, 1, out + n);
	return slice_of(out, n);
}

static struct slice event_id(const struct event_writer *writer, uint64_t number, char *out)
{
	if (writer->source.has_no_ids)
		return slice_of(NULL, 0);
	if (writer->source.client.n > 0)
		return event_id_of_client(writer->source.client, number, out);
	return event_id_format(writer->source.epoch, writer->source.number, number, out);
}

static int parse_hex(struct slice digits, size_t max, uint64_t *value_r)
{
	static const char hex[] = "0123456789abcdef";
	uint64_t value = 0;

	if (digits.n == 0 || digits.n > max)
		return -1;
	for (size_t i = 0; i < digits.n; i++) {
		const char *at = memchr(hex, digits.p[i], 16);

		if (at == NULL)
			return -1;
		value = value << 4 | (uint64_t)(at - hex);
	}
	*value_r = value;
	return 0;
}

int event_id_parse(struct slice id, struct event_source *source_r)
{
	struct slice epoch = slice_cut(&id, '-');
	struct slice number = slice_cut(&id, '-');
	uint64_t value;

	if (epoch.n != 8 || parse_hex(epoch, 8, &value) < 0)
		return -1;
	source_r->epoch = (uint32_t)value;
	if (parse_hex(number, 15, &source_r->number) < 0 || parse_hex(id, 15, &source_r->after) < 0)
		return -1;
	return 0;
}

int event_id_parse_of_client(struct slice id, char *client_r, uint64_t *number_r)
{
	if (id.n < SESSION_ID_LENGTH + 2 || id.p[SESSION_ID_LENGTH] != '-')
		return -1;
	memcpy(client_r, id.p, SESSION_ID_LENGTH);
	return parse_hex(slice_of(id.p + SESSION_ID_LENGTH + 1, id.n - SESSION_ID_LENGTH - 1), 15,
			 number_r);
}

/* A client that can resume the stream is told when to do so. FRONT-SSE-03, -05, FRONT-GET-05 */
static void writer_append_priming(const struct event_writer *writer, uint64_t retry_ms,
				  struct buf *out)
{
	char id[EVENT_ID_BYTES];

	if (writer->source.is_primed)
		sse_append_priming(out, event_id(writer, writer->reader.position, id), retry_ms);
}

/*
 * Ends the stream on this connection. If many end at once, their clients are not to come back at
 * once. REL-51
 */
static void writer_finish(struct event_writer *writer, enum reason reason)
{
	struct buf text = { 0 };

	CHECK(writer->reader.stream != NULL && writer->exchange->conn != NULL);
	if (reason == REASON_CONNECTION_AGE || reason == REASON_DRAINING)
		writer_append_priming(writer,
				      writer->source.retry_ms +
					      random_below(writer->source.retry_ms + 1),
				      &text);
	http_stream_write(writer->exchange->conn, buf_slice(&text));
	buf_fini(&text);
	event_writer_stop(writer);
	http_stream_end(writer->exchange->conn);
	writer->on_end(writer, reason);
}

static void writer_pull(struct event_writer *writer)
{
	struct buf batch = { 0 };
	char id[EVENT_ID_BYTES];
	uint64_t number;
	struct msg *msg;

	CHECK(writer->reader.stream != NULL && writer->exchange->conn != NULL);
	while (http_conn_has_room(writer->exchange->conn)) {
		while (batch.len < BATCH_BYTES &&
		       (msg = stream_take(&writer->reader, &number)) != NULL) {
			egress_append_event(&batch, event_id(writer, number, id), msg->text);
			msg_unref(&msg);
			writer->is_known = true;
		}
		if (batch.len == 0)
			break;
		http_stream_write(writer->exchange->conn, buf_slice(&batch));
		writer_renew_keepalive(writer);
		batch.len = 0;
	}
	buf_fini(&batch);
	if (stream_is_drained(writer->reader.stream, writer->reader.position))
		writer_finish(writer, writer->reader.stream->end_reason);
	else if (writer->is_old && writer->is_known)
		writer_finish(writer, REASON_CONNECTION_AGE);
}

/*
 * Not while draining: a client that comes back then may find nobody, because a socket of the
 * service manager waits for the next daemon.
 */
static void writer_on_age(struct timer *timer)
{
	struct event_writer *writer = container_of(timer, struct event_writer, age);

	writer->is_old = !http_conn_is_draining(writer->exchange->conn);
	writer_pull(writer);
}

static void writer_on_wake(struct stream_reader *reader)
{
	writer_pull(container_of(reader, struct event_writer, reader));
}

static void writer_on_detached(struct stream_reader *reader, enum reason reason)
{
	struct event_writer *writer = container_of(reader, struct event_writer, reader);

	timer_stop(&writer->keepalive);
	timer_stop(&writer->age);
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

	CHECK(writer->exchange->conn != NULL);
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

void event_writer_init(struct event_writer *writer)
{
	timer_init(&writer->keepalive, writer_on_keepalive);
	timer_init(&writer->age, writer_on_age);
	writer->reader.stream = NULL;
}

void event_writer_begin(struct event_writer *writer, struct http_exchange *exchange,
			uint64_t keepalive_ms, struct slice fields)
{
	struct buf text = { 0 };

	CHECK(exchange->conn != NULL);
	writer->exchange = exchange;
	writer->keepalive_ms = keepalive_ms;
	buf_append_slice(&text, sse_fields);
	buf_append_slice(&text, fields);
	http_stream_begin(exchange->conn, buf_slice(&text));
	buf_fini(&text);
	writer_renew_keepalive(writer);
}

bool event_writer_attach(struct event_writer *writer, const struct event_source *source)
{
	CHECK(writer->reader.stream == NULL);
	if (!stream_attach(source->stream, &writer->reader, &writer_reader_ops, source->after))
		return false;
	writer->source = *source;
	writer->is_known = source->is_known || source->is_primed;
	writer->is_old = false;
	return true;
}

bool event_writer_start(struct event_writer *writer, struct http_exchange *exchange,
			const struct event_source *source, struct slice fields)
{
	struct buf text = { 0 };

	event_writer_init(writer);
	if (!event_writer_attach(writer, source))
		return false;
	event_writer_begin(writer, exchange, source->keepalive_ms, fields);
	writer_append_priming(writer, writer->source.retry_ms, &text);
	http_stream_write(exchange->conn, buf_slice(&text));
	buf_fini(&text);
	if (source->max_age_ms > 0)
		timer_start(http_conn_loop(exchange->conn), &writer->age, source->max_age_ms);
	return true;
}

void event_writer_on_room(struct event_writer *writer)
{
	if (writer->reader.stream != NULL)
		writer_pull(writer);
}

void event_writer_stop(struct event_writer *writer)
{
	timer_stop(&writer->keepalive);
	timer_stop(&writer->age);
	stream_detach(&writer->reader);
}
