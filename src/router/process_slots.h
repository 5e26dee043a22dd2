/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets a process when no more may be started. An idle session gives up its own to one that needs
 * it, and sleeps: it continues with a fresh process at its next request. Shared pools give up theirs
 * to each other: process_slots, below. And when a refused caller should try again. bridging.md §1.9.
 */
#ifndef MCPGATED_ROUTER_PROCESS_SLOTS_H
#define MCPGATED_ROUTER_PROCESS_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "io/loop.h"
#include "obs/reason.h"

struct pool;
struct server;
struct upstream;

/* Callbacks to the pools. */
struct reclaim_ops {
	/* Starts the process that the pool waits for. Returns why not. */
	enum reason (*grow)(struct pool *pool);
	/* No waiting pool will get one. */
	void (*refuse)(struct pool *pool, enum reason reason);
};

struct reclaim {
	struct loop *loop;
	const struct reclaim_ops *ops;
	struct list awake;       /* pools of one session that have a process */
	struct list waiting;     /* those that wait for a slot, oldest first */
	struct task look;        /* a waiting pool may get a process */
	struct timer look_again; /* when the next process has been idle long enough */
	size_t retiring;         /* processes that finish their calls for waiting pools */
};

void reclaim_init(struct reclaim *reclaim, struct loop *loop, const struct reclaim_ops *ops);
void reclaim_fini(struct reclaim *reclaim);
/* The pool has got a process; its process is about to be taken from it. */
void reclaim_note_started(struct pool *pool);
void reclaim_note_stopped(struct pool *pool);
/*
 * The pool cannot get a process now: queues it for one. Returns false, without queueing, if that is
 * futile or too many wait.
 */
bool reclaim_wait(struct pool *pool);
bool reclaim_is_waiting(const struct pool *pool);
/* A shared pool needs a process and no more may be started: takes that of an idle session. */
void reclaim_make_room(const struct pool *pool);
/* Something has changed for waiting pools. Called after every call; cheap if none waits. */
void reclaim_wake(struct reclaim *reclaim);
/* Nobody in the pool needs a process any more. */
void reclaim_leave(struct pool *pool);
/* A process, of whatever pool, has exited: a waiting pool may start one at once. */
void reclaim_note_gone(struct reclaim *reclaim, const struct upstream *upstream);
/* Stops the process; its session sleeps. */
void reclaim_put_to_sleep(struct upstream *upstream, enum reason reason);
/* Whether the process does nothing for its session. */
bool reclaim_is_resting(const struct upstream *upstream);
/*
 * The earliest time, in ms from now, at which a newcomer can get a process; UINT64_MAX: not known.
 */
uint64_t reclaim_wait_ms(const struct reclaim *reclaim, const struct server *server);

/* ---- process slots ---- */

/*
 * Processes for pools when no more may be started (pool.max, limits.processes): a pool that needs
 * one may get that of another pool. bridging.md §1.4.
 */

struct process_slots {
	struct list pools; /* the shared ones; the last to get a process comes last */
	bool is_short;     /* a pool waits for another pool's process to exit */
	size_t leaving;    /* processes that were stopped to make room and have not exited yet */
	/* Starts as many processes as the pool needs; returns why there can be no more. */
	enum reason (*grow)(struct pool *pool);
};

void process_slots_init(struct process_slots *slots, enum reason (*grow)(struct pool *pool));
/*
 * The pool needs a process and no more may be started: stops an idle one elsewhere, if any. The
 * pool is notified of room. Returns whether processes are exiting.
 */
bool process_slots_seek(struct pool *pool);
/*
 * The pool has been starved (pool_demand.h) or underserved for a while. If it has no process at
 * all, one of the pools with the most gives one up when its calls are over: one for each waiting
 * pool, and another if that takes longer than callers wait.
 */
void process_slots_claim(struct pool *pool);
/* Whether its caller waits for a process with less than its share while another caller has more. */
bool process_slots_is_underserved(const struct pool *pool);
/*
 * An upstream that is about to be closed frees its slot for others; they are notified when it has
 * exited.
 */
void process_slots_note_leaving(struct upstream *upstream);
/* A pool has had or got a process: it comes after the other pools next time. */
void process_slots_put_last(struct pool *pool);
/* A process is not needed now: pools that lack one may find room. */
void process_slots_note_idle(struct process_slots *slots);
/* An upstream has exited: starved pools get its slot before all others. */
void process_slots_note_gone(struct process_slots *slots, const struct upstream *upstream);

/* ---- retry after ---- */

/* When to retry a refused request: Retry-After. */

struct principal;
struct router;
struct server;

/*
 * Seconds, at least one, until another session of this principal or, if NULL, another call is worth
 * trying. Estimated from the current state: back-off, start.rate, idle processes and for how long,
 * usual call duration.
 */
unsigned int retry_after_s(const struct router *router, const struct server *server,
			   const struct principal *principal, enum reason reason);

#endif
