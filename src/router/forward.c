/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what the gateway answers itself, what it forwards and what it consumes. */
#include "router/forward.h"

#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "obs/counters.h"
#include "router/call.h"
#include "router/call_check.h"
#include "router/client.h"
#include "router/convert.h"
#include "router/dispatch.h"
#include "router/lists.h"
#include "router/pool.h"
#include "router/process_slots.h"
#include "router/result.h"
#include "router/router.h"
#include "router/server_request.h"
#include "router/subscriptions.h"
#include "session/session.h"
#include "upstream/send.h"

#define REMEMBERED_BYTES_MAX \
	(16 * 1024) /* of a request that is kept until it is answered. DEF-11 */

/* ---- requests ---- */

/* Refuses what cannot be remembered: the client would take it to be in force. DEF-11 */
static bool refuse_remembered(struct call *call, const struct envelope *env)
{
	if (env->text.n > REMEMBERED_BYTES_MAX)
		result_send_error(call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: the request is longer than 16 KiB"));
	else if (call->method->id != METHOD_SUBSCRIBE)
		return false;
	else if (env->uri.text.n > TEXT_SET_BYTES_MAX)
		result_send_error(call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: the uri is longer than 8 KiB"));
	else if (!text_set_has_room(&call->client->subscriptions, env->uri.text.n))
		result_send_no_room(call);
	else
		return false;
	return true;
}

/* Returns whether the call is answered. */
static bool set_level(struct call *call, const struct envelope *env)
{
	const struct pool *pool = call->client->pool;
	int level = client_named_level(env);

	if (pool->agreed != NULL && !(pool->capabilities.offers & OFFER_LOGGING))
		result_send_error(call, MCP_METHOD_NOT_FOUND,
				  SLICE_LIT("Method not found: the server does not offer logging"));
	else if (level < 0)
		result_send_error(call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: unknown log level"));
	else if (!pool_is_shared(pool) && !pool_is_modern(pool))
		return false;
	else {
		if (call->client->level != level)
			kept_session_note(call->client->kept);
		call->client->level = level;
		result_send_own(call, SLICE_LIT("{}"));
	}
	return true;
}

/* Answers requests that need not all reach the pool's servers. Returns whether it did, or will. */
static bool answer_for_pool(struct call *call, const struct envelope *env)
{
	const struct pool *pool = call->client->pool;
	bool is_about_subscription =
		call->method->id == METHOD_SUBSCRIBE || call->method->id == METHOD_UNSUBSCRIBE;

	if (pool_is_shared(pool) && call->method->needs & ~pool->capabilities.offers) {
		result_send_error(call, MCP_METHOD_NOT_FOUND,
				  SLICE_LIT("Method not found: the server does not offer this"));
		return true;
	}
	if (is_about_subscription && env->uri.type == JSON_STRING)
		return subscribe_take(call, env);
	/* Of an endpoint over several servers each caller has its own. */
	return pool_is_shared(pool) && !server_is_endpoint(&call->client->server->conf) &&
	       lists_take(call, env);
}

/*
 * Whether the call may be about tasks. Those of the two eras are different protocols. bridging.md
 * §2.5
 */
static bool has_tasks(const struct call *call)
{
	const struct client *client = call->client;

	if (client->revision->is_modern || pool_is_modern(client->pool))
		return client->revision->is_modern && call->task != NULL;
	return (client->revision->features & REVISION_TASKS) != 0;
}

/* Answers what the gateway answers itself. Returns whether it did, or will. */
static bool answer_locally(struct call *call, const struct envelope *env)
{
	const struct client *client = call->client;

	if (call->method->id == METHOD_PING) {
		result_send_own(call, SLICE_LIT("{}"));
		return true;
	}
	if (call->method->id == METHOD_DISCOVER && client->revision->is_modern) {
		result_send_discovery(call);
		return true;
	}
	/* To a modern server it would be a question of ours, whether it is alive. */
	if (call->method->id == METHOD_DISCOVER && pool_is_modern(client->pool)) {
		result_send_error(call, MCP_METHOD_NOT_FOUND,
				  SLICE_LIT("Method not found: it is not in this revision"));
		return true;
	}
	if (call->method->flags & METHOD_REMEMBERED && refuse_remembered(call, env))
		return true;
	if (call->method->id == METHOD_TASKS && !has_tasks(call)) {
		result_send_error(call, MCP_METHOD_NOT_FOUND,
				  SLICE_LIT(
					  "Method not found: there are no tasks in this revision"));
		return true;
	}
	if (call->method->id == METHOD_SET_LEVEL)
		return set_level(call, env);
	return answer_for_pool(call, env);
}

/* The client has said, or shown, that it is initialized. */
static void note_ready(struct client *client)
{
	if (client->is_ready_to_be_asked)
		return;
	client->is_ready_to_be_asked = true;
	server_request_release_held(client);
}

void forward_request(struct client *client, struct call *call, struct admitted *admitted)
{
	const struct envelope *env = admitted_take(admitted, client);
	struct call_traced traced;

	CHECK(client->pool != NULL && call->state == CALL_NEW);
	client->rights = call->rights = *admitted_rights(admitted);
	call->batch = admitted_count(admitted);
	if (call->method->id != METHOD_PING)
		note_ready(client);
	call_link(call, client);
	call->in_flight = in_flight_new(client, env);
	if (call_record(call, client, client->principal, env, admitted_origin(admitted))) {
		call_check_begin(call, call_span_mark(call, env, &traced), forward_linked);
		call_traced_fini(&traced);
	} else {
		call_fail(call, REASON_UNRECORDED);
	}
}

void forward_linked(struct call *call, const struct envelope *env)
{
	if (!answer_locally(call, env))
		dispatch_call(call, env);
}

void forward_deny(struct call *call)
{
	if (call->state != CALL_WAITING && call->state != CALL_SENT)
		return;
	if (call->method->id == METHOD_INITIALIZE) {
		session_end(call->client->session, REASON_DENIED);
		return;
	}
	call_give_up(call, "the token has been revoked");
	call_fail(call, REASON_DENIED);
}

/* ---- notifications ---- */

static struct call *find_call(const struct client *client, struct slice id)
{
	LIST_EACH(struct call, call, &client->calls, link)
		if (value_is_same_id(call->id, id) && call->method->id != METHOD_INITIALIZE)
			return call;
	return NULL;
}

/*
 * Cancels all calls of the session with that id, whose type counts as well. A front that is told of
 * one may end the session, and so the other calls. bridging.md §1.1 (6)
 */
static void cancel_calls(struct client *client, const struct envelope *env)
{
	struct json id = scan_member(env->params.text, SLICE_LIT("requestId"));
	struct json reason = scan_member(env->params.text, SLICE_LIT("reason"));
	at_end(buf_fini) struct buf text = { 0 };
	struct call *call = find_call(client, id.text);

	if (call == NULL)
		counter_add(COUNTER_CLIENT_STRAY_CANCELS);
	if (reason.type == JSON_STRING)
		splice_append(&text, reason.text, NULL, 0, SPLICE_ESCAPE_SEPARATORS);
	for (; call != NULL; call = find_call(client, id.text)) {
		if (call->state == CALL_SENT)
			send_cancelled(call->request.upstream, call->request.id, buf_slice(&text));
		call_cancel(call);
	}
}

/* Forwards the client's progress on a request of the server. bridging.md §1.1 (5) */
static void forward_progress(struct client *client, const struct envelope *env)
{
	struct json token = env->progress_of;
	const struct server_request *request = server_request_find(client, token);
	at_end(send_edits_fini) struct send_edits edits = { .count = 0 };

	if (request == NULL || request->token.n == 0 || request->asker != NULL ||
	    !upstream_has_room(request->upstream, env->text.n))
		return;
	send_edits_add(&edits, token.text, request->token);
	send_edits_add_meta(&edits, env, (struct slice){ NULL, 0 });
	send_message(request->upstream, env, &edits);
}

/*
 * Only to a process that serves this client alone: what one of many clients says is not for all. A
 * process that is still being started is not told later.
 */
static void forward_to_own_server(struct client *client, const struct envelope *env,
				  const struct audit_origin *origin)
{
	struct upstream *own = pool_own_upstream(client->pool);
	at_end(send_edits_fini) struct send_edits edits = { .count = 0 };

	/* In the modern era, clients send no notifications but cancellations. */
	if (own == NULL || !upstream_is_serving(own) || upstream_is_modern(own) ||
	    !upstream_has_room(own, env->text.n) || !call_record_notification(client, env, origin))
		return;
	send_edits_add_meta(&edits, env, (struct slice){ NULL, 0 });
	send_message(own, env, &edits);
}

void forward_notification(struct client *client, struct admitted *admitted)
{
	const struct envelope *env = admitted_take(admitted, client);
	const struct method *method = method_find(env->method);

	if (method->id == METHOD_INITIALIZED)
		note_ready(client);
	else if (method->id == METHOD_CANCELLED)
		cancel_calls(client, env);
	else if (method->id == METHOD_PROGRESS)
		forward_progress(client, env);
	else if (method->id != METHOD_ROOTS_CHANGED || client->tells_roots)
		forward_to_own_server(client, env, admitted_origin(admitted));
}

/* ---- answers ---- */

/* Returns whether anybody waits for the answer. */
static bool answer_server(struct client *client, const struct envelope *env)
{
	struct server_request *request = server_request_find(client, env->id);
	struct send_edits edits = { .count = 0 };
	at_end(convert_fini) struct convert convert = { .text = { 0 } };

	if (request == NULL || request->held != NULL)
		return false;
	if (request->asker != NULL) {
		server_request_give(request, env);
		return true;
	}
	env = convert_answer(&convert,
			     revision_lacks(request->upstream->revision, client->revision),
			     request->method, env);
	send_edits_add(&edits, env->id.text, request->id);
	send_message(request->upstream, env, &edits);
	server_request_close(request);
	return true;
}

void forward_answer(struct client *client, struct admitted *admitted)
{
	if (!answer_server(client, admitted_take(admitted, client)))
		counter_add(COUNTER_CLIENT_STRAY_RESPONSES);
}

void forward_linked_progress(struct client *client, const struct envelope *env)
{
	forward_progress(client, env);
}

void forward_linked_answer(struct client *client, const struct envelope *env)
{
	(void)answer_server(client, env); /* false: it was cancelled, or the server is gone */
}

/* ---- calls that a reload has overtaken ---- */

/*
 * Its front judges the call as admission does. What only a server's list can tell follows, as on
 * the call's first way. Limits are not asked: the call was counted when it came.
 */

static void send_judged(struct call *call, const struct envelope *env)
{
	const struct client *client = call->client;

	/* As in forward: of an endpoint over several servers each caller has its own lists. */
	if (!pool_is_shared(client->pool) || server_is_endpoint(&client->server->conf) ||
	    !lists_take(call, env))
		dispatch_call(call, env);
}

void forward_again(struct call *call, const struct envelope *env)
{
	struct call_refusal refusal;

	CHECK(call->state == CALL_WAITING && call->waiter.queue == NULL);
	call->configuration = call->client->router->configuration;
	msg_unref(&call->body); /* whoever needs it again copies the message */
	if (call->ops->judge == NULL) {
		send_judged(call, env);
	} else if (!call->ops->judge(call, env, &refusal)) {
		call->refused_by = refusal.rule;
		call->refused_as = refusal.word;
		result_send_error(call, refusal.code, slice_str(refusal.text));
	} else {
		call_check_begin(call, env, send_judged);
	}
}
