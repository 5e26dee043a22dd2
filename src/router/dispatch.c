/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request is passed on byte for byte, except for its id, progress token and cursor, and for members
 * that its _meta must not have.
 */
#include "router/dispatch.h"

#include "base/text.h"
#include "mcp/error.h"
#include "mcp/level.h"
#include "mcp/revision.h"
#include "router/call.h"
#include "router/client.h"
#include "router/convert.h"
#include "router/pages.h"
#include "router/era.h"
#include "router/input_loop.h"
#include "router/listen.h"
#include "router/modern_tasks.h"
#include "router/pool.h"
#include "router/process_slots.h"
#include "router/result.h"
#include "router/router.h"
#include "router/running_tasks.h"
#include "upstream/send.h"

#define KEPT_BYTES_MAX (16 * 1024) /* of a request that may be needed again. DEF-11 */
#define OWN_QUEUE_CALLS 4096       /* of one session while its process is started */

/* ---- the request ---- */

/*
 * The request is needed again once the server has agreed to what the client has to remember; in a
 * shared pool, to ask another upstream; and if the server requires more input.
 */
static bool keeps_body(const struct call *call, const struct upstream *upstream, size_t size)
{
	return (call->method->flags & METHOD_REMEMBERED) != 0 ||
	       input_loop_may_begin(call, upstream) ||
	       (size <= KEPT_BYTES_MAX && call->method->flags & METHOD_SAFE &&
		pool_is_shared(call->client->pool));
}

void dispatch_tell_level(struct upstream *upstream, int level)
{
	at_end(buf_fini) struct buf params = { 0 };

	CHECK(upstream_is_serving(upstream));
	if (level == LEVEL_NONE)
		return; /* its log lines are dropped */
	if (upstream_is_modern(upstream))
		return; /* each request names its level */
	if (level < 0 && upstream->level >= 0)
		level = LEVEL_LEAST;
	if (level == upstream->level)
		return;
	upstream->level = level;
	buf_printf(&params, "{\"level\":\"%.*s\"}", SLICE_ARG(level_name(level)));
	send_request(upstream, upstream_next_id(upstream), SLICE_LIT("logging/setLevel"),
		     buf_slice(&params));
}

/*
 * Appends to `inside` the server's cursor that is in one of ours. Returns the request's cursor, if
 * it is one of ours. bridging.md §1.1 (7)
 */
static struct json open_cursor(const struct upstream *upstream, const struct call *call,
			       const struct envelope *env, struct buf *inside)
{
	const struct json none = { .type = JSON_ABSENT };
	struct json cursor = env->cursor;
	uint64_t child;

	if (!pool_is_shared(upstream->pool) || !(call->method->flags & METHOD_PAGED))
		return none;
	return cursor.type != JSON_ABSENT && cursor_open(cursor, &child, inside) == 0 ? cursor :
											none;
}

static void send_legacy(struct upstream *upstream, struct call *call, const struct envelope *env,
			uint64_t id, struct json cursor, struct slice inside)
{
	at_end(send_edits_fini) struct send_edits edits = { .count = 0 };
	char digits[20];
	struct slice id_text = slice_of(digits, text_format_u64(id, digits));

	send_edits_add(&edits, env->id.text, id_text);
	send_edits_add_meta(&edits, env, call->token.n > 0 ? id_text : (struct slice){ NULL, 0 });
	if (cursor.type != JSON_ABSENT)
		send_edits_add(&edits, cursor.text, inside);
	send_message(upstream, env, &edits);
}

static void send_edited(struct upstream *upstream, struct call *call, const struct envelope *env,
			uint64_t id)
{
	at_end(buf_fini) struct buf inside = { 0 };
	struct json cursor = open_cursor(upstream, call, env, &inside);

	if (upstream_is_modern(upstream))
		input_loop_send(upstream, call, env, id, buf_slice(&inside));
	else
		send_legacy(upstream, call, env, id, cursor, buf_slice(&inside));
	/* A request with a cursor is not repeated elsewhere: no other process knows the cursor. */
	if (call->body == NULL && keeps_body(call, upstream, env->text.n) &&
	    cursor.type == JSON_ABSENT)
		call->body = msg_new_scanned(env);
}

/* ---- waiting ---- */

/*
 * What waits is bounded like what waits for one process's stdin. When that is full, the caller who
 * has most loses a place to one who would have less. Returns whether a call of `size` bytes may
 * wait.
 */
static bool find_place(struct pool *pool, const void *fairness_key, size_t size)
{
	const struct server_conf *conf = &pool->server->conf;
	const struct fair_queue *queue = &pool->queue;
	size_t calls_max = pool_is_shared(pool) ? conf->queue_calls : OWN_QUEUE_CALLS;

	for (;;) {
		bool is_full = queue->count >= calls_max;
		struct waiter *excess;

		if (!is_full && (queue->bytes == 0 || queue->bytes + size <= conf->queue_max))
			return true;
		excess = fair_queue_find_excess(queue, fairness_key,
						is_full ? FAIR_QUEUE_COUNT : FAIR_QUEUE_BYTES,
						is_full ? 1 : size);
		if (excess == NULL)
			return false;
		call_fail(call_of_waiter(excess), REASON_OVER_LIMIT);
	}
}

static void push(struct pool *pool, struct call *call)
{
	fair_queue_push(&pool->queue, &call->waiter, client_fairness_key(call->client),
			call->body->text.n);
	call_wait(call, pool->server->conf.queue_timeout_ms);
}

static void enqueue(struct pool *pool, struct call *call)
{
	enum reason reason = REASON_OVER_LIMIT;

	if (find_place(pool, client_fairness_key(call->client), call->body->text.n)) {
		push(pool, call);
		reason = pool_note_wanted(pool);
	}
	if (reason != REASON_NONE)
		call_fail(call, reason);
}

void dispatch_again(struct call *call)
{
	struct pool *pool = call->client->pool;

	CHECK(call->body != NULL && call->waiter.queue == NULL);
	push(pool, call);
	pool_wake(pool);
}

/* ---- what becomes of a call ---- */

static struct call *call_of(struct upstream_request *request)
{
	return container_of(request, struct call, request);
}

/* Lets the client remember, for later processes, what the server of its session has agreed to. */
static void remember_level(struct call *call)
{
	struct client *client = call->client;
	int level;

	if (call->method->id != METHOD_SET_LEVEL || call->body == NULL)
		return;
	level = client_named_level(call->body->env);
	if (client->level != level)
		kept_session_note(client->kept);
	client->level = level;
}

static void on_response(struct upstream_request *request, const struct envelope *env)
{
	struct call *call = call_of(request);

	call_note_heard(call);
	if (upstream_is_modern(request->upstream) && input_loop_take(call, env))
		return;
	running_tasks_note_response(call, env);
	if (env->kind == ENVELOPE_RESULT)
		remember_level(call);
	call->may_pause = request->upstream->gives_way;
	result_send(call, env);
}

static void on_malformed(struct upstream_request *request, enum reason reason)
{
	call_fail(call_of(request), reason);
}

static void on_lost(struct upstream_request *request, enum reason reason)
{
	struct call *call = call_of(request);

	CHECK(pool_is_shared(call->client->pool));
	/* A safe call had no effect, or has the same effect when repeated. bridging.md §4, I5 */
	if (call->method->flags & METHOD_SAFE && !call->is_repeated && call->body != NULL) {
		call_recall(call);
		enqueue(call->client->pool, call);
	} else {
		call_fail(call, reason);
	}
}

static const struct upstream_request_ops request_ops = {
	.on_response = on_response,
	.on_malformed = on_malformed,
	.on_lost = on_lost,
};

bool dispatch_is_of_call(const struct upstream_request *request)
{
	return request->ops == &request_ops;
}

/* ---- sending ---- */

/*
 * Whether the call gets the process to itself. A log line does not say which request it is about: a
 * modern client that wants log lines also gets the process to itself if it is idle; otherwise it
 * gets no log lines. bridging.md §1.4
 */
static bool takes_lease(const struct upstream *upstream, const struct call *call)
{
	const struct pool *pool = upstream->pool;
	const struct client *client = call->client;

	return pool_is_leased(pool) ||
	       (!upstream_is_modern(upstream) && client->revision->is_modern &&
		client->level != LEVEL_NONE && pool->principal != NULL &&
		pool->capabilities.offers & OFFER_LOGGING && upstream_load(upstream) == 0);
}

/*
 * The modern era has no such requests: a single request says what is subscribed to. One to unsubscribe
 * comes this far only if it names no resource, and is refused for that.
 */
static void send_subscribing(struct upstream *upstream, struct call *call,
			     const struct envelope *env)
{
	uint64_t id = upstream_next_id(upstream);
	at_end(buf_fini) struct buf room = { 0 };

	if (call->body == NULL)
		call->body = msg_new_scanned(env);
	call->request.ops = &request_ops;
	call_sent(call, upstream, id);
	listen_subscribe(upstream, id, text_set_spell(env->uri, &room));
}

/* tasks/result is not answered for as long as the task works. UTIL-TASK-01 */
static uint64_t timeout_of(const struct call *call, const struct envelope *env)
{
	const struct server_conf *conf = &call->client->server->conf;

	if (call->method->id == METHOD_TOOLS_CALL)
		return server_tool_timeout_ms(conf, scan_plain_string(env->name));
	if (slice_is_equal(call->method->name, SLICE_LIT("tasks/result")))
		return conf->request_timeout_max_ms;
	return conf->request_timeout_ms;
}

static void send_to(struct upstream *upstream, struct call *call, const struct envelope *env)
{
	unsigned int differing = client_lacks(call->client, upstream) |
				 revision_lacks(upstream->revision, call->client->revision);
	struct convert convert, bridge;
	bool is_lease;
	uint64_t id;

	convert_init(&convert);
	convert_init(&bridge);
	CHECK(upstream->pool == call->client->pool && upstream_is_serving(upstream));
	if (call_is_stale(call)) {
		call->client->router->on_stale(call, env);
		return;
	}
	if (!upstream_has_room(upstream, env->text.n)) {
		call_fail(call, REASON_OVER_LIMIT);
		return;
	}
	if (upstream_is_modern(upstream) &&
	    (call->method->id == METHOD_SUBSCRIBE || call->method->id == METHOD_UNSUBSCRIBE)) {
		send_subscribing(upstream, call, env);
		return;
	}
	env = convert_request(&convert, differing, call->method, env);
	if (call->client->revision->is_modern && !upstream_is_modern(upstream))
		env = era_request(&bridge, env);
	if (takes_lease(upstream, call))
		dispatch_tell_level(upstream, call->client->level);
	id = upstream_next_id(upstream);
	send_edited(upstream, call, env, id);
	call->timeout_ms = timeout_of(call, env);
	convert_fini(&convert);
	convert_fini(&bridge);
	call->request.ops = &request_ops;
	is_lease = takes_lease(upstream, call);
	call_sent(call, upstream, id);
	if (is_lease)
		pool_lease(upstream, call);
	if (upstream_is_worn(upstream) && pool_is_shared(upstream->pool) &&
	    upstream->state == UPSTREAM_READY)
		upstream_retire(upstream);
}

void dispatch_on_turn(struct upstream *upstream, struct call *call)
{
	at_end(msg_unref) struct msg *body = msg_ref(call->body);

	if (!keeps_body(call, upstream, body->text.n))
		msg_unref(&call->body);
	send_to(upstream, call, body->env);
}

/* ---- the choice ---- */

/*
 * The rest of a list is known only to the process that gave its first part. A process that works on
 * a call which has it to itself is not asked anything else meanwhile.
 */
static void dispatch_rest(struct pool *pool, struct call *call, const struct envelope *env)
{
	struct upstream *upstream = NULL;
	at_end(buf_fini) struct buf inside = { 0 };
	uint64_t child;

	if (cursor_open(env->cursor, &child, &inside) == 0)
		upstream = pool_find_upstream(pool, child);
	if (upstream == NULL)
		result_send_error(call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: unknown cursor"));
	else if (!pool_may_load(upstream, false) ||
		 (pool_is_leased(pool) && upstream->state != UPSTREAM_READY))
		call_fail(call, REASON_OVER_LIMIT);
	else
		send_to(upstream, call, env);
}

/* No other process knows the task. */
static void dispatch_to_task(struct pool *pool, struct call *call, const struct envelope *env)
{
	struct upstream *upstream = pool_find_upstream(pool, call->task->child);

	if (upstream == NULL && modern_tasks_is_coming(call->client, call->task)) {
		pool_wake(pool); /* takes it, if it is for this pool */
		call_fail(call, REASON_OVER_LIMIT);
		return;
	}
	if (upstream == NULL)
		result_send_error(call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: unknown task"));
	else if (!pool_may_load(upstream, false))
		call_fail(call, REASON_OVER_LIMIT);
	else
		send_to(upstream, call, env);
}

void dispatch_call(struct call *call, const struct envelope *env)
{
	struct pool *pool = call->client->pool;
	struct upstream *upstream = NULL;

	CHECK(call->state == CALL_WAITING && call->waiter.queue == NULL);
	if (call->task != NULL) {
		dispatch_to_task(pool, call, env);
		return;
	}
	if (pool_is_shared(pool) && call->method->flags & METHOD_PAGED &&
	    env->cursor.type != JSON_ABSENT && !cursor_is_empty(env->cursor)) {
		dispatch_rest(pool, call, env);
		return;
	}
	if (call->preferred_child > 0)
		upstream = pool_find_upstream(pool, call->preferred_child);
	if (upstream != NULL && (!pool_may_load(upstream, false) ||
				 (pool_is_leased(pool) && upstream->state != UPSTREAM_READY)))
		upstream = NULL;
	if (upstream == NULL && !pool_is_waited_for(pool))
		upstream = pool_find_room(pool, env->text.n, false);
	if (upstream != NULL) {
		send_to(upstream, call, env);
		return;
	}
	if (call->body == NULL)
		call->body = msg_new_scanned(env);
	enqueue(pool, call);
}
