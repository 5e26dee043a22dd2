/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The children that are interchangeable for a request, and the sessions that they serve. With isolation
 * `session` that is one session and its one child at a time; else a pool: many sessions, several children. Those
 * of a pool are of one server and, with isolation `principal`, of one principal with the same claims, and one
 * capability class.
 *
 * Who owns what: a route joins one session with its pool. A pool has the upstreams, what they are told in
 * the handshake, what they offered, the calls that wait for one of them, and the state of sessions that must be
 * merged. An upstream has one child and the ids in use there. bridging.md §1.2 to §1.5.
 */
#ifndef MCPGATED_ROUTER_POOL_H
#define MCPGATED_ROUTER_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "process/server.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/list.h"
#include "io/loop.h"
#include "jsonrpc/msg.h"
#include "jsonrpc/scan.h"
#include "mcp/revision.h"
#include "router/server_capabilities.h"
#include "router/list_cache.h"
#include "router/queue.h"
#include "router/subscriptions.h"

struct call;
struct principal;
struct upstream;
struct route;
struct router;

/* What pools have, and what makes them larger than the pool of one session. */
struct pool_state {
	struct pool *pool;
	struct list_cache lists;
	struct subscriptions subscriptions; /* what sessions have subscribed to (sharing.c) */
	unsigned int news;   /* the lists that have changed and nobody was told yet (sharing.c) */
	struct list updates; /* and resources that have */
	struct map updates_by_key;
	size_t update_bytes;
	size_t waiting_bytes; /* of requests that wait for the answer to another one (sharing.c) */
	struct timer telling;
};

struct pool {
	struct list link; /* of the router's pools */
	struct router *router;
	struct server *server;
	bool is_pool;   /* several sessions: nothing of a child's own accord is one's alone */
	bool is_leased; /* a pool whose children may ask: one call at a time each */
	char *class;    /* the capabilities that its children are told */
	struct principal *principal;     /* whose pool it is; NULL: everybody's */
	struct buf claims;               /* that its processes are told (claims.h) */
	const struct revision *revision; /* that is asked for in the handshake */
	struct msg *handshake;           /* the initialize request that its children are told */
	bool is_known;                   /* one of them was ready */
	const struct revision *agreed;   /* what it answered */
	struct msg *initialize_result;   /* pools: the response to initialize, once known */
	/* what the children offered; with pools less what cannot be shared. bridging.md §1.3 */
	struct server_capabilities server_capabilities;
	struct list members; /* routes */
	size_t member_count;
	struct list upstreams; /* all that are not closed */
	size_t upstream_count;
	size_t starting; /* of them, not ready yet */
	struct queue queue;
	bool is_lists_turn; /* when both calls and lists wait for an upstream */
	bool is_short;      /* it waits for a process of others to go */
	struct timer retry; /* what has to run could not be started */
	struct task
		pump; /* at the end of the turn waiting calls are given to upstreams with room */
	struct pool_state *pool_state; /* NULL unless it is a pool */
};

/* Keeps server->conf.pool_min children of a server that everybody shares, from now on. */
void pool_prepare(struct router *router, struct server *server);

/*
 * Makes `route`, whose session is new and whose `opening` is the call of its initialize request, a member of the
 * pool that serves such sessions. The session begins at once if a child was ready before; else with the
 * first that is. Returns REASON_NONE, or why there will be none.
 */
enum reason pool_enter(struct route *route, const struct envelope *env) must_check;
/* The session has ended; its calls have been, too. Children nobody needs any more are stopped. */
void pool_leave(struct route *route, enum reason reason);

/* Sends a linked call to a child, now or when one has room; or fails it. */
void pool_dispatch(struct pool *pool, struct call *call, const struct envelope *env);
/* A call that waited for something else takes its turn for an upstream, whatever the queue has. It has its body. */
void pool_put_back(struct call *call);
/* An upstream for a request of our own, now; NULL: none has room. */
struct upstream *partition_find_upstream(struct pool *pool);
/* One of our own waits for an upstream. Returns REASON_NONE, or why there will be none. */
enum reason partition_await_upstream(struct pool *pool) must_check;
/* Whether calls or lists wait for an upstream. */
bool pool_is_waited_for(const struct pool *pool);
/* Whether the child of this number serves it still. */
bool pool_has_child(const struct pool *pool, uint64_t child);
/* A call waited too long. */
void pool_on_wait_over(struct call *call);
/* The child that only this session has; NULL: none just now, or the session shares them. */
struct upstream *partition_own_upstream(const struct pool *pool);

/* Whose its children are; `only` is its route unless it is a pool. NULL: everybody's. */
const struct principal *pool_fairness_key(const struct pool *pool, const struct route *only);

/* What upstreams report. */
void pool_on_ready(struct upstream *upstream, const struct envelope *response);
void pool_on_refused(struct upstream *upstream, const struct envelope *response);
/* The upstream is closed already; the calls that it was sent are still there. */
void pool_on_lost(struct pool *pool, struct upstream *upstream, enum reason reason);
void pool_on_idle(struct upstream *upstream);
/* How many children have to be on their way, and how many are kept whatever there is to do. */
size_t partition_upstreams_needed(const struct pool *pool);
size_t partition_least_upstreams(const struct pool *pool);
/* Whether nobody would miss it. */
bool pool_can_spare(const struct upstream *upstream);
/* Starts as many as there is work for. Returns why there can be no more. */
enum reason pool_grow(struct pool *pool);
/* An upstream has room again, or has gone. */
void pool_wake(struct pool *pool);

/* Stops all children and forgets all pools; sessions have ended. */
void pool_end_all(struct router *router, enum reason reason);

#endif
