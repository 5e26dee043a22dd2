/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server asks while it works on a task is checked like what it asks instead of giving a
 * result. MOD-MRTR-02
 */
#include "router/task_result.h"

#include "jsonrpc/scan.h"
#include "router/call.h"
#include "router/client.h"
#include "router/era.h"
#include "router/pool.h"
#include "router/request_state.h"
#include "router/running_tasks.h"

static bool may_ask(const struct client *client, struct slice task)
{
	struct json requests = scan_member(task, SLICE_LIT("inputRequests"));

	return requests.type == JSON_ABSENT ||
	       (requests.type == JSON_OBJECT && request_state_may_ask(client, requests.text));
}

/* The server alone decides that a call becomes a task, if the client has said it knows tasks. */
static bool append_made(struct buf *out, struct call *call, struct slice result)
{
	struct json own = scan_member(result, SLICE_LIT("taskId"));
	struct upstream *upstream = call->request.upstream;
	struct buf name = { 0 };

	if (call->method->id != METHOD_TOOLS_CALL || !call->client->knows_tasks ||
	    !may_ask(call->client, result) || !live_tasks_note(upstream, result))
		return false;
	live_tasks_count(upstream, own.text, &call->in_flight);
	task_id_append(&name, call->client->pool, call->client->principal,
		       upstream_child_number(upstream), own);
	era_append_task(out, "task", result, call->client->pool->server_info, buf_slice(&name));
	buf_fini(&name);
	return true;
}

bool task_result_append(struct buf *out, struct call *call, enum modern_result kind,
			struct slice result)
{
	bool is_state = slice_is_equal(call->method->name, SLICE_LIT("tasks/get"));

	if (call->task == NULL)
		return kind == MODERN_TASK && append_made(out, call, result);
	/* Servers repeat what they said when they created the task, including resultType. */
	if (kind != MODERN_COMPLETE && (kind != MODERN_TASK || !is_state))
		return false;
	if (is_state &&
	    (!task_id_is_own(call->task, scan_member(result, SLICE_LIT("taskId"))) ||
	     !may_ask(call->client, result) || !live_tasks_note(call->request.upstream, result)))
		return false;
	era_append_task(out, "complete", is_state ? result : SLICE_LIT("{}"),
			call->client->pool->server_info,
			is_state ? call->task->name : slice_of(NULL, 0));
	return true;
}

bool task_result_append_told(struct buf *out, const struct client *client,
			     struct upstream *upstream, const struct task_id *id,
			     struct slice params)
{
	if (!may_ask(client, params) || !live_tasks_note(upstream, params))
		return false;
	era_append_task(out, NULL, params, slice_of(NULL, 0), id->name);
	return true;
}
