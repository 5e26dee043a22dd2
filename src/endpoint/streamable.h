/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streamable HTTP: with sessions (revisions 2025-03-26, 2025-06-18, 2025-11-25), and without
 * (2026-07-28), where each request stands alone: its header and body carry all its context, and it
 * lives as long as its connection. FRONT-ERA-*, MOD-*. Each function handles a request that passed the frontend, and returns the exchange that answers it, or NULL if
 * it was answered.
 */
#pragma once

#include <stdbool.h>

#include "endpoint/frontend.h"

/* Whether the header marks the request as one without a session. requirements.md §3 */
bool streamable_is_stateless(const struct endpoint_request *request);

struct http_exchange *streamable_post(const struct endpoint_request *request);
struct http_exchange *streamable_get(const struct endpoint_request *request);
struct http_exchange *streamable_delete(const struct endpoint_request *request);
