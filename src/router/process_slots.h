/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker of processes: how many a pool needs, which of them has room, and who gets one when no
 * more may be started (pool.max, limits.processes). An
 * idle session gives up its own to one that needs it, and sleeps: it continues with a fresh process
 * at its next request. Shared pools give up theirs to each other. And when a refused caller should
 * try again. bridging.md §1.4, §1.9.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "io/loop.h"
#include "obs/reason.h"

struct pool;
struct pool_member;
struct principal;
struct router;
struct server;
struct upstream;

/* Callbacks to the pools. */
struct process_slots_ops {
	/* Starts as many processes as the pool needs. Returns why there can be no more. */
	enum reason (*grow)(struct pool *pool);
	/* No process will come for those who wait in it. */
	void (*refuse)(struct pool *pool, enum reason reason);
};

struct process_slots {
	struct loop *loop;
	const struct process_slots_ops *ops;
	struct list pools;       /* the shared ones; the last to get a process comes last */
	struct list awake;       /* pools of one session that have a process */
	struct list waiting;     /* those that wait for one, oldest first */
	struct task look;        /* a waiting one may get a process */
	struct timer look_again; /* when the next process has been idle long enough */
	size_t retiring;         /* processes that finish their calls for waiting sessions */
	size_t leaving;          /* that were stopped for shared pools, and have not exited yet */
	bool is_short;           /* a shared pool waits for another pool's process to exit */
};

void process_slots_init(struct process_slots *slots, struct loop *loop,
			const struct process_slots_ops *ops);
void process_slots_fini(struct process_slots *slots);
/* Whether a process of this server is on its way out, whose place nobody awaits. */
bool process_slots_has_leaving(const struct server *server);
/*
 * The pool needs a process and no more may be started: stops an idle one elsewhere, if any. The pool
 * of a session is queued (pool->is_waiting), unless that is futile or too many wait; a shared one is
 * notified of room.
 */
void process_slots_seek(struct pool *pool);
/*
 * At most pool.queue pools of one kind wait for the first process of a server. A caller who waits with fewer
 * takes the newest place of the one who waits with most. Returns whether this pool may wait.
 */
bool process_slots_find_place(struct pool *pool);
/*
 * A shared pool has been without a process for a while, or its caller with less than a share while
 * another has more: one of the pools with the most gives one up when its calls are over. One for
 * each waiting pool, and another if that takes longer than callers wait.
 */
void process_slots_claim(struct pool *pool);
/* Nobody in the pool of a session needs a process any more. */
void process_slots_leave(struct pool *pool);
/* The pool has got a process; the upstream is about to be taken from its pool. */
void process_slots_note_started(struct pool *pool);
void process_slots_note_stopped(const struct upstream *upstream);
/*
 * An upstream that is about to be closed frees its slot for others; they are notified when it has
 * exited.
 */
void process_slots_note_leaving(struct upstream *upstream);
/* A process is not needed now: pools that lack one may find room. Cheap if none does. */
void process_slots_note_idle(struct process_slots *slots);
/* An upstream has exited: those who wait get its slot before all others. */
void process_slots_note_gone(struct process_slots *slots, const struct upstream *upstream);
/* Of a session's own process: whether it does nothing; stops it, so that the session sleeps. */
bool process_slots_is_resting(const struct upstream *upstream);
void process_slots_put_to_sleep(struct upstream *upstream, enum reason reason);

/* ---- what pools need ---- */

/* How many processes a pool needs, and which has room. Only reads state. bridging.md §1.4, §1.5. */

/*
 * For a pool that is not shared: its member, which must exist; its upstream, or NULL if it has none
 * now.
 */
struct pool_member *pool_only_member(const struct pool *pool);
struct upstream *pool_own_upstream(const struct pool *pool);

/* How many processes must exist or be starting; and how many are kept even without work. */
size_t pool_upstreams_needed(const struct pool *pool);
size_t pool_least_upstreams(const struct pool *pool);
/* Whether the upstream is not needed. */
bool pool_can_spare(const struct upstream *upstream);
/*
 * Whether an upstream that gets no more calls, and has none, is finished: it works on no task, or
 * others wait for its slot. bridging.md §2.5
 */
bool pool_is_over(const struct upstream *upstream);
/* Whether somebody waits for it while it has no process, or only ones that get no more calls. */
bool pool_is_starved(const struct pool *pool);
/* Whether it may take another call or list now, regardless of the length of its queue. */
bool pool_may_load(const struct upstream *upstream, bool is_list);
/* The least loaded upstream with room for a request of `size` bytes; NULL: none. */
struct upstream *pool_choose(const struct pool *pool, size_t size, bool is_list);
/* The upstream of this process, if it serves; NULL: none in the pool. */
struct upstream *pool_find_upstream(const struct pool *pool, uint64_t child_number);
/* Whether it has this process of the gateway before, which does not serve yet. */
bool pool_is_taking(const struct pool *pool, uint64_t child_number);
/* Whether calls or list requests wait for an upstream. */
bool pool_is_waited_for(const struct pool *pool);

/* The principal whose processes the upstream's are; NULL: everybody's, or nobody's. */
const struct principal *pool_principal_of(const struct upstream *upstream);

/* ---- retry after ---- */

/* When to retry a refused request: Retry-After. */

/*
 * Seconds, at least one, until another session of this principal or, if NULL, another call is worth
 * trying. Estimated from the current state: back-off, start.rate, idle processes and for how long,
 * usual call duration.
 */
unsigned int retry_after_s(const struct router *router, const struct server *server,
			   const struct principal *principal, enum reason reason);
