/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP+SSE, the transport of 2024-11-05: one GET whose event stream carries every message to the
 * client, and POSTs that bring its messages and are answered with a status only. FRONT-OLD-*.
 *
 * A client that lost its connection returns with a new GET and continues where it was. Its
 * EventSource can only send the last event's id in Last-Event-ID, so that id names both the client
 * (by the random id that its messages are posted to) and the event. It is valid only for the same
 * principal at the same server; for others it is unknown (404), and so is a client that was away
 * longer than conf.reconnect_ms or whose session has ended: it would not initialize again, and all
 * its calls would fail. Meanwhile messages wait in the session's stream; if the answers alone
 * exceed its limit, the client is given up.
 *
 * Some clients send no id, but the revision that they agreed on (MCP-Protocol-Version; the
 * TypeScript SDK). Others send that when they are new (AI SDKs). So each gets an address of its own
 * first. One that then initializes is new. One that sends anything else, or nothing for a while,
 * has initialized before: with a token, it gets its lost session back if that is the only one this
 * principal has lost here with this revision; messages that were in transit when the connection
 * broke may then be missing. All others get a new session, initialized on their behalf: calls work
 * again, and nobody's session is given away. Anonymous clients are always among these, since they
 * are all one principal. A client that sends neither id nor revision is resumed only at a request
 * other than initialize and ping, as 2024-11-05.
 */
#pragma once

#include "endpoint/frontend.h"

/*
 * Each handles a request that passed the frontend, and returns the exchange that answers it, or
 * NULL if it was answered.
 */
struct http_exchange *http_sse_get(const struct endpoint_request *request);
struct http_exchange *http_sse_post(const struct endpoint_request *request);
/*
 * The gateway is about to stop: ends streams without a session. The others end with their sessions.
 */
void http_sse_drain(struct frontend *frontend);
/* The frontend's task that makes room when too much is waiting for lost clients. */
void http_sse_on_room(struct task *task);
