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
#include "router/places.h"

#include "base/clock.h"
#include "router/lane.h"
#include "router/partition.h"
#include "router/route.h"

/* Whether the place of a process of `other` would be one for `partition`. */
static bool is_of_use(const struct partition *other, const struct partition *partition)
{
	if (other == partition || backend_has_room(partition->backend))
		return false;
	return other->backend == partition->backend ||
	       (!backend_is_full(partition->backend) && backend_is_fleet_full(partition->backend));
}

static struct lane *oldest_spare(const struct partition *partition, struct lane *oldest)
{
	LIST_FOREACH(node, &partition->lanes) {
		struct lane *lane = container_of(node, struct lane, link);

		if (partition_is_spare(lane) &&
		    (oldest == NULL || lane->idle.due_ms < oldest->idle.due_ms))
			oldest = lane;
	}
	return oldest;
}

/* Not more than are waited for. */
void places_seek(struct partition *partition)
{
	struct router *router = partition->router;
	struct lane *oldest = NULL;

	router->is_short = true;
	partition->is_short = true;
	if (router->leaving >= partition_lanes_needed(partition))
		return;
	LIST_FOREACH(node, &router->pools) {
		const struct partition *other = container_of(node, struct partition, link);

		if (is_of_use(other, partition))
			oldest = oldest_spare(other, oldest);
	}
	if (oldest == NULL)
		return;
	places_note_leaving(oldest);
	lane_close(oldest, REASON_IDLE_TIMEOUT);
}

void places_note_leaving(struct lane *lane)
{
	lane->makes_room = true;
	lane->router->leaving++;
}

bool places_is_poor(const struct partition *partition)
{
	if (!partition->is_pool || partition_lanes_needed(partition) == 0)
		return false;
	LIST_FOREACH(node, &partition->lanes) {
		if (container_of(node, struct lane, link)->state != LANE_RETIRING)
			return false;
	}
	return true;
}

/* What a pool could give away: the lane that has least to do, and of equals has served for longest. */
struct gift {
	struct lane *lane;
	size_t among;   /* as many that serve */
	size_t staying; /* as many that are not given away yet */
};

static struct gift find_gift(const struct partition *partition)
{
	struct gift gift = { .lane = NULL };

	LIST_FOREACH(node, &partition->lanes) {
		struct lane *lane = container_of(node, struct lane, link);
		struct lane *best = gift.lane;

		gift.staying += lane->state != LANE_RETIRING;
		if (lane->state != LANE_READY)
			continue;
		gift.among++;
		if (best == NULL || lane_load(lane) < lane_load(best) ||
		    (lane_load(lane) == lane_load(best) && lane->ready_at_ms < best->ready_at_ms))
			gift.lane = lane;
	}
	return gift;
}

/* Who has only one keeps it for as long as others have to wait at most. */
static bool is_due(const struct gift *gift)
{
	uint64_t least_ms;

	if (gift->lane == NULL || gift->among > 1)
		return gift->lane != NULL;
	least_ms = gift->lane->child.backend->conf.queue_timeout_ms;
	return clock_now_ms() - gift->lane->ready_at_ms >= least_ms;
}

static bool is_better(const struct gift *gift, const struct gift *best)
{
	if (best->lane == NULL || gift->among != best->among)
		return best->lane == NULL || gift->among > best->among;
	return gift->lane->ready_at_ms < best->lane->ready_at_ms;
}

/* What is on its way out, or was given away not long ago and whose place would be one for `partition`. */
static size_t count_promised(const struct partition *partition)
{
	uint64_t wait_ms = partition->backend->conf.queue_timeout_ms;
	size_t count = partition->router->leaving;

	LIST_FOREACH(node, &partition->router->pools) {
		const struct partition *other = container_of(node, struct partition, link);

		if (!is_of_use(other, partition))
			continue;
		LIST_FOREACH(at, &other->lanes) {
			const struct lane *lane = container_of(at, struct lane, link);

			count += lane->given_at_ms > 0 &&
				 clock_now_ms() - lane->given_at_ms < wait_ms;
		}
	}
	return count;
}

/* The pools without a process that could take such a place, with itself. */
static size_t count_wanting(const struct partition *partition)
{
	size_t count = 0;

	LIST_FOREACH(node, &partition->router->pools) {
		const struct partition *other = container_of(node, struct partition, link);

		count += other->lane_count == 0 && places_is_poor(other) &&
			 (other->backend == partition->backend ||
			  (!backend_is_full(other->backend) &&
			   !backend_is_full(partition->backend)));
	}
	return count;
}

void places_claim(struct partition *partition)
{
	struct gift best = { .lane = NULL };

	if (partition->lane_count > 0 || count_promised(partition) >= count_wanting(partition))
		return;
	LIST_FOREACH(node, &partition->router->pools) {
		const struct partition *other = container_of(node, struct partition, link);
		struct gift gift;

		if (!is_of_use(other, partition))
			continue;
		gift = find_gift(other);
		if (gift.staying > partition_least_lanes(other) && is_due(&gift) &&
		    is_better(&gift, &best))
			best = gift;
	}
	if (best.lane == NULL)
		return;
	best.lane->given_at_ms = clock_now_ms();
	lane_retire(best.lane);
}

void places_put_last(struct partition *partition)
{
	list_remove(&partition->link);
	list_append(&partition->router->pools, &partition->link);
}

void places_note_idle(struct router *router)
{
	if (!router->is_short)
		return;
	router->is_short = false;
	LIST_FOREACH(node, &router->pools) {
		struct partition *partition = container_of(node, struct partition, link);

		if (partition->is_short)
			partition_wake(partition);
		partition->is_short = false;
	}
}

/* At once: the others may be about to look, too. */
void places_note_gone(struct router *router)
{
	if (!router->is_short)
		return;
	LIST_FOREACH_SAFE(node, &router->pools) {
		struct partition *partition = container_of(node, struct partition, link);

		if (!partition->is_short || !places_is_poor(partition) ||
		    partition_grow(partition) != REASON_NONE)
			continue;
		places_put_last(partition);
	}
	places_note_idle(router);
}
