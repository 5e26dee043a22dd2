/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether a server is of the modern era, in a process started only for this, with
 * server/discover: older servers reject it, ignore it or exit. The outcome is kept with the server
 * (process/era). BACK-ERA-01 to -04.
 */
#ifndef MCPGATED_UPSTREAM_ERA_PROBE_H
#define MCPGATED_UPSTREAM_ERA_PROBE_H

#include <stdbool.h>

#include "base/list.h"
#include "base/slice.h"
#include "obs/reason.h"

struct server;
struct upstream_shared;

/* All probes under way: at most one per server. */
struct era_probes {
	struct upstream_shared *shared;
	struct list all;
};

/* Embedded by whoever waits for the outcome. */
struct era_waiter {
	/* The era is known, or cannot be determined; the waiter is off the list. */
	void (*on_verdict)(struct era_waiter *waiter);
	struct list link;
};

void era_probes_init(struct era_probes *probes, struct upstream_shared *shared);
/*
 * Probes `server`, whose process gets these claims (claims.h), unless a probe is under way already.
 * on_verdict is called later.
 */
void era_probes_ask(struct era_probes *probes, struct server *server, struct slice claims,
		    struct era_waiter *waiter);
/* Also valid for a waiter that is on no list, if its link was initialized. */
void era_waiter_leave(struct era_waiter *waiter);
bool era_waiter_is_waiting(const struct era_waiter *waiter);
/* Stops all probes; on_verdict is not called. */
void era_probes_end(struct era_probes *probes, enum reason reason);

#endif
