/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle processes go first, the one that has been idle for longest before others. Where all are busy, and busy they
 * are as long as somebody has calls enough, a pool that has none would wait for ever: then who has most gives one
 * away, or of those who have one the one who has had it for longest. Calls in flight are never cut short.
 * One is enough for one who waits, and who gave away what it had does not take another's for it: calls may be long,
 * and soon all processes would only finish theirs.
 *
 * Left alone are the processes that pool.min keeps, and those that sessions with subscriptions need.
 */
#include "router/process_slots.h"

#include "base/clock.h"
#include "router/upstream.h"
#include "router/pool.h"
#include "router/route.h"

/* Whether the place of a process of `other` would be one for `pool`. */
static bool is_of_use(const struct pool *other, const struct pool *pool)
{
	if (other == pool || server_has_room(pool->server))
		return false;
	return other->server == pool->server ||
	       (!server_is_full(pool->server) && server_is_fleet_full(pool->server));
}

static struct upstream *oldest_spare(const struct pool *pool, struct upstream *oldest)
{
	LIST_FOREACH(node, &pool->upstreams) {
		struct upstream *upstream = container_of(node, struct upstream, link);

		if (pool_can_spare(upstream) &&
		    (oldest == NULL || upstream->idle.due_ms < oldest->idle.due_ms))
			oldest = upstream;
	}
	return oldest;
}

/* Not more than are waited for. */
void process_slots_seek(struct pool *pool)
{
	struct router *router = pool->router;
	struct upstream *oldest = NULL;

	router->is_short = true;
	pool->is_short = true;
	if (router->leaving >= partition_upstreams_needed(pool))
		return;
	LIST_FOREACH(node, &router->pools) {
		const struct pool *other = container_of(node, struct pool, link);

		if (is_of_use(other, pool))
			oldest = oldest_spare(other, oldest);
	}
	if (oldest == NULL)
		return;
	process_slots_note_leaving(oldest);
	upstream_close(oldest, REASON_IDLE_TIMEOUT);
}

void process_slots_note_leaving(struct upstream *upstream)
{
	upstream->makes_room = true;
	upstream->router->leaving++;
}

bool process_slots_is_poor(const struct pool *pool)
{
	if (!pool->is_pool || partition_upstreams_needed(pool) == 0)
		return false;
	LIST_FOREACH(node, &pool->upstreams) {
		if (container_of(node, struct upstream, link)->state != UPSTREAM_RETIRING)
			return false;
	}
	return true;
}

/* What a pool could give away: the upstream that has least to do, and of equals has served for longest. */
struct gift {
	struct upstream *upstream;
	size_t among;   /* as many that serve */
	size_t staying; /* as many that are not given away yet */
};

static struct gift find_gift(const struct pool *pool)
{
	struct gift gift = { .upstream = NULL };

	LIST_FOREACH(node, &pool->upstreams) {
		struct upstream *upstream = container_of(node, struct upstream, link);
		struct upstream *best = gift.upstream;

		gift.staying += upstream->state != UPSTREAM_RETIRING;
		if (upstream->state != UPSTREAM_READY)
			continue;
		gift.among++;
		if (best == NULL || upstream_load(upstream) < upstream_load(best) ||
		    (upstream_load(upstream) == upstream_load(best) &&
		     upstream->ready_at_ms < best->ready_at_ms))
			gift.upstream = upstream;
	}
	return gift;
}

/* Who has only one keeps it for as long as others have to wait at most. */
static bool is_due(const struct gift *gift)
{
	uint64_t least_ms;

	if (gift->upstream == NULL || gift->among > 1)
		return gift->upstream != NULL;
	least_ms = gift->upstream->child.server->conf.queue_timeout_ms;
	return clock_now_ms() - gift->upstream->ready_at_ms >= least_ms;
}

static bool is_better(const struct gift *gift, const struct gift *best)
{
	if (best->upstream == NULL || gift->among != best->among)
		return best->upstream == NULL || gift->among > best->among;
	return gift->upstream->ready_at_ms < best->upstream->ready_at_ms;
}

/* What is on its way out, or was given away not long ago and whose place would be one for `pool`. */
static size_t count_promised(const struct pool *pool)
{
	uint64_t wait_ms = pool->server->conf.queue_timeout_ms;
	size_t count = pool->router->leaving;

	LIST_FOREACH(node, &pool->router->pools) {
		const struct pool *other = container_of(node, struct pool, link);

		if (!is_of_use(other, pool))
			continue;
		LIST_FOREACH(at, &other->upstreams) {
			const struct upstream *upstream = container_of(at, struct upstream, link);

			count += upstream->given_at_ms > 0 &&
				 clock_now_ms() - upstream->given_at_ms < wait_ms;
		}
	}
	return count;
}

/* The pools without a process that could take such a place, with itself. */
static size_t count_wanting(const struct pool *pool)
{
	size_t count = 0;

	LIST_FOREACH(node, &pool->router->pools) {
		const struct pool *other = container_of(node, struct pool, link);

		count += other->upstream_count == 0 && process_slots_is_poor(other) &&
			 (other->server == pool->server ||
			  (!server_is_full(other->server) && !server_is_full(pool->server)));
	}
	return count;
}

void process_slots_claim(struct pool *pool)
{
	struct gift best = { .upstream = NULL };

	if (pool->upstream_count > 0 || count_promised(pool) >= count_wanting(pool))
		return;
	LIST_FOREACH(node, &pool->router->pools) {
		const struct pool *other = container_of(node, struct pool, link);
		struct gift gift;

		if (!is_of_use(other, pool))
			continue;
		gift = find_gift(other);
		if (gift.staying > partition_least_upstreams(other) && is_due(&gift) &&
		    is_better(&gift, &best))
			best = gift;
	}
	if (best.upstream == NULL)
		return;
	best.upstream->given_at_ms = clock_now_ms();
	upstream_retire(best.upstream);
}

void process_slots_put_last(struct pool *pool)
{
	list_remove(&pool->link);
	list_append(&pool->router->pools, &pool->link);
}

void process_slots_note_idle(struct router *router)
{
	if (!router->is_short)
		return;
	router->is_short = false;
	LIST_FOREACH(node, &router->pools) {
		struct pool *pool = container_of(node, struct pool, link);

		if (pool->is_short)
			pool_wake(pool);
		pool->is_short = false;
	}
}

/* At once: the others may be about to look, too. */
void process_slots_note_gone(struct router *router)
{
	if (!router->is_short)
		return;
	LIST_FOREACH_SAFE(node, &router->pools) {
		struct pool *pool = container_of(node, struct pool, link);

		if (!pool->is_short || !process_slots_is_poor(pool) ||
		    pool_grow(pool) != REASON_NONE)
			continue;
		process_slots_put_last(pool);
	}
	process_slots_note_idle(router);
}
