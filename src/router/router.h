/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What joins clients with servers: the state that all sessions, calls and pools share. The units of this directory
 * call each other in one direction, down from client_request.h and client_session.h; what goes up, goes through tables of
 * operations, of which router.c ties those together that pools use.
 */
#ifndef MCPGATED_ROUTER_ROUTER_H
#define MCPGATED_ROUTER_ROUTER_H

#include <stdbool.h>
#include <stddef.h>

#include "jsonrpc/canonical.h"
#include "jsonrpc/scan.h"
#include "obs/reason.h"
#include "policy/rate.h"
#include "policy/schema_cache.h"
#include "router/list_cache.h"
#include "router/parked_call.h"
#include "router/pool_memory.h"
#include "router/process_slots.h"
#include "router/reclaim.h"
#include "router/seal.h"
#include "session/session.h"
#include "upstream/era_probe.h"
#include "upstream/first_look.h"
#include "upstream/upstream.h"
#include "upstream/warm.h"

struct audit;
struct exporter;
struct pool_ops;
struct rule_places;

struct router {
	struct loop *loop;
	struct session_set sessions;
	struct scan_limits limits;
	struct upstream_shared upstreams;
	struct warm_sets warm_sets;
	struct era_probes era_probes;
	struct first_looks first_looks;
	const struct pool_ops *pool_ops;
	struct process_slots slots;
	struct reclaim reclaim;
	struct list_cache_lru lists;
	struct pool_memories pool_memories;
	size_t calls;         /* in flight, of all clients */
	struct list requests; /* clients of one request (client_request.h) */
	struct parked_calls parked_calls;
	struct seal_keys seal_keys;
	struct rate_set rates; /* how often each caller has called each server */
	struct audit *audit;   /* where calls and refusals are recorded; borrowed. NULL: nowhere */
	struct exporter *exporter;             /* of spans; borrowed. NULL: there are none */
	const struct rule_places *rule_places; /* of the configuration; borrowed. NULL: not known */
	struct schema_cache schemas;           /* of tools whose calls are checked */
	struct canonical_memo canonical; /* of the arguments of the call that is being forwarded */
	bool is_draining;
};

void router_init(struct router *router, struct loop *loop, const struct scan_limits *limits,
		 const struct session_conf *sessions);
/* SEAL_KEY_BYTES that the gateway's processes have in common: what servers gave modern clients outlives one of them. */
void router_use_seal_key(struct router *router, const unsigned char *key);
/* Ends sessions that are left. No process may refer to it any more. */
void router_fini(struct router *router);
/* Keeps pool.min processes of a server that everybody shares, or pool.warm of another, from now on; and starts it on trial. */
void router_start_server(struct router *router, struct server *server);
/*
 * A reload has another one in its place, or none: its sessions go on, and it gets no others. Its processes are stopped when
 * nobody needs them any more; streams that wait for changes, and belong to no session, end now.
 */
void router_retire_server(struct router *router, struct server *server);
/* Ends the sessions of the server; NULL: those of callers who need no token. */
void router_end_sessions_of(struct router *router, const struct server *server, enum reason reason);
/* From now on a token is needed: ends what callers without one have open. */
void router_end_anonymous(struct router *router, enum reason reason);
/* No new calls and sessions are begun; processes that nobody needs yet are not started any more. */
void router_drain(struct router *router);
/* Ends all sessions, then all processes. */
void router_end_sessions(struct router *router, enum reason reason);
void router_end_processes(struct router *router, enum reason reason);

#endif
