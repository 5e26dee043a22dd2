/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task that nobody asks about and that reports nothing is forgotten when there are too many, or
 * with its session.
 */
#include "router/running_tasks.h"

#include <stdlib.h>

#include "base/mem.h"
#include "mcp/revision.h"
#include "router/call.h"
#include "router/client.h"
#include "router/live_tasks.h"
#include "router/pool.h"
#include "router/task_id.h"

#define TASKS_MAX 64 /* of a client; then the oldest is forgotten */
#define POOL_TASKS_MAX 1024
#define TOKEN_BYTES_MAX 1024 /* a task with a longer one reports no progress */

static void forget(struct running_task *task)
{
	CHECK(task->client->running_task_count > 0);
	task->client->running_task_count--;
	task->client->pool->running_task_count--;
	list_remove(&task->link);
	list_remove(&task->of_pool);
	in_flight_free(&task->in_flight);
	free(task);
}

/* Nobody asks for it any more, but the server works on. */
static void leave(struct running_task *task)
{
	in_flight_leave(&task->in_flight, LIVE_TASKS_MS);
	forget(task);
}

static struct running_task *oldest(const struct client *client)
{
	return container_of(client->running_tasks.next, struct running_task, link);
}

static struct running_task *of_pool(struct list *node)
{
	return container_of(node, struct running_task, of_pool);
}

static void begin(struct call *call, struct slice task_id)
{
	struct client *client = call->client;
	struct pool *pool = client->pool;
	struct slice token = call->token.n <= TOKEN_BYTES_MAX ? call->token : slice_of(NULL, 0);
	struct running_task *task;
	char *at;

	if (client->running_task_count == TASKS_MAX)
		leave(oldest(client));
	if (pool->running_task_count == POOL_TASKS_MAX)
		leave(of_pool(pool->running_tasks.next));
	task = mem_alloc(sizeof(*task) + token.n + task_id.n);
	at = task->text;
	task->client = client;
	task->child = upstream_child_number(call->request.upstream);
	task->token = call->request.id;
	task->progress = call->progress;
	task->in_flight = call->in_flight;
	call->in_flight = NULL;
	in_flight_bind(task->in_flight, call->request.upstream, 0);
	task->client_token = mem_put_slice(&at, token);
	task->task_id = mem_put_slice(&at, task_id);
	list_append(&client->running_tasks, &task->link);
	list_append(&pool->running_tasks, &task->of_pool);
	client->running_task_count++;
	pool->running_task_count++;
}

static void end(const struct upstream *upstream, struct json task_id)
{
	struct running_task *task = running_tasks_find_named(upstream, task_id);

	if (task != NULL)
		forget(task);
}

/* The task counts for as long as the server reports on it. */
static void renew(const struct upstream *upstream, struct slice told)
{
	const struct running_task *task =
		running_tasks_find_named(upstream, scan_member(told, SLICE_LIT("taskId")));

	if (task != NULL)
		in_flight_keep(task->in_flight, LIVE_TASKS_MS);
}

void running_tasks_note_status(const struct upstream *upstream, struct slice task)
{
	static const struct slice terminal[] = { SLICE("completed"), SLICE("failed"),
						 SLICE("cancelled") };
	struct slice status = scan_plain_string(scan_member(task, SLICE_LIT("status")));

	if (slices_has((struct slices){ terminal, ARRAY_LEN(terminal) }, status))
		end(upstream, scan_member(task, SLICE_LIT("taskId")));
	else
		renew(upstream, task);
}

void running_tasks_note_response(struct call *call, const struct envelope *env)
{
	static const char *const related[] = { "_meta", "io.modelcontextprotocol/related-task",
					       "taskId" };
	const struct client *client = call->client;
	const struct upstream *upstream = call->request.upstream;
	struct slice result = env->result.text;
	struct json id;

	if (env->kind != ENVELOPE_RESULT || client->session == NULL ||
	    (pool_is_shared(client->pool) && client->pool->principal == NULL) ||
	    !(client->revision->features & upstream->revision->features & REVISION_TASKS))
		return;
	if (call->method->id == METHOD_TOOLS_CALL) {
		id = scan_member(env->made_task.text, SLICE_LIT("taskId"));
		if (!task_id_is_fit(id))
			return;
		/* Two tasks with the same id are one task, whose owner does not change. */
		if (running_tasks_find_named(upstream, id) == NULL)
			begin(call, id.text);
		running_tasks_note_status(upstream, env->made_task.text);
	} else if (slice_is_equal(call->method->name, SLICE_LIT("tasks/result"))) {
		end(upstream, scan_path(result, related, ARRAY_LEN(related)));
	} else if (call->method->id == METHOD_TASKS) {
		running_tasks_note_status(upstream, result);
	}
}

struct running_task *running_tasks_find(const struct upstream *upstream, struct json token)
{
	long long number;

	if (scan_int(token, &number) < 0)
		return NULL;
	LIST_FOREACH(node, &upstream->pool->running_tasks) {
		struct running_task *task = of_pool(node);

		if (task->child == upstream_child_number(upstream) &&
		    task->token == (uint64_t)number && task->client_token.n > 0)
			return task;
	}
	return NULL;
}

struct running_task *running_tasks_find_named(const struct upstream *upstream, struct json id)
{
	LIST_FOREACH(node, &upstream->pool->running_tasks) {
		struct running_task *task = of_pool(node);

		if (task->child == upstream_child_number(upstream) &&
		    slice_is_equal(task->task_id, id.text))
			return task;
	}
	return NULL;
}

void running_tasks_forget(struct client *client)
{
	while (!list_is_empty(&client->running_tasks))
		leave(oldest(client));
}
