/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where there may be no more processes, a session that does nothing gives its own to one that needs it, and sleeps: it goes
 * on with a fresh process when it asks for something. For pools of one session; those of many are process_slots'.
 * bridging.md §1.9.
 */
#ifndef MCPGATED_ROUTER_RECLAIM_H
#define MCPGATED_ROUTER_RECLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "io/loop.h"
#include "obs/reason.h"

struct pool;
struct server;
struct upstream;

/* What is asked of the pools. */
struct reclaim_ops {
	/* Starts the process that it waits for. Returns why not. */
	enum reason (*grow)(struct pool *pool);
	/* Nobody who waits gets one. */
	void (*refuse)(struct pool *pool, enum reason reason);
};

struct reclaim {
	struct loop *loop;
	const struct reclaim_ops *ops;
	struct list awake;       /* pools of one session that have a process */
	struct list waiting;     /* those that wait for a place for one, oldest first */
	struct task look;        /* somebody who waits may get one */
	struct timer look_again; /* until the next is idle for long enough */
	size_t retiring;         /* processes that finish their calls for those who wait */
};

void reclaim_init(struct reclaim *reclaim, struct loop *loop, const struct reclaim_ops *ops);
void reclaim_fini(struct reclaim *reclaim);
/* The pool has got a process; that is about to be none of it any more. */
void reclaim_note_started(struct pool *pool);
void reclaim_note_stopped(struct pool *pool);
/*
 * There may be no process for the pool: it waits for one. Returns false if that would be in vain, or too many wait: then
 * it waits for nothing.
 */
bool reclaim_wait(struct pool *pool);
bool reclaim_is_waiting(const struct pool *pool);
/* A shared pool needs a process and there may be no other: one of a session that does nothing goes for it. */
void reclaim_make_room(const struct pool *pool);
/* Something has changed for those who wait. Cheap if nobody does: it is said after every call. */
void reclaim_wake(struct reclaim *reclaim);
/* Nobody of the pool needs a process any more. */
void reclaim_leave(struct pool *pool);
/* A process has gone, of whatever pool: who waits may start one at once. */
void reclaim_note_gone(struct reclaim *reclaim, const struct upstream *upstream);
/* The process is stopped, and its session sleeps. */
void reclaim_put_to_sleep(struct upstream *upstream, enum reason reason);
/* Whether the process does nothing for its session. */
bool reclaim_is_resting(const struct upstream *upstream);
/* In how many milliseconds a process can be had for a newcomer at the earliest; UINT64_MAX: nobody knows. */
uint64_t reclaim_wait_ms(const struct reclaim *reclaim, const struct server *server);

#endif
