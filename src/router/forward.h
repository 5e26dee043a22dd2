/* SPDX-License-Identifier: Apache-2.0 */
/* From the client to the child. bridging.md §1.1, §2.1. */
#ifndef MCPGATED_ROUTER_FORWARD_H
#define MCPGATED_ROUTER_FORWARD_H

#include "jsonrpc/scan.h"
#include "router/admitted.h"
#include "router/call.h"
#include "router/upstream.h"
#include "router/route.h"

/*
 * Forwards the request that `admitted` has gone to, or answers it here where that is the rule (ping, a bad log level).
 * `call` was prepared for it with call_init; its text is borrowed. Its front may be told before the return.
 */
void forward_request(struct route *route, struct call *call, struct admitted *admitted);
/* Forwards, translates or consumes a notification. */
void forward_notification(struct route *route, struct admitted *admitted);
/* The client's answer to a request of the server; dropped if nobody waits for it. FRONT-POST-03, -04. */
void forward_answer(struct route *route, struct admitted *admitted);

/* The rest of forward_request, for a call that the router has linked meanwhile. */
void forward_linked(struct route *route, struct call *call, const struct envelope *env);

/* Sends a linked call to the child, now. */
void forward_call(struct upstream *upstream, struct call *call, const struct envelope *env);
/* The same for one that waited, and has its body. */
void forward_waiting(struct upstream *upstream, struct call *call);
/* Answers a call ourselves; it may be linked already. */
void forward_own_result(struct route *route, struct call *call, struct slice result);
void forward_own_error(struct route *route, struct call *call, int code, struct slice message);
/* The error of a subscription that the session has no room for. */
void forward_no_room(struct route *route, struct call *call);
/* Tells the child that nobody wants the call's answer any more. CXL-05. */
void forward_cancel(struct call *call, struct slice why);
/* The same for a request of our own. */
void forward_give_up(struct upstream *upstream, uint64_t upstream_id, struct slice why);
/*
 * The token that a call was sent with is denied: it ends, and at the child as well; with it the session that it
 * would begin. Also for one that was not begun or has ended. AUTH-SES-07
 */
void forward_deny(struct call *call);
/* The pool's initialize request, on this upstream. BACK-INIT-01, -02. */
void forward_handshake(struct upstream *upstream);
void forward_initialized(struct upstream *upstream);
/* What the session's process before was told, and this one does not know. bridging.md §4 */
void forward_replay(struct upstream *upstream);
/* A request of our own; its answer is of no interest. `uri` as it was written, without quotes. */
void forward_subscription(struct upstream *upstream, struct slice method, struct slice uri);
/* A request of our own for a page of a list; `cursor` is a JSON string, or empty. Returns its id. */
uint64_t forward_list(struct upstream *upstream, struct slice method, struct slice cursor);
/* A ping of our own. */
void forward_ping(struct upstream *upstream, uint64_t upstream_id);

/* Answers to the child's own requests, by its id. */
void forward_result(struct upstream *upstream, struct slice id, struct slice result);
void forward_error(struct upstream *upstream, struct slice id, int code, struct slice message);
/* Nobody will answer it: elicitations are cancelled, others fail with `why`. bridging.md §2.1 (6). */
void forward_refusal(const struct server_request *server_request, struct slice why);

#endif
