/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP+SSE, the transport of 2024-11-05: one GET whose event stream carries every message to the client,
 * and POSTs that bring its messages and are answered with a status only. FRONT-OLD-*.
 *
 * A client whose connection is lost comes back with a new GET, and goes on where it was: all its EventSource knows is to send
 * the id of the last event in Last-Event-ID, so that id names the client, by the same random id that its messages go to,
 * and the event. It is found for the same principal at the same server alone; for all others it is unknown (404), and so is
 * one that was away for longer than conf.reconnect_ms or whose session has ended: it would not initialize again, and
 * all its calls would fail. Meanwhile messages wait in the session's stream; when answers alone are more than that may hold, the
 * client is given up.
 *
 * Some clients leave the id out, but name the revision that they have agreed on (MCP-Protocol-Version; the TypeScript SDK).
 * Others do that when they are new (AI SDKs). So each gets an address of its own first. Who then initializes is new. Who says
 * anything else, or nothing for a while, has initialized before: one with a token gets its lost session, if it is the only one
 * that this principal has lost here, of this revision; what was on its way when the connection broke may be missing then. All
 * others, anonymous ones always, since they are all one principal, get a new session, for which initialize is said in their
 * place: calls work again, and nothing of anybody's session is given away. What names neither goes on only at a request other than initialize and
 * ping, as of 2024-11-05.
 */
#ifndef MCPGATED_ENDPOINT_HTTP_SSE_H
#define MCPGATED_ENDPOINT_HTTP_SSE_H

#include "endpoint/frontend.h"

/* Each takes a request that passed the frontend, and returns the exchange that answers it, or NULL if it was answered. */
struct http_exchange *http_sse_get(const struct endpoint_request *request);
struct http_exchange *http_sse_post(const struct endpoint_request *request);
/* The gateway is about to stop: ends streams that have no session. The others end with theirs. */
void http_sse_drain(struct frontend *frontend);
/* The task of the frontend that makes room when what waits for lost clients is too much. */
void http_sse_on_room(struct task *task);

#endif
