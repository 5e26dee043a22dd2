/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subscriptions/listen before servers of the legacy era: a request that stays open, and hears what its pool is told. Which
 * of the resources that it names are honoured is for the servers to say: each is subscribed to like a session's.
 * MOD-SUB-*, bridging.md §2.3.6.
 */
#ifndef MCPGATED_ROUTER_CHANGE_LISTENER_H
#define MCPGATED_ROUTER_CHANGE_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "io/loop.h"
#include "jsonrpc/msg.h"
#include "jsonrpc/scan.h"
#include "router/call.h"
#include "router/text_set.h"

struct change_listener {
	struct call *call;
	struct holder *holder;   /* how many its caller has */
	struct text_set wanted;  /* resources that are still to be subscribed to */
	struct call subscribing; /* to the one before those */
	bool is_subscribing;     /* its answer is awaited */
	struct task step;
	struct timer deadline;
	unsigned int lists; /* enum offer: whose changes are told */
	bool is_acknowledged;
};

/*
 * A caller may have as many as it may have sessions (limits.sessions_per_principal). MOD-SUB-05
 * The linked call of a modern request whose client is a member of a pool that knows its servers begins to listen. It
 * may be told before the return.
 */
void change_listener_begin(struct change_listener *listener, struct call *call,
			   const struct envelope *env);
/* A notification of the pool: passed on if the client asked for such, and that was acknowledged. */
void change_listener_tell(struct change_listener *listener, uint64_t key, struct msg *msg);
/* Its call has ended. Also for one that has not begun, if it is all zeros. */
void change_listener_end(struct change_listener *listener);
/* The gateway is about to stop: the call is answered. MOD-SUB-04 */
void change_listener_finish(struct change_listener *listener);

#endif
