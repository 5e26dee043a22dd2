/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a stream of messages to a connection as server-sent events: pulls as much as the connection
 * has room for, keeps it alive while nothing happens. FRONT-SSE-02, FRONT-HTTP-12, -13.
 */
#ifndef MCPGATED_ENDPOINT_EVENTS_H
#define MCPGATED_ENDPOINT_EVENTS_H

#include <stdint.h>

#include "base/slice.h"
#include "http/conn.h"
#include "io/loop.h"
#include "session/stream.h"

struct event_writer;

/* Embedded by the exchange that answers with events. */
struct event_writer {
	struct stream_reader reader;
	struct http_exchange *exchange;
	struct timer keepalive;
	uint64_t keepalive_ms;
	/* The stream let go of it; the response has been ended. */
	void (*on_end)(struct event_writer *writer, enum reason reason);
};

/*
 * Begins the response on the exchange's connection, with `fields` besides those of every event stream,
 * and reads `stream` from now on.
 */
void event_writer_start(struct event_writer *writer, struct http_exchange *exchange,
			struct stream *stream, struct slice fields, uint64_t keepalive_ms);
/* There is room again: the exchange's on_room. */
void event_writer_on_room(struct event_writer *writer);
/* The connection has gone: lets go of the stream. on_end is not called. */
void event_writer_stop(struct event_writer *writer);

#endif
