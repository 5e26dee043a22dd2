/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request whose token cannot be judged at once: it waits, its body unread, until the issuer was asked. Nobody
 * else waits for it; if its client leaves, nothing is left of it. AUTH-KEY-07.
 */
#ifndef MCPGATED_ENDPOINT_PENDING_AUTH_H
#define MCPGATED_ENDPOINT_PENDING_AUTH_H

#include "endpoint/frontend.h"

/* Where a request goes once its caller is known, now or later. Returns as on_request does. */
typedef struct http_exchange *pending_auth_enter_fn(const struct endpoint_request *request);

/*
 * Judges the request and lets it in (`enter`), refuses it, or keeps it. For on_request: returns the exchange, or NULL
 * if it has answered.
 */
struct http_exchange *pending_auth_admit(struct endpoint_request *request,
					 pending_auth_enter_fn *enter);

#endif
