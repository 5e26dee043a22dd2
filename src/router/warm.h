/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that are started before anybody needs them, and wait for a handshake: who comes does not wait for
 * their start. product.md §4 pool.warm.
 */
#ifndef MCPGATED_ROUTER_WARM_H
#define MCPGATED_ROUTER_WARM_H

#include "base/check.h"
#include "base/list.h"
#include "io/loop.h"
#include "obs/reason.h"

struct server;
struct upstream;
struct router;

struct warm_set {
	struct list link; /* of the router's */
	struct router *router;
	struct server *server;
	struct list upstreams;
	size_t count;
	struct task refill;
	struct timer retry;
};

/* Keeps server->conf.warm of them from now on; freed by warm_set_end_all. */
void warm_set_start(struct router *router, struct server *server);
/* One that is started, or being started, for the caller's pool; NULL: there is none. */
struct upstream *warm_set_take(struct router *router, struct server *server);
/* Called by the upstream: it has failed. */
void warm_set_on_lost(struct upstream *upstream);
void warm_set_end_all(struct router *router, enum reason reason);

#endif
