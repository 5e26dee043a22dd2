/* SPDX-License-Identifier: Apache-2.0 */
/* When a request that was refused is worth another try: Retry-After. */
#ifndef MCPGATED_ROUTER_RETRY_AFTER_H
#define MCPGATED_ROUTER_RETRY_AFTER_H

#include "obs/reason.h"

struct principal;
struct router;
struct server;

/*
 * In seconds, at least one, for another session of this principal, or, if it is NULL, another call; made of what is known
 * now: back-off, turns of start.rate, what is idle and since when, how long calls take.
 */
unsigned int retry_after_s(const struct router *router, const struct server *server,
			   const struct principal *principal, enum reason reason);

#endif
