/* SPDX-License-Identifier: Apache-2.0 */
/* A server that makes up tasks without end keeps its own process busy for some minutes, in bounded memory. */
#include "router/live_tasks.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "jsonrpc/scan.h"
#include "router/task_id.h"
#include "upstream/upstream.h"

struct live_task {
	struct list link; /* of its process', the one that was told of longest ago first */
	uint64_t until_ms;
	struct slice id; /* as the server wrote it, in what follows */
	char text[];
};

/* Of one process. */
struct live_tasks {
	struct list all;
	size_t count;
};

static struct live_task *task_at(struct list *node)
{
	return container_of(node, struct live_task, link);
}

static void forget(struct live_tasks *tasks, struct live_task *task)
{
	CHECK(tasks->count > 0);
	tasks->count--;
	list_remove(&task->link);
	free(task);
}

static void forget_named(struct live_tasks *tasks, struct slice id)
{
	LIST_FOREACH_SAFE(node, &tasks->all) {
		if (slice_is_equal(task_at(node)->id, id))
			forget(tasks, task_at(node));
	}
}

static void add(struct live_tasks *tasks, struct slice id, uint64_t kept_ms)
{
	struct live_task *task = mem_alloc(sizeof(*task) + id.n);
	char *at = task->text;

	if (tasks->count == LIVE_TASKS_MAX)
		forget(tasks, task_at(tasks->all.next));
	task->until_ms = clock_now_ms() + kept_ms;
	task->id = mem_put_slice(&at, id);
	list_append(&tasks->all, &task->link);
	tasks->count++;
}

static struct live_tasks *get_tasks(struct upstream *upstream)
{
	if (upstream->tasks == NULL) {
		upstream->tasks = mem_zalloc(sizeof(*upstream->tasks));
		list_init(&upstream->tasks->all);
	}
	return upstream->tasks;
}

/* When it ends, a modern server tells its result with that; one of 2025-11-25 is yet to be asked for it. */
static bool is_kept(const struct upstream *upstream, struct slice status)
{
	static const struct slice working[] = { SLICE("working"), SLICE("input_required"),
						SLICE("completed"), SLICE("failed") };

	return slices_has((struct slices){ working, upstream_is_modern(upstream) ? 2 : 4 }, status);
}

bool live_tasks_note(struct upstream *upstream, struct slice task)
{
	static const struct slice known[] = { SLICE("working"), SLICE("input_required"),
					      SLICE("completed"), SLICE("failed"),
					      SLICE("cancelled") };
	struct slice ttl = upstream_is_modern(upstream) ? SLICE_LIT("ttlMs") : SLICE_LIT("ttl");
	struct json id = scan_member(task, SLICE_LIT("taskId"));
	struct slice status = scan_plain_string(scan_member(task, SLICE_LIT("status")));
	struct live_tasks *tasks;
	long long ttl_ms;

	CHECK(upstream_is_serving(upstream));
	if (!task_id_is_fit(id) || !slices_has((struct slices){ known, ARRAY_LEN(known) }, status))
		return false;
	tasks = get_tasks(upstream);
	forget_named(tasks, id.text);
	if (scan_int(scan_member(task, ttl), &ttl_ms) < 0 || ttl_ms > LIVE_TASKS_MS)
		ttl_ms = LIVE_TASKS_MS;
	if (is_kept(upstream, status) && ttl_ms > 0)
		add(tasks, id.text, (uint64_t)ttl_ms);
	return true;
}

void live_tasks_end(struct upstream *upstream, struct slice id)
{
	if (upstream->tasks != NULL)
		forget_named(upstream->tasks, id);
}

bool live_tasks_had_some(const struct upstream *upstream)
{
	return upstream->tasks != NULL;
}

bool live_tasks_has_some(const struct upstream *upstream)
{
	if (!list_is_empty(&upstream->task_listeners))
		return true;
	if (upstream->tasks == NULL)
		return false;
	LIST_FOREACH(node, &upstream->tasks->all) {
		if (task_at(node)->until_ms > clock_now_ms())
			return true;
	}
	return false;
}

void live_tasks_forget(struct upstream *upstream)
{
	if (upstream->tasks == NULL)
		return;
	while (!list_is_empty(&upstream->tasks->all))
		forget(upstream->tasks, task_at(upstream->tasks->all.next));
	free(upstream->tasks);
	upstream->tasks = NULL;
}
