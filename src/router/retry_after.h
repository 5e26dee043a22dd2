/* SPDX-License-Identifier: Apache-2.0 */
/* When to retry a refused request: Retry-After. */
#ifndef MCPGATED_ROUTER_RETRY_AFTER_H
#define MCPGATED_ROUTER_RETRY_AFTER_H

#include "obs/reason.h"

struct principal;
struct router;
struct server;

/*
 * Seconds, at least one, until another session of this principal or, if NULL, another call is worth
 * trying. Estimated from the current state: back-off, start.rate, idle processes and for how long,
 * usual call duration.
 */
unsigned int retry_after_s(const struct router *router, const struct server *server,
			   const struct principal *principal, enum reason reason);

#endif
