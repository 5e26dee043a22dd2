/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request is a member of a shared pool for as long as its call lasts; usually it finds a pool
 * that already knows its server.
 */
#include "router/client_request.h"

#include "base/mem.h"
#include "mcp/error.h"
#include "mcp/level.h"
#include "mcp/revision.h"
#include "router/bridged_call.h"
#include "router/call.h"
#include "router/call_check.h"
#include "router/change_listener.h"
#include "router/client.h"
#include "router/era.h"
#include "router/forward.h"
#include "router/modern_tasks.h"
#include "router/result.h"
#include "router/router.h"
#include "router/server_request.h"
#include "session/principal.h"
#include "upstream/send.h"

static struct client_request *of_member(struct pool_member *member)
{
	return container_of(member, struct client_request, member);
}

static struct client_request *of_client(struct client *client)
{
	return container_of(client, struct client_request, client);
}

void client_request_close(struct client *client)
{
	struct client_request *request = of_client(client);
	struct loop *loop = client->router->loop;

	change_listener_end(&request->listener);
	CHECK(client->call_count == 0);
	server_request_end_all(client, "the request has ended");
	if (client->pool != NULL)
		pool_leave(&request->member, REASON_DONE);
	list_remove(&request->link);
	client_fini(client);
	principal_unref(&client->principal);
	holder_unref(&request->holder);
	loop_defer_free(loop, request);
}

static void send_checked(struct call *call, const struct envelope *env)
{
	if (!bridged_call_take(call, env))
		forward_linked(call, env);
}

/* The pool knows its server. */
static void go_on(struct client_request *request, struct call *call, const struct envelope *env)
{
	if (pool_is_modern(request->client.pool) &&
	    request->client.pool->capabilities.offers & OFFER_TASKS)
		request->client.knows_tasks =
			task_extension_is_declared(env->client_capabilities.text);
	if (call->method->id == METHOD_LISTEN)
		request->listener = change_listener_begin(call, env);
	else
		call_check_begin(call, env, send_checked);
}

/* ---- what the pool reports ---- */

static struct call *opening_call(const struct client_request *request)
{
	CHECK(!wait_queue_is_empty(&request->opening));
	return call_of_waiter(wait_queue_first(&request->opening));
}

static void on_ready(struct pool_member *member, not_used const struct envelope *response)
{
	struct client_request *request = of_member(member);
	struct call *call = opening_call(request);
	at_end(msg_unref) struct msg *body = call->body;

	call_stop_wait(call);
	call->body = NULL;
	go_on(request, call, body->env);
}

static void on_refused(struct pool_member *member, not_used const struct envelope *response)
{
	/* It answers a request that was not the client's. */
	call_fail(opening_call(of_member(member)), REASON_HANDSHAKE_REFUSED);
}

static void on_failed(struct pool_member *member, enum reason reason)
{
	call_fail(opening_call(of_member(member)), reason);
}

static void on_notification(struct pool_member *member, uint64_t key, struct msg *msg)
{
	struct client_request *request = of_member(member);

	if (request->listener != NULL)
		change_listener_tell(request->listener, key, msg);
}

static const struct pool_member_ops member_ops = {
	.on_ready = on_ready,
	.on_refused = on_refused,
	.on_failed = on_failed,
	.on_notification = on_notification,
};

/* ---- the beginning ---- */

/* While a process is being started, the call waits as long as that takes. */
static void on_opening_timeout(struct wait_queue *queue, struct waiter *waiter)
{
	struct client_request *request = container_of(queue, struct client_request, opening);
	struct call *call = call_of_waiter(waiter);

	if (pool_is_coming(request->client.pool))
		call_wait(call, request->client.server->conf.queue_timeout_ms);
	else
		call_fail(call, REASON_OVER_LIMIT);
}

static const struct wait_queue_ops opening_ops = { .on_timeout = on_opening_timeout };

/* The log level that the request asks for, or LEVEL_NONE. MOD-LOG-01 */
static int wanted_level(const struct envelope *env)
{
	int level = level_find(scan_plain_string(env->log_level));

	return level >= 0 ? level : LEVEL_NONE;
}

/* Sets call->task if the request names a task. */
static void open_name(struct call *call, const struct envelope *env)
{
	struct error err;

	call->task = task_id_open(call->client, env->task_id, &err);
	if (call->task == NULL)
		task_id_log_refused(call->client, 1, &err);
}

/*
 * Adds the member to the pool that has the task, or will have its process. REASON_DONE: no such task, and
 * the call has been answered.
 */
static enum reason join_task(struct pool_member *member, struct call *call,
			     const struct envelope *env, bool *is_ready_r)
{
	struct client *client = member->client;
	at_end(buf_fini) struct buf claims = { 0 };
	struct buf class = { 0 };
	struct upstream *upstream = NULL;

	if (claims_append(&claims, &client->server->conf, client->principal) < 0)
		return REASON_CLAIM_MISSING;
	open_name(call, env);
	if (call->task != NULL)
		upstream = modern_tasks_find_upstream(client, buf_slice(&claims), call->task);
	if (upstream == NULL && call->task != NULL && modern_tasks_is_coming(client, call->task))
		return pool_join_request(member, env->client_capabilities.text, is_ready_r);
	if (upstream == NULL) {
		result_send_error(call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: unknown task"));
		return REASON_DONE;
	}
	*is_ready_r = true;
	pool_join_as(member, upstream->pool);
	/* What the client can be asked, in a pool whose clients differ in that. */
	if (upstream->pool->principal == NULL) {
		capability_class_append(&class, env->client_capabilities.text, true);
		client->capabilities = mem_dup_slice(buf_slice(&class));
		buf_fini(&class);
	}
	return REASON_NONE;
}

void client_request_open(struct router *router, struct server *server, struct principal *principal,
			 const struct peer *peer, struct call *call, struct admitted *admitted)
{
	const struct envelope *env = admitted_take(admitted, NULL);
	struct client_request *request = mem_zalloc(sizeof(*request));
	struct call_traced traced;
	bool is_ready = false;
	enum reason reason;

	client_init(&request->client, router, server, peer, &revision_modern);
	list_init(&request->link);
	list_append(&router->requests, &request->link);
	request->client.principal = principal_ref(principal);
	request->holder = holder_get(&router->sessions.holders, &router->requests, principal, peer);
	request->client.holder = request->holder;
	request->client.rights = call->rights = *admitted_rights(admitted);
	request->client.level = wanted_level(env);
	request->client.is_ready_to_be_asked = true;
	request->client.can_open_urls = call->method->flags & METHOD_ASKING &&
					asking_can_open_urls(env->client_capabilities.text);
	request->member.ops = &member_ops;
	request->member.client = &request->client;
	list_init(&request->member.link);
	wait_queue_init(&request->opening, &opening_ops);
	call_link(call, &request->client);
	call->in_flight = in_flight_new(&request->client, env);
	if (!call_record(call, &request->client, principal, env, admitted_origin(admitted))) {
		reason = REASON_UNRECORDED;
	} else if (call->method->id == METHOD_TASKS) {
		reason = join_task(&request->member, call, env, &is_ready);
		if (reason == REASON_DONE)
			return; /* there is no such task */
	} else {
		reason = pool_join_request(&request->member, env->client_capabilities.text,
					   &is_ready);
	}
	if (reason != REASON_NONE) {
		call_fail(call, reason);
		return;
	}
	env = call_span_mark(call, env, &traced);
	if (is_ready) {
		go_on(request, call, env);
	} else {
		call->body = msg_new_scanned(env);
		wait_queue_append(&request->opening, &call->waiter, env->text.n);
		call_wait(call, server->conf.queue_timeout_ms);
	}
	call_traced_fini(&traced);
}

/* ---- the end of all ---- */

void client_request_end_all(struct router *router, enum reason reason)
{
	LIST_DRAIN(struct client_request, request, &router->requests, link) {
		struct call *call = container_of(request->client.calls.next, struct call, link);

		call_give_up(call, "the gateway stops");
		call_fail(call, reason);
	}
}

void client_request_drain_some(struct router *router, const struct server *server)
{
	LIST_EACH_SAFE(struct client_request, request, &router->requests, link) {
		const struct client *client = &request->client;
		bool is_meant = server != NULL ? client->server == server :
						 principal_is_anonymous(client->principal);

		if (is_meant && request->listener != NULL)
			change_listener_finish(request->listener);
	}
}

void client_request_drain_all(struct router *router)
{
	LIST_EACH_SAFE(struct client_request, request, &router->requests, link)
		if (request->listener != NULL)
			change_listener_finish(request->listener);
}
