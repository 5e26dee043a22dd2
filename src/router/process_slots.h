/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes for pools when no more may be started (pool.max, limits.processes): a pool that needs
 * one may get that of another pool. bridging.md §1.4.
 */
#ifndef MCPGATED_ROUTER_PROCESS_SLOTS_H
#define MCPGATED_ROUTER_PROCESS_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "obs/reason.h"

struct pool;
struct upstream;

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

#endif
