/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GET of HTTP+SSE and the event stream that answers it: what is written first, and what it then
 * reads. http_sse decides whose stream it is and what becomes of the client when it ends.
 * FRONT-OLD-01, FRONT-RES-07
 */
#ifndef MCPGATED_ENDPOINT_SSE_GET_H
#define MCPGATED_ENDPOINT_SSE_GET_H

#include "endpoint/answer.h"
#include "endpoint/caller.h"
#include "endpoint/events.h"
#include "endpoint/token_watch.h"
#include "session/session.h"

struct revision;
struct sse_client;

/* Zeroed first; http_sse sets exchange.ops, caller, token_watch and writer. */
struct sse_get {
	struct http_exchange exchange;
	struct caller caller;
	struct event_writer writer;
	struct token_watch *token_watch;
	struct sse_client *client; /* owner of this stream; NULL: it has not begun */
	/* Agreed on before, or the oldest if none is named; NULL: certainly a new client. */
	const struct revision *revision;
	bool names_revision;
	bool is_resuming;           /* it came with Last-Event-ID */
	char id[SESSION_ID_LENGTH]; /* the client it names; all zeros: not one of ours */
	uint64_t after;             /* and its last event */
};

/*
 * Begins the stream of the client `own` (an id of SESSION_ID_LENGTH characters) with the event that
 * tells it where to post messages; that event also has an id, for the position `after`.
 * FRONT-OLD-01
 */
void sse_get_begin(struct sse_get *get, struct slice own, const struct answer *answer,
		   uint64_t after);
/* Reads the stream from after event `after`; if that is not kept, from here, and returns false. */
bool sse_get_attach(struct sse_get *get, struct slice own, struct stream *stream, uint64_t after);
/*
 * Reports that events after its last one are no longer kept, so that the loss is visible.
 * FRONT-RES-07
 */
void sse_get_tell_hole(struct sse_get *get, struct slice own);
/* Frees it at the end of the turn. Output in progress continues, or has ended. */
void sse_get_end(struct sse_get *get);

#endif
