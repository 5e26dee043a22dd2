/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of a server that is started with the gateway, for nothing but to see whether it can be started, what it is and how
 * many tools it has (servers.NAME.start.try): the operator reads that in the log before the first client comes, and what has to be
 * fetched for a start is there then. Who needs a process meanwhile waits until that one has answered, or has not.
 * product.md §2.
 */
#ifndef MCPGATED_UPSTREAM_FIRST_LOOK_H
#define MCPGATED_UPSTREAM_FIRST_LOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "obs/reason.h"
#include "upstream/era_probe.h"

struct server;
struct upstream_shared;

/* All that are under way or wait for their turn: at most one of each server. */
struct first_looks {
	struct upstream_shared *shared;
	struct list all;
	size_t running; /* of them: a few at a time */
};

void first_looks_init(struct first_looks *looks, struct upstream_shared *shared);
/* Starts a process of `server` when its turn has come; it must not need claims. Where there is no room for one then, nothing happens. */
void first_looks_add(struct first_looks *looks, struct server *server);
/*
 * Whether the server is still being started for its first look, or waits to be, which ends then; if so, on_verdict of the waiter, which is on no list, is called
 * when it has answered the handshake or failed.
 */
bool first_looks_wait(struct first_looks *looks, const struct server *server,
		      struct era_waiter *waiter);
/* Stops all; nobody hears of it. */
void first_looks_end(struct first_looks *looks, enum reason reason);

#endif
