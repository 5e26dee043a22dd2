/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streamable HTTP with sessions: revisions 2025-03-26, 2025-06-18, 2025-11-25. Each function
 * handles a request that passed the frontend, and returns the exchange that answers it, or NULL if
 * it was answered.
 */
#ifndef MCPGATED_ENDPOINT_STREAMABLE_H
#define MCPGATED_ENDPOINT_STREAMABLE_H

#include "endpoint/frontend.h"

struct http_exchange *streamable_post(const struct endpoint_request *request);
struct http_exchange *streamable_get(const struct endpoint_request *request);
struct http_exchange *streamable_delete(const struct endpoint_request *request);

#endif
