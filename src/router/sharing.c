/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging what several sessions want of one child, and spreading what it tells. A subscription is a resource that
 * somebody of a pool has subscribed to: the first subscriber's request is the one that a child sees; who comes
 * meanwhile waits for its outcome, who comes later is answered here. All children of the pool are told, because
 * what changes may live in any of them.
 *
 * UTIL-LIST-01, UTIL-SUBS-01.
 */
#include "router/sharing.h"

#include <stdlib.h>

#include "base/mem.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/level.h"
#include "router/call.h"
#include "router/deliver.h"
#include "router/forward.h"
#include "router/upstream.h"
#include "router/list_cache.h"
#include "router/process_slots.h"
#include "router/route.h"
#include "router/subscriptions.h"

#define TELLING_MS 100 /* changes that come together are told once. bridging.md §1.7 */
#define UPDATES_MAX 1024
#define UPDATE_BYTES_MAX (1024 * 1024)
#define WAITING_BYTES_MAX (8 * 1024 * 1024)
#define CONCERN_MAX 16 /* one above the other, of one URI; beyond that it takes longer */

/* A resource that has changed, and nobody was told yet. */
struct update {
	struct list link;
	uint64_t key;
	struct msg *msg; /* the last one */
	size_t length;
	char uri[];
};

static const struct {
	const char *name;
	unsigned int offer;
	struct slice method;
} lists[] = {
	{ "tools", OFFER_TOOLS, SLICE("notifications/tools/list_changed") },
	{ "prompts", OFFER_PROMPTS, SLICE("notifications/prompts/list_changed") },
	{ "resources", OFFER_RESOURCES, SLICE("notifications/resources/list_changed") },
};

static struct route *member_of(struct list *node)
{
	return container_of(node, struct route, member);
}

/* ---- the welcome ---- */

struct rebuild {
	struct buf out;
	bool is_inside; /* of capabilities */
	bool is_for_all;
};

/* Tasks have ids that nobody maps; log messages do not say whose call they are about. bridging.md §1.3 */
static bool is_shareable(const struct rebuild *rebuild, struct slice capability)
{
	return !slice_is_equal(capability, SLICE_LIT("tasks")) &&
	       !(rebuild->is_for_all && slice_is_equal(capability, SLICE_LIT("logging")));
}

static int copy_member(struct slice name, struct json value, void *arg)
{
	struct rebuild *rebuild = arg;
	struct rebuild capabilities = { .is_inside = true, .is_for_all = rebuild->is_for_all };

	if (rebuild->is_inside && !is_shareable(rebuild, name))
		return 0;
	buf_append_char(&rebuild->out, rebuild->out.len > 0 ? ',' : '{');
	buf_append_char(&rebuild->out, '"');
	buf_append_slice(&rebuild->out, name);
	buf_append_str(&rebuild->out, "\":");
	if (rebuild->is_inside || !slice_is_equal(name, SLICE_LIT("capabilities")) ||
	    value.type != JSON_OBJECT) {
		buf_append_slice(&rebuild->out, value.text);
		return 0;
	}
	scan_members(value.text, copy_member, &capabilities);
	buf_append_str(&capabilities.out, capabilities.out.len > 0 ? "}" : "{}");
	buf_append_slice(&rebuild->out, buf_slice(&capabilities.out));
	buf_fini(&capabilities.out);
	return 0;
}

struct msg *sharing_make_initialize_result(struct slice result, bool is_for_all)
{
	struct rebuild rebuild = { .is_for_all = is_for_all };
	struct buf text = { 0 };

	scan_members(result, copy_member, &rebuild);
	buf_append_str(&rebuild.out, rebuild.out.len > 0 ? "}" : "{}");
	write_result(&text, SLICE_LIT("0"), buf_slice(&rebuild.out));
	buf_fini(&rebuild.out);
	return msg_new_take(&text);
}

/* ---- news ---- */

static void tell_members(struct pool *pool, uint64_t key, struct msg *msg)
{
	LIST_FOREACH(node, &pool->members) {
		struct route *route = member_of(node);

		if (route->opening == NULL)
			stream_push(&route->session.standalone, STREAM_NEWS, key, msg);
	}
}

static void tell_change(struct pool *pool, size_t list)
{
	struct buf text = { 0 };
	struct msg *msg;

	write_call(&text, (struct slice){ NULL, 0 }, lists[list].method, (struct slice){ NULL, 0 });
	msg = msg_new_take(&text);
	tell_members(pool, deliver_news_key(lists[list].method, (struct slice){ NULL, 0 }), msg);
	msg_unref(&msg);
}

static void update_free(struct pool *pool, struct update *update)
{
	pool->pool_state->update_bytes -= update->msg->text.n;
	map_remove(&pool->pool_state->updates_by_key, update->key);
	list_remove(&update->link);
	msg_unref(&update->msg);
	free(update);
}

/* The subscriptions that an update concerns, as every member's set is asked for them. */
struct concern {
	struct slice uri;
	size_t count;
	size_t lengths[CONCERN_MAX]; /* of beginnings of uri */
	uint64_t keys[CONCERN_MAX];
};

static struct concern find_concern(const struct pool *pool, struct slice uri)
{
	struct concern concern = { .uri = uri };

	if (pool->is_pool)
		concern.count = subscriptions_find_above(&pool->pool_state->subscriptions, uri,
							 concern.lengths, CONCERN_MAX);
	for (size_t i = 0; i < concern.count && i < CONCERN_MAX; i++)
		concern.keys[i] = text_set_key(slice_of(uri.p, concern.lengths[i]));
	return concern;
}

/* As route_is_subscribed, but for its time: there may be many members, and each may have subscribed to much. */
static bool is_concerned(const struct route *route, const struct concern *concern)
{
	const struct text_set *set = &route->subscriptions;

	if (set->count == 0)
		return false;
	if (!route->pool->is_pool || concern->count > CONCERN_MAX)
		return route_is_subscribed(route, concern->uri);
	for (size_t i = 0; i < concern->count; i++) {
		if (text_set_has(set, concern->keys[i],
				 slice_of(concern->uri.p, concern->lengths[i])))
			return true;
	}
	return false;
}

/* Returns whether anybody is subscribed. */
static bool tell_subscribers(struct pool *pool, struct slice uri, uint64_t key, struct msg *msg)
{
	const struct concern concern = find_concern(pool, uri);
	bool is_told = false;

	LIST_FOREACH(node, &pool->members) {
		struct route *route = member_of(node);

		if (!is_concerned(route, &concern))
			continue;
		stream_push(&route->session.standalone, STREAM_NEWS, key, msg);
		is_told = true;
	}
	return is_told;
}

static void tell_first_update(struct pool *pool)
{
	struct update *update = container_of(pool->pool_state->updates.next, struct update, link);

	tell_subscribers(pool, slice_of(update->uri, update->length), update->key, update->msg);
	update_free(pool, update);
}

static void on_telling(struct timer *timer)
{
	struct pool *pool = container_of(timer, struct pool_state, telling)->pool;
	unsigned int news = pool->pool_state->news;

	pool->pool_state->news = 0;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		if (news & 1u << i)
			tell_change(pool, i);
	}
	while (!list_is_empty(&pool->pool_state->updates))
		tell_first_update(pool);
}

static void tell_soon(struct pool *pool)
{
	if (!timer_is_running(&pool->pool_state->telling))
		timer_start(pool->router->loop, &pool->pool_state->telling, TELLING_MS);
}

void sharing_tell_changes(struct pool *pool)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		list_cache_note_change(pool, lists[i].offer);
		if (pool->server_capabilities.tells & lists[i].offer)
			tell_change(pool, i);
	}
}

static void notify_list(struct upstream *upstream, const struct envelope *env, const char *list)
{
	struct pool *pool = upstream->pool;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		if (strcmp(lists[i].name, list) != 0)
			continue;
		list_cache_note_change(pool, lists[i].offer);
		if (!(pool->server_capabilities.tells & lists[i].offer))
			continue;
		if (pool->is_pool) {
			pool->pool_state->news |= 1u << i;
			tell_soon(pool);
		} else {
			struct msg *msg = deliver_make_msg(env);

			tell_members(pool, deliver_news_key(env->method, (struct slice){ NULL, 0 }),
				     msg);
			msg_unref(&msg);
		}
	}
}

/*
 * Each is told to many: a server that says the same again and again must not keep the gateway busy with that. What
 * nobody has subscribed to is dropped without asking every session.
 */
static void note_update(struct pool *pool, struct slice uri, uint64_t key, struct msg *msg)
{
	struct update *update = map_find(&pool->pool_state->updates_by_key, key);

	if (update != NULL)
		update_free(pool, update); /* this one says the same, later */
	update = mem_alloc(sizeof(*update) + uri.n);
	update->key = key;
	update->msg = msg_ref(msg);
	update->length = uri.n;
	memcpy(update->uri, uri.p, uri.n);
	list_init(&update->link);
	list_append(&pool->pool_state->updates, &update->link);
	map_insert(&pool->pool_state->updates_by_key, key, update);
	pool->pool_state->update_bytes += msg->text.n;
	while (pool->pool_state->updates_by_key.count > UPDATES_MAX ||
	       pool->pool_state->update_bytes > UPDATE_BYTES_MAX)
		tell_first_update(pool);
	tell_soon(pool);
}

static void notify_of(struct upstream *upstream, const struct envelope *env, struct slice uri)
{
	struct pool *pool = upstream->pool;
	uint64_t key = deliver_news_key(env->method, uri);
	struct msg *msg;

	if (pool->is_pool && !subscriptions_concern(&pool->pool_state->subscriptions, uri)) {
		deliver_note_dropped(upstream, env);
		return;
	}
	msg = deliver_make_msg(env);
	if (pool->is_pool)
		note_update(pool, uri, key, msg);
	else if (!tell_subscribers(pool, uri, key, msg))
		deliver_note_dropped(upstream, env);
	msg_unref(&msg);
}

static void notify_resource(struct upstream *upstream, const struct envelope *env)
{
	struct buf room = { 0 };

	notify_of(upstream, env, route_spell_uri(env->uri, &room));
	buf_fini(&room);
}

void sharing_notify(struct upstream *upstream, const struct envelope *env,
		    const struct method *method)
{
	if (method->id == METHOD_LIST_CHANGED)
		notify_list(upstream, env, method->capability);
	else
		notify_resource(upstream, env);
}

/* ---- subscriptions ---- */

/* Returns false if there is no room for it any more. */
static bool subscription_add(struct subscription *subscription, struct route *route)
{
	struct slice uri = subscription_uri(subscription);

	if (text_set_add(&route->subscriptions, uri))
		subscription->subscribers++;
	return text_set_has(&route->subscriptions, text_set_key(uri), uri);
}

/* All children but one, which knows. */
static void tell_upstreams(struct pool *pool, const struct upstream *but, struct slice method,
			   struct slice uri)
{
	LIST_FOREACH(node, &pool->upstreams) {
		struct upstream *upstream = container_of(node, struct upstream, link);

		if (upstream != but && upstream_is_serving(upstream))
			forward_subscription(upstream, method, uri);
	}
}

static void subscription_release(struct pool *pool, struct subscription *subscription)
{
	if (--subscription->subscribers > 0)
		return;
	tell_upstreams(pool, NULL, SLICE_LIT("resources/unsubscribe"),
		       subscription_uri(subscription));
	subscriptions_remove(&pool->pool_state->subscriptions, subscription);
	if (pool->pool_state->subscriptions.count == 0)
		process_slots_note_idle(pool->router); /* none has to stay for news any more */
}

static void subscription_await(struct subscription *subscription, struct call *call,
			       const struct envelope *env)
{
	call->subscription = subscription;
	call->body = msg_new(env->text);
	list_append(&subscription->waiting, &call->place);
	call->route->pool->pool_state->waiting_bytes += env->text.n;
	call_wait(call, call->route->server->conf.request_timeout_ms);
}

static void subscription_stop_waiting(struct call *call)
{
	call->route->pool->pool_state->waiting_bytes -= call->body->text.n;
	list_remove(&call->place);
}

static struct call *subscription_first_waiting(const struct subscription *subscription)
{
	return container_of(subscription->waiting.next, struct call, place);
}

bool sharing_settle(struct call *call, const struct envelope *env)
{
	struct pool *pool = call->route->pool;
	struct subscription *subscription = call->subscription;
	bool has_agreed = env->kind == ENVELOPE_RESULT;
	bool is_kept = true;

	call->subscription = NULL;
	if (subscription->first != call)
		return true;
	subscription->first = NULL;
	subscription->subscribers++; /* ourselves: who is told may end his session */
	if (has_agreed) {
		is_kept = subscription_add(subscription, call->route);
		tell_upstreams(pool, call->upstream, SLICE_LIT("resources/subscribe"),
			       subscription_uri(subscription));
	}
	while (!list_is_empty(&subscription->waiting)) {
		struct call *next = subscription_first_waiting(subscription);

		subscription_stop_waiting(next);
		next->subscription = NULL;
		/* Many may have been asked for at once. DEF-11 */
		if (has_agreed && !subscription_add(subscription, next->route))
			forward_no_room(next->route, next);
		else
			deliver_response(next, env);
	}
	if (has_agreed)
		subscription_release(pool, subscription);
	else
		subscriptions_remove(&pool->pool_state->subscriptions, subscription);
	if (!is_kept)
		forward_no_room(call->route, call);
	return is_kept;
}

void sharing_abandon(struct call *call)
{
	struct pool *pool = call->route->pool;
	struct subscription *subscription = call->subscription;
	struct call *next;

	call->subscription = NULL;
	if (subscription->first != call) {
		subscription_stop_waiting(call);
		return;
	}
	if (list_is_empty(&subscription->waiting)) {
		subscriptions_remove(&pool->pool_state->subscriptions, subscription);
		return;
	}
	next = subscription_first_waiting(subscription);
	subscription_stop_waiting(next);
	subscription->first = next;
	pool_put_back(next);
}

/* Also for who only waits for the answer to another one: there may be many, and each keeps its request. DEF-11 */
static bool may_subscribe(const struct pool_state *pool_state,
			  const struct subscription *subscription, struct slice uri,
			  const struct envelope *env)
{
	if (subscription == NULL)
		return subscriptions_have_room(&pool_state->subscriptions, uri.n);
	return subscription->first == NULL ||
	       pool_state->waiting_bytes + env->text.n <= WAITING_BYTES_MAX;
}

static void subscribe(struct route *route, struct call *call, struct slice uri,
		      const struct envelope *env)
{
	struct pool_state *pool_state = route->pool->pool_state;
	struct subscription *subscription = subscriptions_find(&pool_state->subscriptions, uri);

	if (!may_subscribe(pool_state, subscription, uri, env)) {
		forward_own_error(route, call, MCP_INTERNAL_ERROR,
				  SLICE_LIT("The server has too many subscriptions"));
		return;
	}
	call_link(call, route);
	if (subscription == NULL) {
		call->subscription = subscriptions_add(&pool_state->subscriptions, uri, call);
		forward_linked(route, call, env);
	} else if (subscription->first != NULL) {
		subscription_await(subscription, call, env);
	} else {
		subscription_add(subscription, route);
		forward_own_result(route, call, SLICE_LIT("{}"));
	}
}

static void unsubscribe(struct pool *pool, struct route *route, struct slice uri)
{
	struct subscription *subscription =
		subscriptions_find(&pool->pool_state->subscriptions, uri);

	if (text_set_remove(&route->subscriptions, uri) && subscription != NULL)
		subscription_release(pool, subscription);
}

void sharing_forget(struct route *route)
{
	while (route->pool->is_pool && route->subscriptions.count > 0) {
		struct text_set_item *item =
			container_of(route->subscriptions.items.next, struct text_set_item, link);
		struct slice uri = slice_of(item->text, item->length);
		char *copy = mem_dup_slice(uri);

		unsubscribe(route->pool, route, slice_of(copy, uri.n));
		free(copy);
	}
}

void sharing_replay(struct upstream *upstream)
{
	LIST_FOREACH(node, &upstream->pool->pool_state->subscriptions.all) {
		const struct subscription *subscription =
			container_of(node, struct subscription, link);

		if (subscription->first == NULL)
			forward_subscription(upstream, SLICE_LIT("resources/subscribe"),
					     subscription_uri(subscription));
	}
}

/* ---- requests ---- */

bool sharing_answer(struct route *route, struct call *call, const struct envelope *env)
{
	struct buf room = { 0 };
	struct slice uri;

	if (call->method->needs & ~route->pool->server_capabilities.offers) {
		forward_own_error(route, call, MCP_METHOD_NOT_FOUND,
				  SLICE_LIT("Method not found: the server does not offer this"));
		return true;
	}
	if (call->method->id == METHOD_SET_LEVEL) {
		route->level = level_find(
			scan_plain_string(scan_member(env->params.text, SLICE_LIT("level"))));
		forward_own_result(route, call, SLICE_LIT("{}"));
		return true;
	}
	if (call->state != CALL_NEW || env->uri.type != JSON_STRING ||
	    (call->method->id != METHOD_SUBSCRIBE && call->method->id != METHOD_UNSUBSCRIBE))
		return false;
	uri = route_spell_uri(env->uri, &room);
	if (call->method->id == METHOD_SUBSCRIBE) {
		subscribe(route, call, uri, env);
	} else {
		unsubscribe(route->pool, route, uri);
		forward_own_result(route, call, SLICE_LIT("{}"));
	}
	buf_fini(&room);
	return true;
}

void sharing_init(struct pool *pool)
{
	struct pool_state *pool_state;

	if (!pool->is_pool)
		return;
	pool_state = mem_zalloc(sizeof(*pool_state));
	pool_state->pool = pool;
	list_cache_init(&pool_state->lists);
	subscriptions_init(&pool_state->subscriptions);
	list_init(&pool_state->updates);
	timer_init(&pool_state->telling, on_telling);
	pool->pool_state = pool_state;
}

void sharing_fini(struct pool *pool)
{
	struct pool_state *pool_state = pool->pool_state;

	if (pool_state == NULL)
		return;
	timer_stop(&pool_state->telling);
	while (!list_is_empty(&pool_state->updates))
		update_free(pool, container_of(pool_state->updates.next, struct update, link));
	map_fini(&pool_state->updates_by_key);
	subscriptions_fini(&pool_state->subscriptions);
	list_cache_fini(&pool_state->lists);
	loop_defer_free(pool->router->loop, pool_state);
}
