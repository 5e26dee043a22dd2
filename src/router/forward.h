/* SPDX-License-Identifier: Apache-2.0 */
/* From clients to servers: the ways in to the router for what a client that has begun sends. bridging.md §1.1, §2.1. */
#ifndef MCPGATED_ROUTER_FORWARD_H
#define MCPGATED_ROUTER_FORWARD_H

#include "router/admitted.h"
#include "router/call.h"
#include "router/client.h"

/*
 * Forwards the request that `admitted` has gone to, or answers it here where that is the rule (ping, a bad log level, what
 * a shared pool has). `call` was prepared for it with call_init; its text is borrowed. Its front may be told before the return.
 */
void forward_request(struct client *client, struct call *call, struct admitted *admitted);
/* The same for the linked call of a modern request (client_request.h). */
void forward_linked(struct call *call, const struct envelope *env);
/* Forwards, translates or consumes a notification. */
void forward_notification(struct client *client, struct admitted *admitted);
/* The client's answer to a request of the server; dropped if nobody waits for it. FRONT-POST-03, -04. */
void forward_answer(struct client *client, struct admitted *admitted);
/* The same for what a modern client has answered (bridged_call.c). */
void forward_linked_answer(struct client *client, const struct envelope *env);
/* Progress on what a server has asked this client, of our own making: its token is our id of the request. */
void forward_linked_progress(struct client *client, const struct envelope *env);
/*
 * The token that a call was sent with is denied: it ends, and at the server as well; with it the session that it
 * would begin. Also for one that was not begun or has ended. AUTH-SES-07
 */
void forward_deny(struct call *call);

#endif
