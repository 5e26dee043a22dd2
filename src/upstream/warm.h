/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that are started before a client needs them, and wait for a handshake, so that the
 * client does not wait for the start. mcpgated.yaml(5) pool.warm.
 */
#ifndef MCPGATED_UPSTREAM_WARM_H
#define MCPGATED_UPSTREAM_WARM_H

#include <stdbool.h>

#include "base/list.h"
#include "obs/reason.h"

struct server;
struct upstream;
struct upstream_shared;

/* All warm sets, one per server. */
struct warm_sets {
	struct upstream_shared *shared;
	struct list all;
	bool is_held; /* no more are started */
};

void warm_sets_init(struct warm_sets *sets, struct upstream_shared *shared);
/* Stops the warm processes of this server, and keeps none from now on. */
void warm_sets_remove(struct warm_sets *sets, const struct server *server, enum reason reason);
/* Keeps server->conf.warm processes from now on. */
void warm_sets_add(struct warm_sets *sets, struct server *server);
/* Returns a process that has started or is starting, for upstream_adopt; NULL: none. */
struct upstream *warm_sets_take(struct warm_sets *sets, const struct server *server);
/* Starts no more; existing ones stay. */
void warm_sets_hold(struct warm_sets *sets);
/* Stops all, and keeps no more. */
void warm_sets_end(struct warm_sets *sets, enum reason reason);

#endif
