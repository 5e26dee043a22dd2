/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request whose token cannot be judged immediately: it waits, with its body unread, until the
 * issuer has answered. It delays no other request, and is freed if its client disconnects.
 * AUTH-KEY-07.
 */
#ifndef MCPGATED_ENDPOINT_PENDING_AUTH_H
#define MCPGATED_ENDPOINT_PENDING_AUTH_H

#include "endpoint/frontend.h"

/* Handles a request once its caller is known, now or later. Returns as on_request does. */
typedef struct http_exchange *pending_auth_enter_fn(const struct endpoint_request *request);

/*
 * Judges the request and passes it to `enter`, refuses it, or keeps it. For on_request: returns the
 * exchange, or NULL if it was answered.
 */
struct http_exchange *pending_auth_admit(struct endpoint_request *request,
					 pending_auth_enter_fn *enter);

#endif
