/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task that nobody asks about and that reports nothing is forgotten when there are too many, or
 * with its session.
 */
#include "router/running_tasks.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "jsonrpc/scan.h"
#include "mcp/revision.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/client.h"
#include "router/pool.h"
#include "upstream/upstream.h"

#define TASKS_MAX 64         /* of a client; then the oldest is forgotten */
#define TOKEN_BYTES_MAX 1024 /* a task with a longer one reports no progress */

static void forget(struct running_task *task)
{
	CHECK(task->client->running_task_count > 0);
	task->client->running_task_count--;
	list_remove(&task->link);
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

static void begin(struct call *call, struct slice task_id)
{
	struct client *client = call->client;
	struct slice token = call->token.n <= TOKEN_BYTES_MAX ? call->token : slice_of(NULL, 0);
	struct running_task *task;
	char *at;

	if (client->running_task_count == TASKS_MAX)
		leave(oldest(client));
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
	client->running_task_count++;
}

static struct running_task *find_named(const struct upstream *upstream, struct json id)
{
	if (upstream->client == NULL)
		return NULL;
	LIST_EACH(struct running_task, running, &upstream->client->running_tasks, link) {
		struct running_task *task = running;

		if (task->child == upstream_child_number(upstream) &&
		    slice_is_equal(task->task_id, id.text))
			return task;
	}
	return NULL;
}

static void end(const struct upstream *upstream, struct json task_id)
{
	struct running_task *task = find_named(upstream, task_id);

	if (task != NULL)
		forget(task);
}

/* The task counts for as long as the server reports on it. */
static void renew(const struct upstream *upstream, struct slice told)
{
	const struct running_task *task =
		find_named(upstream, scan_member(told, SLICE_LIT("taskId")));

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
	    pool_is_shared(client->pool) ||
	    !(client->revision->features & upstream->revision->features & REVISION_TASKS))
		return;
	if (call->method->id == METHOD_TOOLS_CALL) {
		id = scan_member(env->made_task.text, SLICE_LIT("taskId"));
		if (!task_id_is_fit(id))
			return;
		/* Two tasks with the same id are one task, whose owner does not change. */
		if (find_named(upstream, id) == NULL)
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

	if (upstream->client == NULL || scan_int(token, &number) < 0)
		return NULL;
	LIST_EACH(struct running_task, running, &upstream->client->running_tasks, link) {
		struct running_task *task = running;

		if (task->child == upstream_child_number(upstream) &&
		    task->token == (uint64_t)number && task->client_token.n > 0)
			return task;
	}
	return NULL;
}

void running_tasks_forget(struct client *client)
{
	while (!list_is_empty(&client->running_tasks))
		leave(oldest(client));
}

/* ---- live tasks ---- */

/*
 * A server that makes up tasks without end only keeps its own process alive for some minutes, in
 * bounded memory.
 */

struct live_task {
	struct list link; /* of its process's tasks, the one last reported longest ago first */
	uint64_t until_ms;
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

static void forget_live(struct live_tasks *tasks, struct live_task *task)
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
	struct live_task *oldest = container_of(tasks->all.next, struct live_task, link);

	in_flight_leave(&oldest->in_flight, LIVE_TASKS_MS);
	forget_live(tasks, oldest);
}

/* Returns NULL if the task is not known. */
static struct live_task *find(const struct upstream *upstream, struct slice id)
{
	if (upstream->tasks == NULL)
		return NULL;
	LIST_EACH(struct live_task, live, &upstream->tasks->all, link)
		if (slice_is_equal(live->id, id))
			return live;
	return NULL;
}

static void add(struct live_tasks *tasks, struct slice id, uint64_t kept_ms)
{
	struct live_task *task = mem_alloc(sizeof(*task) + id.n);
	char *at = task->text;

	if (tasks->count == LIVE_TASKS_MAX)
		make_room(tasks);
	task->until_ms = clock_now_ms() + kept_ms;
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

/* How long a statement about a task (JSON text) is valid, in ms: its ttlMs, or LIVE_TASKS_MS. */
static uint64_t kept_ms_of(struct slice task)
{
	long long ms;

	if (value_read_integer(scan_member(task, SLICE_LIT("ttlMs")), &ms) < 0 ||
	    ms > LIVE_TASKS_MS)
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
	struct live_tasks *tasks;
	at_end(in_flight_free) struct in_flight *in_flight = NULL;
	struct live_task *before;
	uint64_t kept_ms = kept_ms_of(task);

	CHECK(upstream_is_serving(upstream));
	if (!task_id_is_fit(id) || !slices_has((struct slices){ known, ARRAY_LEN(known) }, status))
		return false;
	tasks = get_tasks(upstream);
	before = find(upstream, id.text);
	if (before != NULL) {
		in_flight = before->in_flight;
		before->in_flight = NULL;
		forget_live(tasks, before);
	}
	if (works && kept_ms > 0)
		add(tasks, id.text, kept_ms);
	if (works)
		live_tasks_count(upstream, id.text, &in_flight);
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

bool live_tasks_has_some(const struct upstream *upstream)
{
	if (!list_is_empty(&upstream->task_listeners))
		return true;
	if (upstream->tasks == NULL)
		return false;
	LIST_EACH(struct live_task, live, &upstream->tasks->all, link)
		if (live->until_ms > clock_now_ms())
			return true;
	return false;
}

void live_tasks_forget(struct upstream *upstream)
{
	if (upstream->tasks == NULL)
		return;
	LIST_DRAIN(struct live_task, task, &upstream->tasks->all, link)
		forget_live(upstream->tasks, task);
	free(upstream->tasks);
	upstream->tasks = NULL;
}

/* ---- ids ---- */

bool task_id_is_fit(struct json own)
{
	return own.type == JSON_STRING && own.text.n > 2 && own.text.n <= TASK_ID_BYTES_MAX;
}
