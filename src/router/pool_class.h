/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of a server's shared pools serves a client: by principal, claims and capability class.
 * bridging.md §1.2
 */
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
 * Finds the pool; NULL: there is none. *count_r: the number of pools the principal has at the
 * server, without those that exist only for their memory (pool_memory.h).
 */
struct pool *pool_class_find(const struct router *router, const struct server *server,
			     const struct principal *principal, struct slice claims,
			     struct slice class, size_t *count_r);
/*
 * Appends a client's capability class, reduced if it would need one pool too many for its
 * principal.
 */
void pool_class_append(struct buf *out, const struct client *client,
		       const struct principal *principal, struct slice claims,
		       struct slice capabilities);

#endif
