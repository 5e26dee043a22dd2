/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is different when several sessions use one child: requests that must not reach it from each of them,
 * and news of it that all get. bridging.md §1.3, §1.5, §1.7.
 */
#ifndef MCPGATED_ROUTER_SHARING_H
#define MCPGATED_ROUTER_SHARING_H

#include <stdbool.h>

#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "router/pool.h"

struct subscription;

void sharing_init(struct pool *pool);
void sharing_fini(struct pool *pool);

/* The response that the pool's sessions get to initialize: `result` of a child without what cannot be shared;
   `is_for_all`: by different principals. */
struct msg *sharing_make_initialize_result(struct slice result, bool is_for_all);

/* Requests that the gateway answers for a pool. Returns whether it did; linked or not, the call is over then, or waits. */
bool sharing_answer(struct route *route, struct call *call, const struct envelope *env);
/*
 * The answer to a subscription has come: it counts for all who wait for it. Before the call itself is answered;
 * returns false if it has been, because its session cannot remember any more.
 */
bool sharing_settle(struct call *call, const struct envelope *env);
/* The call is over without: the next one asks. */
void sharing_abandon(struct call *call);
/* The session has ended. */
void sharing_forget(struct route *route);
/* A new child learns what is subscribed. */
void sharing_replay(struct upstream *upstream);

/* A notification on lists or resources, for all whom it concerns. */
void sharing_notify(struct upstream *upstream, const struct envelope *env,
		    const struct method *method);
/* Its lists may be others than before. */
void sharing_tell_changes(struct pool *pool);

#endif
