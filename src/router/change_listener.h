/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subscriptions/listen of a client: a request that stays open, and hears what its pool is told. The server says which of
 * the resources that it names are honoured: each is subscribed to as for a session. Its tasks are task_listener's.
 * MOD-SUB-*, bridging.md §2.3.6.
 */
#ifndef MCPGATED_ROUTER_CHANGE_LISTENER_H
#define MCPGATED_ROUTER_CHANGE_LISTENER_H

#include <stdint.h>

#include "jsonrpc/msg.h"
#include "jsonrpc/scan.h"
#include "router/call.h"

struct change_listener;

/*
 * The linked call of a modern request whose client is a member of a pool that knows its servers begins to listen. Returns
 * NULL if the call has been refused: a caller may have as many as it may have sessions (limits.sessions_per_principal).
 * Else it is the caller's until change_listener_end. MOD-SUB-05
 */
struct change_listener *change_listener_begin(struct call *call, const struct envelope *env);
/* A notification of the pool: passed on if the client asked for such, and that was acknowledged. */
void change_listener_tell(struct change_listener *listener, uint64_t key, struct msg *msg);
/* Its call has ended. Accepts NULL; sets the caller's pointer to NULL. */
void change_listener_end(struct change_listener **listener);
/* The gateway is about to stop: the call is answered. MOD-SUB-04 */
void change_listener_finish(struct change_listener *listener);

#endif
