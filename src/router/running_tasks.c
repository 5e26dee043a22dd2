/* SPDX-License-Identifier: Apache-2.0 */
/* A task that nobody asks about and that tells nothing is forgotten when there are too many, or with its session. */
#include "router/running_tasks.h"

#include <stdlib.h>

#include "base/mem.h"
#include "mcp/revision.h"
#include "router/call.h"
#include "router/client.h"
#include "router/pool.h"

#define TASKS_MAX 64 /* of a client; then the oldest is forgotten */
#define TEXT_BYTES_MAX \
	1024 /* of an id, and of a token: a task with a longer one tells no progress */

static void forget(struct client *client, struct running_task *task)
{
	CHECK(client->running_task_count > 0);
	client->running_task_count--;
	list_remove(&task->link);
	free(task);
}

static struct running_task *oldest(const struct client *client)
{
	return container_of(client->running_tasks.next, struct running_task, link);
}

static void begin(struct call *call, struct slice task_id)
{
	struct client *client = call->client;
	struct running_task *task;
	char *at;

	if (client->running_task_count == TASKS_MAX)
		forget(client, oldest(client));
	task = mem_alloc(sizeof(*task) + call->token.n + task_id.n);
	at = task->text;
	task->child = upstream_child_number(call->request.upstream);
	task->token = call->request.id;
	task->progress = call->progress;
	task->client_token = mem_put_slice(&at, call->token);
	task->task_id = mem_put_slice(&at, task_id);
	list_append(&client->running_tasks, &task->link);
	client->running_task_count++;
}

static void end(struct client *client, struct slice task_id)
{
	LIST_FOREACH_SAFE(node, &client->running_tasks) {
		struct running_task *task = container_of(node, struct running_task, link);

		if (slice_is_equal(task->task_id, task_id))
			forget(client, task);
	}
}

/* `task` is what says how a task is: the result of tasks/get and tasks/cancel, the params of a notification. */
void running_tasks_note_status(struct client *client, struct slice task)
{
	static const struct slice terminal[] = { SLICE("completed"), SLICE("failed"),
						 SLICE("cancelled") };
	struct slice status = scan_plain_string(scan_member(task, SLICE_LIT("status")));

	if (slices_has((struct slices){ terminal, ARRAY_LEN(terminal) }, status))
		end(client, scan_member(task, SLICE_LIT("taskId")).text);
}

void running_tasks_note_response(struct call *call, const struct envelope *env)
{
	static const char *const created[] = { "task", "taskId" };
	static const char *const related[] = { "_meta", "io.modelcontextprotocol/related-task",
					       "taskId" };
	struct client *client = call->client;
	struct slice result = env->result.text;
	struct json id;

	if (env->kind != ENVELOPE_RESULT || client->session == NULL ||
	    pool_is_shared(client->pool) ||
	    !(client->revision->features & call->request.upstream->revision->features &
	      REVISION_TASKS))
		return;
	if (call->method->id == METHOD_TOOLS_CALL) {
		id = scan_path(result, created, ARRAY_LEN(created));
		if (id.type == JSON_STRING && id.text.n <= TEXT_BYTES_MAX && call->token.n > 0 &&
		    call->token.n <= TEXT_BYTES_MAX)
			begin(call, id.text);
	} else if (slice_is_equal(call->method->name, SLICE_LIT("tasks/result"))) {
		end(client, scan_path(result, related, ARRAY_LEN(related)).text);
	} else if (call->method->id == METHOD_TASKS) {
		running_tasks_note_status(client, result);
	}
}

struct running_task *running_tasks_find(const struct client *client,
					const struct upstream *upstream, struct json token)
{
	long long number;

	if (scan_int(token, &number) < 0)
		return NULL;
	LIST_FOREACH(node, &client->running_tasks) {
		struct running_task *task = container_of(node, struct running_task, link);

		if (task->child == upstream_child_number(upstream) &&
		    task->token == (uint64_t)number)
			return task;
	}
	return NULL;
}

void running_tasks_forget(struct client *client)
{
	while (!list_is_empty(&client->running_tasks))
		forget(client, oldest(client));
}
