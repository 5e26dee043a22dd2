/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streamable HTTP without sessions: revision 2026-07-28. Each request stands alone: what it is about is in its head and
 * its body, and its connection is all there is to it. FRONT-ERA-*, MOD-*.
 */
#ifndef MCPGATED_ENDPOINT_STATELESS_H
#define MCPGATED_ENDPOINT_STATELESS_H

#include <stdbool.h>

#include "endpoint/frontend.h"

/* Whether the head says that the request is of the modern era. requirements.md §3 */
bool stateless_is_named(const struct endpoint_request *request);
/* Returns the exchange that answers it, or NULL if it was answered. */
struct http_exchange *stateless_post(const struct endpoint_request *request);

#endif
