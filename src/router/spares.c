/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spare is a lane without a partition. It counts among the processes of its server. One that fails is replaced
 * as a start that failed is repeated: after the back-off.
 */
#include "router/spares.h"

#include "base/mem.h"
#include "router/lane.h"
#include "router/route.h"

#define RETRY_MS 1000

static void spares_on_refill(struct task *task)
{
	struct spares *spares = container_of(task, struct spares, refill);
	const struct backend_conf *conf = &spares->backend->conf;
	uint64_t wait_ms = 0;

	while (!spares->router->is_draining && spares->count < conf->warm) {
		struct lane *lane;

		if (backend_admit(spares->backend, &wait_ms) != REASON_NONE) {
			timer_start(spares->router->loop, &spares->retry, RETRY_MS);
			return;
		}
		lane = lane_new_spare(spares->router, spares->backend, wait_ms);
		lane->spares = spares;
		list_append(&spares->lanes, &lane->link);
		spares->count++;
	}
}

static void spares_on_retry(struct timer *timer)
{
	struct spares *spares = container_of(timer, struct spares, retry);

	task_schedule(spares->router->loop, &spares->refill);
}

void spares_start(struct router *router, struct backend *backend)
{
	struct spares *spares = mem_zalloc(sizeof(*spares));

	spares->router = router;
	spares->backend = backend;
	list_init(&spares->lanes);
	task_init(&spares->refill, spares_on_refill);
	timer_init(&spares->retry, spares_on_retry);
	list_append(&router->spares, &spares->link);
	task_schedule(router->loop, &spares->refill);
}

static void spares_remove(struct spares *spares, struct lane *lane)
{
	list_remove(&lane->link);
	lane->spares = NULL;
	spares->count--;
}

struct lane *spares_take(struct router *router, struct backend *backend)
{
	LIST_FOREACH(node, &router->spares) {
		struct spares *spares = container_of(node, struct spares, link);
		struct lane *lane = container_of(spares->lanes.next, struct lane, link);

		if (spares->backend != backend || list_is_empty(&spares->lanes))
			continue;
		spares_remove(spares, lane);
		task_schedule(router->loop, &spares->refill);
		return lane;
	}
	return NULL;
}

void spares_on_lost(struct lane *lane)
{
	struct spares *spares = lane->spares;

	spares_remove(spares, lane);
	task_schedule(spares->router->loop, &spares->refill);
}

void spares_end_all(struct router *router, enum reason reason)
{
	while (!list_is_empty(&router->spares)) {
		struct spares *spares = container_of(router->spares.next, struct spares, link);

		while (!list_is_empty(&spares->lanes)) {
			struct lane *lane = container_of(spares->lanes.next, struct lane, link);

			spares_remove(spares, lane);
			lane_close(lane, reason);
		}
		task_cancel(&spares->refill);
		timer_stop(&spares->retry);
		list_remove(&spares->link);
		loop_defer_free(router->loop, spares);
	}
}
