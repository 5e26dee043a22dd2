/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a call to the server that works on it: the choice of the upstream, the wait for one, the request as the server
 * gets it. bridging.md §1.1, §1.4.
 */
#ifndef MCPGATED_ROUTER_DISPATCH_H
#define MCPGATED_ROUTER_DISPATCH_H

#include <stdbool.h>

#include "jsonrpc/scan.h"

struct call;
struct upstream;
struct upstream_request;

/* Sends a linked call to a server, now or when one has room; or fails it. */
void dispatch_call(struct call *call, const struct envelope *env);
/* A call that waited for something else takes its turn, whatever the queue has. It has its body. */
void dispatch_again(struct call *call);
/* It is the turn of a call that waited for an upstream; of struct pool_ops. */
void dispatch_on_turn(struct upstream *upstream, struct call *call);
/* Whether a request in flight is that of a call. */
bool dispatch_is_of_call(const struct upstream_request *request);
/*
 * Tells the server the log level of its client. There is no way to take a level back: who never asked for one gets what
 * the server sends of its own accord until it was told something else, whatever that is; then everything.
 */
void dispatch_tell_level(struct upstream *upstream, int level);

#endif
