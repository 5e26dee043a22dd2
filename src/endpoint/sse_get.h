/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GET of HTTP+SSE, and the event stream that answers it: what is written to it first, and what it reads from then on.
 * Whose it is, and what becomes of that client when it ends, is http_sse's. FRONT-OLD-01, FRONT-RES-07
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

/* Zeroed at first; exchange.ops, caller, token_watch and writer are set by http_sse. */
struct sse_get {
	struct http_exchange exchange;
	struct caller caller;
	struct event_writer writer;
	struct token_watch *token_watch;
	struct sse_client *client; /* whose stream this is; NULL: it has not begun */
	/* agreed on before, or the oldest if none is named; NULL: this is a new client for sure */
	const struct revision *revision;
	bool names_revision;
	bool is_resuming;           /* it came with Last-Event-ID */
	char id[SESSION_ID_LENGTH]; /* which names this client; all zeros: none that could be ours */
	uint64_t after;             /* and its last event */
};

/*
 * Begins the stream of the client that `own` names (its id, SESSION_ID_LENGTH characters), with the event that says where its
 * messages go; that event has an id as well, of the position `after`. FRONT-OLD-01
 */
void sse_get_begin(struct sse_get *get, struct slice own, const struct answer *answer,
		   uint64_t after);
/* Reads the stream from behind the event `after` on, or from here if that is not kept: then returns false. */
bool sse_get_attach(struct sse_get *get, struct slice own, struct stream *stream, uint64_t after);
/* What came behind its last event is no longer kept: said, so that it is not lost without a word. FRONT-RES-07 */
void sse_get_tell_hole(struct sse_get *get, struct slice own);
/* Frees it at the end of the turn. What is being written goes on, or has ended. */
void sse_get_end(struct sse_get *get);

#endif
