/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No process is started for a request about a task: a task ends with its process.
 *
 * When a process no longer reports, the client's own subscription ends: the client will subscribe
 * again, and then miss the task in the acknowledgement. To leave it waiting for a task that nobody
 * works on would be worse.
 */
#include "router/modern_tasks.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/client.h"
#include "router/era.h"
#include "router/pool.h"
#include "router/process_slots.h"
#include "router/router.h"
#include "router/running_tasks.h"
#include "router/seal.h"
#include "session/principal.h"
#include "upstream/send.h"

/* ---- task id ---- */

/*
 * A task id never expires: the task ends with its process at the latest, and it is for the server
 * to say how long it keeps the task.
 */

/* Also fills *digest_r, with a digest that belongs to no request, and of a cluster to this node alone. */
static struct seal_binding binding_of(const struct router *router, const struct server *server,
				      const struct principal *caller, struct digest *digest_r)
{
	at_end(buf_fini) struct buf text = { 0 };

	buf_append_str(&text, "task");
	buf_append_slice(&text, router->sessions.table.node);
	digest_bytes(buf_slice(&text), digest_r);
	return (struct seal_binding){ .server = slice_str(server->conf.name),
				      .caller = &caller->identity,
				      .digest = digest_r };
}

/*
 * Appends, as a JSON string, this caller's form of a valid id of a task in this process of the
 * pool.
 */
static void task_id_append(struct buf *out, const struct pool *pool, const struct principal *caller,
			   uint64_t child, struct json own)
{
	struct digest digest;
	struct seal_binding binding = binding_of(pool->router, pool->server, caller, &digest);
	struct seal seal = {
		.kind = SEAL_TASK, .child = child, .expires_at_s = UINT64_MAX, .text = own.text
	};

	CHECK(task_id_is_fit(own));
	seal_append(out, &pool->router->seal_keys, &binding, &seal);
}

struct task_id *task_id_open(const struct client *client, struct json name, struct error *err)
{
	struct digest digest;
	struct seal_binding binding =
		binding_of(client->router, client->server, client->principal, &digest);
	at_end(buf_fini) struct buf plain = { 0 };
	struct task_id *id;
	struct seal seal;
	char *at;

	if (seal_open(&client->router->seal_keys, &binding, name, clock_wall_ms() / 1000, &plain,
		      &seal, err) < 0)
		return NULL;
	if (seal.kind != SEAL_TASK) {
		error_set(err, ERROR_INVALID, "it is no task's");
		return NULL;
	}
	id = mem_alloc(sizeof(*id) + seal.text.n + name.text.n);
	at = id->text;
	id->child = seal.child;
	id->own = mem_put_slice(&at, seal.text);
	id->name = mem_put_slice(&at, name.text);
	return id;
}

void task_id_log_refused(const struct client *client, size_t count, const struct error *err)
{
	LOG_BY(TASK_REFUSED, holder_number(client->principal, &client->peer),
	       LOG_STR("server", client->server->conf.name),
	       LOG_SLICE("principal", client->principal->identity.subject), LOG_INT("ids", count),
	       LOG_STR("reason", err->text));
}

/* Whether the server's id is the same, however it is spelled. */
static bool task_id_is_own(const struct task_id *id, struct json own)
{
	at_end(buf_fini) struct buf one = { 0 }, other = { 0 };

	if (!task_id_is_fit(own))
		return false;
	if (slice_is_equal(id->own, own.text))
		return true;
	return scan_decode_string((struct json){ JSON_STRING, true, id->own }, &one) == 0 &&
	       scan_decode_string(own, &other) == 0 &&
	       slice_is_equal(buf_slice(&one), buf_slice(&other));
}

/* ---- servers and processes ---- */

bool modern_tasks_are_known(const struct router *router, const struct server *server)
{
	LIST_EACH(const struct pool, pool, &router->slots.pools, link)
		if (pool->server == server && pool->agreed != NULL)
			return pool_is_modern(pool) && pool->capabilities.offers & OFFER_TASKS;
	return era_of(server) != ERA_LEGACY;
}

struct upstream *modern_tasks_find_upstream(const struct client *client, struct slice claims,
					    const struct task_id *id)
{
	LIST_EACH(struct pool, pool, &client->router->slots.pools, link) {
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

bool modern_tasks_is_coming(const struct client *client, const struct task_id *id)
{
	const struct router *router = client->router;

	LIST_EACH(const struct pool, pool, &router->slots.pools, link)
		if (pool->server == client->server && pool_is_taking(pool, id->child))
			return true;
	return kept_pools_hold(&router->kept_sessions.pools, client->server, id->child);
}

/* ---- statements about tasks ---- */

/*
 * What the server asks while it works on a task is checked like what it asks instead of giving a
 * result. MOD-MRTR-02
 */
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
	at_end(buf_fini) struct buf name = { 0 };

	if (call->method->id != METHOD_TOOLS_CALL || !call->client->knows_tasks ||
	    !may_ask(call->client, result) || !live_tasks_note(upstream, result))
		return false;
	live_tasks_count(upstream, own.text, &call->in_flight);
	task_id_append(&name, call->client->pool, call->client->principal,
		       upstream_child_number(upstream), own);
	era_append_task(out, "task", result, call->client->pool->server_info, buf_slice(&name));
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

/* The same for the params of notifications/tasks about this task. */
static bool task_result_append_told(struct buf *out, const struct client *client,
				    struct upstream *upstream, const struct task_id *id,
				    struct slice params)
{
	if (!may_ask(client, params) || !live_tasks_note(upstream, params))
		return false;
	era_append_task(out, NULL, params, slice_of(NULL, 0), id->name);
	return true;
}

/* ---- subscriptions/listen ---- */

/* At one process. */
struct task_listening {
	struct upstream_request request;
	struct task_listener *listener;
	struct list link;        /* of the listener */
	struct list of_upstream; /* those that get reports of its tasks */
	struct upstream *upstream;
	bool is_asked, is_agreed;
	size_t count;
	struct {
		struct task_id *id;
		bool is_agreed;
	} tasks[TASK_LISTENER_MAX];
};

/* ---- the end of a subscription ---- */

static void listening_free(struct task_listening *listening)
{
	struct loop *loop = listening->listener->call->client->router->loop;

	list_remove(&listening->link);
	list_remove(&listening->of_upstream);
	if (listening->is_asked)
		upstream_end_request(&listening->request, true);
	for (size_t i = 0; i < listening->count; i++)
		free(listening->tasks[i].id);
	loop_defer_free(loop, listening);
}

static bool is_awaited(const struct task_listener *listener)
{
	LIST_EACH(struct task_listening, listening, &listener->listening, link)
		if (!listening->is_agreed)
			return true;
	return false;
}

/* Nothing more comes by the subscription. The callbacks may end the listener. */
static void note_over(struct task_listening *listening)
{
	struct task_listener *listener = listening->listener;

	listening_free(listening);
	if (listener->is_settled)
		listener->ops->on_over(listener);
	else if (!is_awaited(listener))
		listener->ops->on_settled(listener);
}

static struct task_listening *of_request(struct upstream_request *request)
{
	return container_of(request, struct task_listening, request);
}

static void on_response(struct upstream_request *request, not_used const struct envelope *env)
{
	note_over(of_request(request));
}

static void on_malformed(struct upstream_request *request, not_used enum reason reason)
{
	note_over(of_request(request));
}

static const struct upstream_request_ops request_ops = {
	.on_response = on_response,
	.on_malformed = on_malformed,
};

/* ---- which tasks ---- */

static struct task_listening *find_listening(const struct task_listener *listener,
					     const struct upstream *upstream)
{
	LIST_EACH(struct task_listening, listening, &listener->listening, link)
		if (listening->upstream == upstream)
			return listening;
	return NULL;
}

static struct task_listening *add_listening(struct task_listener *listener,
					    struct upstream *upstream)
{
	struct task_listening *listening = mem_zalloc(sizeof(*listening));

	listening->request.ops = &request_ops;
	listening->request.is_lasting = true;
	listening->listener = listener;
	listening->upstream = upstream;
	list_init(&listening->link);
	list_append(&listener->listening, &listening->link);
	list_init(&listening->of_upstream);
	list_append(&upstream->task_listeners, &listening->of_upstream);
	return listening;
}

/* The tasks of a filter. */
struct noting {
	struct task_listener *listener;
	size_t refused; /* names that are no ids of the client's */
	struct error why;
};

static void add_task(struct task_listener *listener, struct task_id *id)
{
	const struct client *client = listener->call->client;
	struct upstream *upstream =
		modern_tasks_find_upstream(client, buf_slice(&client->pool->setup.claims), id);
	struct task_listening *listening;

	if (upstream == NULL) {
		free(id);
		return;
	}
	listening = find_listening(listener, upstream);
	if (listening == NULL)
		listening = add_listening(listener, upstream);
	listening->tasks[listening->count++].id = id;
}

/*
 * A task that is named twice, or that nobody works on, counts all the same: this bounds the cost of
 * a filter.
 */
static int note_task(struct slice element, void *arg)
{
	struct noting *noting = arg;
	struct task_listener *listener = noting->listener;
	struct task_id *id =
		task_id_open(listener->call->client, scan_value(element), &noting->why);

	if (id == NULL)
		noting->refused++;
	else
		add_task(listener, id);
	return ++listener->count < TASK_LISTENER_MAX ? 0 : -1;
}

void task_listener_init(struct task_listener *listener, const struct task_listener_ops *ops,
			struct call *call, struct slice filter)
{
	struct json ids = scan_member(filter, SLICE_LIT("taskIds"));
	struct noting noting = { .listener = listener };

	*listener = (struct task_listener){ .ops = ops, .call = call };
	list_init(&listener->listening);
	if (!pool_is_modern(call->client->pool) ||
	    !(call->client->pool->capabilities.offers & OFFER_TASKS))
		return;
	(void)!scan_array(ids.text, SIZE_MAX, note_task, &noting, NULL);
	if (noting.refused > 0)
		task_id_log_refused(call->client, noting.refused, &noting.why);
}

/* ---- asking ---- */

static void ask(struct task_listening *listening)
{
	struct upstream *upstream = listening->upstream;
	uint64_t id = upstream_next_id(upstream);
	at_end(buf_fini) struct buf params = { 0 };

	buf_append_str(&params, "{\"notifications\":{\"taskIds\":[");
	for (size_t i = 0; i < listening->count; i++) {
		buf_append_str(&params, i > 0 ? "," : "");
		buf_append_slice(&params, listening->tasks[i].id->own);
	}
	buf_append_str(&params, "]}}");
	send_request(upstream, id, SLICE_LIT("subscriptions/listen"), buf_slice(&params));
	upstream_add_request(upstream, &listening->request, id);
	listening->is_asked = true;
}

bool task_listener_begin(struct task_listener *listener)
{
	LIST_EACH_SAFE(struct task_listening, listening, &listener->listening, link)
		if (upstream_has_room(listening->upstream, listening->count * TASK_ID_BYTES_MAX))
			ask(listening);
		else
			listening_free(listening);
	return !list_is_empty(&listener->listening);
}

static void give_up(struct task_listening *listening, const char *why)
{
	if (listening->is_asked)
		send_given_up(listening->upstream, listening->request.id, why);
	listening_free(listening);
}

void task_listener_settle(struct task_listener *listener)
{
	listener->is_settled = true;
	LIST_EACH_SAFE(struct task_listening, listening, &listener->listening, link)
		if (!listening->is_agreed)
			give_up(listening, "it was not acknowledged in time");
}

void task_listener_append_ids(struct buf *out, const struct task_listener *listener)
{
	const char *comma = "";

	LIST_EACH(const struct task_listening, listening, &listener->listening, link) {
		for (size_t i = 0; i < listening->count; i++) {
			if (!listening->tasks[i].is_agreed)
				continue;
			buf_append_str(out, comma);
			buf_append_slice(out, listening->tasks[i].id->name);
			comma = ",";
		}
	}
}

void task_listener_end(struct task_listener *listener)
{
	if (listener->call == NULL)
		return;
	LIST_DRAIN(struct task_listening, listening, &listener->listening, link)
		give_up(listening, "nobody listens any more");
	listener->call = NULL;
}

/* ---- notifications ---- */

static int note_agreed(struct slice element, void *arg)
{
	struct task_listening *listening = arg;
	struct json own = scan_value(element);

	for (size_t i = 0; i < listening->count; i++) {
		if (task_id_is_own(listening->tasks[i].id, own))
			listening->tasks[i].is_agreed = true;
	}
	return 0;
}

static void take_acknowledged(struct task_listening *listening, const struct envelope *env)
{
	static const char *const path[] = { "notifications", "taskIds" };
	struct json ids = scan_path(env->params.text, path, ARRAY_LEN(path));
	struct task_listener *listener = listening->listener;

	if (listening->is_agreed)
		return;
	listening->is_agreed = true;
	(void)!scan_array(ids.text, TASK_LISTENER_MAX, note_agreed, listening, NULL);
	if (!listener->is_settled && !is_awaited(listener))
		listener->ops->on_settled(listener);
}

/* A client that reads slowly gets only the last report on a task: that is all there is to know. */
static void tell(struct call *call, const struct task_id *id, struct slice told)
{
	struct buf text = { 0 };
	at_end(msg_unref) struct msg *msg = NULL;

	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks\",\"params\":"
			      "{\"_meta\":{\"" MODERN_META "subscriptionId\":");
	buf_append_slice(&text, call->id);
	buf_append_str(&text, "},");
	buf_append_slice(&text, slice_of(told.p + 1, told.n - 1));
	buf_append_char(&text, '}');
	msg = msg_new_take(&text);
	/* Never a small number, unlike the ids of server requests. */
	(void)call->ops->on_message(call, STREAM_NOTIFICATION, (uintptr_t)id | 1ull << 63, msg);
}

static bool take_told(struct task_listening *listening, const struct envelope *env)
{
	struct task_listener *listener = listening->listener;
	struct json own = scan_member(env->params.text, SLICE_LIT("taskId"));
	struct call *call = listener->call;
	at_end(buf_fini) struct buf told = { 0 };
	bool is_told = false;

	if (!listening->is_agreed)
		return false;
	if (!listener->is_settled)
		listener->ops->on_settled(listener);
	for (size_t i = 0; i < listening->count && !is_told; i++) {
		const struct task_id *id = listening->tasks[i].id;

		if (!listening->tasks[i].is_agreed || !task_id_is_own(id, own))
			continue;
		is_told = task_result_append_told(&told, call->client, listening->upstream, id,
						  env->params.text);
		if (is_told)
			tell(call, id, buf_slice(&told));
	}
	return is_told;
}

static struct task_listening *find_named(const struct upstream *upstream, struct json id)
{
	struct upstream_request *request = upstream_find_request(upstream, id);

	return request != NULL && request->ops == &request_ops ? of_request(request) : NULL;
}

bool task_listener_take(struct upstream *upstream, const struct envelope *env)
{
	static const char *const path[] = { "_meta", MODERN_META "subscriptionId" };
	bool is_cancelled = slice_is_equal(env->method, SLICE_LIT("notifications/cancelled"));
	struct slice params = env->params.text;
	struct task_listening *listening =
		find_named(upstream, is_cancelled ? scan_member(params, SLICE_LIT("requestId")) :
						    scan_path(params, path, ARRAY_LEN(path)));

	if (listening == NULL)
		return false;
	if (is_cancelled)
		note_over(listening);
	else if (slice_is_equal(env->method, SLICE_LIT("notifications/subscriptions/acknowledged")))
		take_acknowledged(listening, env);
	else
		return slice_is_equal(env->method, SLICE_LIT("notifications/tasks")) &&
		       take_told(listening, env);
	return true;
}

void task_listener_lose(struct upstream *upstream)
{
	LIST_DRAIN(struct task_listening, listening, &upstream->task_listeners, of_upstream)
		note_over(listening);
}
