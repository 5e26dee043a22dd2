/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a server, in a process that is there for nothing else, whether it is of the modern era: with server/discover, which
 * older servers refuse, ignore or end at. The outcome is kept with the server (process/era). BACK-ERA-01 to -04.
 */
#ifndef MCPGATED_UPSTREAM_ERA_PROBE_H
#define MCPGATED_UPSTREAM_ERA_PROBE_H

#include <stdbool.h>

#include "base/list.h"
#include "base/slice.h"
#include "obs/reason.h"

struct server;
struct upstream_shared;

/* All that are on their way: at most one of each server. */
struct era_probes {
	struct upstream_shared *shared;
	struct list all;
};

/* Embedded by who waits for what comes of it. */
struct era_waiter {
	/* It has turned out, or cannot be found out; the waiter is off the list. */
	void (*on_verdict)(struct era_waiter *waiter);
	struct list link;
};

void era_probes_init(struct era_probes *probes, struct upstream_shared *shared);
/* Asks `server`, which is told these claims (claims.h), unless that is done already. on_verdict is called later. */
void era_probes_ask(struct era_probes *probes, struct server *server, struct slice claims,
		    struct era_waiter *waiter);
/* Also of a waiter that is on no list, if its link was initialised. */
void era_waiter_leave(struct era_waiter *waiter);
bool era_waiter_is_waiting(const struct era_waiter *waiter);
/* Stops all; nobody hears of it. */
void era_probes_end(struct era_probes *probes, enum reason reason);

#endif
