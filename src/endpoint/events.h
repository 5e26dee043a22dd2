/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a stream of messages to a connection as server-sent events: pulls as much as the connection
 * has room for, keeps it alive while nothing happens, and leaves a connection that has become too old to
 * its client, who comes back for the rest. FRONT-SSE-02, -03, -05, FRONT-GET-05, FRONT-HTTP-12, -13.
 */
#ifndef MCPGATED_ENDPOINT_EVENTS_H
#define MCPGATED_ENDPOINT_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "http/conn.h"
#include "io/loop.h"
#include "session/stream.h"

struct event_writer;

/* Room for the longest event id. */
#define EVENT_ID_BYTES 64

/* A stream to write, and where in it. */
struct event_source {
	struct stream *stream;
	uint32_t epoch;
	uint64_t number; /* of the stream in its session */
	uint64_t after;  /* as for stream_attach */
	bool has_no_ids; /* nobody comes back to it */
	struct slice
		client; /* HTTP+SSE: the id of its client, in place of epoch and number; else empty */
	bool is_primed; /* begin with an event that has an id and no data. FRONT-SSE-03, -04 */
	bool is_known;  /* its client can name an event of it, or need not, to lose nothing */
	uint64_t retry_ms;
	uint64_t max_age_ms; /* of the connection; 0: any */
	uint64_t keepalive_ms;
};

/* Embedded by the exchange that answers with events. */
struct event_writer {
	struct stream_reader reader;
	struct http_exchange *exchange;
	struct timer keepalive;
	struct timer age;
	uint64_t keepalive_ms;
	struct event_source source; /* what it was attached to */
	bool is_known;              /* as in the source; or an event was written */
	bool is_old;                /* to be closed as soon as it is known */
	/*
	 * The stream let go of it, or it of the stream (REASON_CONNECTION_AGE); the response has been
	 * ended.
	 */
	void (*on_end)(struct event_writer *writer, enum reason reason);
};

/* So that event_writer_stop may be called before event_writer_start. */
void event_writer_init(struct event_writer *writer);
/*
 * Begins the response on the exchange's connection, with `fields` besides those of every event stream,
 * and reads the source from now on. Returns false, and has begun nothing, if stream_attach refuses.
 */
bool event_writer_start(struct event_writer *writer, struct http_exchange *exchange,
			const struct event_source *source, struct slice fields) must_check;
/*
 * The same in two steps: begins the response, so that the caller may write to it; then, once, reads the
 * source. event_writer_attach returns false if stream_attach refuses.
 */
void event_writer_begin(struct event_writer *writer, struct http_exchange *exchange,
			uint64_t keepalive_ms, struct slice fields);
bool event_writer_attach(struct event_writer *writer, const struct event_source *source) must_check;
/* There is room again: the exchange's on_room. */
void event_writer_on_room(struct event_writer *writer);
/* The connection has gone: lets go of the stream. on_end is not called. */
void event_writer_stop(struct event_writer *writer);

/* The id of a message of a session's stream, in `out` of EVENT_ID_BYTES. FRONT-RES-01 */
struct slice event_id_format(uint32_t epoch, uint64_t stream, uint64_t number, char *out);
/* Reads an id of ours into epoch, number and after of *source_r; -1: it is none. FRONT-RES-01 */
int event_id_parse(struct slice id, struct event_source *source_r) must_check;
/* The same for HTTP+SSE: the id of the client, SESSION_ID_LENGTH random characters, and the number. FRONT-OLD-04 */
struct slice event_id_of_client(struct slice client, uint64_t number, char *out);
int event_id_parse_of_client(struct slice id, char *client_r, uint64_t *number_r) must_check;

#endif
