/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP+SSE, the transport of 2024-11-05: one GET whose event stream carries every message to the client,
 * and POSTs that bring its messages and are answered with a status only. FRONT-OLD-*.
 */
#ifndef MCPGATED_ENDPOINT_HTTP_SSE_H
#define MCPGATED_ENDPOINT_HTTP_SSE_H

#include "endpoint/frontend.h"

/* Each takes a request that passed the frontend, and returns the exchange that answers it, or NULL if it was answered. */
struct http_exchange *http_sse_get(const struct endpoint_request *request);
struct http_exchange *http_sse_post(const struct endpoint_request *request);
/* The gateway is about to stop: ends streams that have no session. The others end with theirs. */
void http_sse_drain(struct frontend *frontend);

#endif
