/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When no more processes may be started, an idle session gives up its own to one that needs it, and
 * sleeps: it continues with a fresh process at its next request. For pools of one session;
 * process_slots handles shared ones. bridging.md §1.9.
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

#endif
