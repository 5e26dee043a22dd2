/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/call_limits.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "jsonrpc/scan.h"
#include "policy/permissions.h"

/* ---- token buckets ---- */

/*
 * One number is kept of each caller: when its bucket will be full again, were nothing taken from it any more. The generic
 * cell rate algorithm of ITU-T I.371, in microseconds.
 */

struct rate_caller {
	struct list link; /* of the set's recent ones */
	uint64_t key;
	uint64_t full_at_us;
};

static void rate_forget(struct rate_set *set, struct rate_caller *caller)
{
	(void)map_remove(&set->by_key, caller->key);
	list_remove(&caller->link);
	set->count--;
	free(caller);
}

static struct rate_caller *rate_oldest(const struct rate_set *set)
{
	return container_of(set->recent.next, struct rate_caller, link);
}

void rate_set_fini(struct rate_set *set)
{
	while (!list_is_empty(&set->recent))
		rate_forget(set, rate_oldest(set));
	CHECK(set->count == 0);
	map_fini(&set->by_key);
	tally_fini(&set->shared);
}

/* Who has a full bucket again is as one who never came. */
static void forget_some(struct rate_set *set, uint64_t now_us)
{
	for (int i = 0; i < 2 && !list_is_empty(&set->recent); i++)
		if (rate_oldest(set)->full_at_us <= now_us)
			rate_forget(set, rate_oldest(set));
	if (set->count >= RATE_CALLERS_MAX)
		rate_forget(set, rate_oldest(set));
}

static struct rate_caller *rate_find(struct rate_set *set, uint64_t key, uint64_t now_us)
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

#define TOLD_US_MAX (UINT64_MAX / 4) /* longer than any bucket is full */
#define NODES_MAX 16 /* whoever has emptied more buckets than that at once waits no longer */

/* Together the nodes may have let through more than one may: then it takes longer until there is room. */
static void on_told(struct tally *tally, uint64_t key, uint64_t amount)
{
	struct rate_set *set = container_of(tally, struct rate_set, shared);
	uint64_t now_us = clock_now_ms() * 1000;
	struct rate_caller *caller = rate_find(set, key, now_us);

	if (caller->full_at_us < now_us)
		caller->full_at_us = now_us;
	if (caller->full_at_us - now_us < TOLD_US_MAX)
		caller->full_at_us += amount < TOLD_US_MAX ? amount : TOLD_US_MAX;
}

void rate_set_init(struct rate_set *set)
{
	*set = (struct rate_set){ .count = 0 };
	list_init(&set->recent);
	tally_init(&set->shared, on_told);
}

/* When the bucket is full again without these calls, and how long they take from it. */
struct fill {
	uint64_t from_us;
	uint64_t taken_us;
	uint64_t room_us; /* how far ahead `from_us` may be */
};

static struct fill fill_of(struct rate_caller *caller, const struct rate_rule *rule, size_t count,
			   uint64_t now_us)
{
	uint64_t burst = rule->burst > 0 ? rule->burst : rule->calls;
	uint64_t each_us = rule->per_ms * 1000 / rule->calls;
	struct fill fill = { .from_us = now_us };

	each_us = each_us > 0 ? each_us : 1;
	if (caller->full_at_us > now_us + NODES_MAX * burst * each_us)
		caller->full_at_us = now_us + NODES_MAX * burst * each_us;
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
	fill = fill_of(rate_find(set, key, now_us), rule, count, now_us);
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
	caller = rate_find(set, key, now_us);
	fill = fill_of(caller, rule, count, now_us);
	ms = wait_ms(&fill, now_us);
	if (ms > 0)
		return ms;
	caller->full_at_us = fill.from_us + fill.taken_us;
	if (rule->is_shared)
		tally_add(&set->shared, key, fill.taken_us);
	return 0;
}

/* ---- limits of a server and its tools ---- */

/* Odd: no object lies there, so it is nobody else's. */
static const void *scope_of(uint64_t hash)
{
	return (const void *)(uintptr_t)(hash | 1);
}

static void limits_set_scopes(struct call_limit *limit, uint64_t hash)
{
	const struct rate_rule *rate = &limit->rate;
	const uint64_t numbers[] = { rate->calls, rate->per_ms, rate->burst };

	limit->in_flight_scope = scope_of(hash);
	limit->rate_scope =
		scope_of(text_hash_part(hash, slice_of((const char *)numbers, sizeof(numbers))));
}

void call_limits_finish(struct call_limits *limits, struct slice server)
{
	uint64_t of_server = text_hash_part(0, server);

	limits_set_scopes(&limits->all, of_server);
	for (size_t i = 0; i < limits->tools.count; i++) {
		struct tool_limit *tool = &limits->tools.items[i];
		uint64_t hash = of_server;

		for (size_t j = 0; j < tool->tools.written.count; j++)
			hash = text_hash_part(hash, tool->tools.written.items[j]);
		limits_set_scopes(&tool->limit, hash);
		names_finish(&tool->tools);
	}
}

void call_limits_free(struct call_limits *limits)
{
	for (size_t i = 0; i < limits->tools.count; i++)
		names_free(&limits->tools.items[i].tools);
}

bool call_limits_are_set(const struct call_limits *limits)
{
	return limits->all.rate.calls > 0 || limits->all.concurrency > 0 || limits->tools.count > 0;
}

static const struct tool_limit *limits_find_tool(const struct tool_limits *limits, struct json name)
{
	const struct tool_limit *found = &limits->items[0];
	at_end(buf_fini) struct buf decoded = { 0 }, folded = { 0 };
	struct slice plain, form;

	if (scan_read_string(name, &decoded, &plain) == 0 &&
	    name_read_form(plain, &folded, &form) == NULL)
		while (found < limits->items + limits->count && !names_fit(&found->tools, form))
			found++;
	return found;
}

const struct call_limit *call_limits_of_tool(const struct call_limits *limits,
					     const struct envelope *env)
{
	const struct tool_limit *found;

	if (limits->tools.count == 0 || operation_of(env) != OPERATION_TOOL)
		return NULL;
	found = limits_find_tool(&limits->tools, env->name);
	return found < limits->tools.items + limits->tools.count ? &found->limit : NULL;
}
