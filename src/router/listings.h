/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four lists of a pool's server: tools, prompts, resources, resource templates. The gateway fetches a list as a
 * whole, once for each principal, and answers from that all who ask, until the server says that it has changed. So
 * nobody needs a process for himself to see a list, and a change that a thousand sessions hear of costs the server one
 * fetch. What is too long to be kept is forwarded like any other request. bridging.md §1.8; AUTH-SES-10.
 */
#ifndef MCPGATED_ROUTER_LISTINGS_H
#define MCPGATED_ROUTER_LISTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "jsonrpc/scan.h"
#include "obs/reason.h"

struct call;
struct lane;
struct partition;
struct route;

#define LISTINGS_KINDS 4

/* What a partition has of them. */
struct listings {
	struct list all;
	struct list wanted;               /* those that wait for a lane, the first comes first */
	struct map current;               /* by principal and kind: what who asks now gets */
	uint64_t changes[LISTINGS_KINDS]; /* that the server has told of */
};

/* What all partitions have together: it is bounded together, too. */
struct listings_store {
	struct list kept; /* the first has not been asked for for longest */
	size_t bytes;
};

void listings_init(struct listings *lists);
/* Its sessions have ended. */
void listings_fini(struct listings *lists);
void listings_store_init(struct listings_store *store);

/*
 * Answers a pool's call that is new and asks for a list, or lets it wait for the answer. Returns false if it is to
 * be forwarded: a list that cannot be kept, the child's own cursor, or a request that says more than what is asked for.
 */
bool listings_answer(struct route *route, struct call *call, const struct envelope *env);
/* The server's list is another one now; `offer`: of which kind. */
void listings_note_change(struct partition *partition, unsigned int offer);

/* Whether one waits for a lane. */
bool listings_wait(const struct partition *partition);
/* Gives a lane to the first that waits for one. Returns false if none waits, or there is none. */
bool listings_serve_one(struct partition *partition);
/* There will be none. */
void listings_fail_waiting(struct partition *partition, enum reason reason);

/* A response that belongs to no call: returns whether it was asked for here. */
bool listings_take(struct lane *lane, const struct envelope *env);
/* The same for a message that is no response, but bears an id of ours. */
bool listings_refuse(struct lane *lane, struct json id);
/* The lane is closed already. */
void listings_on_lost(struct lane *lane, enum reason reason);

#endif
