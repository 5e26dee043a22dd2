/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resources/subscribe and resources/unsubscribe of the members of a shared pool. The server sees
 * the first subscriber's request; others wait for its outcome, and later ones are answered here.
 * All servers of the pool are subscribed, because a change may occur in any of them. UTIL-SUBS-01,
 * DEF-11.
 */
#ifndef MCPGATED_ROUTER_SUBSCRIBE_H
#define MCPGATED_ROUTER_SUBSCRIBE_H

#include <stdbool.h>

#include "jsonrpc/scan.h"

struct call;
struct client;
struct upstream;

/*
 * Takes a linked call of a shared pool with one of the two methods. Returns false if it must be
 * sent to a server; else it has been answered, or waits.
 */
bool subscribe_take(struct call *call, const struct envelope *env);
/* The client ends: drops all its subscriptions. */
void subscribe_forget(struct client *client);
/* The client, of a shared pool, has these subscriptions from an earlier process of ours. */
void subscribe_again(struct client *client);
/* Subscribes an upstream that is ready to what the pool has subscribed to. */
void subscribe_replay(struct upstream *upstream);

#endif
