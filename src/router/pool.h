/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool: upstreams that are interchangeable for a request, and the clients that they serve. With
 * isolation `session` it is one session and its one process at a time; otherwise it is shared, with
 * many sessions and several processes, for one server, one capability class and, with isolation
 * `principal`, one principal with the same claims.
 *
 * A pool owns the upstreams, what they are told in the handshake, what they offered, and the calls
 * that wait for one of them. What has to be merged for the members of a shared pool is handled by the
 * units above: lists, subscriptions.
 * bridging.md §1.2 to §1.5.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/revision.h"
#include "obs/reason.h"
#include "process/server.h"
#include "router/era.h"
#include "router/wait_queue.h"
#include "router/lists.h"
#include "router/pool_memory.h"
#include "router/subscriptions.h"
#include "router/url_pending.h"
#include "upstream/prestart.h"
#include "upstream/upstream.h"

/* ---- pool member ---- */

/*
 * A user of a pool and its callbacks: a session, or the client of a modern request for its one
 * call.
 */

/* Callbacks to a member. Each of them may end it. */
struct pool_member_ops {
	/*
	 * An upstream is ready: the server's response to initialize, as members of this pool get
	 * it.
	 */
	void (*on_ready)(struct pool_member *member, const struct envelope *response);
	/* The server answered initialize with an error. */
	void (*on_refused)(struct pool_member *member, const struct envelope *response);
	/* No upstream will be ready. */
	void (*on_failed)(struct pool_member *member, enum reason reason);
	/* Not for shared pools: its process is lost; a new one is being started for it. */
	void (*on_lost)(struct pool_member *member, enum reason reason);
	void (*on_respawn)(struct pool_member *member);
	/* A server notification that concerns the member. `key` as in stream_push. */
	void (*on_notification)(struct pool_member *member, uint64_t key, struct msg *msg);
};

/* Embedded. */
struct pool_member {
	const struct pool_member_ops *ops;
	struct client *client;
	struct list link; /* of pool->joining until on_ready; then of pool->members */
};

struct holder;
struct kept_state;
struct pool_job;
struct principal;
struct router;

/* Callbacks to the layer above pools. */
struct pool_ops {
	/* A pool is created, or ends, and nobody refers to it. */
	void (*on_new)(struct pool *pool);
	void (*on_end)(struct pool *pool);
	/* An upstream is ready. `is_first`: of the pool; `is_other`: it may offer other things. */
	void (*on_ready)(struct upstream *upstream, bool is_first, bool is_other);
	/* The member is about to leave its pool. */
	void (*on_leave)(const struct pool_member *member);
	/* The upstream is about to be closed. */
	void (*on_closed)(struct upstream *upstream);
	/* The turn of a call that waited in the pool's queue, and has been removed from it. */
	void (*on_turn)(struct upstream *upstream, struct call *call);
	/* As in upstream_owner_ops. */
	void (*on_request)(struct upstream *upstream, const struct envelope *env);
	void (*on_notification)(struct upstream *upstream, const struct envelope *env);
};

/* The gateway's own work that waits for an upstream. */
struct pool_job_ops {
	/* Its turn; it is off the list already. */
	void (*on_turn)(struct pool_job *job, struct upstream *upstream);
	void (*on_failed)(struct pool_job *job, enum reason reason);
};

struct pool_job {
	const struct pool_job_ops *ops;
	struct list link;
};

struct pool {
	/* of process_slots; of one session: while it has a process, or waits for one */
	struct list link;
	struct router *router;
	struct server *server;
	struct principal *principal; /* the owner; NULL: everybody's, or one session's */
	char *class;                 /* shared: the capabilities declared to its servers */
	struct upstream_setup setup;
	/* What the last upstream that was ready agreed to; NULL: none yet. */
	const struct revision *agreed;
	struct pool_memory memory; /* shared: what stays valid without a process */
	struct lists lists;
	struct subscriptions subscriptions;
	size_t subscribing_bytes; /* of requests that wait for another one's answer */
	struct notices notices;
	struct url_pending urls; /* to be opened by clients, not complete yet (url_replay.c) */
	struct kept_pool *kept;  /* shared: while it has a process for the next gateway */
	/* Shared: how its server described itself to the gateway before; NULL: no process is of that. */
	struct msg *inherited_result;
	struct slice server_info;      /* serverInfo as JSON text, in initialize_result; or empty */
	struct msg *initialize_result; /* shared: the response to initialize, once known */
	struct server_capabilities capabilities; /* shared: those that can be. bridging.md §1.3 */
	struct list joining, members;            /* the former wait for the first upstream */
	size_t member_count;                     /* both lists */
	struct list upstreams;                   /* all that are not closed */
	size_t upstream_count;
	size_t starting;         /* of them, not ready yet */
	struct fair_queue queue; /* calls that wait for an upstream */
	struct list jobs;
	bool is_jobs_turn;         /* if both calls and jobs wait for an upstream */
	bool is_short;             /* it waits for a process of another pool to exit */
	uint64_t refused_until_ms; /* its caller has no credential; nothing is started before */
	bool is_outdated; /* by a reload: it keeps its members, but others get another pool */
	bool is_passed;   /* already considered in this turn, without success */
	/* Its caller's share of the server's processes; NULL: they are everybody's. */
	struct holder *holder;
	/* Nothing is started before the server's era is known. */
	struct trial_waiter verdict;
	struct trial_waiter aside; /* the same, while it serves as legacy */
	/* one session only: */
	uint64_t stopped_at_ms;   /* when its last process was stopped or lost */
	struct upstream *awaited; /* whose slot it may get; NULL: no particular one */
	bool is_waiting;          /* for a slot for its process */
	bool is_awoken;           /* it is of an earlier gateway's session, and wants a process */
	bool is_promised;         /* another pool's process finishes its calls for it */
	uint64_t waiting_since_ms;
	struct timer retry; /* after a required process could not be started */
	/* Gives waiting calls to upstreams with room, at the end of the turn. */
	struct task pump;
};
static inline bool pool_is_shared(const struct pool *pool)
{
	return pool->class != NULL;
}
/* Its servers are modern, as far as is known. */
static inline bool pool_is_modern(const struct pool *pool)
{
	return pool->agreed != NULL ? pool->agreed->is_modern : era_of(pool->server) == ERA_MODERN;
}
/* Its servers may ask their clients, and do not say during which call: one call at a time each. */
static inline bool pool_is_leased(const struct pool *pool)
{
	return pool->class != NULL && pool->class[1] != '}' && !pool_is_modern(pool);
}
/* Re-examines waiting work at the end of the turn. */
static inline void pool_wake(struct pool *pool)
{
	task_schedule(pool->server->loop, &pool->pump);
}

/* From now on keeps server->conf.pool_min processes of a server that everybody shares. */
void pool_prepare(struct router *router, struct server *server);
/*
 * Adds `member`, whose client begins with the initialize request `env`, to the pool for such ones.
 * on_ready is called at once if an upstream was ready before, else when the first one is. Returns
 * REASON_NONE, or why there will be none.
 */
enum reason pool_join(struct pool_member *member, const struct envelope *env) must_check;
/* The same for a session of an earlier gateway: it is a full member at once; no callback follows. */
enum reason pool_join_again(struct pool_member *member, const struct envelope *env,
			    const struct kept_state *state) must_check;
/*
 * The same for a member that exists for one request, whose client declares these capabilities (JSON
 * text). The pool is its principal's or everybody's, whatever the isolation of sessions.
 * *is_ready_r: it is a full member at once, and no callback follows. bridging.md §1.2
 */
enum reason pool_join_request(struct pool_member *member, struct slice capabilities,
			      bool *is_ready_r) must_check;
/* Adds a member to a shared pool that knows its servers. */
void pool_join_as(struct pool_member *member, struct pool *pool);
/* Removes a member that has ended, as have its calls. Stops processes that are no longer needed. */
void pool_leave(struct pool_member *member, enum reason reason);

/* Somebody has begun to wait for an upstream. Returns REASON_NONE, or why that is futile. */
enum reason pool_note_wanted(struct pool *pool);
/* Whether a process is being started, or a slot for one is about to be free. */
bool pool_is_coming(const struct pool *pool);
/* Queues work of the gateway's own, which may run at once. Returns as pool_note_wanted. */
enum reason pool_add_job(struct pool *pool, struct pool_job *job) must_check;
void pool_remove_job(struct pool_job *job);
/* Starts as many processes as there is work for. Returns why there can be no more. */
enum reason pool_grow(struct pool *pool);
/* Fails everyone who waits: no upstream will come. */
void pool_fail_waiting(struct pool *pool, enum reason reason);
/* As pool_choose (process_slots.h), but not an upstream that is too old: it gets no more calls. */
struct upstream *pool_find_room(struct pool *pool, size_t size, bool is_list);
/* Reserves the upstream for this call until the call ends. */
void pool_lease(struct upstream *upstream, struct call *call);

/* Stops all processes of shared pools and frees these pools; sessions must have ended. */
void pool_end_all(struct router *router, enum reason reason);

static inline bool pool_is_retired(const struct pool *pool)
{
	return pool->is_outdated || pool->server->is_retired;
}
/*
 * The rules of servers have changed: what each pool knows of its own is shown by those that hold
 * now. An endpoint's pool has it from others: it is outdated, if it is shared.
 */
void pool_use_rules(struct pool *pool);
/* The server has been retired: its pools check at the end of the turn what they still need. */
void pool_retire_all(struct router *router, const struct server *server);
