/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications of a server that are for all members of a pool whom they concern: list_changed and
 * resources/updated. bridging.md §1.7.
 */
#ifndef MCPGATED_ROUTER_NOTIFICATION_FANOUT_H
#define MCPGATED_ROUTER_NOTIFICATION_FANOUT_H

#include "jsonrpc/scan.h"
#include "mcp/method.h"

struct pool;
struct pool_sharing;
struct upstream;

/* What a shared pool has of it. */
void notification_fanout_init(struct pool_sharing *sharing);
void notification_fanout_fini(struct pool_sharing *sharing);
/* `env` is such a notification. */
void notification_fanout_take(struct upstream *upstream, const struct envelope *env,
			      const struct method *method);
/* The lists of a pool may be others than before: its members are told, of those whose changes the server tells. */
void notification_fanout_tell_changes(struct pool *pool);
/* What the session of a pool has subscribed to may have changed: it had no process that would have told. */
void notification_fanout_tell_updates(struct pool *pool);

#endif
