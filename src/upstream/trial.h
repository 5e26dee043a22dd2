/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of a server that are started only to find something out, and then stopped:
 *
 *	probe  whether the server is of the modern era: it is asked server/discover, which older
 *	       servers reject, ignore or exit at. BACK-ERA-01 to -04
 *	look   whether it can be started, what it is, and how many tools it has, with the gateway
 *	       (servers.NAME.start.try). The operator can read this in the log before the first
 *	       client connects, and whatever a start has to download is there by then. mcpgated(1)
 *
 * At most one of each is there for a server. Whoever needs the outcome waits for it. What a trial
 * finds out about the era is kept with the server (process/era).
 *
 *	queued -> asked -> (listing ->) over     asked -> queued: again, in the other era
 */
#ifndef MCPGATED_UPSTREAM_TRIAL_H
#define MCPGATED_UPSTREAM_TRIAL_H

#include <stdbool.h>

#include "base/list.h"
#include "base/slice.h"
#include "obs/reason.h"

struct server;
struct upstream_shared;

struct trials {
	struct upstream_shared *shared;
	struct list all;
};

/* Embedded by whoever waits. */
struct trial_waiter {
	/* The outcome is there; the waiter is off the list. */
	void (*on_verdict)(struct trial_waiter *waiter);
	struct list link;
};

void trials_init(struct trials *trials, struct upstream_shared *shared);
/*
 * Probes `server`, whose process gets these claims (claims.h), unless a probe is under way already.
 * on_verdict is called later, when the era is known or cannot be determined.
 */
void trials_probe(struct trials *trials, struct server *server, struct slice claims,
		  struct trial_waiter *waiter);
/*
 * Queues a look at `server`, which must not need claims; only a few run at a time. If there is no
 * room for a process when its turn comes, nothing happens.
 */
void trials_look(struct trials *trials, struct server *server);
/*
 * Whether a look at the server is queued or waits for an answer to the handshake; a queued one
 * begins now. If true, the waiter, which must be on no list, gets on_verdict once the process has
 * answered or failed.
 */
bool trials_wait(struct trials *trials, const struct server *server, struct trial_waiter *waiter);
/* Also valid for a waiter that is on no list, if its link was initialized. */
void trial_waiter_leave(struct trial_waiter *waiter);
bool trial_waiter_is_waiting(const struct trial_waiter *waiter);
/* Stops all; on_verdict is not called. */
void trials_end(struct trials *trials, enum reason reason);

#endif
