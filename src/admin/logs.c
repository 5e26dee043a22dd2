/* SPDX-License-Identifier: Apache-2.0 */
/* Pulls: lines that a slow reader has no room for wait in the stderr ring, which drops the oldest. */
#include "admin/logs.h"

#include "admin/value.h"
#include "base/mem.h"
#include "http/sse.h"

struct follower {
	struct http_exchange exchange;
	struct stderr_ring_reader reader;
	struct loop *loop;
	struct server *server;    /* until its lines are read; then NULL */
	struct stderr_ring *ring; /* of all that have its name, one after the other */
	uint64_t last;            /* the number of the last line sent */
};

static struct json_t *describe_line(const struct stderr_line *line)
{
	struct json_t *value = value_object();

	value_set_number(value, "at_ms", line->at_ms);
	value_set_number(value, "pid", (uint64_t)line->pid);
	value_set_text(value, "text", slice_of(line->text, line->length));
	return value;
}

struct json_t *logs_describe(const struct server *server)
{
	const struct stderr_line *line = stderr_ring_next(&server->stats->stderr_ring, 0);
	struct json_t *value = value_object(), *lines = value_array();

	value_set_text(value, "server", slice_str(server->conf.name));
	for (; line != NULL; line = stderr_ring_next(&server->stats->stderr_ring, line->number))
		value_append(lines, describe_line(line));
	value_set(value, "lines", lines);
	return value;
}

static void follower_write(struct follower *follower)
{
	struct http_conn *conn = follower->exchange.conn;
	const struct stderr_line *line;

	CHECK(conn != NULL);
	while (http_conn_has_room(conn) &&
	       (line = stderr_ring_next(follower->ring, follower->last)) != NULL) {
		struct buf data = { 0 };
		struct buf event = { 0 };

		CHECK(line->number > follower->last);
		value_write(describe_line(line), &data);
		sse_append_message(&event, (struct slice){ NULL, 0 }, buf_slice(&data));
		http_stream_write(conn, buf_slice(&event));
		follower->last = line->number;
		buf_fini(&data);
		buf_fini(&event);
	}
}

/* One that a reload has retired goes, whoever reads on. */
static void follower_leave_server(struct follower *follower)
{
	if (follower->server != NULL)
		follower->server->users--;
	follower->server = NULL;
}

static void follower_on_line(struct stderr_ring_reader *reader)
{
	follower_write(container_of(reader, struct follower, reader));
}

static void follower_on_end(struct stderr_ring_reader *reader)
{
	struct follower *follower = container_of(reader, struct follower, reader);

	http_stream_end(follower->exchange.conn);
	loop_defer_free(follower->loop, follower);
}

static void follower_on_body(struct http_exchange *exchange, struct slice body)
{
	struct follower *follower = container_of(exchange, struct follower, exchange);

	(void)body;
	CHECK(follower->last == 0);
	http_stream_begin(exchange->conn, sse_fields);
	follower->ring = &follower->server->stats->stderr_ring;
	stderr_ring_attach(follower->ring, &follower->reader);
	follower_leave_server(follower);
	follower_write(follower);
}

static void follower_on_room(struct http_exchange *exchange)
{
	follower_write(container_of(exchange, struct follower, exchange));
}

static void follower_on_gone(struct http_exchange *exchange, enum reason reason)
{
	struct follower *follower = container_of(exchange, struct follower, exchange);

	(void)reason;
	stderr_ring_detach(&follower->reader);
	follower_leave_server(follower);
	loop_defer_free(follower->loop, follower);
}

static const struct http_exchange_ops follower_ops = {
	.on_body = follower_on_body,
	.on_room = follower_on_room,
	.on_gone = follower_on_gone,
};

struct http_exchange *logs_follow(struct server *server)
{
	struct follower *follower = mem_zalloc(sizeof(*follower));

	follower->exchange.ops = &follower_ops;
	follower->reader.on_line = follower_on_line;
	follower->reader.on_end = follower_on_end;
	follower->loop = server->loop;
	follower->server = server;
	server->users++;
	list_init(&follower->reader.link);
	return &follower->exchange;
}
