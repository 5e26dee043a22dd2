/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a stream of messages to a connection as server-sent events: pulls as much as the
 * connection has room for, keeps it alive while idle, and ends one that is too old, so that its
 * client reconnects for the rest. FRONT-SSE-02, -03, -05, FRONT-GET-05, FRONT-HTTP-12, -13.
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

/* The stream to write, and the position in it. */
struct event_source {
	struct stream *stream;
	uint32_t epoch;
	uint64_t number; /* of the stream within its session */
	uint64_t after;  /* as for stream_attach */
	bool has_no_ids; /* nobody will resume it */
	/* HTTP+SSE: its client's id, used instead of epoch and number; else empty */
	struct slice client;
	bool is_primed; /* begin with an event with an id and no data. FRONT-SSE-03, -04 */
	bool is_known;  /* the client can resume without loss, or need not */
	uint64_t retry_ms;
	uint64_t max_age_ms; /* of the connection; 0: unlimited */
	uint64_t keepalive_ms;
};

/* Embedded in an exchange that answers with events. */
struct event_writer {
	struct stream_reader reader;
	struct http_exchange *exchange;
	struct timer keepalive;
	struct timer age;
	uint64_t keepalive_ms;
	struct event_source source; /* that it was attached to */
	bool is_known;              /* as in the source; or an event was written */
	bool is_old;                /* to be closed once is_known */
	/*
	 * The stream has ended, or the writer has left it (REASON_CONNECTION_AGE); the response has
	 * been ended.
	 */
	void (*on_end)(struct event_writer *writer, enum reason reason);
};

/* Makes event_writer_stop safe before event_writer_start. */
void event_writer_init(struct event_writer *writer);
/*
 * Begins the response on the exchange's connection, with `fields` besides those of every event
 * stream, and then reads the source. Returns false, with nothing begun, if stream_attach refuses.
 */
bool event_writer_start(struct event_writer *writer, struct http_exchange *exchange,
			const struct event_source *source, struct slice fields) must_check;
/*
 * The same in two steps: begins the response, so that the caller may write to it; then, once, reads
 * the source. event_writer_attach returns false if stream_attach refuses.
 */
void event_writer_begin(struct event_writer *writer, struct http_exchange *exchange,
			uint64_t keepalive_ms, struct slice fields);
bool event_writer_attach(struct event_writer *writer, const struct event_source *source) must_check;
/* For the exchange's on_room: there is room again. */
void event_writer_on_room(struct event_writer *writer);
/* The connection is gone: detaches from the stream, without calling on_end. */
void event_writer_stop(struct event_writer *writer);

/*
 * Formats the event id of a message in a session's stream, into `out` of EVENT_ID_BYTES.
 * FRONT-RES-01
 */
struct slice event_id_format(uint32_t epoch, uint64_t stream, uint64_t number, char *out);
/* Parses such an id into epoch, number and after of *source_r; -1: not one of ours. FRONT-RES-01 */
int event_id_parse(struct slice id, struct event_source *source_r) must_check;
/*
 * The same for HTTP+SSE: the client's id, SESSION_ID_LENGTH random characters, and the number.
 * FRONT-OLD-04
 */
struct slice event_id_of_client(struct slice client, uint64_t number, char *out);
int event_id_parse_of_client(struct slice id, char *client_r, uint64_t *number_r) must_check;

#endif
