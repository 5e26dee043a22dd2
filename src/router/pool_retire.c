/* SPDX-License-Identifier: Apache-2.0 */
#include "router/pool_retire.h"

#include "router/pool_demand.h"
#include "router/router.h"

void pool_close_idle(struct pool *pool)
{
	if (!pool->server->is_retired || !pool_is_shared(pool) || pool->member_count > 0)
		return;
	LIST_FOREACH_SAFE(node, &pool->upstreams) {
		struct upstream *upstream = container_of(node, struct upstream, link);

		if (pool_can_spare(upstream))
			upstream_close(upstream, REASON_RETIRED);
	}
}

void pool_retire_all(struct router *router, const struct server *server)
{
	CHECK(server->is_retired);
	LIST_FOREACH(node, &router->slots.pools) {
		struct pool *pool = container_of(node, struct pool, link);

		if (pool->server == server)
			pool_wake(pool);
	}
}
