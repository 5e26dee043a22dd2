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
#include "base/map.h"
#include "base/slice.h"
#include "io/loop.h"
#include "jsonrpc/scan.h"

struct call;
struct partition;
struct revision;
struct route;

enum lane_state {
	LANE_DELAYED,   /* waits for the back-off to pass */
	LANE_STARTING,  /* the process is being started */
	LANE_HANDSHAKE, /* initialize is on its way */
	LANE_READY,
	LANE_RETIRING, /* finishes its calls, and gets no more */
	LANE_CLOSED,   /* no longer used; goes when its process has gone */
};

struct lane {
	struct child child;
	struct partition *partition; /* NULL: closed */
	struct list link;            /* of the partition's */
	struct route *
		route; /* the only one that it serves: a session's own child; NULL: there are many */
	enum lane_state state;
	struct map calls; /* by our id: struct call */
	uint64_t last_bid;
	uint64_t handshake_bid;
	uint64_t probe_bid; /* of the ping that tells whether it still lives; 0: none */
	struct timer start;
	struct timer probe;
	struct timer idle; /* it has no calls */
	bool has_process;
	const struct revision *revision; /* what the server agreed to; NULL: nothing yet */
};

/*
 * A lane of `partition`, whose process is asked for after wait_ms; `route` if it serves only that. It frees
 * itself after lane_close.
 */
struct lane *lane_new(struct partition *partition, struct route *route, uint64_t wait_ms);
/* The partition lets go of it: the process is stopped. */
void lane_close(struct lane *lane, enum reason reason);
/* The next id for a request to it. BACK-FRAME-08. */
uint64_t lane_next_bid(struct lane *lane);
/* The handshake has succeeded. */
void lane_set_ready(struct lane *lane);
/* It has not: the process is ended and the partition told. */
void lane_refuse(struct lane *lane);
/* After a time-out: it must answer a ping soon, or it is replaced. Also with NULL. REL-25. */
void lane_probe(struct lane *lane);
/* Whether calls may be in flight on it. */
bool lane_is_serving(const struct lane *lane);
/* It gets no more calls, and ends with the last one. */
void lane_retire(struct lane *lane);
/* The number of its child, never used again. */
uint64_t lane_child_number(const struct lane *lane);
/* A call enters under its bid, and leaves. */
void lane_add_call(struct lane *lane, struct call *call);
void lane_remove_call(struct lane *lane, struct call *call);
/* Any of its calls; NULL: it has none. */
struct call *lane_any_call(const struct lane *lane);
/* The call that our id stands for; ids written as strings count too. NULL: none. */
struct call *lane_find_call(const struct lane *lane, struct json id);

#endif
