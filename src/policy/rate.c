/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One number is kept of each caller: when its bucket will be full again, were nothing taken from it any more. The generic
 * cell rate algorithm of ITU-T I.371, in microseconds.
 */
#include "policy/rate.h"

#include <stdlib.h>

#include "base/mem.h"

struct rate_caller {
	struct list link; /* of the set's recent ones */
	uint64_t key;
	uint64_t full_at_us;
};

void rate_set_init(struct rate_set *set)
{
	*set = (struct rate_set){ .count = 0 };
	list_init(&set->recent);
}

static void forget(struct rate_set *set, struct rate_caller *caller)
{
	(void)map_remove(&set->by_key, caller->key);
	list_remove(&caller->link);
	set->count--;
	free(caller);
}

static struct rate_caller *oldest(const struct rate_set *set)
{
	return container_of(set->recent.next, struct rate_caller, link);
}

void rate_set_fini(struct rate_set *set)
{
	while (!list_is_empty(&set->recent))
		forget(set, oldest(set));
	CHECK(set->count == 0);
	map_fini(&set->by_key);
}

/* Who has a full bucket again is as one who never came. */
static void forget_some(struct rate_set *set, uint64_t now_us)
{
	for (int i = 0; i < 2 && !list_is_empty(&set->recent); i++)
		if (oldest(set)->full_at_us <= now_us)
			forget(set, oldest(set));
	if (set->count >= RATE_CALLERS_MAX)
		forget(set, oldest(set));
}

static struct rate_caller *find(struct rate_set *set, uint64_t key, uint64_t now_us)
{
	struct rate_caller *caller = map_find(&set->by_key, key);

	if (caller != NULL) {
		list_remove(&caller->link);
	} else {
		forget_some(set, now_us);
		caller = mem_alloc(sizeof(*caller));
		*caller = (struct rate_caller){ .key = key };
		map_insert(&set->by_key, key, caller);
		set->count++;
	}
	list_append(&set->recent, &caller->link);
	return caller;
}

/* When the bucket is full again without these calls, and how long they take from it. */
struct fill {
	uint64_t from_us;
	uint64_t taken_us;
	uint64_t room_us; /* how far ahead `from_us` may be */
};

static struct fill fill_of(const struct rate_caller *caller, const struct rate_rule *rule,
			   size_t count, uint64_t now_us)
{
	uint64_t burst = rule->burst > 0 ? rule->burst : rule->calls;
	uint64_t each_us = rule->per_ms * 1000 / rule->calls;
	struct fill fill = { .from_us = now_us };

	each_us = each_us > 0 ? each_us : 1;
	if (caller->full_at_us > now_us)
		fill.from_us = caller->full_at_us;
	fill.taken_us = (count < burst ? count : burst) * each_us;
	fill.room_us = burst * each_us - fill.taken_us;
	return fill;
}

static uint64_t wait_ms(const struct fill *fill, uint64_t now_us)
{
	uint64_t ahead_us = fill->from_us - now_us;
	uint64_t wait_us = ahead_us > fill->room_us ? ahead_us - fill->room_us : 0;

	return (wait_us + 999) / 1000;
}

uint64_t rate_wait(struct rate_set *set, uint64_t key, const struct rate_rule *rule, size_t count,
		   uint64_t now_ms)
{
	uint64_t now_us = now_ms * 1000;
	struct fill fill;

	if (rule->calls == 0 || count == 0)
		return 0;
	fill = fill_of(find(set, key, now_us), rule, count, now_us);
	return wait_ms(&fill, now_us);
}

uint64_t rate_take(struct rate_set *set, uint64_t key, const struct rate_rule *rule, size_t count,
		   uint64_t now_ms)
{
	uint64_t now_us = now_ms * 1000;
	struct rate_caller *caller;
	struct fill fill;
	uint64_t ms;

	if (rule->calls == 0 || count == 0)
		return 0;
	caller = find(set, key, now_us);
	fill = fill_of(caller, rule, count, now_us);
	ms = wait_ms(&fill, now_us);
	if (ms == 0)
		caller->full_at_us = fill.from_us + fill.taken_us;
	return ms;
}
