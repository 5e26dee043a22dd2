/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP+SSE, the transport of 2024-11-05: one GET whose event stream carries every message to the client,
 * and POSTs that bring its messages and are answered with a status only. FRONT-OLD-*.
 */
#ifndef MCPGATED_ENDPOINT_HTTP_SSE_H
#define MCPGATED_ENDPOINT_HTTP_SSE_H

#include "base/slice.h"
#include "endpoint/streamable.h"
#include "http/conn.h"

/*
 * Each takes a request that passed the frontend, and returns the exchange that answers it, or NULL if it was
 * answered. `message_path` is where the client of this stream shall send its messages; it is copied.
 */
struct http_exchange *http_sse_get(const struct streamable_request *request,
				   struct slice message_path);
struct http_exchange *http_sse_post(const struct streamable_request *request);
/* The gateway is about to stop: ends streams that have no session. The others end with theirs. */
void http_sse_drain(struct frontend *frontend);

#endif
