/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of a server that is started with the gateway only to see whether it can be started,
 * what it is and how many tools it has (servers.NAME.start.try). The operator can read this in the
 * log before the first client connects, and whatever a start has to download is there by then.
 * Whoever needs a process meanwhile waits until this one has answered or failed. mcpgated(1).
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

/* All first looks that run or are queued: at most one per server. */
struct first_looks {
	struct upstream_shared *shared;
	struct list all;
	size_t running; /* how many of them run; only a few at a time */
};

void first_looks_init(struct first_looks *looks, struct upstream_shared *shared);
/*
 * Queues a process of `server`, which must not need claims. If there is no room for a process when
 * its turn comes, nothing happens.
 */
void first_looks_add(struct first_looks *looks, struct server *server);
/*
 * Whether a first look at the server runs or is queued; a queued one begins now. If true, the
 * waiter, which must be on no list, gets on_verdict once the process has answered the handshake or
 * failed.
 */
bool first_looks_wait(struct first_looks *looks, const struct server *server,
		      struct era_waiter *waiter);
/* Stops all; on_verdict is not called. */
void first_looks_end(struct first_looks *looks, enum reason reason);

#endif
