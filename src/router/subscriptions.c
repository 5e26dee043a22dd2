/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table keyed by a seeded hash: clients choose the URIs, there may be many, and servers may name
 * one after the other. The subscriptions above a URI are found by looking up its beginnings that
 * end before or with a slash.
 */
#include "router/subscriptions.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "policy/permissions.h"
#include "router/call.h"
#include "router/client.h"
#include "router/dispatch.h"
#include "router/lists.h"
#include "router/listen.h"
#include "router/pool.h"
#include "router/process_slots.h"
#include "router/result.h"
#include "router/router.h"
#include "upstream/send.h"
#include "upstream/upstream.h"

void subscriptions_init(struct subscriptions *set)
{
	*set = (struct subscriptions){ .count = 0 };
	list_init(&set->all);
}

void subscriptions_fini(struct subscriptions *set)
{
	LIST_DRAIN(struct subscription, subscription, &set->all, link)
		subscriptions_remove(set, subscription);
}

struct slice subscription_uri(const struct subscription *subscription)
{
	return slice_of(subscription->uri, subscription->length);
}

static struct subscription *find_by_key(const struct subscriptions *set, uint64_t key,
					struct slice uri)
{
	MAP_EACH(struct subscription, subscription, &set->by_key, key, by_key)
		if (slice_is_equal(subscription_uri(subscription), uri))
			return subscription;
	return NULL;
}

struct subscription *subscriptions_find(const struct subscriptions *set, struct slice uri)
{
	return find_by_key(set, text_hash(set->seed, uri), uri);
}

bool subscriptions_have_room(const struct subscriptions *set, size_t size)
{
	return set->count < SUBSCRIPTIONS_MAX && set->bytes + size <= SUBSCRIPTIONS_BYTES_MAX;
}

struct subscription *subscriptions_add(struct subscriptions *set, struct slice uri,
				       struct call *first)
{
	struct subscription *subscription = mem_alloc(sizeof(*subscription) + uri.n);

	if (set->seed == 0)
		random_bytes(&set->seed, sizeof(set->seed));
	subscription->first = first;
	subscription->subscribers = 0;
	subscription->length = uri.n;
	memcpy(subscription->uri, uri.p, uri.n);
	subscription->leader = (struct call_watcher){ .ops = NULL };
	list_init(&subscription->leader.link);
	wait_queue_init(&subscription->waiting, NULL);
	list_append(&set->all, &subscription->link);
	map_insert_link(&set->by_key, text_hash(set->seed, uri), &subscription->by_key);
	set->longest = set->count > 0 && set->longest > uri.n ? set->longest : uri.n;
	set->count++;
	set->bytes += uri.n;
	return subscription;
}

void subscriptions_remove(struct subscriptions *set, struct subscription *subscription)
{
	CHECK(wait_queue_is_empty(&subscription->waiting) && set->count > 0);
	map_remove_link(&set->by_key, &subscription->by_key);
	list_remove(&subscription->link);
	set->count--;
	set->bytes -= subscription->length;
	free(subscription);
}

size_t subscriptions_find_above(const struct subscriptions *set, struct slice uri,
				size_t *lengths_r, size_t max)
{
	uint64_t key = set->seed;
	size_t count = 0;

	/* A server may name one as long as a message may be. REL-54 */
	for (size_t n = 1; n <= uri.n && n <= set->longest; n++) {
		key = text_hash(key, slice_of(uri.p + n - 1, 1));
		if (n < uri.n && uri.p[n - 1] != '/' && uri.p[n] != '/')
			continue;
		if (find_by_key(set, key, slice_of(uri.p, n)) == NULL)
			continue;
		if (count < max)
			lengths_r[count] = n;
		count++;
	}
	return count;
}

bool subscriptions_concern(const struct subscriptions *set, struct slice uri)
{
	return set->count > 0 && subscriptions_find_above(set, uri, NULL, 0) > 0;
}

/* ---- subscribe ---- */

#define WAITING_BYTES_MAX (8 * 1024 * 1024)
#define OWN_WAITING_BYTES_MAX (1024 * 1024) /* of one session */

/* Returns false if the client has no room for it any more. */
static bool add_subscriber(struct subscription *subscription, struct client *client)
{
	struct slice uri = subscription_uri(subscription);

	if (text_set_add(&client->subscriptions, uri)) {
		subscription->subscribers++;
		kept_session_note(client->kept);
	}
	return text_set_has(&client->subscriptions, text_set_key(uri), uri);
}

/* A modern server is told everything that is subscribed to, once that is settled. */
static void tell_upstream(struct upstream *upstream, struct slice method, struct slice uri)
{
	if (upstream_is_modern(upstream))
		listen_note_change(upstream);
	else
		send_subscription(upstream, upstream_next_id(upstream), method, uri);
}

/* Tells all upstreams but one, which knows already. */
static void tell_upstreams(struct pool *pool, const struct upstream *but, struct slice method,
			   struct slice uri)
{
	LIST_EACH(struct upstream, upstream, &pool->upstreams, link)
		if (upstream != but && upstream_is_serving(upstream))
			tell_upstream(upstream, method, uri);
}

/* A call that asks for it just now (`first`) may be the next subscriber. */
static bool is_unused(const struct subscription *subscription)
{
	return subscription->subscribers == 0 && subscription->first == NULL;
}

static void release_subscriber(struct pool *pool, struct subscription *subscription)
{
	CHECK(subscription->subscribers > 0);
	subscription->subscribers--;
	if (!is_unused(subscription))
		return;
	tell_upstreams(pool, NULL, SLICE_LIT("resources/unsubscribe"),
		       subscription_uri(subscription));
	subscriptions_remove(&pool->subscriptions, subscription);
	if (pool->subscriptions.count == 0)
		process_slots_note_idle(
			&pool->router->slots); /* none has to stay for notifications */
}

/* ---- calls that wait for the first one's answer ---- */

static void subscriptions_on_waiter_left(not_used struct wait_queue *queue, struct waiter *waiter)
{
	call_of_waiter(waiter)->client->pool->subscribing_bytes -= waiter->bytes;
}

static const struct wait_queue_ops waiting_ops = {
	.on_timeout = call_on_wait_timeout,
	.on_left = subscriptions_on_waiter_left,
};

static struct call *take_waiting(struct subscription *subscription)
{
	struct waiter *waiter = wait_queue_first(&subscription->waiting);

	waiter_leave(waiter);
	return call_of_waiter(waiter);
}

/* ---- the first one ---- */

/* It got no agreement. Others may be subscribed from before (subscribe_again), and relied on it. */
static void subscriptions_give_up(struct pool *pool, struct subscription *subscription)
{
	if (is_unused(subscription))
		subscriptions_remove(&pool->subscriptions, subscription);
	else if (subscription->first == NULL)
		tell_upstreams(pool, NULL, SLICE_LIT("resources/subscribe"),
			       subscription_uri(subscription));
}

static void lead(struct subscription *subscription, struct call *call);

/* Many subscriptions may have been requested at once: there may be no room for some. DEF-11 */
static bool on_leader_response(struct call_watcher *watcher, struct call *call,
			       const struct envelope *env)
{
	struct subscription *subscription = container_of(watcher, struct subscription, leader);
	struct pool *pool = call->client->pool;
	bool has_agreed = env->kind == ENVELOPE_RESULT, is_own = !pool_is_shared(pool);
	bool is_kept = true;

	CHECK(subscription->first == call);
	subscription->first = NULL;
	call_unwatch(watcher);
	subscription->subscribers++; /* our own: a client that is told may end its session */
	if (has_agreed) {
		is_kept = add_subscriber(subscription, call->client);
		tell_upstreams(pool, call->request.upstream, SLICE_LIT("resources/subscribe"),
			       subscription_uri(subscription));
	}
	while (!wait_queue_is_empty(&subscription->waiting)) {
		struct call *next = take_waiting(subscription);

		if (has_agreed && !add_subscriber(subscription, next->client))
			result_send_no_room(next);
		else
			result_send(next, env);
	}
	if (is_own && call->state == CALL_ENDED)
		return false; /* that has ended the session, and the pool with it */
	if (has_agreed) {
		release_subscriber(pool, subscription);
	} else {
		subscription->subscribers--;
		subscriptions_give_up(pool, subscription);
	}
	if (call->state == CALL_ENDED)
		return false; /* telling another client has ended its session */
	if (!is_kept)
		result_send_no_room(call);
	return is_kept;
}

/* The first call ends without an answer: the next one asks. */
static void on_leader_end(struct call_watcher *watcher, struct call *call)
{
	struct subscription *subscription = container_of(watcher, struct subscription, leader);
	struct call *next;

	CHECK(subscription->first == call);
	if (wait_queue_is_empty(&subscription->waiting)) {
		subscription->first = NULL;
		subscriptions_give_up(call->client->pool, subscription);
		return;
	}
	next = take_waiting(subscription);
	lead(subscription, next);
	dispatch_again(next);
}

static const struct call_watcher_ops leader_ops = {
	.on_response = on_leader_response,
	.on_end = on_leader_end,
};

static void lead(struct subscription *subscription, struct call *call)
{
	subscription->first = call;
	call_watch(call, &subscription->leader);
}

/* ---- requests ---- */

static bool subscribe(struct call *call, struct slice uri, const struct envelope *env)
{
	struct pool *pool = call->client->pool;
	struct subscription *subscription = subscriptions_find(&pool->subscriptions, uri);
	size_t most = pool_is_shared(pool) ? WAITING_BYTES_MAX : OWN_WAITING_BYTES_MAX;
	bool has_room;

	/* Many calls may wait for the answer to another one, and each keeps its request. DEF-11 */
	if (subscription == NULL)
		has_room = subscriptions_have_room(&pool->subscriptions, uri.n);
	else
		has_room = subscription->first == NULL ||
			   pool->subscribing_bytes + env->text.n <= most;
	if (!has_room) {
		result_send_error(call, MCP_INTERNAL_ERROR,
				  SLICE_LIT("The server has too many subscriptions"));
		return true;
	}
	if (subscription == NULL) {
		subscription = subscriptions_add(&pool->subscriptions, uri, call);
		subscription->leader.ops = &leader_ops;
		wait_queue_init(&subscription->waiting, &waiting_ops);
		lead(subscription, call);
		return false;
	}
	if (subscription->first != NULL) {
		call->body = msg_new_scanned(env);
		wait_queue_append(&subscription->waiting, &call->waiter, env->text.n);
		pool->subscribing_bytes += env->text.n;
		call_wait(call, call->client->server->conf.request_timeout_ms);
	} else {
		add_subscriber(subscription, call->client);
		result_send_own(call, SLICE_LIT("{}"));
	}
	return true;
}

static void unsubscribe(struct client *client, struct slice uri)
{
	struct subscription *subscription = subscriptions_find(&client->pool->subscriptions, uri);

	if (!text_set_remove(&client->subscriptions, uri))
		return;
	kept_session_note(client->kept);
	if (subscription != NULL)
		release_subscriber(client->pool, subscription);
}

bool subscribe_take(struct call *call, const struct envelope *env)
{
	at_end(buf_fini) struct buf room = { 0 };
	struct slice uri = text_set_spell(env->uri, &room);
	bool is_taken = true;

	CHECK(call->state == CALL_WAITING);
	if (call->method->id == METHOD_SUBSCRIBE) {
		is_taken = subscribe(call, uri, env);
	} else {
		unsubscribe(call->client, uri);
		result_send_own(call, SLICE_LIT("{}"));
	}
	return is_taken;
}

void subscribe_forget(struct client *client)
{
	if (client->pool == NULL || !pool_is_shared(client->pool)) /* its pool ends with it */
		return;
	while (client->subscriptions.count > 0) {
		struct text_set_item *item =
			container_of(client->subscriptions.items.next, struct text_set_item, link);
		struct slice uri = slice_of(item->text, item->length);
		at_end(mem_free) char *copy = mem_dup_slice(uri);

		unsubscribe(client, slice_of(copy, uri.n));
	}
}

void subscribe_again(struct client *client)
{
	struct pool *pool = client->pool;
	struct subscriptions *all = &pool->subscriptions;

	LIST_EACH_SAFE(const struct text_set_item, item, &client->subscriptions.items, link) {
		struct slice uri = slice_of(item->text, item->length);
		struct subscription *subscription = subscriptions_find(all, uri);

		if (subscription == NULL && !subscriptions_have_room(all, uri.n)) {
			text_set_remove(&client->subscriptions, uri);
			continue;
		}
		if (subscription == NULL) {
			subscription = subscriptions_add(all, uri, NULL);
			tell_upstreams(pool, NULL, SLICE_LIT("resources/subscribe"), uri);
		}
		subscription->subscribers++;
	}
}

void subscribe_replay(struct upstream *upstream)
{
	LIST_EACH(const struct subscription, subscription, &upstream->pool->subscriptions.all, link)
		if (subscription->first == NULL)
			tell_upstream(upstream, SLICE_LIT("resources/subscribe"),
				      subscription_uri(subscription));
}

/* ---- notification fanout ---- */

/*
 * Each notification may be for many: a server that repeats itself must not keep the gateway busy.
 * So notifications to the members of a shared pool are collected for a while, and joined.
 *
 * UTIL-LIST-01, UTIL-SUBS-01.
 */

#define TELLING_MS 100 /* changes within this time are reported once. bridging.md §1.7 */
#define UPDATES_MAX 1024
#define UPDATE_BYTES_MAX (1024 * 1024)
#define CONCERN_MAX 16 /* subscriptions at or above one URI; more take longer */

/*
 * A change of a list, or of a resource, that is yet to be reported. Its URI is spelled like that of a
 * subscription; empty: the change concerns every member.
 */
struct update {
	struct list link;
	uint64_t key;
	struct msg *msg; /* the last one */
	size_t length;
	char uri[];
};

/*
 * A number for joining notifications that say the same. Never 0, and no id of a server request:
 * those are small. Its seed is random, so that a server cannot choose URIs whose numbers collide.
 */
static uint64_t notification_key(struct slice method, struct slice uri)
{
	static uint64_t start;

	if (start == 0)
		random_bytes(&start, sizeof(start));
	return text_hash(text_hash(start, method), uri) | 1ull << 63;
}

/* That may end the session that has the pool to itself, and the pool. */
static void tell_only_member(struct pool *pool, uint64_t key, struct msg *msg)
{
	struct pool_member *member = pool_only_member(pool);

	member->ops->on_notification(member, key, msg);
}

static struct msg *change_of(size_t list)
{
	struct buf text = { 0 };

	write_call(&text, (struct slice){ NULL, 0 }, method_changes[list].notification,
		   (struct slice){ NULL, 0 });
	return msg_new_take(&text);
}

static uint64_t change_key(size_t list)
{
	return notification_key(method_changes[list].notification, (struct slice){ NULL, 0 });
}

static void update_unlink(struct pool *pool, struct update *update)
{
	CHECK(pool->notices.update_bytes >= update->msg->text.n);
	pool->notices.update_bytes -= update->msg->text.n;
	map_remove(&pool->notices.updates_by_key, update->key);
	list_remove(&update->link);
}

static struct update *update_new(struct slice uri, uint64_t key, struct msg *msg)
{
	struct update *update = mem_alloc(sizeof(*update) + uri.n);

	update->key = key;
	update->msg = msg_ref(msg);
	update->length = uri.n;
	if (uri.n > 0)
		memcpy(update->uri, uri.p, uri.n);
	list_init(&update->link);
	return update;
}

static void update_free(struct update *update)
{
	msg_unref(&update->msg);
	free(update);
}

/*
 * The subscriptions that an update concerns, in the form in which each member's set is searched for
 * them.
 */
struct concern {
	struct slice uri;
	size_t count;
	size_t lengths[CONCERN_MAX]; /* of beginnings of uri */
	uint64_t keys[CONCERN_MAX];
};

/* Whether `uri` is `parent`, or lies below it. */
static bool subscriptions_is_within(struct slice uri, struct slice parent)
{
	if (!slice_has_prefix(uri, parent) || parent.n == 0)
		return false;
	return uri.n == parent.n || parent.p[parent.n - 1] == '/' || uri.p[parent.n] == '/';
}

/*
 * There may be many members, each with many subscriptions: if the keys are known, they are looked
 * up.
 */
static bool is_concerned(const struct client *client, const struct concern *concern)
{
	const struct text_set *set = &client->subscriptions;

	if (concern->count <= CONCERN_MAX) {
		for (size_t i = 0; set->count > 0 && i < concern->count; i++)
			if (text_set_has(set, concern->keys[i],
					 slice_of(concern->uri.p, concern->lengths[i])))
				return true;
		return false;
	}
	LIST_EACH(const struct text_set_item, item, &set->items, link)
		if (subscriptions_is_within(concern->uri, slice_of(item->text, item->length)))
			return true;
	return false;
}

/* The client's roles, and the server's rules, may have changed since it subscribed. SEC-56 */
static bool may_hear(const struct client *client, struct slice uri)
{
	at_end(buf_fini) struct buf quoted = { 0 };

	if (!client->rights.needs_roles && !client->server->conf.permissions.has_rules)
		return true;
	buf_printf(&quoted, "\"%.*s\"", SLICE_ARG(uri));
	return permissions_allow_json(&client->server->conf.permissions, &client->rights,
				      PERMISSION_RESOURCE,
				      (struct json){ JSON_STRING, true, buf_slice(&quoted) });
}

static void find_concern(const struct pool *pool, struct slice uri, struct concern *concern_r)
{
	concern_r->uri = uri;
	concern_r->count = subscriptions_find_above(&pool->subscriptions, uri, concern_r->lengths,
						    CONCERN_MAX);
	for (size_t i = 0; i < concern_r->count && i < CONCERN_MAX; i++)
		concern_r->keys[i] = text_set_key(slice_of(uri.p, concern_r->lengths[i]));
}

static bool must_hear(const struct client *client, const struct concern *concern)
{
	return concern->uri.n == 0 ||
	       (is_concerned(client, concern) && may_hear(client, concern->uri));
}

static bool only_member_must_hear(const struct pool *pool, struct slice uri)
{
	struct concern concern;

	find_concern(pool, uri, &concern);
	return must_hear(pool_only_member(pool)->client, &concern);
}

/* Once somebody has been told, it is not replaced by a later one: those at the end hear of it, too. */
static void begin_telling(struct pool *pool)
{
	struct notices *notices = &pool->notices;

	CHECK(notices->current == NULL && !list_is_empty(&notices->updates));
	notices->current = container_of(notices->updates.next, struct update, link);
	notices->next = pool->members.next;
	update_unlink(pool, notices->current);
}

/*
 * Tells members of the first update, until all of them know it or, if may_pause, the turn is long. A
 * member that is told may end, and so may the pool.
 */
static void tell_first_update(struct pool *pool, bool may_pause)
{
	struct notices *notices = &pool->notices;
	const struct update *update;
	struct concern concern;
	at_end(msg_unref) struct msg *msg = NULL;

	if (notices->current == NULL)
		begin_telling(pool);
	update = notices->current;
	msg = msg_ref(update->msg);
	find_concern(pool, slice_of(update->uri, update->length), &concern);
	while (notices->current != NULL && notices->next != &pool->members) {
		struct pool_member *member = container_of(notices->next, struct pool_member, link);

		notices->next = notices->next->next;
		if (must_hear(member->client, &concern))
			member->ops->on_notification(member, update->key, msg);
		if (may_pause && loop_turn_is_long(pool->router->loop))
			break;
	}
	if (notices->current != NULL && notices->next == &pool->members) {
		update_free(notices->current);
		notices->current = NULL;
	}
}

static bool has_updates(const struct notices *notices)
{
	return notices->current != NULL || !list_is_empty(&notices->updates);
}

/* Thousands of members, and many updates, are told over several turns. */
static void on_telling(struct timer *timer)
{
	struct pool *pool = container_of(timer, struct pool, notices.telling);

	while (has_updates(&pool->notices)) {
		tell_first_update(pool, true);
		if (has_updates(&pool->notices) && loop_turn_is_long(pool->router->loop)) {
			timer_start(pool->router->loop, timer, 0);
			return;
		}
	}
}

/* Keeps the update to be reported soon, in place of an earlier one that says the same. */
static void note_update(struct pool *pool, struct slice uri, uint64_t key, struct msg *msg)
{
	struct update *update = map_find(&pool->notices.updates_by_key, key);

	CHECK(key != 0);
	if (update != NULL) {
		/* This one says the same. Its turn stays: it may change all the time. */
		pool->notices.update_bytes -= update->msg->text.n;
		msg_unref(&update->msg);
		update->msg = msg_ref(msg);
	} else {
		update = update_new(uri, key, msg);
		list_append(&pool->notices.updates, &update->link);
		map_insert(&pool->notices.updates_by_key, key, update);
	}
	pool->notices.update_bytes += msg->text.n;
	while (pool->notices.updates_by_key.count > UPDATES_MAX ||
	       pool->notices.update_bytes > UPDATE_BYTES_MAX)
		tell_first_update(pool, false);
	if (!timer_is_running(&pool->notices.telling))
		timer_start(pool->router->loop, &pool->notices.telling, TELLING_MS);
}

static void tell_change(struct pool *pool, size_t list)
{
	at_end(msg_unref) struct msg *msg = change_of(list);

	if (pool_is_shared(pool))
		note_update(pool, (struct slice){ NULL, 0 }, change_key(list), msg);
	else if (!list_is_empty(&pool->members)) /* one that still joins has seen no lists */
		tell_only_member(pool, change_key(list), msg);
}

void notification_fanout_tell_changes(struct pool *pool)
{
	for (size_t i = 0; i < METHOD_CHANGES; i++) {
		lists_note_change(pool, method_changes[i].offer);
		if (pool->capabilities.tells & method_changes[i].offer)
			tell_change(pool, i);
	}
}

void notification_fanout_tell_member(struct pool_member *member)
{
	for (size_t i = 0; i < METHOD_CHANGES; i++) {
		at_end(msg_unref) struct msg *msg = change_of(i);

		if (member->client->pool->capabilities.tells & method_changes[i].offer)
			member->ops->on_notification(member, change_key(i), msg);
	}
}

static void tell_update(struct pool *pool, struct slice uri)
{
	static const struct slice method = SLICE("notifications/resources/updated");
	at_end(buf_fini) struct buf params = { 0 };
	struct buf text = { 0 };
	at_end(msg_unref) struct msg *msg = NULL;

	buf_append_str(&params, "{\"uri\":\"");
	splice_append(&params, uri, NULL, 0, SPLICE_ESCAPE_SEPARATORS);
	buf_append_str(&params, "\"}");
	write_call(&text, (struct slice){ NULL, 0 }, method, buf_slice(&params));
	msg = msg_new_take(&text);
	tell_only_member(pool, notification_key(method, uri), msg);
}

void notification_fanout_tell_updates(struct pool *pool)
{
	CHECK(!pool_is_shared(pool));
	LIST_EACH(const struct text_set_item, item,
		  &pool_only_member(pool)->client->subscriptions.items, link) {
		tell_update(pool, slice_of(item->text, item->length));
		if (pool->member_count == 0)
			return; /* that has ended the session */
	}
}

static void notify_list(struct upstream *upstream, const struct envelope *env)
{
	struct pool *pool = upstream->pool;

	for (size_t i = 0; i < METHOD_CHANGES; i++) {
		if (!slice_is_equal(method_changes[i].notification, env->method))
			continue;
		lists_note_change(pool, method_changes[i].offer);
		if (!(pool->capabilities.tells & method_changes[i].offer))
			continue;
		if (pool_is_shared(pool)) {
			tell_change(pool, i);
		} else {
			at_end(msg_unref) struct msg *msg = client_copy_message(env, NULL, 0);

			tell_only_member(pool, change_key(i), msg);
		}
		return;
	}
}

/*
 * What nobody has subscribed to is dropped without asking every session. Whoever has subscribed to
 * something above a denied resource must not hear of it. SEC-50
 */
static void notify_resource(struct upstream *upstream, const struct envelope *env)
{
	static const struct rights all = { .needs_roles = false };
	struct pool *pool = upstream->pool;
	at_end(buf_fini) struct buf room = { 0 };
	struct slice uri = text_set_spell(env->uri, &room);

	if (!subscriptions_concern(&pool->subscriptions, uri) ||
	    !permissions_allow_json(&pool->server->conf.permissions, &all, PERMISSION_RESOURCE,
				    env->uri)) {
		upstream_note_stray(upstream, COUNTER_CHILD_DROPPED, env);
	} else {
		uint64_t key = notification_key(env->method, uri);
		at_end(msg_unref) struct msg *msg = client_copy_message(env, NULL, 0);

		if (pool_is_shared(pool))
			note_update(pool, uri, key, msg);
		else if (only_member_must_hear(pool, uri))
			tell_only_member(pool, key, msg);
	}
}

void notification_fanout_take(struct upstream *upstream, const struct envelope *env,
			      const struct method *method)
{
	if (method->id == METHOD_LIST_CHANGED)
		notify_list(upstream, env);
	else
		notify_resource(upstream, env);
}

/* ---- beginning and end ---- */

void notification_fanout_leave(const struct pool_member *member)
{
	struct notices *notices = &member->client->pool->notices;

	if (notices->current != NULL && notices->next == &member->link)
		notices->next = member->link.next;
}

void notification_fanout_init(struct notices *notices)
{
	list_init(&notices->updates);
	timer_init(&notices->telling, on_telling);
}

void notification_fanout_fini(struct notices *notices)
{
	struct pool *pool = container_of(notices, struct pool, notices);

	timer_stop(&notices->telling);
	if (notices->current != NULL)
		update_free(notices->current);
	notices->current = NULL;
	LIST_DRAIN(struct update, update, &notices->updates, link) {
		update_unlink(pool, update);
		update_free(update);
	}
	CHECK(notices->update_bytes == 0);
}
