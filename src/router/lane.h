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

struct revision;
struct route;

enum lane_state {
	LANE_DELAYED,   /* waits for the back-off to pass */
	LANE_STARTING,  /* the process is being started */
	LANE_HANDSHAKE, /* initialize is on its way */
	LANE_READY,
	LANE_CLOSED, /* no longer used; goes when its process has gone */
};

/* What the server offered. */
struct server_abilities {
	bool has_logging;
	bool tells_tools;     /* tools.listChanged */
	bool tells_prompts;   /* prompts.listChanged */
	bool tells_resources; /* resources.listChanged */
};

struct lane {
	struct child child;
	struct route *route; /* NULL: closed */
	enum lane_state state;
	struct map calls;     /* by our id: struct call */
	size_t waiting_bytes; /* of requests that came before the handshake was through */
	uint64_t last_bid;
	uint64_t handshake_bid;
	uint64_t probe_bid; /* of the ping that tells whether it still lives; 0: none */
	struct timer start;
	struct timer probe;
	bool has_process;
	const struct revision *revision; /* what the server agreed to; NULL: nothing yet */
	struct server_abilities abilities;
};

/* A lane for `route`, whose process is asked for after wait_ms. It frees itself after lane_close. */
struct lane *lane_new(struct route *route, uint64_t wait_ms);
/* The route lets go of it: the process is stopped. */
void lane_close(struct lane *lane, enum reason reason);
/* The next id for a request to it. BACK-FRAME-08. */
uint64_t lane_next_bid(struct lane *lane);
/* The handshake has succeeded. */
void lane_set_ready(struct lane *lane);
/* It has not: the process is ended and the route told. */
void lane_refuse(struct lane *lane);
/* After a time-out: it must answer a ping soon, or it is replaced. Also with NULL. REL-25. */
void lane_probe(struct lane *lane);
/* The call that our id stands for; ids written as strings count too. NULL: none. */
struct call *lane_find_call(const struct lane *lane, struct json id);

#endif
