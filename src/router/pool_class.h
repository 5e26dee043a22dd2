/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a server's shared pools serves a client: by its principal, its claims and its capability class. bridging.md §1.2 */
#ifndef MCPGATED_ROUTER_POOL_CLASS_H
#define MCPGATED_ROUTER_POOL_CLASS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

struct client;
struct pool;
struct principal;
struct router;
struct server;

/*
 * Its pool, or NULL: there is none; and how many pools of the server the principal has, without those that are there for
 * their memory alone (pool_memory.h).
 */
struct pool *pool_class_find(const struct router *router, const struct server *server,
			     const struct principal *principal, struct slice claims,
			     struct slice class, size_t *count_r);
/* Appends the capability class of a client, without what would be one pool too many for its principal. */
void pool_class_append(struct buf *out, const struct client *client,
		       const struct principal *principal, struct slice claims,
		       struct slice capabilities);

#endif
