/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child of the legacy era as the router sees it: the handshake, the ids in use, whether it still
 * lives. BACK-INIT-*, BACK-FRAME-05, -08.
 */
#ifndef MCPGATED_ROUTER_UPSTREAM_H
#define MCPGATED_ROUTER_UPSTREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "process/child.h"
#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "io/loop.h"
#include "jsonrpc/scan.h"

struct call;
struct pool;
struct revision;
struct route;
struct router;
struct warm_set;

enum upstream_state {
	UPSTREAM_DELAYED,   /* waits for the back-off to pass */
	UPSTREAM_STARTING,  /* the process is being started */
	UPSTREAM_WARM,      /* it runs, and nobody needs it yet */
	UPSTREAM_HANDSHAKE, /* initialize is on its way */
	UPSTREAM_READY,
	UPSTREAM_SETTLING, /* a call that had it for itself was given up: it must show that it is over */
	UPSTREAM_RETIRING, /* finishes its calls, and gets no more */
	UPSTREAM_CLOSED,   /* no longer used; goes when its process has gone */
};

struct upstream {
	struct child child;
	struct pool *pool;         /* NULL: closed, or nobody's yet */
	struct warm_set *warm_set; /* that it is among; else NULL */
	struct list link;          /* of the pool's, or of the warm ones */
	struct router *router;
	struct route *route;  /* the one it serves now: a session's own child, or leased; or NULL */
	struct call *lease;   /* the only call that it may work on */
	uint64_t settling_id; /* of the call that was given up */
	int level;            /* the log level that it was told last, or -1 */
	enum upstream_state state;
	struct map calls;    /* by our id: struct call */
	struct list fetches; /* lists that it was asked for (list_cache.c) */
	size_t fetch_count;
	uint64_t last_id;
	uint64_t handshake_id;
	uint64_t probe_id; /* of the ping that tells whether it still lives; 0: none */
	struct timer start;
	struct timer probe;
	struct timer idle; /* it has no calls */
	bool has_process;
	bool makes_room; /* it was stopped for another one */
	bool was_used;   /* it was sent a call: if it crashes, that may be its client's doing */
	uint64_t ready_at_ms;
	uint64_t given_at_ms; /* when its place was promised to others (process_slots.c), or 0 */
	const struct revision *revision; /* what the server agreed to; NULL: nothing yet */
};

/*
 * An upstream of `pool`, whose process is asked for after wait_ms; `route` if it serves only that. It frees
 * itself after upstream_close.
 */
struct upstream *upstream_new(struct pool *pool, struct route *route, uint64_t wait_ms);
/* The same for nobody yet; and its pool comes: it was taken from the warm ones. */
struct upstream *upstream_new_warm(struct router *router, struct server *server, uint64_t wait_ms);
void upstream_adopt(struct upstream *upstream, struct pool *pool, struct route *route);
/* The pool lets go of it: the process is stopped. */
void upstream_close(struct upstream *upstream, enum reason reason);
/* The next id for a request to it. BACK-FRAME-08. */
uint64_t upstream_next_id(struct upstream *upstream);
/* The handshake has succeeded. */
void upstream_set_ready(struct upstream *upstream);
/* Says what the server answered instead: once the client has that, nobody but the log can. */
void upstream_note_refusal(struct upstream *upstream, struct slice error);
/* It has not: the process is ended and the pool told. */
void upstream_refuse(struct upstream *upstream);
/* After a time-out: it must answer a ping soon, or it is replaced. Also with NULL. REL-25. */
void upstream_probe(struct upstream *upstream);
/* What its state is called. */
const char *upstream_state_name(const struct upstream *upstream);
/*
 * The operator wants a fresh process: one that serves is stopped as if it had failed, one that waits to be needed is
 * replaced. False: it is on its way, in either direction.
 */
bool upstream_restart(struct upstream *upstream);
/* Whether calls may be in flight on it. */
bool upstream_is_serving(const struct upstream *upstream);
/* It gets no more calls, and ends with the last one. */
void upstream_retire(struct upstream *upstream);
/* The number of its child, never used again. */
uint64_t upstream_child_number(const struct upstream *upstream);
/* A call enters under its upstream id, and leaves. */
void upstream_add_call(struct upstream *upstream, struct call *call);
void upstream_remove_call(struct upstream *upstream, struct call *call, bool is_answered);
/* The same for a list that it is asked for on nobody's behalf. */
void upstream_add_fetch(struct upstream *upstream);
void upstream_remove_fetch(struct upstream *upstream);
/* What it works on. */
size_t upstream_load(const struct upstream *upstream);
/* Our id as a child writes it; ids written as strings count too. */
int upstream_read_id(struct json id, uint64_t *id_r) must_check;
/* A response without a call: it may be what a settling upstream is waited for. */
void upstream_note_stray(struct upstream *upstream, struct json id);
/* Any of its calls; NULL: it has none. */
struct call *upstream_any_call(const struct upstream *upstream);
/* The call that our id stands for; ids written as strings count too. NULL: none. */
struct call *upstream_find_call(const struct upstream *upstream, struct json id);

#endif
