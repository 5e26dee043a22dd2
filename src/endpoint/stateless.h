/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streamable HTTP without sessions: revision 2026-07-28. Each request stands alone: its header and
 * body carry all its context, and it lives as long as its connection. FRONT-ERA-*, MOD-*.
 */
#ifndef MCPGATED_ENDPOINT_STATELESS_H
#define MCPGATED_ENDPOINT_STATELESS_H

#include <stdbool.h>

#include "endpoint/frontend.h"

/* Whether the header marks the request as modern. requirements.md §3 */
bool stateless_is_named(const struct endpoint_request *request);
/* Returns the exchange that answers it, or NULL if it was answered. */
struct http_exchange *stateless_post(const struct endpoint_request *request);

#endif
