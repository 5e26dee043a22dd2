/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm processes count towards the limits of their server. One that fails is replaced as any failed
 * start is repeated: after the back-off.
 */
#include "upstream/warm.h"

#include "base/check.h"
#include "base/mem.h"
#include "io/loop.h"
#include "process/server.h"
#include "upstream/stdio.h"
#include "upstream/upstream.h"

#define RETRY_MS 1000

/* The warm processes of one server. */
struct warm_set {
	struct list link;
	const struct warm_sets *sets;
	struct server *server;
	struct list upstreams;
	size_t count;
	struct task refill;
	struct timer retry;
};

static void warm_set_remove(struct warm_set *set, struct upstream *upstream)
{
	CHECK(upstream->warm_set == set && set->count > 0);
	list_remove(&upstream->link);
	upstream->warm_set = NULL;
	set->count--;
	task_schedule(set->sets->shared->loop, &set->refill);
}

static void warm_on_closed(struct upstream *upstream)
{
	warm_set_remove(upstream->warm_set, upstream);
}

static void warm_on_lost(struct upstream *upstream, enum reason reason)
{
	(void)upstream;
	(void)reason; /* it is being replaced */
}

/* Nothing has been sent to a warm process, so none of the other events of an owner can occur. */
static const struct upstream_owner_ops warm_owner_ops = {
	.on_closed = warm_on_closed,
	.on_lost = warm_on_lost,
};

static void warm_set_on_refill(struct task *task)
{
	struct warm_set *set = container_of(task, struct warm_set, refill);
	uint64_t wait_ms = 0;

	while (!set->sets->is_held && set->count < set->server->conf.warm) {
		struct upstream *upstream;

		if (server_admit(set->server, &wait_ms) != REASON_NONE) {
			timer_start(set->sets->shared->loop, &set->retry, RETRY_MS);
			return;
		}
		upstream = stdio_new(set->sets->shared, set->server);
		upstream->warm_set = set;
		list_append(&set->upstreams, &upstream->link);
		set->count++;
		upstream_begin(upstream, &warm_owner_ops, NULL, wait_ms);
	}
}

static void warm_set_on_retry(struct timer *timer)
{
	struct warm_set *set = container_of(timer, struct warm_set, retry);

	task_schedule(set->sets->shared->loop, &set->refill);
}

void warm_sets_init(struct warm_sets *sets, struct upstream_shared *shared)
{
	sets->shared = shared;
	sets->is_held = false;
	list_init(&sets->all);
}

void warm_sets_add(struct warm_sets *sets, struct server *server)
{
	struct warm_set *set = mem_zalloc(sizeof(*set));

	CHECK(server->conf.warm > 0 && !sets->is_held);
	set->sets = sets;
	set->server = server;
	server->users++;
	list_init(&set->upstreams);
	task_init(&set->refill, warm_set_on_refill);
	timer_init(&set->retry, warm_set_on_retry);
	list_append(&sets->all, &set->link);
	task_schedule(set->sets->shared->loop, &set->refill);
}

/* One that is there before those that are being started, and these before those that wait to be. */
static struct upstream *warm_set_find_nearest(const struct warm_set *set)
{
	struct upstream *nearest = NULL;

	LIST_FOREACH(node, &set->upstreams) {
		struct upstream *upstream = container_of(node, struct upstream, link);

		CHECK(upstream->state <= UPSTREAM_WARM);
		if (nearest == NULL || upstream->state > nearest->state)
			nearest = upstream;
	}
	return nearest;
}

struct upstream *warm_sets_take(struct warm_sets *sets, const struct server *server)
{
	LIST_FOREACH(node, &sets->all) {
		struct warm_set *set = container_of(node, struct warm_set, link);
		struct upstream *upstream;

		if (set->server != server || list_is_empty(&set->upstreams))
			continue;
		upstream = warm_set_find_nearest(set);
		warm_set_remove(set, upstream);
		return upstream;
	}
	return NULL;
}

void warm_sets_hold(struct warm_sets *sets)
{
	sets->is_held = true;
}

static void warm_set_end(struct warm_set *set, enum reason reason)
{
	while (!list_is_empty(&set->upstreams))
		upstream_close(container_of(set->upstreams.next, struct upstream, link), reason);
	task_cancel(&set->refill);
	timer_stop(&set->retry);
	list_remove(&set->link);
	set->server->users--;
	loop_defer_free(set->sets->shared->loop, set);
}

void warm_sets_remove(struct warm_sets *sets, const struct server *server, enum reason reason)
{
	LIST_FOREACH_SAFE(node, &sets->all) {
		struct warm_set *set = container_of(node, struct warm_set, link);

		if (set->server == server)
			warm_set_end(set, reason);
	}
}

void warm_sets_end(struct warm_sets *sets, enum reason reason)
{
	while (!list_is_empty(&sets->all))
		warm_set_end(container_of(sets->all.next, struct warm_set, link), reason);
}
