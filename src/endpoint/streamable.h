/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streamable HTTP with sessions: revisions 2025-03-26, 2025-06-18, 2025-11-25. Each function takes a
 * request that passed the frontend, and returns the exchange that answers it, or NULL if it was answered.
 */
#ifndef MCPGATED_ENDPOINT_STREAMABLE_H
#define MCPGATED_ENDPOINT_STREAMABLE_H

#include "base/slice.h"
#include "endpoint/frontend.h"
#include "http/conn.h"

struct streamable_request {
	struct frontend *frontend;
	struct server *server;
	const struct protected_resource *place;
	const struct access *access; /* of whoever asks; borrowed */
	struct http_conn *conn;
	const struct http_request *http;
	struct slice origin; /* allowed; or empty */
};

struct http_exchange *streamable_post(const struct streamable_request *request);
struct http_exchange *streamable_get(const struct streamable_request *request);
struct http_exchange *streamable_delete(const struct streamable_request *request);

#endif
