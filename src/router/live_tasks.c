/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that makes up tasks without end only keeps its own process alive for some minutes, in
 * bounded memory.
 */
#include "router/live_tasks.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/value.h"
#include "router/call.h"
#include "router/task_id.h"
#include "upstream/upstream.h"

struct live_task {
	struct list link; /* of its process's tasks, the one last reported longest ago first */
	uint64_t until_ms;
	bool is_over; /* its result is to be asked for */
	struct in_flight
		*in_flight; /* the count of its call; NULL: none, or something else holds it */
	struct slice id;    /* as the server wrote it; in `text` */
	char text[];
};

/* The tasks of one process. */
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
	in_flight_free(&task->in_flight);
	free(task);
}

/* Of a task that is forgotten while the server works on it, the count stays. */
static void make_room(struct live_tasks *tasks)
{
	struct live_task *oldest = task_at(tasks->all.next);

	in_flight_leave(&oldest->in_flight, LIVE_TASKS_MS);
	forget(tasks, oldest);
}

/* Returns NULL if the task is not known. */
static struct live_task *find(const struct upstream *upstream, struct slice id)
{
	if (upstream->tasks == NULL)
		return NULL;
	LIST_FOREACH(node, &upstream->tasks->all) {
		if (slice_is_equal(task_at(node)->id, id))
			return task_at(node);
	}
	return NULL;
}

static void add(struct live_tasks *tasks, struct slice id, uint64_t kept_ms, bool is_over)
{
	struct live_task *task = mem_alloc(sizeof(*task) + id.n);
	char *at = task->text;

	if (tasks->count == LIVE_TASKS_MAX)
		make_room(tasks);
	task->until_ms = clock_now_ms() + kept_ms;
	task->is_over = is_over;
	task->in_flight = NULL;
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

static bool is_one(struct slice status, const char *one, const char *other)
{
	return slice_is_equal(status, slice_str(one)) || slice_is_equal(status, slice_str(other));
}

uint64_t live_tasks_kept_ms(const struct upstream *upstream, struct slice task)
{
	struct slice ttl = upstream_is_modern(upstream) ? SLICE_LIT("ttlMs") : SLICE_LIT("ttl");
	long long ms;

	if (value_read_integer(scan_member(task, ttl), &ms) < 0 || ms > LIVE_TASKS_MS)
		return LIVE_TASKS_MS;
	return ms > 0 ? (uint64_t)ms : 0;
}

bool live_tasks_note(struct upstream *upstream, struct slice task)
{
	static const struct slice known[] = { SLICE("working"), SLICE("input_required"),
					      SLICE("completed"), SLICE("failed"),
					      SLICE("cancelled") };
	struct json id = scan_member(task, SLICE_LIT("taskId"));
	struct slice status = scan_plain_string(scan_member(task, SLICE_LIT("status")));
	bool works = is_one(status, "working", "input_required");
	/*
	 * A modern server reports the result with the end; one of 2025-11-25 is yet to be asked for
	 * it.
	 */
	bool is_over = is_one(status, "completed", "failed") && !upstream_is_modern(upstream);
	struct live_tasks *tasks;
	struct in_flight *in_flight = NULL;
	struct live_task *before;
	uint64_t kept_ms = live_tasks_kept_ms(upstream, task);

	CHECK(upstream_is_serving(upstream));
	if (!task_id_is_fit(id) || !slices_has((struct slices){ known, ARRAY_LEN(known) }, status))
		return false;
	tasks = get_tasks(upstream);
	before = find(upstream, id.text);
	if (before != NULL) {
		in_flight = before->in_flight;
		before->in_flight = NULL;
		forget(tasks, before);
	}
	if ((works || is_over) && kept_ms > 0)
		add(tasks, id.text, kept_ms, is_over);
	if (works)
		live_tasks_count(upstream, id.text, &in_flight);
	in_flight_free(&in_flight);
	return true;
}

void live_tasks_count(struct upstream *upstream, struct slice id, struct in_flight **in_flight)
{
	struct live_task *task = find(upstream, id);

	/*
	 * How long a task is kept says nothing about how long the server works on it, and the client
	 * may have chosen it.
	 */
	if (task == NULL && *in_flight != NULL) {
		in_flight_bind(*in_flight, upstream, 0);
		in_flight_leave(in_flight, LIVE_TASKS_MS);
	}
	/* A server may say of two calls that they have become the same task. */
	if (task == NULL || task->in_flight != NULL || *in_flight == NULL)
		return;
	task->in_flight = *in_flight;
	*in_flight = NULL;
	in_flight_bind(task->in_flight, upstream, 0);
	in_flight_keep(task->in_flight, LIVE_TASKS_MS);
}

void live_tasks_end(struct upstream *upstream, struct slice id, bool is_error)
{
	struct live_task *task = find(upstream, id);

	if (task != NULL && (task->is_over || !is_error))
		forget(upstream->tasks, task);
}

bool live_tasks_has(const struct upstream *upstream, struct slice id)
{
	return find(upstream, id) != NULL;
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
