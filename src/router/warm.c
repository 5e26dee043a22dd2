/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A warm one is an upstream without a pool. It counts among the processes of its server. One that fails is replaced
 * as a start that failed is repeated: after the back-off.
 */
#include "router/warm.h"

#include "base/mem.h"
#include "router/upstream.h"
#include "router/route.h"

#define RETRY_MS 1000

static void warm_set_on_refill(struct task *task)
{
	struct warm_set *warm_set = container_of(task, struct warm_set, refill);
	const struct server_conf *conf = &warm_set->server->conf;
	uint64_t wait_ms = 0;

	while (!warm_set->router->is_draining && warm_set->count < conf->warm) {
		struct upstream *upstream;

		if (server_admit(warm_set->server, &wait_ms) != REASON_NONE) {
			timer_start(warm_set->router->loop, &warm_set->retry, RETRY_MS);
			return;
		}
		upstream = upstream_new_warm(warm_set->router, warm_set->server, wait_ms);
		upstream->warm_set = warm_set;
		list_append(&warm_set->upstreams, &upstream->link);
		warm_set->count++;
	}
}

static void warm_set_on_retry(struct timer *timer)
{
	struct warm_set *warm_set = container_of(timer, struct warm_set, retry);

	task_schedule(warm_set->router->loop, &warm_set->refill);
}

void warm_set_start(struct router *router, struct server *server)
{
	struct warm_set *warm_set = mem_zalloc(sizeof(*warm_set));

	warm_set->router = router;
	warm_set->server = server;
	list_init(&warm_set->upstreams);
	task_init(&warm_set->refill, warm_set_on_refill);
	timer_init(&warm_set->retry, warm_set_on_retry);
	list_append(&router->warm_sets, &warm_set->link);
	task_schedule(router->loop, &warm_set->refill);
}

static void warm_set_remove(struct warm_set *warm_set, struct upstream *upstream)
{
	list_remove(&upstream->link);
	upstream->warm_set = NULL;
	warm_set->count--;
}

struct upstream *warm_set_take(struct router *router, struct server *server)
{
	LIST_FOREACH(node, &router->warm_sets) {
		struct warm_set *warm_set = container_of(node, struct warm_set, link);
		struct upstream *upstream =
			container_of(warm_set->upstreams.next, struct upstream, link);

		if (warm_set->server != server || list_is_empty(&warm_set->upstreams))
			continue;
		warm_set_remove(warm_set, upstream);
		task_schedule(router->loop, &warm_set->refill);
		return upstream;
	}
	return NULL;
}

void warm_set_on_lost(struct upstream *upstream)
{
	struct warm_set *warm_set = upstream->warm_set;

	warm_set_remove(warm_set, upstream);
	task_schedule(warm_set->router->loop, &warm_set->refill);
}

void warm_set_end_all(struct router *router, enum reason reason)
{
	while (!list_is_empty(&router->warm_sets)) {
		struct warm_set *warm_set =
			container_of(router->warm_sets.next, struct warm_set, link);

		while (!list_is_empty(&warm_set->upstreams)) {
			struct upstream *upstream =
				container_of(warm_set->upstreams.next, struct upstream, link);

			warm_set_remove(warm_set, upstream);
			upstream_close(upstream, reason);
		}
		task_cancel(&warm_set->refill);
		timer_stop(&warm_set->retry);
		list_remove(&warm_set->link);
		loop_defer_free(router->loop, warm_set);
	}
}
