/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of one request of the modern era: it brings with it what a session would know, takes no session's place, and
 * ends with its call. MOD-META-01, bridging.md §1.2, §2.3.
 */
#ifndef MCPGATED_ROUTER_CLIENT_REQUEST_H
#define MCPGATED_ROUTER_CLIENT_REQUEST_H

#include "router/client.h"
#include "router/pool.h"
#include "router/wait_queue.h"

struct admitted;
struct call;
struct change_listener;
struct peer;
struct router;

struct client_request {
	struct client client;
	struct list link; /* of the router's */
	struct pool_member member;
	struct holder *holder;
	struct wait_queue opening;        /* its call, until a server is known to its pool */
	struct change_listener *listener; /* if that is what it asks for; else NULL */
};

/*
 * Serves the request of this principal that `admitted` has gone to, sent from `peer`. `call` was prepared with call_init;
 * its front hears of the outcome, perhaps before the return, and must then end the client with client_request_close.
 */
void client_request_open(struct router *router, struct server *server, struct principal *principal,
			 const struct peer *peer, struct call *call, struct admitted *admitted);
/* Its call has ended. */
void client_request_close(struct client *client);
/* Ends the calls of all such clients. */
void client_request_end_all(struct router *router, enum reason reason);
/* The gateway is about to stop: those that only wait for changes are answered. MOD-SUB-04 */
void client_request_drain_all(struct router *router);
/* The same of those of one server, or, with NULL, of all callers who need no token. */
void client_request_drain_some(struct router *router, const struct server *server);

#endif
