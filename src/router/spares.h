/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that are started before anybody needs them, and wait for a handshake: who comes does not wait for
 * their start. product.md §4 pool.warm.
 */
#ifndef MCPGATED_ROUTER_SPARES_H
#define MCPGATED_ROUTER_SPARES_H

#include "base/check.h"
#include "base/list.h"
#include "io/loop.h"
#include "obs/reason.h"

struct backend;
struct lane;
struct router;

struct spares {
	struct list link; /* of the router's */
	struct router *router;
	struct backend *backend;
	struct list lanes;
	size_t count;
	struct task refill;
	struct timer retry;
};

/* Keeps backend->conf.warm of them from now on; freed by spares_end_all. */
void spares_start(struct router *router, struct backend *backend);
/* One that is started, or being started, for the caller's partition; NULL: there is none. */
struct lane *spares_take(struct router *router, struct backend *backend);
/* Called by the lane: it has failed. */
void spares_on_lost(struct lane *lane);
void spares_end_all(struct router *router, enum reason reason);

#endif
