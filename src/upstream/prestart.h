/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that are started before a client needs them.
 *
 * Trials are there to find something out, and are then stopped:
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
 *
 * Warm processes wait for a handshake, so that a client does not wait for the start.
 * mcpgated.yaml(5) pool.warm.
 */
#pragma once

#include <stdbool.h>

#include "base/list.h"
#include "obs/reason.h"

struct server;
struct upstream;
struct upstream_setup;
struct upstream_shared;

struct prestart {
	struct upstream_shared *shared;
	struct list trials;
	struct list warm; /* a set for each server */
	bool is_held;     /* no more warm processes are started */
};

/* Embedded by whoever waits. */
struct trial_waiter {
	/* The outcome is there; the waiter is off the list. */
	void (*on_verdict)(struct trial_waiter *waiter);
	const struct upstream_setup *of; /* of a probe: who waits */
	bool lacks_credential; /* there is no outcome, as its caller has no credential for the server */
	struct list link;
};

void prestart_init(struct prestart *prestart, struct upstream_shared *shared);
/*
 * Probes `server`, whose process gets the claims and the token of `of`, unless a probe is under way already.
 * on_verdict is called later, when the era is known or cannot be determined.
 */
void prestart_probe(struct prestart *prestart, struct server *server,
		    const struct upstream_setup *of, struct trial_waiter *waiter);
/*
 * Queues a look at `server`, which must not need claims; only a few run at a time. If there is no
 * room for a process when its turn comes, nothing happens.
 */
void prestart_look(struct prestart *prestart, struct server *server);
/*
 * Whether a look at the server is queued or waits for an answer to the handshake; a queued one
 * begins now. If true, the waiter, which must be on no list, gets on_verdict once the process has
 * answered or failed.
 */
bool prestart_wait(struct prestart *prestart, const struct server *server,
		   struct trial_waiter *waiter);
/* Also valid for a waiter that is on no list, if its link was initialized. */
void trial_waiter_leave(struct trial_waiter *waiter);
bool trial_waiter_is_waiting(const struct trial_waiter *waiter);

/* ---- warm processes ---- */

/* Keeps server->conf.warm processes from now on. */
void prestart_keep_warm(struct prestart *prestart, struct server *server);
/* Stops the warm processes of this server, and keeps none from now on. */
void prestart_drop_warm(struct prestart *prestart, const struct server *server, enum reason reason);
/* Returns a process that has started or is starting, for upstream_adopt; NULL: none. */
struct upstream *prestart_take(struct prestart *prestart, const struct server *server);
/* Starts no more warm processes; existing ones stay. */
void prestart_hold(struct prestart *prestart);

/* Stops all; on_verdict is not called. */
void prestart_end(struct prestart *prestart, enum reason reason);
