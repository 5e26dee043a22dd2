/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resources/subscribe and /unsubscribe of the members of a shared pool: the first subscriber's request is the one that a server
 * sees; who comes meanwhile waits for its outcome, who comes later is answered here. All servers of the pool are
 * told, because what changes may live in any of them. UTIL-SUBS-01, DEF-11.
 */
#ifndef MCPGATED_ROUTER_SUBSCRIBE_H
#define MCPGATED_ROUTER_SUBSCRIBE_H

#include <stdbool.h>

#include "jsonrpc/scan.h"

struct call;
struct client;
struct upstream;

/*
 * Takes a linked call of a shared pool, whose method is one of the two. Returns false if the call is to be sent to a
 * server; else it is answered, or waits.
 */
bool subscribe_take(struct call *call, const struct envelope *env);
/* The client ends: it is subscribed to nothing any more. */
void subscribe_forget(struct client *client);
/* An upstream that is ready learns what is subscribed to. */
void subscribe_replay(struct upstream *upstream);

#endif
