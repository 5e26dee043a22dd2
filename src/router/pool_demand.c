/* SPDX-License-Identifier: Apache-2.0 */
#include "router/pool_demand.h"

#include "base/check.h"
#include "router/client.h"
#include "router/pool.h"
#include "router/router.h"
#include "router/running_tasks.h"

struct pool_member *pool_only_member(const struct pool *pool)
{
	const struct list *list = list_is_empty(&pool->joining) ? &pool->members : &pool->joining;

	CHECK(!pool_is_shared(pool) && pool->member_count == 1);
	return container_of(list->next, struct pool_member, link);
}

struct upstream *pool_own_upstream(const struct pool *pool)
{
	if (pool_is_shared(pool) || list_is_empty(&pool->upstreams))
		return NULL;
	return container_of(pool->upstreams.next, struct upstream, link);
}

bool pool_is_waited_for(const struct pool *pool)
{
	return !fair_queue_is_empty(&pool->queue) || !list_is_empty(&pool->jobs);
}

size_t pool_least_upstreams(const struct pool *pool)
{
	bool is_everybodys = pool->principal == NULL && !pool->server->is_retired;
	size_t least = is_everybodys ? pool->server->conf.pool_min : 0;

	/*
	 * A session's own pool: its client waits for notifications, and may never ask again.
	 * bridging.md §4
	 */
	if (!pool_is_shared(pool))
		return !list_is_empty(&pool->members) &&
		       pool_only_member(pool)->client->subscriptions.count > 0 &&
		       !pool->router->is_draining;
	/* One process is kept for clients that wait for its notifications. bridging.md §1.5 */
	return least == 0 && pool->sharing->subscriptions.count > 0 ? 1 : least;
}

bool pool_can_spare(const struct upstream *upstream)
{
	const struct pool *pool = upstream->pool;

	return upstream->state == UPSTREAM_READY && upstream_load(upstream) == 0 &&
	       pool->upstream_count > pool_least_upstreams(pool) && !live_tasks_has_some(upstream);
}

bool pool_is_over(const struct upstream *upstream)
{
	return upstream->state == UPSTREAM_RETIRING &&
	       (upstream->donated_at_ms > 0 || !live_tasks_has_some(upstream));
}

size_t pool_upstreams_needed(const struct pool *pool)
{
	size_t waiting = pool->queue.count > 0 ? pool->queue.count : !list_is_empty(&pool->jobs);
	size_t least = pool_least_upstreams(pool);
	size_t ready = pool->upstream_count - pool->starting;
	size_t each = pool_is_shared(pool) ? pool->server->conf.calls_per_process : SIZE_MAX;
	size_t needed;

	CHECK(pool->starting <= pool->upstream_count);
	if (trial_waiter_is_waiting(&pool->verdict))
		return 0; /* it is not known yet in which era to start them */
	if (pool_is_leased(pool))
		each = 1;
	needed = waiting == 0 ? 0 : (waiting - 1) / each + 1;
	if (needed == 0 && (!list_is_empty(&pool->joining) || pool->is_awoken))
		needed = 1;
	return needed + ready < least ? least - ready : needed;
}

bool pool_is_starved(const struct pool *pool)
{
	if (!pool_is_shared(pool) || pool_upstreams_needed(pool) == 0)
		return false;
	LIST_FOREACH(node, &pool->upstreams) {
		if (container_of(node, struct upstream, link)->state != UPSTREAM_RETIRING)
			return false;
	}
	return true;
}

/*
 * A list may be requested beside a call that has the upstream to itself: servers ask nothing while
 * they work on a list.
 */
bool pool_may_load(const struct upstream *upstream, bool is_list)
{
	const struct pool *pool = upstream->pool;

	if (!pool_is_shared(pool))
		return true;
	if (!is_list && upstream->lease != NULL)
		return false;
	return upstream_load(upstream) < pool->server->conf.calls_per_process;
}

struct upstream *pool_choose(const struct pool *pool, size_t size, bool is_list)
{
	size_t least = SIZE_MAX;
	struct upstream *chosen = NULL;

	LIST_FOREACH(node, &pool->upstreams) {
		struct upstream *upstream = container_of(node, struct upstream, link);

		if (upstream->state != UPSTREAM_READY || upstream_load(upstream) >= least ||
		    !pool_may_load(upstream, is_list))
			continue;
		if ((pool_is_shared(pool) || is_list) && !upstream_has_room(upstream, size))
			continue;
		chosen = upstream;
		least = upstream_load(upstream);
		if (least == 0)
			break;
	}
	return chosen;
}

struct upstream *pool_find_upstream(const struct pool *pool, uint64_t child_number)
{
	LIST_FOREACH(node, &pool->upstreams) {
		struct upstream *upstream = container_of(node, struct upstream, link);

		if (upstream_is_serving(upstream) &&
		    upstream_child_number(upstream) == child_number)
			return upstream;
	}
	return NULL;
}

const struct principal *pool_principal_of(const struct upstream *upstream)
{
	if (upstream->client != NULL)
		return upstream->client->principal;
	return upstream->pool != NULL ? upstream->pool->principal : NULL;
}
