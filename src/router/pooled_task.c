/* SPDX-License-Identifier: Apache-2.0 */
/* A message is rewritten with its ids replaced, and everything else byte for byte as it was. */
#include "router/pooled_task.h"

#include <stdint.h>
#include <stdlib.h>

#include "mcp/revision.h"
#include "router/call.h"
#include "router/client.h"
#include "router/cursor.h"
#include "router/pool.h"
#include "router/running_tasks.h"

#define RELATED "io.modelcontextprotocol/related-task"

bool pooled_task_is_possible(const struct upstream *upstream)
{
	return upstream->pool->principal != NULL && !upstream_is_modern(upstream);
}

/* ---- replacing ---- */

struct edit {
	struct slice span;
	size_t begin, length; /* of the replacement, in `texts` */
};

struct edits {
	const struct pool *pool;
	uint64_t child;
	struct buf items; /* struct edit */
	struct buf texts;
};

static void replace(struct edits *edits, struct slice span, size_t begin)
{
	struct edit edit = { span, begin, edits->texts.len - begin };

	buf_append(&edits->items, &edit, sizeof(edit));
}

/* Returns false if it is not the id of a task. */
static bool seal(struct edits *edits, struct json own)
{
	size_t begin = edits->texts.len;

	if (!task_id_is_fit(own))
		return false;
	task_id_append(&edits->texts, edits->pool, edits->pool->principal, edits->child, own);
	replace(edits, own.text, begin);
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct edit *one = a, *other = b;

	return one->span.p < other->span.p ? -1 : one->span.p > other->span.p;
}

static const struct envelope *finish(struct edits *edits, struct convert *convert,
				     const struct envelope *env)
{
	struct edit *items = (struct edit *)(void *)edits->items.data;
	size_t count = edits->items.len / sizeof(*items);
	const char *copied = env->text.p;
	struct error err;

	if (count == 0)
		goto out;
	qsort(items, count, sizeof(*items), compare);
	for (size_t i = 0; i < count; i++) {
		buf_append_slice(&convert->text, slice_between(copied, items[i].span.p));
		buf_append(&convert->text, edits->texts.data + items[i].begin, items[i].length);
		copied = items[i].span.p + items[i].span.n;
	}
	buf_append_slice(&convert->text, slice_between(copied, env->text.p + env->text.n));
	if (scan_envelope(buf_slice(&convert->text), &scan_limits_none, SCAN_LENIENT, &convert->env,
			  &err) == 0) /* always: it was accepted before */
		env = &convert->env;
out:
	buf_fini(&edits->items);
	buf_fini(&edits->texts);
	return env;
}

static struct json related_in(struct slice object)
{
	static const char *const path[] = { "_meta", RELATED, "taskId" };

	return scan_path(object, path, ARRAY_LEN(path));
}

/* ---- messages of servers ---- */

/*
 * Takes a task that was created. Returns false if it is malformed; what only looks like a task
 * passes.
 */
static bool take_made(struct edits *edits, struct upstream *upstream, struct slice result)
{
	struct json task = scan_member(result, SLICE_LIT("task"));
	struct json own = scan_member(task.text, SLICE_LIT("taskId"));

	if (task.type != JSON_OBJECT || own.type == JSON_ABSENT)
		return true;
	return live_tasks_note(upstream, task.text) && seal(edits, own);
}

static bool take_state(struct edits *edits, const struct call *call, struct slice result)
{
	struct json own = scan_member(result, SLICE_LIT("taskId"));

	return task_id_is_own(call->task, own) && live_tasks_note(call->request.upstream, result) &&
	       seal(edits, own);
}

static int seal_listed(struct slice task, void *arg)
{
	return seal(arg, scan_member(task, SLICE_LIT("taskId"))) ? 0 : -1;
}

/* When a process has come to the end of its list, the list goes on with the next process. */
static void take_next_cursor(struct edits *edits, const struct pool *pool, struct slice result)
{
	struct json cursor = scan_member(result, SLICE_LIT("nextCursor"));
	const struct upstream *next = pooled_task_next(pool, edits->child + 1);
	size_t begin = edits->texts.len;
	struct slice span = cursor.text;

	if (cursor.type != JSON_STRING && next == NULL)
		return;
	if (cursor.type == JSON_ABSENT) {
		span = slice_of(result.p + result.n - 1, 0);
		buf_append_str(&edits->texts, ",\"nextCursor\":");
	}
	if (cursor.type == JSON_STRING)
		cursor_append_sealed(&edits->texts, edits->child, cursor);
	else
		cursor_append_page(&edits->texts, upstream_child_number(next), 0);
	replace(edits, span, begin);
}

static bool take_list(struct edits *edits, const struct pool *pool, struct slice result)
{
	struct json tasks = scan_member(result, SLICE_LIT("tasks"));
	struct error err;

	if (tasks.type != JSON_ARRAY ||
	    scan_array(tasks.text, POOLED_TASK_PAGE_MAX, seal_listed, edits, &err) < 0)
		return false;
	take_next_cursor(edits, pool, result);
	return true;
}

static bool take_result(struct edits *edits, const struct call *call, struct slice result)
{
	struct slice method = call->method->name;
	struct upstream *upstream = call->request.upstream;

	(void)!seal(edits, related_in(result));
	if (call->method->id == METHOD_TOOLS_CALL)
		return take_made(edits, upstream, result);
	if (slice_is_equal(method, SLICE_LIT("tasks/list")))
		return take_list(edits, call->client->pool, result);
	if (slice_is_equal(method, SLICE_LIT("tasks/result")))
		live_tasks_end(upstream, call->task->own, false);
	else if (call->method->id == METHOD_TASKS)
		return take_state(edits, call, result);
	return true;
}

/* The error may be the outcome of the task. */
static void take_error(const struct call *call)
{
	if (call->task != NULL && slice_is_equal(call->method->name, SLICE_LIT("tasks/result")))
		live_tasks_end(call->request.upstream, call->task->own, true);
}

const struct envelope *pooled_task_response(struct convert *convert, const struct call *call,
					    const struct envelope *env)
{
	const struct upstream *upstream = call->request.upstream;
	struct edits edits = { .pool = call->client->pool };
	const struct envelope *changed;
	bool is_sound;

	if (upstream == NULL || !pooled_task_is_possible(upstream) ||
	    call->client->session == NULL ||
	    !(call->client->revision->features & upstream->revision->features & REVISION_TASKS))
		return env;
	if (env->kind == ENVELOPE_ERROR) {
		take_error(call);
		return env;
	}
	edits.child = upstream_child_number(upstream);
	is_sound = take_result(&edits, call, env->result.text);
	changed = finish(&edits, convert, env);
	return is_sound ? changed : NULL;
}

const struct envelope *pooled_task_message(struct convert *convert, const struct upstream *upstream,
					   const struct envelope *env)
{
	struct edits edits = { .pool = upstream->pool, .child = upstream_child_number(upstream) };

	if (!pooled_task_is_possible(upstream) || env->params.type != JSON_OBJECT)
		return env;
	(void)!seal(&edits, pooled_task_related(env));
	if (slice_is_equal(env->method, SLICE_LIT("notifications/tasks/status")))
		(void)!seal(&edits, scan_member(env->params.text, SLICE_LIT("taskId")));
	return finish(&edits, convert, env);
}

struct json pooled_task_related(const struct envelope *env)
{
	static const char *const path[] = { RELATED, "taskId" };

	return scan_path(env->meta.text, path, ARRAY_LEN(path));
}

/* ---- messages of clients ---- */

const struct envelope *pooled_task_answer(struct convert *convert, const struct client *client,
					  const struct upstream *upstream,
					  const struct envelope *env)
{
	struct json name = related_in(env->result.text);
	struct edits edits = { .pool = client->pool };
	struct task_id *id = NULL;
	struct error err;

	if (env->kind == ENVELOPE_RESULT && pooled_task_is_possible(upstream) &&
	    name.type == JSON_STRING)
		id = task_id_open(client, name, &err);
	if (id != NULL && id->child == upstream_child_number(upstream)) {
		buf_append_slice(&edits.texts, id->own);
		replace(&edits, name.text, 0);
	}
	free(id);
	return finish(&edits, convert, env);
}

/* ---- processes ---- */

struct upstream *pooled_task_next(const struct pool *pool, uint64_t child)
{
	struct upstream *next = NULL;

	LIST_FOREACH(node, &pool->upstreams) {
		struct upstream *upstream = container_of(node, struct upstream, link);

		if (upstream_is_serving(upstream) && live_tasks_had_some(upstream) &&
		    upstream_child_number(upstream) >= child &&
		    (next == NULL || upstream_child_number(upstream) < upstream_child_number(next)))
			next = upstream;
	}
	return next;
}
