/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads an event stream (text/event-stream) as a client does: bytes in, events out. WHATWG HTML
 * §9.2.6. What a server writes is bounded: an event, and all lines that are kept for it, may have
 * no more than `most` bytes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"

#define EVENT_RETRY_NONE UINT64_MAX
#define EVENT_ID_BYTES_MAX 1024 /* a longer one is ignored; a longer name as well */

/* Zeroed, apart from `most` and retry_ms; event_reader_fini frees what it holds. */
struct event_reader {
	size_t most;
	struct buf line; /* the part of a line that has arrived */
	struct buf data; /* of the event that is being read */
	struct buf name;
	struct buf next_id;
	struct buf last_id; /* of the last event that is complete; empty: it has none */
	uint64_t retry_ms;  /* what the server asked for; EVENT_RETRY_NONE: nothing yet */
	uint64_t ids;       /* how many events had one */
	bool has_new_id, has_data, has_cr, has_begun;
};

/* An event with data; borrowed until the callback returns. */
struct server_event {
	struct slice name; /* "message" if the server named none */
	struct slice data; /* lines joined by \n */
};
typedef void server_event_fn(const struct server_event *event, void *arg);

/*
 * Takes the next bytes and calls on_event for each event that they complete. An event without data
 * is not handed out, but its id counts. Returns 0, or -1: an event is longer than `most`; the
 * stream cannot be read any further.
 */
int event_reader_take(struct event_reader *reader, struct slice bytes, server_event_fn *on_event,
		      void *arg) must_check;
/* Forgets an event that is incomplete, as at the end of a connection; the last id stays. */
void event_reader_restart(struct event_reader *reader);
void event_reader_fini(struct event_reader *reader);
