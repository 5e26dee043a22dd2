/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of a single modern request: it brings what a session would otherwise know, does not
 * count as a session, and ends with its call. MOD-META-01, bridging.md §1.2, §2.3.
 */
#pragma once

#include "router/call.h"
#include "router/client.h"
#include "router/pool.h"

struct change_listener;
struct peer;

struct client_request {
	struct client client;
	struct list link; /* of router->requests */
	struct pool_member member;
	struct holder *holder;
	struct wait_queue opening;        /* its call, until the pool knows a server */
	struct change_listener *listener; /* for subscriptions/listen; else NULL */
};

/*
 * Serves the current request of `admitted` for this principal, sent from `peer`. `call` was
 * prepared with call_init. Its front learns the outcome, possibly before this returns, and must
 * then end the client with client_request_close.
 */
void client_request_open(struct router *router, struct server *server, struct principal *principal,
			 const struct peer *peer, struct call *call, struct admitted *admitted);
/* Ends the client after its call has ended. */
void client_request_close(struct client *client);
/* Ends the calls of all such clients. */
void client_request_end_all(struct router *router, enum reason reason);
/* The gateway is about to stop: answers the requests that only listen for changes. MOD-SUB-04 */
void client_request_drain_all(struct router *router);
/* The same for the clients of one server or, with NULL, for all callers that need no token. */
void client_request_drain_some(struct router *router, const struct server *server);
