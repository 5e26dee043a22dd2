/* SPDX-License-Identifier: Apache-2.0 */
/* From the client to the child. bridging.md §1.1, §2.1. */
#ifndef MCPGATED_ROUTER_FORWARD_H
#define MCPGATED_ROUTER_FORWARD_H

#include "jsonrpc/scan.h"
#include "router/call.h"
#include "router/lane.h"
#include "router/route.h"

/*
 * Forwards a request, or answers it here where that is the rule (ping, a bad log level). `call` was
 * prepared with call_init; `env` and its text are borrowed. Its front may be told before the return.
 */
void forward_request(struct route *route, struct call *call, const struct envelope *env);
/* Forwards, translates or consumes a notification. */
void forward_notification(struct route *route, const struct envelope *env);
/* The client's answer to a request of the server; dropped if nobody waits for it. FRONT-POST-03, -04. */
void forward_answer(struct route *route, const struct envelope *env);

/* Sends a call that waited for its lane. */
void forward_waiting(struct lane *lane, struct call *call);
/* Tells the child that nobody wants the call's answer any more. CXL-05. */
void forward_cancel(struct call *call, struct slice why);
/* The route's initialize request, on this lane. BACK-INIT-01, -02. */
void forward_handshake(struct lane *lane);
/* What the child must know after the handshake; after a restart also what it was told before. */
void forward_initialized(struct lane *lane, bool is_restart);
/* A ping of our own. */
void forward_ping(struct lane *lane, uint64_t bid);

/* Answers to the child's own requests, by its id. */
void forward_result(struct lane *lane, struct slice id, struct slice result);
void forward_error(struct lane *lane, struct slice id, int code, struct slice message);
/* Nobody will answer it: elicitations are cancelled, others fail with `why`. bridging.md §2.1 (6). */
void forward_refusal(struct lane *lane, const struct ask *ask, struct slice why);

#endif
