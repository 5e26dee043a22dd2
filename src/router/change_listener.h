/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's subscriptions/listen: a request that stays open and receives its pool's change
 * notifications. The server decides which of the named resources are honored; each is subscribed to
 * as for a session. The tasks in it are handled by task_listener. MOD-SUB-*, bridging.md §2.3.6.
 */
#pragma once

#include <stdint.h>

#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "router/call.h"

struct change_listener;

/*
 * Begins to listen for a linked call of a modern client that is a member of a pool that knows its
 * servers. Returns NULL if the call was refused: a caller may have as many listeners as sessions
 * (limits.sessions_per_principal). Otherwise the caller owns the result until change_listener_end.
 * MOD-SUB-05
 */
struct change_listener *change_listener_begin(struct call *call, const struct envelope *env);
/*
 * A notification from the pool: forwarded if the client asked for its kind and that was
 * acknowledged.
 */
void change_listener_tell(struct change_listener *listener, uint64_t key, struct msg *msg);
/* Ends the listener when its call has ended. Accepts NULL; sets the caller's pointer to NULL. */
void change_listener_end(struct change_listener **listener);
/* The gateway is about to stop: answers the call. MOD-SUB-04 */
void change_listener_finish(struct change_listener *listener);
