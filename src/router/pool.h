/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The upstreams that are interchangeable for a request, and the clients that they serve. With isolation `session`
 * that is one session and its one process at a time; else the pool is shared: many sessions, several processes. Those
 * are of one server and, with isolation `principal`, of one principal with the same claims, and one capability class.
 *
 * Who owns what: a pool has the upstreams, what they are told in the handshake, what they offered, the calls that wait for one of
 * them. What must be merged for the members of a shared pool is in pool->sharing, and done above: by list_cache,
 * subscribe, notification_fanout. bridging.md §1.2 to §1.5.
 */
#ifndef MCPGATED_ROUTER_POOL_H
#define MCPGATED_ROUTER_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/list.h"
#include "io/loop.h"
#include "jsonrpc/msg.h"
#include "jsonrpc/scan.h"
#include "mcp/revision.h"
#include "process/server.h"
#include "router/fair_queue.h"
#include "router/list_cache.h"
#include "router/pool_member.h"
#include "router/pool_memory.h"
#include "router/server_capabilities.h"
#include "router/subscriptions.h"
#include "router/url_pending.h"
#include "upstream/era_probe.h"
#include "upstream/upstream.h"

struct client;
struct holder;
struct pool;
struct pool_job;
struct principal;
struct router;

/* What is above pools, and hears of them. */
struct pool_ops {
	/* A shared one is made: pool->sharing is zeroed. It ends: nobody refers to it. */
	void (*on_new)(struct pool *pool);
	void (*on_end)(struct pool *pool);
	/* An upstream is ready. `is_first` of the pool; `is_other`: it may offer something else than those before. */
	void (*on_ready)(struct upstream *upstream, bool is_first, bool is_other);
	/* It is about to be closed. */
	void (*on_closed)(struct upstream *upstream);
	/* It is the turn of a call that waited in the pool's queue; it is out of it. */
	void (*on_turn)(struct upstream *upstream, struct call *call);
	/* As of upstream_owner_ops. */
	void (*on_request)(struct upstream *upstream, const struct envelope *env);
	void (*on_notification)(struct upstream *upstream, const struct envelope *env);
};

/* Work of our own that waits for an upstream. */
struct pool_job_ops {
	/* It is its turn; it is off the list. */
	void (*on_turn)(struct pool_job *job, struct upstream *upstream);
	void (*on_failed)(struct pool_job *job, enum reason reason);
};

struct pool_job {
	const struct pool_job_ops *ops;
	struct list link;
};

/* What the members of a shared pool have in common. */
struct pool_sharing {
	struct pool *pool;
	struct list_cache lists;
	struct subscriptions subscriptions;
	size_t waiting_bytes; /* of requests that wait for the answer to another one (subscribe.c) */
	unsigned int
		changed; /* the lists that have changed and nobody was told yet (notification_fanout.c) */
	struct list updates; /* and resources that have */
	struct map updates_by_key;
	size_t update_bytes;
	struct timer telling;
	struct url_pending urls; /* what clients were to open, and is not complete (url_replay.c) */
};

struct pool {
	struct list
		link; /* of the process slots'; of one session: of a list of reclaim, or of none */
	struct router *router;
	struct server *server;
	struct pool_sharing *sharing; /* NULL: it is not shared */
	struct principal *principal;  /* whose pool it is; NULL: everybody's, or one session's */
	char *class; /* of a shared one: the capabilities that its servers are told */
	struct upstream_setup setup;
	const struct revision
		*agreed;           /* what the last that was ready agreed to; NULL: none was yet */
	struct pool_memory memory; /* of a shared one: what holds when it has no process */
	uint64_t
		list_changes; /* processes that were ready, and lists of theirs that have changed */
	uint64_t looked_at[PERMISSION_KINDS]; /* 1 and list_changes then; 0: never (pin_check.c) */
	struct slice server_info;             /* in that: JSON text of serverInfo; or empty */
	struct msg *initialize_result;        /* shared: the response to initialize, once known */
	/* what the servers offered; shared: less what cannot be shared. bridging.md §1.3 */
	struct server_capabilities capabilities;
	struct list joining; /* members that wait for the first upstream */
	struct list members;
	size_t member_count;   /* of both */
	struct list upstreams; /* all that are not closed */
	size_t upstream_count;
	size_t starting;           /* of them, not ready yet */
	struct fair_queue queue;   /* calls that wait for an upstream */
	struct list running_tasks; /* of all members (running_tasks.c) */
	size_t running_task_count;
	struct list jobs;
	uint64_t tool_changes;      /* of one session: that its server has told of (own_tools.c) */
	uint64_t unlisted_until_ms; /* the list of tools was not to be had (tool_check.c) */
	bool is_jobs_turn;          /* when both calls and jobs wait for an upstream */
	bool is_short;              /* it waits for a process of others to go */
	bool is_passed;             /* it was looked at in this turn, and there is none for it */
	struct holder *
		holder; /* what its caller has of the server's processes; NULL: they are everybody's */
	bool is_entered; /* callers wait for it to begin, and it counts among what its holder waits for */
	struct era_waiter
		verdict; /* until it has turned out of which era the server is, nothing is started */
	struct era_waiter aside; /* the same, while it serves as a legacy one */
	/* of one session: */
	uint64_t stopped_at_ms;   /* when its last process was stopped, or lost */
	struct upstream *awaited; /* whose place may be for it; NULL: none in particular */
	bool is_waiting;          /* for a place for its process */
	bool is_promised;         /* another one's finishes its calls for it */
	uint64_t waiting_since_ms;
	struct timer retry; /* what has to run could not be started */
	struct task
		pump; /* at the end of the turn waiting calls are given to upstreams with room */
};

static inline bool pool_is_shared(const struct pool *pool)
{
	return pool->sharing != NULL;
}
/* Its servers are of the modern era, as far as is known. */
static inline bool pool_is_modern(const struct pool *pool)
{
	return pool->agreed != NULL ? pool->agreed->is_modern : era_of(pool->server) == ERA_MODERN;
}
/*
 * Its servers may ask their clients, and do not say during which call: they work on one at a time each.
 */
static inline bool pool_is_leased(const struct pool *pool)
{
	return pool->class != NULL && pool->class[1] != '}' && !pool_is_modern(pool);
}
/* What waits is looked at again at the end of the turn. */
static inline void pool_wake(struct pool *pool)
{
	task_schedule(pool->server->loop, &pool->pump);
}

/* Keeps server->conf.pool_min processes of a server that everybody shares, from now on. */
void pool_prepare(struct router *router, struct server *server);
/*
 * Makes `member`, whose client begins with the initialize request `env`, one of the pool that serves such clients. on_ready is
 * called at once if an upstream was ready before; else with the first that is. Returns REASON_NONE, or why there will be none.
 */
enum reason pool_join(struct pool_member *member, const struct envelope *env) must_check;
/*
 * The same for a member that is there for one request, whose client declares these capabilities (JSON text): the pool is
 * that of its principal, or of everybody, whatever the isolation says of sessions. With *is_ready_r it is one of the
 * members at once, and none of its operations is called for that. bridging.md §1.2
 */
enum reason pool_join_request(struct pool_member *member, struct slice capabilities,
			      bool *is_ready_r) must_check;
/* One more member of a shared pool that knows its servers. */
void pool_join_as(struct pool_member *member, struct pool *pool);
/* It has ended; its calls have been, too. Processes nobody needs any more are stopped. */
void pool_leave(struct pool_member *member, enum reason reason);

/* Somebody has begun to wait for an upstream. Returns why that would be in vain, or REASON_NONE. */
enum reason pool_note_wanted(struct pool *pool);
/* A process is being started, or the place for one is about to be free. */
bool pool_is_coming(const struct pool *pool);
/* Work of our own takes its turn for an upstream, perhaps now. Returns as pool_note_wanted. */
enum reason pool_add_job(struct pool *pool, struct pool_job *job) must_check;
void pool_remove_job(struct pool_job *job);
/* Starts as many processes as there is work for. Returns why there can be no more. */
enum reason pool_grow(struct pool *pool);
/* Nobody will come to those who wait. */
void pool_fail_waiting(struct pool *pool, enum reason reason);
/* As pool_choose (pool_demand.h), of those that are not too old: these get no more calls from now on. */
struct upstream *pool_find_room(struct pool *pool, size_t size, bool is_list);
/* From now on the upstream works on this call alone, until that ends. */
void pool_lease(struct upstream *upstream, struct call *call);

/* Stops all processes of shared pools and forgets these; sessions have ended. */
void pool_end_all(struct router *router, enum reason reason);

#endif
