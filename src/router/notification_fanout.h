/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server notifications for all members of a pool that they concern: list_changed and
 * resources/updated. bridging.md §1.7.
 */
#ifndef MCPGATED_ROUTER_NOTIFICATION_FANOUT_H
#define MCPGATED_ROUTER_NOTIFICATION_FANOUT_H

#include "jsonrpc/scan.h"
#include "mcp/method.h"

struct pool;
struct pool_member;
struct pool_sharing;
struct upstream;

/* The part of a shared pool that this unit uses. */
void notification_fanout_init(struct pool_sharing *sharing);
void notification_fanout_fini(struct pool_sharing *sharing);
/* `env` is such a notification. */
void notification_fanout_take(struct upstream *upstream, const struct envelope *env,
			      const struct method *method);
/*
 * A pool's lists may have changed: notifies its members, of the lists whose changes the server
 * reports.
 */
void notification_fanout_tell_changes(struct pool *pool);
/* The same for one member, which was away. */
void notification_fanout_tell_member(struct pool_member *member);
/*
 * A session's subscribed resources may have changed: it had no process that would have reported it.
 */
void notification_fanout_tell_updates(struct pool *pool);

#endif
