/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The children that are interchangeable for a request, and the sessions that they serve. With isolation
 * `session` that is one session and its one child at a time; else a pool: many sessions, several children. Those
 * of a pool are of one server and, with isolation `principal`, of one principal with the same claims, and one
 * capability class.
 *
 * Who owns what: a route joins one session with its partition. A partition has the lanes, what they are told in
 * the handshake, what they offered, the calls that wait for one of them, and the state of sessions that must be
 * merged. A lane has one child and the ids in use there. bridging.md §1.2 to §1.5.
 */
#ifndef MCPGATED_ROUTER_PARTITION_H
#define MCPGATED_ROUTER_PARTITION_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/backend.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/list.h"
#include "io/loop.h"
#include "jsonrpc/msg.h"
#include "jsonrpc/scan.h"
#include "mcp/revision.h"
#include "router/abilities.h"
#include "router/listings.h"
#include "router/queue.h"
#include "router/topics.h"

struct call;
struct principal;
struct lane;
struct route;
struct router;

/* What pools have, and what makes them larger than the partition of one session. */
struct commons {
	struct partition *partition;
	struct listings lists;
	struct topics topics; /* what sessions have subscribed to (sharing.c) */
	unsigned int news;    /* the lists that have changed and nobody was told yet (sharing.c) */
	struct list updates;  /* and resources that have */
	struct map updates_by_key;
	size_t update_bytes;
	struct timer telling;
};

struct partition {
	struct list link; /* of the router's pools */
	struct router *router;
	struct backend *backend;
	bool is_pool;   /* several sessions: nothing of a child's own accord is one's alone */
	bool is_leased; /* a pool whose children may ask: one call at a time each */
	char *class;    /* the capabilities that its children are told */
	struct principal *principal;     /* whose pool it is; NULL: everybody's */
	struct buf claims;               /* that its processes are told (claims.h) */
	const struct revision *revision; /* that is asked for in the handshake */
	struct msg *handshake;           /* the initialize request that its children are told */
	bool is_known;                   /* one of them was ready */
	const struct revision *agreed;   /* what it answered */
	struct msg *welcome;             /* pools: the response to initialize, once known */
	/* what the children offered; with pools less what cannot be shared. bridging.md §1.3 */
	struct abilities abilities;
	struct list members; /* routes */
	size_t member_count;
	struct list lanes; /* all that are not closed */
	size_t lane_count;
	size_t starting; /* of them, not ready yet */
	struct queue queue;
	bool is_lists_turn; /* when both calls and lists wait for a lane */
	bool is_short;      /* it waits for a process of others to go */
	struct timer retry; /* what has to run could not be started */
	struct task pump;   /* at the end of the turn waiting calls are given to lanes with room */
	struct commons *commons; /* NULL unless it is a pool */
};

/* Keeps backend->conf.pool_min children of a server that everybody shares, from now on. */
void partition_prepare(struct router *router, struct backend *backend);

/*
 * Makes `route`, whose session is new and whose `opening` is the call of its initialize request, a member of the
 * partition that serves such sessions. The session begins at once if a child was ready before; else with the
 * first that is. Returns REASON_NONE, or why there will be none.
 */
enum reason partition_enter(struct route *route, const struct envelope *env) must_check;
/* The session has ended; its calls have been, too. Children nobody needs any more are stopped. */
void partition_leave(struct route *route, enum reason reason);

/* Sends a linked call to a child, now or when one has room; or fails it. */
void partition_dispatch(struct partition *partition, struct call *call, const struct envelope *env);
/* A call that waited for something else takes its turn for a lane, whatever the queue has. It has its body. */
void partition_put_back(struct call *call);
/* A lane for a request of our own, now; NULL: none has room. */
struct lane *partition_find_lane(struct partition *partition);
/* One of our own waits for a lane. Returns REASON_NONE, or why there will be none. */
enum reason partition_await_lane(struct partition *partition) must_check;
/* Whether calls or lists wait for a lane. */
bool partition_is_waited_for(const struct partition *partition);
/* Whether the child of this number serves it still. */
bool partition_has_child(const struct partition *partition, uint64_t child);
/* A call waited too long. */
void partition_on_wait_over(struct call *call);
/* The child that only this session has; NULL: none just now, or the session shares them. */
struct lane *partition_own_lane(const struct partition *partition);

/* Whose its children are; `only` is its route unless it is a pool. NULL: everybody's. */
const struct principal *partition_party(const struct partition *partition,
					const struct route *only);

/* What lanes report. */
void partition_on_ready(struct lane *lane, const struct envelope *response);
void partition_on_refused(struct lane *lane, const struct envelope *response);
/* The lane is closed already; the calls that it was sent are still there. */
void partition_on_lost(struct partition *partition, struct lane *lane, enum reason reason);
void partition_on_idle(struct lane *lane);
/* How many children have to be on their way, and how many are kept whatever there is to do. */
size_t partition_lanes_needed(const struct partition *partition);
size_t partition_least_lanes(const struct partition *partition);
/* Whether nobody would miss it. */
bool partition_is_spare(const struct lane *lane);
/* Starts as many as there is work for. Returns why there can be no more. */
enum reason partition_grow(struct partition *partition);
/* A lane has room again, or has gone. */
void partition_wake(struct partition *partition);

/* Stops all children and forgets all partitions; sessions have ended. */
void partition_end_all(struct router *router, enum reason reason);

#endif
