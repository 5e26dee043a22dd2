/* SPDX-License-Identifier: Apache-2.0 */
#include "router/pool_class.h"

#include "router/capability_class.h"
#include "router/client.h"
#include "router/pool.h"
#include "router/router.h"

/*
 * A principal with this many pools of a server gets no further ones for capabilities that clients
 * may name as they like. bridging.md §1.2
 */
#define CLASSES_MAX 8

struct pool *pool_class_find(const struct router *router, const struct server *server,
			     const struct principal *principal, struct slice claims,
			     struct slice class, size_t *count_r)
{
	*count_r = 0;
	LIST_FOREACH(node, &router->slots.pools) {
		struct pool *pool = container_of(node, struct pool, link);

		if (pool->server != server || pool->principal != principal)
			continue;
		*count_r += pool->member_count > 0 || pool->upstream_count > 0;
		if (slice_is_equal(buf_slice(&pool->setup.claims), claims) &&
		    slice_is_equal(slice_str(pool->class), class))
			return pool;
	}
	return NULL;
}

void pool_class_append(struct buf *out, const struct client *client,
		       const struct principal *principal, struct slice claims,
		       struct slice capabilities)
{
	size_t count;

	capability_class_append(out, capabilities, true);
	if (principal == NULL ||
	    pool_class_find(client->router, client->server, principal, claims, buf_slice(out),
			    &count) != NULL ||
	    count < CLASSES_MAX)
		return;
	out->len = 0;
	capability_class_append(out, capabilities, false);
}
