/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle processes go first, beginning with the one that has been idle for longest. If all are busy,
 * a pool without a process would have to wait for as long as the others have calls. So the pool
 * with most processes gives one up; of pools with one each, one whose process works on no task,
 * then the one that has had it for longest. Calls in flight are never cut short. Each pool that
 * waits gets only one process, and a pool that gave up its own does not take another's for it:
 * calls may be long, and soon all processes would only be finishing theirs.
 *
 * A caller who has more processes of a server than its share gives one up at once, even to a pool
 * that has some, as long as the caller of that pool has less than its share. Pools that everybody
 * uses belong to nobody: in them, calls take turns (fair_queue).
 *
 * The processes that pool.min keeps, and those that sessions with subscriptions need, are left
 * alone.
 */
#include "router/process_slots.h"

#include "base/clock.h"
#include "router/live_tasks.h"
#include "router/pool.h"
#include "router/pool_demand.h"
#include "router/router.h"
#include "session/holder.h"
#include "upstream/upstream.h"

static struct process_slots *slots_of(const struct pool *pool)
{
	return &pool->router->slots;
}

/* Whether `pool` could start a process in place of one of `other`. */
static bool is_of_use(const struct pool *other, const struct pool *pool)
{
	if (other == pool || server_has_room(pool->server))
		return false;
	return other->server == pool->server ||
	       (!server_is_full(pool->server) && server_is_fleet_full(pool->server));
}

void process_slots_init(struct process_slots *slots, enum reason (*grow)(struct pool *pool))
{
	*slots = (struct process_slots){ .grow = grow };
	list_init(&slots->pools);
}

/* ---- shares ---- */

/* How many processes the caller of the pool has; 0: they are everybody's. */
static size_t held_by_caller(const struct pool *pool)
{
	return pool->holder != NULL ? pool->holder->count : 0;
}

static bool is_over_share(const struct pool *pool)
{
	return pool->upstream_count > 0 && held_by_caller(pool) > server_share(pool->server);
}

/* Whether the pool's caller has less than a share, and that of `other` more. */
static bool has_less_than(const struct pool *pool, const struct pool *other)
{
	return other->server == pool->server && pool->principal != NULL && is_over_share(other) &&
	       held_by_caller(pool) < server_share(pool->server);
}

bool process_slots_is_underserved(const struct pool *pool)
{
	if (!pool_is_shared(pool) || pool->principal == NULL || pool_upstreams_needed(pool) == 0)
		return false;
	LIST_FOREACH(node, &slots_of(pool)->pools) {
		if (has_less_than(pool, container_of(node, struct pool, link)))
			return true;
	}
	return false;
}

/* ---- what is idle ---- */

/*
 * A caller who has its share may not take a process that was just in use from one who is not over
 * its own share: it would go back and forth.
 */
static bool may_take(const struct pool *pool, const struct upstream *upstream)
{
	const struct pool *other = upstream->pool;

	return pool_can_spare(upstream) &&
	       (pool->principal == NULL || other->server != pool->server ||
		held_by_caller(pool) < server_share(pool->server) || is_over_share(other) ||
		clock_now_ms() - upstream->rested_at_ms >= SERVER_IDLE_MS);
}

/* Stops no more processes than are waited for. */
bool process_slots_seek(struct pool *pool)
{
	struct process_slots *slots = slots_of(pool);
	struct upstream *oldest = NULL;

	slots->is_short = true;
	pool->is_short = true;
	if (slots->leaving >= pool_upstreams_needed(pool))
		return true;
	LIST_FOREACH(node, &slots->pools) {
		const struct pool *other = container_of(node, struct pool, link);

		if (!is_of_use(other, pool))
			continue;
		LIST_FOREACH(at, &other->upstreams) {
			struct upstream *upstream = container_of(at, struct upstream, link);

			if (may_take(pool, upstream) &&
			    (oldest == NULL || upstream->idle.due_ms < oldest->idle.due_ms))
				oldest = upstream;
		}
	}
	if (oldest == NULL)
		return false;
	process_slots_note_leaving(oldest);
	upstream_close(oldest, REASON_IDLE_TIMEOUT);
	return true;
}

void process_slots_note_leaving(struct upstream *upstream)
{
	CHECK(!upstream->makes_room && upstream->pool != NULL);
	upstream->makes_room = true;
	slots_of(upstream->pool)->leaving++;
}

/*
 * The upstream that a pool could give away: one that works on no task before others, as it will not
 * finish its tasks; then the one with the fewest calls, and of equals the one that has served for
 * longest.
 */
struct donation {
	struct upstream *upstream;
	size_t among;   /* how many upstreams serve */
	size_t staying; /* how many are not given away yet */
	bool is_excess; /* its caller has more than a share, the receiver less */
};

static bool is_rather_given(const struct upstream *upstream, const struct upstream *than)
{
	if (live_tasks_has_some(upstream) != live_tasks_has_some(than))
		return live_tasks_has_some(than);
	if (upstream_load(upstream) != upstream_load(than))
		return upstream_load(upstream) < upstream_load(than);
	return upstream->ready_at_ms < than->ready_at_ms;
}

static struct donation find_donation(const struct pool *pool)
{
	struct donation donation = { .upstream = NULL };

	LIST_FOREACH(node, &pool->upstreams) {
		struct upstream *upstream = container_of(node, struct upstream, link);

		donation.staying += upstream->state != UPSTREAM_RETIRING;
		if (upstream->state != UPSTREAM_READY)
			continue;
		donation.among++;
		if (donation.upstream == NULL || is_rather_given(upstream, donation.upstream))
			donation.upstream = upstream;
	}
	return donation;
}

/* ---- donations ---- */

/* A pool with only one keeps it for the longest time that others may have to wait. */
static bool is_due(const struct donation *donation)
{
	uint64_t least_ms;

	if (donation->upstream == NULL || donation->among > 1 || donation->is_excess)
		return donation->upstream != NULL;
	least_ms = donation->upstream->server->conf.queue_timeout_ms;
	return clock_now_ms() - donation->upstream->ready_at_ms >= least_ms;
}

/*
 * The number of processes that are leaving, or were given away not long ago and whose place `pool`
 * could use.
 */
static size_t count_promised(const struct pool *pool)
{
	uint64_t wait_ms = pool->server->conf.queue_timeout_ms;
	size_t count = slots_of(pool)->leaving;

	LIST_FOREACH(node, &slots_of(pool)->pools) {
		const struct pool *other = container_of(node, struct pool, link);

		if (!is_of_use(other, pool))
			continue;
		LIST_FOREACH(at, &other->upstreams) {
			const struct upstream *upstream = container_of(at, struct upstream, link);

			count += upstream->donated_at_ms > 0 &&
				 clock_now_ms() - upstream->donated_at_ms < wait_ms;
		}
	}
	return count;
}

/* The number of pools without a process that could use such a place, `pool` included. */
static size_t count_wanting(const struct pool *pool)
{
	size_t count = 0;

	LIST_FOREACH(node, &slots_of(pool)->pools) {
		const struct pool *other = container_of(node, struct pool, link);

		count += other->upstream_count == 0 && pool_is_starved(other) &&
			 (other->server == pool->server ||
			  (!server_is_full(other->server) && !server_is_full(pool->server)));
	}
	return count;
}

static bool is_better(const struct donation *donation, const struct donation *than)
{
	if (than->upstream == NULL || donation->is_excess != than->is_excess)
		return than->upstream == NULL || donation->is_excess;
	if (donation->among != than->among)
		return donation->among > than->among;
	return is_rather_given(donation->upstream, than->upstream);
}

void process_slots_claim(struct pool *pool)
{
	struct donation best = { .upstream = NULL };
	bool has_some = pool->upstream_count > 0;

	if (has_some && !process_slots_is_underserved(pool))
		return;
	if (count_promised(pool) >= count_wanting(pool) + has_some)
		return;
	LIST_FOREACH(node, &slots_of(pool)->pools) {
		const struct pool *other = container_of(node, struct pool, link);
		struct donation donation;

		if (!is_of_use(other, pool) || (has_some && !has_less_than(pool, other)))
			continue;
		donation = find_donation(other);
		donation.is_excess = has_less_than(pool, other);
		if (donation.staying <= pool_least_upstreams(other) || !is_due(&donation))
			continue;
		if (is_better(&donation, &best))
			best = donation;
	}
	if (best.upstream == NULL)
		return;
	best.upstream->donated_at_ms = clock_now_ms();
	upstream_retire(best.upstream);
}

void process_slots_put_last(struct pool *pool)
{
	CHECK(pool_is_shared(pool));
	list_remove(&pool->link);
	list_append(&slots_of(pool)->pools, &pool->link);
}

void process_slots_note_idle(struct process_slots *slots)
{
	if (!slots->is_short)
		return;
	slots->is_short = false;
	LIST_FOREACH(node, &slots->pools) {
		struct pool *pool = container_of(node, struct pool, link);

		if (pool->is_short)
			pool_wake(pool);
		pool->is_short = false;
	}
}

/* The next pool in turn that has no process and may start one; NULL: there is none left to try. */
static struct pool *next_to_grow(const struct process_slots *slots)
{
	LIST_FOREACH(node, &slots->pools) {
		struct pool *pool = container_of(node, struct pool, link);

		if (pool->is_short && !pool->is_passed && pool_is_starved(pool) &&
		    server_has_room(pool->server))
			return pool;
	}
	return NULL;
}

/* Grows pools at once: others may be about to look, too. That may move any pool in the list. */
void process_slots_note_gone(struct process_slots *slots, const struct upstream *upstream)
{
	struct pool *pool;

	CHECK(!upstream->makes_room || slots->leaving > 0);
	slots->leaving -= upstream->makes_room;
	if (!slots->is_short)
		return;
	LIST_FOREACH(node, &slots->pools)
		container_of(node, struct pool, link)->is_passed = false;
	while ((pool = next_to_grow(slots)) != NULL) {
		pool->is_passed = true;
		if (slots->grow(pool) == REASON_NONE)
			process_slots_put_last(pool);
	}
	process_slots_note_idle(slots);
}
