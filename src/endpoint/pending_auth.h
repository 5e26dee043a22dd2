/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request whose token cannot be judged at once: it waits, its body unread, until the issuer was asked. Nobody
 * else waits for it; if its client leaves, nothing is left of it. AUTH-KEY-07.
 */
#ifndef MCPGATED_ENDPOINT_PENDING_AUTH_H
#define MCPGATED_ENDPOINT_PENDING_AUTH_H

#include "endpoint/frontend.h"

/*
 * Judges the request and lets it in (frontend_dispatch), refuses it, or keeps it. For on_request: returns the exchange,
 * or NULL if it has answered.
 */
struct http_exchange *pending_auth_admit(struct frontend *frontend,
					 const struct endpoint_target *visit,
					 const struct answer *answer,
					 const struct http_request *http);

#endif
