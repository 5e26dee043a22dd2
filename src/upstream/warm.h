/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that are started before anybody needs them, and wait for a handshake: who comes does not wait for
 * their start. product.md §4 pool.warm.
 */
#ifndef MCPGATED_UPSTREAM_WARM_H
#define MCPGATED_UPSTREAM_WARM_H

#include <stdbool.h>

#include "base/list.h"
#include "obs/reason.h"

struct server;
struct upstream;
struct upstream_shared;

/* All warm sets, one a server. */
struct warm_sets {
	struct upstream_shared *shared;
	struct list all;
	bool is_held; /* no more are started */
};

void warm_sets_init(struct warm_sets *sets, struct upstream_shared *shared);
/* There are to be none of this server any more. */
void warm_sets_remove(struct warm_sets *sets, const struct server *server, enum reason reason);
/* Keeps server->conf.warm of them from now on. */
void warm_sets_add(struct warm_sets *sets, struct server *server);
/* One that is started, or being started, for upstream_adopt; NULL: there is none. */
struct upstream *warm_sets_take(struct warm_sets *sets, const struct server *server);
/* Starts no more; those that are there stay. */
void warm_sets_hold(struct warm_sets *sets);
/* Stops all, and keeps no more. */
void warm_sets_end(struct warm_sets *sets, enum reason reason);

#endif
