/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes for pools where there may be no more of them: pool.max and limits.processes. Whoever needs one may get that
 * of another pool. bridging.md §1.4.
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
	struct list pools; /* that are shared; who got a process last comes last */
	bool is_short;     /* a pool waits for a process of others to go */
	size_t leaving;    /* processes that were stopped to make room, and have not gone yet */
	/* Starts as many processes as the pool needs; returns why there can be no more. */
	enum reason (*grow)(struct pool *pool);
};

void process_slots_init(struct process_slots *slots, enum reason (*grow)(struct pool *pool));
/*
 * The pool needs a process and there may be no other: makes room if somewhere one is idle. It hears of room. Returns
 * whether processes are going.
 */
bool process_slots_seek(struct pool *pool);
/*
 * The pool has been starved (pool_demand.h), or underserved, for a while: if it has no process at all, one of those that have
 * most gives one away when its calls are over; one for each that waits, and another one if that takes longer than callers
 * wait.
 */
void process_slots_claim(struct pool *pool);
/* Whether its caller waits for a process and has less than a share of them, while another one has more. */
bool process_slots_is_underserved(const struct pool *pool);
/* An upstream that is about to be closed leaves its slot to others; they hear of it when it has gone. */
void process_slots_note_leaving(struct upstream *upstream);
/* A pool has had a process, or has got one: with the next one it comes after the other pools. */
void process_slots_put_last(struct pool *pool);
/* A process is not needed now: pools that are short of one may find room. */
void process_slots_note_idle(struct process_slots *slots);
/* An upstream has gone: its slot is for starved pools before all others. */
void process_slots_note_gone(struct process_slots *slots, const struct upstream *upstream);

#endif
