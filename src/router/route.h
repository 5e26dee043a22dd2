/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What joins one session with its server: the pool whose children serve it, the calls in flight, the
 * requests of the server that wait for the client. It outlives children: when one fails, the next request gets
 * another one with the same handshake. bridging.md §1, §2.1, §4.
 */
#ifndef MCPGATED_ROUTER_ROUTE_H
#define MCPGATED_ROUTER_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "process/server.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "io/peer.h"
#include "jsonrpc/msg.h"
#include "jsonrpc/scan.h"
#include "mcp/revision.h"
#include "router/admitted.h"
#include "router/call.h"
#include "router/pool.h"
#include "router/text_set.h"
#include "session/session.h"

/* What all routes share. */
struct router {
	struct loop *loop;
	struct session_set sessions;
	struct list pools;
	struct list warm_sets;
	struct list_cache_lru lists;
	bool is_short;  /* one of its pools waits for a process of others to go */
	size_t leaving; /* children that were stopped to make room, and have not gone yet */
	struct scan_limits limits;
	struct buf scratch; /* the line being put together now */
	size_t calls;       /* in flight, of all routes */
	bool is_draining;
};

/* A request of the server that its client has to answer. */
struct server_request {
	struct list link;
	struct route *route;
	struct upstream *upstream; /* whose child asks */
	uint64_t downstream_id;    /* our id at the client */
	const struct method *method;
	struct call *call;  /* during which it came, or NULL */
	struct timer hold;  /* its client cannot be asked, or does not answer */
	struct msg *held;   /* the request, while the client is not initialized */
	bool is_standalone; /* it went to the session's own stream */
	bool is_offered;    /* and a reader was there to take it */
	bool is_missed;     /* and at the last look there was none */
	uint64_t until_ms;  /* since it was offered: so long it is waited for an answer */
	struct slice id;    /* the server's id and progress token, behind this struct */
	struct slice token;
	char text[];
};

struct route {
	struct session session;
	struct peer peer; /* who began it */
	struct router *router;
	struct server *server;
	const struct revision *revision; /* what the client and we agreed on */
	struct pool *pool;
	struct list member; /* of its members */
	struct list calls;
	size_t call_count;
	struct list server_requests;
	struct map server_requests_by_id;
	size_t held_bytes; /* of asks that are held */
	uint64_t last_downstream_id;
	struct call *opening; /* the client's initialize request, until answered */
	struct text_set
		subscriptions;        /* the URIs that the client subscribed to, as it wrote them */
	struct text_set elicitations; /* the ids of URL elicitations that it was given */
	int level;                    /* the log level that the client asked for, or -1 */
	bool is_initialized;          /* the client has said so, or has sent a request */
	bool tells_roots;             /* the client declared roots.listChanged */
	uint64_t restarts_since_ms;
	unsigned int restarts; /* since then */
};

/*
 * Serves the initialize request of this principal that `admitted` has gone to, sent from `peer`: a new session. `call`
 * was prepared with call_init; its front hears of the outcome, and finds the session, if it began, in call->route.
 */
void route_open(struct router *router, struct server *server, struct principal *principal,
		const struct peer *peer, struct call *call, struct admitted *admitted);
/* The route of a session. */
struct route *route_of(struct session *session);
/*
 * What the upstream's server may use and the client does not know: its revision lacks it, or the pool does not offer it.
 * 0 for NULL, and before the handshake. bridging.md §1.3, §3
 */
unsigned int route_lost(const struct route *route, const struct upstream *upstream);

/* What the pool tells: a child's InitializeResult, its refusal, the loss of the session's own child. */
void route_send_initialize_result(struct route *route, const struct revision *agreed,
				  const struct envelope *response);
void route_refuse(struct route *route, const struct envelope *response);
void route_on_lost(struct route *route, enum reason reason);

/* The call is over: nothing keeps a pointer to it. */
void route_forget_call(struct route *route, struct call *call);
/* What the client is asked during this call must be answered soon. bridging.md §1.6. */
void route_hold_server_requests(struct route *route, const struct call *call);

/* Asks: opened by deliver, closed by forward or here. NULL if there are too many. */
struct server_request *route_open_server_request(struct route *route, struct upstream *upstream,
						 const struct envelope *env,
						 const struct method *method);
/* Keeps the request until the client is ready. False: there is too much already. */
bool route_keep_server_request(struct server_request *server_request, struct msg *msg);
/* A reader is there to take it: from now on its answer is waited for. */
void route_offer_server_request(struct server_request *server_request);
void route_close_server_request(struct server_request *server_request);
struct server_request *route_find_server_request(struct route *route,
						 const struct upstream *upstream, struct slice id);

/*
 * The inside of a JSON string with as few escapes as there can be: the same text for all ways to write a URI. Empty if
 * `uri` is no string. It is borrowed from `uri` or stands in `room`, which is empty before and ended by the caller.
 */
struct slice route_spell_uri(struct json uri, struct buf *room);
/* Whether the client subscribed to `uri`, spelled like that, or to a path above it. UTIL-SUBS-01. */
bool route_is_subscribed(const struct route *route, struct slice uri);

/* The client is ready to be asked: what was held goes out. FRONT-INIT-07. */
void route_initialized(struct route *route);

#endif
