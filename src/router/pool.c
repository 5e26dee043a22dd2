/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets which child, and when there are more or fewer of them. A call goes to the child that has the fewest;
 * when all have as many as they may, another one is started; when there may not be another, calls wait.
 *
 * Invariant: while calls or new sessions wait, a child is on its way to them, or works, or the wait is limited.
 */
#include "router/pool.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/claims.h"
#include "router/capability_class.h"
#include "router/convert.h"
#include "router/cursor.h"
#include "router/deliver.h"
#include "router/forward.h"
#include "router/upstream.h"
#include "router/process_slots.h"
#include "router/route.h"
#include "router/sharing.h"
#include "router/warm.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

#define RETRY_MS 1000
#define OWN_QUEUE_CALLS 4096 /* of one session while its child is started */

/* ---- the life of a pool ---- */

static void pool_on_pump(struct task *task);
static void pool_on_retry(struct timer *timer);

static struct pool *pool_new(struct router *router, struct server *server)
{
	struct pool *pool = mem_zalloc(sizeof(*pool));

	pool->router = router;
	pool->server = server;
	pool->is_pool = server->conf.isolation != ISOLATION_SESSION;
	list_init(&pool->members);
	list_init(&pool->upstreams);
	queue_init(&pool->queue);
	task_init(&pool->pump, pool_on_pump);
	timer_init(&pool->retry, pool_on_retry);
	sharing_init(pool);
	list_init(&pool->link);
	return pool;
}

static void pool_free(struct pool *pool)
{
	list_remove(&pool->link);
	task_cancel(&pool->pump);
	timer_stop(&pool->retry);
	sharing_fini(pool);
	msg_unref(&pool->handshake);
	msg_unref(&pool->initialize_result);
	principal_unref(&pool->principal);
	buf_fini(&pool->claims);
	free(pool->class);
	loop_defer_free(pool->router->loop, pool);
}

/* What a pool's children are told: nothing of any one client but its class. bridging.md §1.2, §1.5 */
static struct msg *make_handshake(const struct revision *revision, struct slice class)
{
	struct buf params = { 0 };
	struct buf text = { 0 };

	buf_printf(&params,
		   "{\"protocolVersion\":\"%.*s\",\"capabilities\":", SLICE_ARG(revision->name));
	buf_append_slice(&params, class);
	buf_append_str(&params,
		       ",\"clientInfo\":{\"name\":\"mcpgated\",\"version\":\"" PACKAGE_VERSION
		       "\"}}");
	write_call(&text, SLICE_LIT("0"), SLICE_LIT("initialize"), buf_slice(&params));
	buf_fini(&params);
	return msg_new_take(&text);
}

static struct pool *pool_for_one(struct route *route, const struct envelope *env,
				 struct slice claims)
{
	struct pool *pool = pool_new(route->router, route->server);

	buf_append_slice(&pool->claims, claims);
	pool->revision = route->revision;
	pool->handshake = msg_new(env->text);
	return pool;
}

static struct pool *pool_for_class(struct router *router, struct server *server,
				   struct principal *principal, struct slice claims,
				   struct slice class)
{
	struct pool *pool;

	LIST_FOREACH(node, &router->pools) {
		pool = container_of(node, struct pool, link);
		if (pool->server == server && pool->principal == principal &&
		    slice_is_equal(buf_slice(&pool->claims), claims) &&
		    slice_is_equal(slice_str(pool->class), class))
			return pool;
	}
	pool = pool_new(router, server);
	buf_append_slice(&pool->claims, claims);
	pool->revision = revision_newest();
	pool->handshake = make_handshake(pool->revision, class);
	pool->class = mem_dup_slice(class);
	pool->is_leased = class.n > 2;
	pool->principal = principal != NULL ? principal_ref(principal) : NULL;
	list_append(&router->pools, &pool->link);
	return pool;
}

static struct pool *pool_for(struct route *route, const struct envelope *env, struct slice claims)
{
	const struct server_conf *conf = &route->server->conf;
	struct principal *principal =
		conf->isolation == ISOLATION_PRINCIPAL ? route->session.principal : NULL;
	struct convert convert = { .text = { 0 } };
	struct buf class = { 0 };
	struct pool *pool;

	if (conf->isolation == ISOLATION_SHARED || (principal != NULL && conf->never_asks))
		return pool_for_class(route->router, route->server, principal, claims,
				      SLICE_LIT("{}"));
	env = convert_initialize(&convert, revision_lacks(route->revision, revision_newest()), env);
	capability_class_append(&class,
				scan_member(env->params.text, SLICE_LIT("capabilities")).text);
	if (principal == NULL)
		pool = pool_for_one(route, env, claims);
	else
		pool = pool_for_class(route->router, route->server, principal, claims,
				      buf_slice(&class));
	convert_fini(&convert);
	buf_fini(&class);
	return pool;
}

static struct route *member_of(struct list *node)
{
	return container_of(node, struct route, member);
}

/* ---- upstreams ---- */

struct upstream *partition_own_upstream(const struct pool *pool)
{
	if (pool->is_pool || list_is_empty(&pool->upstreams))
		return NULL;
	return container_of(pool->upstreams.next, struct upstream, link);
}

/* Whether the one session that it serves waits for news, and may never ask again. bridging.md §4 */
static bool is_subscribed(const struct pool *pool)
{
	return pool->is_known && pool->member_count > 0 &&
	       member_of(pool->members.next)->subscriptions.count > 0 && !pool->router->is_draining;
}

/* One child is kept for those who wait for news of it. bridging.md §1.5 */
size_t partition_least_upstreams(const struct pool *pool)
{
	size_t least = pool->principal == NULL ? pool->server->conf.pool_min : 0;

	if (!pool->is_pool)
		return is_subscribed(pool);
	return least == 0 && pool->pool_state->subscriptions.count > 0 ? 1 : least;
}

bool pool_can_spare(const struct upstream *upstream)
{
	const struct pool *pool = upstream->pool;

	return upstream->state == UPSTREAM_READY && upstream_load(upstream) == 0 &&
	       pool->upstream_count > partition_least_upstreams(pool);
}

static size_t calls_per_upstream(const struct pool *pool)
{
	if (pool->is_leased)
		return 1;
	return pool->is_pool ? pool->server->conf.calls_per_process : SIZE_MAX;
}

/* How much it may work on at once. A list may be asked for beside a call that has the upstream for itself: it is no work
   during which servers ask. */
static bool has_room(const struct upstream *upstream, bool is_list)
{
	const struct pool *pool = upstream->pool;

	if (!pool->is_pool)
		return true;
	if (pool->is_leased && !is_list && upstream->calls.count > 0)
		return false;
	return upstream_load(upstream) < pool->server->conf.calls_per_process;
}

static bool has_openings(const struct pool *pool)
{
	return !pool->is_known && pool->member_count > 0;
}

size_t partition_upstreams_needed(const struct pool *pool)
{
	size_t waiting = pool->queue.count > 0 ? pool->queue.count : list_cache_wait(pool);
	size_t least = partition_least_upstreams(pool);
	size_t ready = pool->upstream_count - pool->starting;
	size_t needed = waiting == 0 ? 0 : (waiting - 1) / calls_per_upstream(pool) + 1;

	if (needed == 0 && has_openings(pool))
		needed = 1;
	return needed + ready < least ? least - ready : needed;
}

const struct principal *pool_fairness_key(const struct pool *pool, const struct route *only)
{
	return only != NULL ? only->session.principal : pool->principal;
}

static enum reason partition_start_upstream(struct pool *pool)
{
	struct route *only = pool->is_pool ? NULL : member_of(pool->members.next);
	uint64_t wait_ms = 0;
	struct upstream *spare;
	enum reason reason = REASON_NONE;

	spare = warm_set_take(pool->router, pool->server);
	if (spare == NULL)
		reason = server_admit(pool->server, &wait_ms);
	if (reason == REASON_OVER_LIMIT)
		process_slots_seek(pool);
	if (reason != REASON_NONE)
		return reason;
	if (only != NULL && only->opening == NULL)
		LOG(SESSION_RESPAWN, LOG_STR("server", pool->server->conf.name),
		    LOG_INT("restarts", only->restarts));
	if (spare != NULL)
		upstream_adopt(spare, pool, only);
	else
		upstream_new(pool, only, wait_ms);
	return REASON_NONE;
}

static bool is_too_old(const struct upstream *upstream)
{
	uint64_t max_age_ms = upstream->child.server->conf.max_age_ms;

	return max_age_ms > 0 && upstream->pool->is_pool &&
	       clock_now_ms() - upstream->ready_at_ms >= max_age_ms;
}

/* The upstream with the least to do that has room for a request of `size` bytes; NULL: none has. */
static struct upstream *pool_choose(const struct pool *pool, size_t size, bool is_list)
{
	size_t least = SIZE_MAX;
	struct upstream *chosen = NULL;

	LIST_FOREACH_SAFE(node, &pool->upstreams) {
		struct upstream *upstream = container_of(node, struct upstream, link);

		if (upstream->state != UPSTREAM_READY || upstream_load(upstream) >= least ||
		    !has_room(upstream, is_list))
			continue;
		if (is_too_old(upstream)) {
			upstream_retire(upstream);
			continue;
		}
		if (pool->is_pool && !child_has_room(&upstream->child, size))
			continue;
		chosen = upstream;
		least = upstream_load(upstream);
	}
	return chosen;
}

struct upstream *partition_find_upstream(struct pool *pool)
{
	return pool_choose(pool, 0, true);
}

bool pool_has_child(const struct pool *pool, uint64_t child)
{
	LIST_FOREACH(node, &pool->upstreams) {
		const struct upstream *upstream = container_of(node, struct upstream, link);

		if (upstream_is_serving(upstream) && upstream_child_number(upstream) == child)
			return true;
	}
	return false;
}

/* ---- waiting ---- */

static void pool_try_again(struct pool *pool)
{
	if (!timer_is_running(&pool->retry))
		timer_start(pool->router->loop, &pool->retry, RETRY_MS);
}

enum reason pool_grow(struct pool *pool)
{
	size_t needed = partition_upstreams_needed(pool);
	enum reason reason = REASON_NONE;

	if (!pool->is_pool && pool->upstream_count > 0)
		return REASON_NONE;
	while (reason == REASON_NONE && pool->starting < needed)
		reason = partition_start_upstream(pool);
	if (reason != REASON_NONE &&
	    (pool->upstream_count < partition_least_upstreams(pool) || process_slots_is_poor(pool)))
		pool_try_again(pool);
	return reason;
}

/* Nobody will come to them. */
static void pool_fail_waiting(struct pool *pool, enum reason reason)
{
	LIST_FOREACH_SAFE(node, &pool->members) {
		struct route *route = member_of(node);

		if (route->opening != NULL)
			session_end(&route->session, reason);
	}
	while (!queue_is_empty(&pool->queue))
		call_fail(queue_first(&pool->queue), reason);
	list_cache_fail_waiting(pool, reason);
}

static void pool_on_retry(struct timer *timer)
{
	struct pool *pool = container_of(timer, struct pool, retry);

	if (pool_grow(pool) == REASON_OVER_LIMIT && process_slots_is_poor(pool))
		process_slots_claim(pool);
	pool_wake(pool);
}

/* The processes of a pool come and go: for a place it can be waited, for a while. */
static bool may_wait_for(const struct pool *pool, enum reason reason)
{
	return reason == REASON_NONE || (reason == REASON_OVER_LIMIT && pool->is_pool);
}

static bool serve_call(struct pool *pool)
{
	struct call *call;
	struct upstream *upstream;

	if (queue_is_empty(&pool->queue))
		return false;
	call = queue_first(&pool->queue);
	upstream = pool_choose(pool, call->body->text.n, false);
	if (upstream == NULL)
		return false;
	queue_remove(&pool->queue, call);
	forward_waiting(upstream, call);
	return true;
}

/* Calls and lists take turns: neither keeps the other from its upstream. */
static bool serve_one(struct pool *pool)
{
	bool is_lists_turn = pool->is_lists_turn;

	if (is_lists_turn ? list_cache_serve_one(pool) : serve_call(pool)) {
		pool->is_lists_turn = !is_lists_turn;
		return true;
	}
	return is_lists_turn ? serve_call(pool) : list_cache_serve_one(pool);
}

static void pool_on_pump(struct task *task)
{
	struct pool *pool = container_of(task, struct pool, pump);
	enum reason reason;

	if (pool->principal != NULL && pool->member_count == 0 && pool->upstream_count == 0) {
		pool_free(pool);
		return;
	}
	while (serve_one(pool))
		;
	reason = pool_grow(pool);
	if (pool->upstream_count == 0 && !may_wait_for(pool, reason))
		pool_fail_waiting(pool, reason);
}

void pool_wake(struct pool *pool)
{
	task_schedule(pool->router->loop, &pool->pump);
}

/* Those who take turns: principals, or sessions of those who are not told apart. */
static const void *fairness_key_of(const struct route *route)
{
	const struct principal *principal = route->session.principal;

	if (route->pool->principal != NULL || principal_is_anonymous(principal))
		return route;
	return principal;
}

/*
 * What waits is bounded as what waits for one process' stdin. Who has least of it gets his place from who has
 * most. Returns whether one of `size` bytes may wait.
 */
static bool pool_find_place(struct pool *pool, const void *fairness_key, size_t size)
{
	const struct server_conf *conf = &pool->server->conf;
	const struct queue *queue = &pool->queue;
	size_t calls_max = pool->is_pool ? conf->queue_calls : OWN_QUEUE_CALLS;

	for (;;) {
		bool is_full = queue->count >= calls_max;
		struct call *excess;

		if (!is_full && (queue->bytes == 0 || queue->bytes + size <= conf->queue_max))
			return true;
		excess = queue_find_excess(queue, fairness_key, is_full ? QUEUE_CALLS : QUEUE_BYTES,
					   is_full ? 1 : size);
		if (excess == NULL)
			return false;
		call_fail(excess, REASON_OVER_LIMIT);
	}
}

/* Somebody has begun to wait. Returns why that would be in vain. */
static enum reason pool_on_wanted(struct pool *pool)
{
	enum reason reason = pool_grow(pool);

	return pool->upstream_count > 0 || may_wait_for(pool, reason) ? REASON_NONE : reason;
}

static void pool_enqueue(struct pool *pool, struct call *call)
{
	enum reason reason = REASON_OVER_LIMIT;

	if (pool_find_place(pool, fairness_key_of(call->route), call->body->text.n)) {
		queue_push(&pool->queue, call, fairness_key_of(call->route));
		call_wait(call, pool->is_pool ? pool->server->conf.queue_timeout_ms : 0);
		reason = pool_on_wanted(pool);
	}
	if (reason != REASON_NONE)
		call_fail(call, reason);
}

void pool_put_back(struct call *call)
{
	struct pool *pool = call->route->pool;

	queue_push(&pool->queue, call, fairness_key_of(call->route));
	call_wait(call, pool->server->conf.queue_timeout_ms);
	pool_wake(pool);
}

bool pool_is_waited_for(const struct pool *pool)
{
	return !queue_is_empty(&pool->queue) || list_cache_wait(pool);
}

enum reason partition_await_upstream(struct pool *pool)
{
	if (queue_is_empty(&pool->queue) && list_cache_serve_one(pool))
		return REASON_NONE;
	return pool_on_wanted(pool);
}

/* Who waits for a process that is being started waits as long as that takes. */
void pool_on_wait_over(struct call *call)
{
	const struct pool *pool = call->route->pool;

	if (call->fairness_key == NULL && call != call->route->opening)
		call_fail(call,
			  REASON_TIMEOUT); /* it waited for an answer that others wait for, too */
	else if (pool->starting > 0)
		call_wait(call, pool->server->conf.queue_timeout_ms);
	else if (call == call->route->opening)
		session_end(&call->route->session, REASON_OVER_LIMIT);
	else
		call_fail(call, REASON_OVER_LIMIT);
}

/* The rest of a list is with the child that gave the first part of it. */
static struct upstream *pool_find_by_cursor(struct pool *pool, struct json cursor)
{
	struct buf inside = { 0 };
	struct upstream *found = NULL;
	uint64_t child;

	if (cursor_open(cursor, &child, &inside) == 0) {
		LIST_FOREACH(node, &pool->upstreams) {
			struct upstream *upstream = container_of(node, struct upstream, link);

			if (upstream_is_serving(upstream) &&
			    upstream_child_number(upstream) == child)
				found = upstream;
		}
	}
	buf_fini(&inside);
	return found;
}

/* A child that works on a call which has it for itself is not asked anything else meanwhile. */
static void pool_dispatch_rest(struct pool *pool, struct call *call, const struct envelope *env,
			       struct json cursor)
{
	struct upstream *upstream = pool_find_by_cursor(pool, cursor);

	if (upstream == NULL)
		forward_own_error(call->route, call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: unknown cursor"));
	else if (!has_room(upstream, false) ||
		 (pool->is_leased && upstream->state != UPSTREAM_READY))
		call_fail(call, REASON_OVER_LIMIT);
	else
		forward_call(upstream, call, env);
}

void pool_dispatch(struct pool *pool, struct call *call, const struct envelope *env)
{
	struct upstream *upstream = NULL;

	if (pool->is_pool && call->method->flags & METHOD_PAGED) {
		struct json cursor = scan_member(env->params.text, SLICE_LIT("cursor"));

		if (cursor.type != JSON_ABSENT) {
			pool_dispatch_rest(pool, call, env, cursor);
			return;
		}
	}
	if (!pool_is_waited_for(pool))
		upstream = pool_choose(pool, env->text.n, false);
	if (upstream != NULL) {
		forward_call(upstream, call, env);
		return;
	}
	if (call->body == NULL)
		call->body = msg_new(env->text);
	pool_enqueue(pool, call);
}

/* ---- sessions ---- */

/* As all children of the pool would. */
static void pool_send_initialize_result(struct pool *pool, struct route *route)
{
	struct envelope env;
	struct error err;

	if (scan_envelope(pool->initialize_result->text, &pool->router->limits, SCAN_LENIENT, &env,
			  &err) == 0)
		route_send_initialize_result(route, pool->agreed, &env);
	else
		session_end(&route->session, REASON_CHILD_PROTOCOL_ERROR); /* cannot be */
}

/* Another process for so many more sessions, ahead of their calls. */
static void pool_spread(struct pool *pool)
{
	size_t each = pool->server->conf.sessions_per_process;

	if (!pool->is_leased && pool->upstream_count > 0 && pool->starting == 0 &&
	    pool->member_count > pool->upstream_count * each && server_has_room(pool->server))
		(void)partition_start_upstream(pool);
}

void pool_prepare(struct router *router, struct server *server)
{
	const struct slice none = { NULL, 0 };

	pool_wake(pool_for_class(router, server, NULL, none, SLICE_LIT("{}")));
}

/* What its caller's token says now is what its processes are told as long as it lives. NULL: that lacks something. */
static struct pool *pool_join(struct route *route, const struct envelope *env)
{
	struct pool *pool = NULL;
	struct buf claims = { 0 };

	if (claims_append(&claims, &route->server->conf, route->session.principal) == 0) {
		pool = pool_for(route, env, buf_slice(&claims));
		route->pool = pool;
		list_append(&pool->members, &route->member);
		pool->member_count++;
	}
	buf_fini(&claims);
	return pool;
}

enum reason pool_enter(struct route *route, const struct envelope *env)
{
	enum reason reason = REASON_NONE;
	struct pool *pool = pool_join(route, env);

	if (pool == NULL)
		return REASON_CLAIM_MISSING;
	if (pool->initialize_result != NULL) {
		pool_spread(pool);
		pool_send_initialize_result(pool, route);
		return REASON_NONE;
	}
	if (pool->upstream_count == 0)
		reason = pool_grow(pool);
	if (pool->is_pool)
		call_wait(route->opening, pool->server->conf.queue_timeout_ms);
	return may_wait_for(pool, reason) ? REASON_NONE : reason;
}

void pool_leave(struct route *route, enum reason reason)
{
	struct pool *pool = route->pool;

	sharing_forget(route);
	list_remove(&route->member);
	pool->member_count--;
	route->pool = NULL;
	if (pool->is_pool) {
		pool_wake(pool);
		return;
	}
	if (!list_is_empty(&pool->upstreams))
		upstream_close(partition_own_upstream(pool), reason);
	pool_free(pool);
}

/* ---- what upstreams report ---- */

static bool read_revision(struct upstream *upstream, struct slice result)
{
	struct json version = scan_member(result, SLICE_LIT("protocolVersion"));

	upstream->revision = revision_find(scan_plain_string(version));
	if (upstream->revision != NULL)
		return true;
	LOG(CHILD_FAILED, LOG_STR("server", upstream->child.server->conf.name),
	    LOG_INT("pid", upstream->child.pid),
	    LOG_STR("error", "the server answered initialize with a revision that nobody knows"),
	    LOG_SLICE("revision", version.text));
	return false;
}

/* Returns whether it is other than it was. */
static bool pool_set_initialize_result(struct pool *pool, struct slice result)
{
	struct msg *before = pool->initialize_result;
	bool is_other;

	pool->initialize_result = sharing_make_initialize_result(result, pool->principal == NULL);
	server_capabilities_read(&pool->server_capabilities,
				 scan_member(pool->initialize_result->text, SLICE_LIT("result"))
					 .text);
	is_other = before != NULL && !slice_is_equal(before->text, pool->initialize_result->text);
	msg_unref(&before);
	return is_other;
}

void pool_on_ready(struct upstream *upstream, const struct envelope *response)
{
	struct pool *pool = upstream->pool;
	struct slice result = response->result.text;
	bool is_first = !pool->is_known;
	bool is_other = !pool->is_pool;

	if (!read_revision(upstream, result)) {
		upstream_refuse(upstream);
		return;
	}
	upstream_set_ready(upstream);
	pool->is_known = true;
	pool->agreed = upstream->revision;
	if (pool->is_pool)
		is_other = pool_set_initialize_result(pool, result);
	else
		server_capabilities_read(&pool->server_capabilities, result);
	forward_initialized(upstream);
	if (pool->is_pool)
		sharing_replay(upstream);
	else if (!is_first)
		forward_replay(upstream);
	/* The process before may have had other lists than this one has. bridging.md §4 */
	if (!is_first && is_other)
		sharing_tell_changes(pool);
	LIST_FOREACH_SAFE(node, &pool->members) {
		struct route *route = member_of(node);

		if (route->opening == NULL)
			continue;
		if (pool->is_pool)
			pool_send_initialize_result(pool, route);
		else
			route_send_initialize_result(route, upstream->revision, response);
	}
	/* Who had it for himself may have left when he was told, and have taken it along. */
	if (pool->is_pool || pool->member_count > 0)
		pool_on_pump(&pool->pump);
}

void pool_on_refused(struct upstream *upstream, const struct envelope *response)
{
	struct pool *pool = upstream->pool;
	bool was_asked = false;

	upstream_note_refusal(upstream, response->error.text);
	LIST_FOREACH_SAFE(node, &pool->members) {
		struct route *route = member_of(node);

		if (route->opening == NULL)
			continue;
		was_asked = true;
		route_refuse(route, response);
	}
	if (upstream->state == UPSTREAM_CLOSED)
		return;
	if (was_asked)
		upstream_close(upstream, REASON_HANDSHAKE_REFUSED);
	else
		upstream_refuse(upstream); /* the same request was fine before */
}

/* Nothing has come of it, or the same will come of it another time. bridging.md §4, I5 */
static bool may_be_repeated(const struct call *call)
{
	return call->method->flags & METHOD_SAFE && !call->is_repeated && call->body != NULL;
}

void pool_on_lost(struct pool *pool, struct upstream *upstream, enum reason reason)
{
	struct call *call;

	if (!pool->is_pool) {
		route_on_lost(member_of(pool->members.next), reason);
		if (pool->member_count > 0)
			pool_wake(pool);
		return;
	}
	while ((call = upstream_any_call(upstream)) != NULL) {
		if (may_be_repeated(call)) {
			call_recall(call);
			pool_enqueue(pool, call);
		} else {
			call_fail(call, reason);
		}
	}
	list_cache_on_lost(upstream, reason);
	/* It could not be started, and others are not there. */
	if (pool->upstream_count == 0 && reason_get(reason)->http_status == 503)
		pool_fail_waiting(pool, reason);
	pool_wake(pool);
}

void pool_on_idle(struct upstream *upstream)
{
	if (pool_can_spare(upstream))
		upstream_close(upstream, REASON_IDLE_TIMEOUT);
	else
		timer_start(upstream->router->loop, &upstream->idle,
			    upstream->child.server->conf.idle_ms);
}

void pool_end_all(struct router *router, enum reason reason)
{
	LIST_FOREACH_SAFE(node, &router->pools) {
		struct pool *pool = container_of(node, struct pool, link);

		while (!list_is_empty(&pool->upstreams))
			upstream_close(container_of(pool->upstreams.next, struct upstream, link),
				       reason);
		pool_free(pool);
	}
}
