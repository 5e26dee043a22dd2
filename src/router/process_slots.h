/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes for pools where there may be no more of them: pool.max and limits.processes. bridging.md §1.4.
 */
#ifndef MCPGATED_ROUTER_PROCESS_SLOTS_H
#define MCPGATED_ROUTER_PROCESS_SLOTS_H

#include <stdbool.h>

struct upstream;
struct pool;
struct router;

/* It needs a process and there may be no other: makes room if somewhere one is idle. It hears of room. */
void process_slots_seek(struct pool *pool);
/* Whether somebody waits for a pool that has no process at all, or only such as get no more calls. */
bool process_slots_is_poor(const struct pool *pool);
/*
 * It has been poor for a while: if it has no process at all, one of those who have most gives one away when its calls are
 * over; one for each who waits, and another one if that takes longer than callers wait.
 */
void process_slots_claim(struct pool *pool);
/* A process that is about to be stopped leaves its place to others; they hear of it when it has gone. */
void process_slots_note_leaving(struct upstream *upstream);
/* It has had a process, or has got one: with the next one it comes after the other pools. */
void process_slots_put_last(struct pool *pool);
/* A process is not needed now: pools that are short of one may find room. */
void process_slots_note_idle(struct router *router);
/* A process has gone: its place is for poor pools before all others. */
void process_slots_note_gone(struct router *router);

#endif
