/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What connects clients with servers: the state that all sessions, calls and pools share. The units
 * of this directory call each other in one direction, downward from client_request.h and
 * client_session.h; calls upward go through tables of operations. router.c fills in those that
 * pools use. Below: what the operator can see.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "obs/reason.h"
#include "policy/call_limits.h"
#include "policy/schema_cache.h"
#include "process/child.h"
#include "process/server.h"
#include "router/kept_sessions.h"
#include "router/lists.h"
#include "router/parked_call.h"
#include "router/pool_memory.h"
#include "router/process_slots.h"
#include "router/seal.h"
#include "session/session.h"
#include "upstream/prestart.h"
#include "upstream/upstream.h"

struct audit;
struct exporter;
struct pool_ops;
struct rule_places;

struct router {
	struct loop *loop;
	struct session_set sessions;
	struct scan_limits limits;
	struct upstream_shared upstreams;
	struct prestart prestart;
	const struct pool_ops *pool_ops;
	/* Makes an upstream of an endpoint over several servers; NULL: there are none. */
	struct upstream *(*aggregate_new)(struct upstream_shared *shared, struct server *server);
	/* A call was judged under another configuration, and is about to be sent. */
	void (*on_stale)(struct call *call, const struct envelope *env);
	/* A call has waited for a list, and may go on. */
	void (*on_list)(struct call *call, const struct envelope *env, enum list_outcome outcome);
	struct process_slots slots;
	struct lists_lru lists;
	struct pool_memories pool_memories;
	struct kept_sessions kept_sessions;
	size_t calls;         /* in flight, of all clients */
	struct list requests; /* clients of single requests (client_request.h) */
	struct parked_calls parked_calls;
	struct seal_keys seal_keys;
	struct rate_set rates;                 /* how often each caller has called each server */
	struct audit *audit;                   /* for calls and refusals; borrowed. NULL: none */
	struct exporter *exporter;             /* of spans; borrowed. NULL: none */
	const struct rule_places *rule_places; /* in the configuration; borrowed. NULL: not known */
	struct schema_cache schemas;           /* of tools whose calls are checked */
	uint64_t anonymous_ends;               /* how often router_end_anonymous was called */
	uint64_t configuration;                /* how many have been used before */
	bool is_draining;
};

void router_init(struct router *router, struct loop *loop, const struct scan_limits *limits,
		 const struct session_conf *sessions);
/* SEAL_KEY_BYTES shared by the gateway's processes, so that clients' states outlive one process. */
void router_use_seal_key(struct router *router, const unsigned char *key);
/* Ends remaining sessions. No process may refer to the router any more. */
void router_fini(struct router *router);
/*
 * Begins to keep pool.min processes of a server that everybody shares, or pool.warm of another; and
 * the trial start, if it has no process.
 */
void router_start_server(struct router *router, struct server *server);
/* Servers may have other rules and pins since a reload: what is kept of their output is made anew. */
void router_use_rules(struct router *router);
/*
 * The operator has decided about a definition of this server: clients hear that the lists are others, and new ones of it
 * and its endpoints what it may say of itself now.
 */
void router_note_decision(struct router *router, const struct server *server);
/*
 * A reload has replaced or removed the server: its sessions continue, but it gets no new ones. Its
 * processes are stopped when no longer needed; change streams without a session end now.
 */
void router_retire_server(struct router *router, struct server *server);
/* Ends the sessions of the server; NULL: those of callers who need no token. */
void router_end_sessions_of(struct router *router, const struct server *server, enum reason reason);
/* A token is required from now on: ends everything opened by callers without one. */
void router_end_anonymous(struct router *router, enum reason reason);
/* Stops admitting calls and sessions; processes that nobody needs yet are no longer started. */
void router_drain(struct router *router);
/* Ends what waits for nothing that could end by itself; sessions and calls go on. */
void router_end_waits(struct router *router, enum reason reason);
/* All calls fail, and what servers have asked is answered; sessions go on. */
void router_end_calls(struct router *router, enum reason reason);
/* Whether the server of a call in flight waits for what the client of a session answers. */
bool router_is_asking(const struct router *router);
/* Its processes become another gateway's: ends the subscriptions that it has at them. No call is in flight. */
void router_hand_over(struct router *router);
/* Ends all sessions; then, all processes. */
void router_end_sessions(struct router *router, enum reason reason);
void router_end_processes(struct router *router, enum reason reason);

/* ---- report ---- */

/* What the operator can see of sessions and processes, and the restart of a server's processes. */

struct client_request;

/* A session; names and slices are borrowed. */
struct session_report {
	const struct server *server;
	struct slice revision;
	struct slice program;    /* the name its client gave itself; empty: not known */
	const struct peer *peer; /* its address when it began */
	size_t calls;            /* in flight, including waiting ones */
	size_t waiting;          /* of them, for a process */
	size_t server_requests;  /* server requests that the client has not answered */
	bool is_asleep;          /* it has a process of its own, but none at the moment */
	int pid;                 /* of its own process; 0: none at the moment */
};
void report_session(struct session *session, struct session_report *report_r);

/* A request without a session. */
struct request_report {
	const struct server *server;
	size_t calls;   /* the request, and a list needed to check it */
	size_t waiting; /* of them, for a process */
};
void report_request(const struct client_request *request, struct request_report *report_r);

/* A process. */
struct child_report {
	const char *state;
	unsigned int state_number; /* of report_child_state */
	bool is_up;                /* it has answered initialize, or is the next one to be asked */
	size_t calls;              /* in flight, and list requests sent to it */
	const struct session *session;     /* the only one it serves now; NULL: none, or many */
	bool is_leased;                    /* reserved for that session, for one call */
	const struct principal *principal; /* the one it serves; NULL: everybody, or nobody */
};
void report_child(struct child *child, struct child_report *report_r);
/* The names of the process states, by number; numbers are below REPORT_CHILD_STATES. */
#define REPORT_CHILD_STATES (UPSTREAM_CLOSED + 2)
const char *report_child_state(unsigned int number);

/* Replaces all processes of a server: calls in flight fail, sessions continue. Returns how many. */
size_t report_restart(struct server *server);
