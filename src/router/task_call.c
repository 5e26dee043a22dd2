/* SPDX-License-Identifier: Apache-2.0 */
/* No process is started for such a call: a task ends with its process. */
#include "router/task_call.h"

#include "base/mem.h"
#include "mcp/error.h"
#include "router/call.h"
#include "router/capability_class.h"
#include "router/client.h"
#include "router/cursor.h"
#include "router/dispatch.h"
#include "router/pool_demand.h"
#include "router/pooled_task.h"
#include "router/result.h"
#include "router/router.h"
#include "router/running_tasks.h"
#include "session/principal.h"
#include "upstream/claims.h"

struct upstream *task_call_find_upstream(const struct client *client, struct slice claims,
					 const struct task_id *id)
{
	LIST_FOREACH(node, &client->router->slots.pools) {
		struct pool *pool = container_of(node, struct pool, link);
		struct upstream *upstream = NULL;

		if (pool->server == client->server && pool_is_modern(pool) &&
		    (pool->principal == NULL || pool->principal == client->principal) &&
		    slice_is_equal(buf_slice(&pool->setup.claims), claims))
			upstream = pool_find_upstream(pool, id->child);
		if (upstream != NULL)
			return upstream;
	}
	return NULL;
}

/* Sets call->task if the request names a task. */
static void open_name(struct call *call, const struct envelope *env)
{
	struct error err;

	call->task = task_id_open(call->client, env->task_id, &err);
	if (call->task == NULL)
		task_id_log_refused(call->client, 1, &err);
}

enum reason task_call_join(struct pool_member *member, struct call *call,
			   const struct envelope *env)
{
	struct client *client = member->client;
	struct buf claims = { 0 }, class = { 0 };
	struct upstream *upstream = NULL;

	if (claims_append(&claims, &client->server->conf, client->principal) < 0) {
		buf_fini(&claims);
		return REASON_CLAIM_MISSING;
	}
	open_name(call, env);
	if (call->task != NULL)
		upstream = task_call_find_upstream(client, buf_slice(&claims), call->task);
	buf_fini(&claims);
	if (upstream == NULL) {
		result_send_error(call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: unknown task"));
		return REASON_DONE;
	}
	pool_join_as(member, upstream->pool);
	/* What the client can be asked, in a pool whose clients differ in that. */
	if (upstream->pool->principal == NULL) {
		capability_class_append(&class, env->client_capabilities.text, true);
		client->capabilities = mem_dup_slice(buf_slice(&class));
		buf_fini(&class);
	}
	return REASON_NONE;
}

/* ---- calls of sessions ---- */

/* Dispatches it with this cursor (a JSON string) or none, in place of the client's. */
static void dispatch_list(struct call *call, const struct envelope *env, struct slice cursor)
{
	struct buf text = { 0 };
	struct envelope again;
	struct error err;

	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_append_slice(&text, env->id.text);
	buf_append_str(&text, ",\"method\":\"tasks/list\",\"params\":{");
	if (env->meta.type == JSON_OBJECT) {
		buf_append_str(&text, "\"_meta\":");
		buf_append_slice(&text, env->meta.text);
	}
	if (cursor.n > 0) {
		buf_append_str(&text,
			       env->meta.type == JSON_OBJECT ? ",\"cursor\":" : "\"cursor\":");
		buf_append_slice(&text, cursor);
	}
	buf_append_str(&text, "}}");
	if (scan_envelope(buf_slice(&text), &call->client->router->limits, 0, &again, &err) < 0)
		call_fail(call,
			  REASON_PROTOCOL_ERROR); /* cannot happen: its parts were valid before */
	else
		dispatch_call(call, &again);
	buf_fini(&text);
}

/* Lists the tasks of one process after the other; those of a process that is gone are gone. */
static void forward_list(struct call *call, const struct envelope *env)
{
	const struct upstream *next;
	struct buf inside = { 0 };
	uint64_t child = 0, page;

	if (principal_is_anonymous(call->client->principal)) {
		result_send_error(call, MCP_METHOD_NOT_FOUND,
				  SLICE_LIT("Method not found: callers are not told apart here"));
	} else if (env->cursor.type != JSON_ABSENT &&
		   cursor_open(env->cursor, &child, &inside) == 0) {
		call->preferred_child = child;
		dispatch_list(call, env, buf_slice(&inside));
	} else if (env->cursor.type != JSON_ABSENT &&
		   cursor_open_page(env->cursor, &child, &page) < 0) {
		result_send_error(call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: unknown cursor"));
	} else {
		next = pooled_task_next(call->client->pool, child);
		if (next == NULL) {
			result_send_own(call, SLICE_LIT("{\"tasks\":[]}"));
		} else {
			call->preferred_child = upstream_child_number(next);
			dispatch_list(call, env, slice_of(NULL, 0));
		}
	}
	buf_fini(&inside);
}

void task_call_forward(struct call *call, const struct envelope *env)
{
	static const struct slice about_one[] = { SLICE("tasks/get"), SLICE("tasks/result"),
						  SLICE("tasks/cancel") };
	struct slice method = call->method->name;

	if (slice_is_equal(method, SLICE_LIT("tasks/list"))) {
		forward_list(call, env);
		return;
	}
	if (!slices_has((struct slices){ about_one, ARRAY_LEN(about_one) }, method)) {
		result_send_error(call, MCP_METHOD_NOT_FOUND,
				  SLICE_LIT("Method not found: it is of another revision"));
		return;
	}
	open_name(call, env);
	if (call->task == NULL)
		result_send_error(call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: unknown task"));
	else
		dispatch_call(call, env);
}

/* ---- whether there are any ---- */

bool task_call_is_known(const struct router *router, const struct server *server)
{
	LIST_FOREACH(node, &router->slots.pools) {
		const struct pool *pool = container_of(node, struct pool, link);

		if (pool->server == server && pool->agreed != NULL)
			return pool_is_modern(pool) && pool->capabilities.offers & OFFER_TASKS;
	}
	return era_of(server) != ERA_LEGACY;
}
