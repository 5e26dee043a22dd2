/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child of the legacy era as the router sees it: the handshake, the ids in use, whether it still
 * lives. BACK-INIT-*, BACK-FRAME-05, -08.
 */
#ifndef MCPGATED_ROUTER_LANE_H
#define MCPGATED_ROUTER_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/child.h"
#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "io/loop.h"
#include "jsonrpc/scan.h"

struct call;
struct partition;
struct revision;
struct route;
struct router;
struct spares;

enum lane_state {
	LANE_DELAYED,   /* waits for the back-off to pass */
	LANE_STARTING,  /* the process is being started */
	LANE_SPARE,     /* it runs, and nobody needs it yet */
	LANE_HANDSHAKE, /* initialize is on its way */
	LANE_READY,
	LANE_SETTLING, /* a call that had it for itself was given up: it must show that it is over */
	LANE_RETIRING, /* finishes its calls, and gets no more */
	LANE_CLOSED,   /* no longer used; goes when its process has gone */
};

struct lane {
	struct child child;
	struct partition *partition; /* NULL: closed, or nobody's yet */
	struct spares *spares;       /* that it is among; else NULL */
	struct list link;            /* of the partition's, or of the spares */
	struct router *router;
	struct route *route; /* the one it serves now: a session's own child, or leased; or NULL */
	struct call *lease;  /* the only call that it may work on */
	uint64_t settling_bid; /* of the call that was given up */
	int level;             /* the log level that it was told last, or -1 */
	enum lane_state state;
	struct map calls;    /* by our id: struct call */
	struct list fetches; /* lists that it was asked for (listings.c) */
	size_t fetch_count;
	uint64_t last_bid;
	uint64_t handshake_bid;
	uint64_t probe_bid; /* of the ping that tells whether it still lives; 0: none */
	struct timer start;
	struct timer probe;
	struct timer idle; /* it has no calls */
	bool has_process;
	bool makes_room; /* it was stopped for another one */
	bool was_used;   /* it was sent a call: if it crashes, that may be its client's doing */
	uint64_t ready_at_ms;
	uint64_t given_at_ms; /* when its place was promised to others (places.c), or 0 */
	const struct revision *revision; /* what the server agreed to; NULL: nothing yet */
};

/*
 * A lane of `partition`, whose process is asked for after wait_ms; `route` if it serves only that. It frees
 * itself after lane_close.
 */
struct lane *lane_new(struct partition *partition, struct route *route, uint64_t wait_ms);
/* The same for nobody yet; and its partition comes: it was taken from the spares. */
struct lane *lane_new_spare(struct router *router, struct backend *backend, uint64_t wait_ms);
void lane_adopt(struct lane *lane, struct partition *partition, struct route *route);
/* The partition lets go of it: the process is stopped. */
void lane_close(struct lane *lane, enum reason reason);
/* The next id for a request to it. BACK-FRAME-08. */
uint64_t lane_next_bid(struct lane *lane);
/* The handshake has succeeded. */
void lane_set_ready(struct lane *lane);
/* Says what the server answered instead: once the client has that, nobody but the log can. */
void lane_note_refusal(struct lane *lane, struct slice error);
/* It has not: the process is ended and the partition told. */
void lane_refuse(struct lane *lane);
/* After a time-out: it must answer a ping soon, or it is replaced. Also with NULL. REL-25. */
void lane_probe(struct lane *lane);
/* What its state is called. */
const char *lane_state_name(const struct lane *lane);
/*
 * The operator wants a fresh process: one that serves is stopped as if it had failed, one that waits to be needed is
 * replaced. False: it is on its way, in either direction.
 */
bool lane_restart(struct lane *lane);
/* Whether calls may be in flight on it. */
bool lane_is_serving(const struct lane *lane);
/* It gets no more calls, and ends with the last one. */
void lane_retire(struct lane *lane);
/* The number of its child, never used again. */
uint64_t lane_child_number(const struct lane *lane);
/* A call enters under its bid, and leaves. */
void lane_add_call(struct lane *lane, struct call *call);
void lane_remove_call(struct lane *lane, struct call *call, bool is_answered);
/* The same for a list that it is asked for on nobody's behalf. */
void lane_add_fetch(struct lane *lane);
void lane_remove_fetch(struct lane *lane);
/* What it works on. */
size_t lane_load(const struct lane *lane);
/* Our id as a child writes it; ids written as strings count too. */
int lane_read_bid(struct json id, uint64_t *bid_r) must_check;
/* A response without a call: it may be what a settling lane is waited for. */
void lane_note_stray(struct lane *lane, struct json id);
/* Any of its calls; NULL: it has none. */
struct call *lane_any_call(const struct lane *lane);
/* The call that our id stands for; ids written as strings count too. NULL: none. */
struct call *lane_find_call(const struct lane *lane, struct json id);

#endif
