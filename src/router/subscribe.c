/* SPDX-License-Identifier: Apache-2.0 */
#include "router/subscribe.h"

#include <stdlib.h>

#include "base/mem.h"
#include "mcp/error.h"
#include "router/call.h"
#include "router/client.h"
#include "router/dispatch.h"
#include "router/listen.h"
#include "router/pool.h"
#include "router/reclaim.h"
#include "router/result.h"
#include "router/router.h"
#include "router/subscriptions.h"
#include "upstream/send.h"

#define WAITING_BYTES_MAX (8 * 1024 * 1024)

static struct pool_sharing *sharing_of(const struct call *call)
{
	return call->client->pool->sharing;
}

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
	LIST_FOREACH(node, &pool->upstreams) {
		struct upstream *upstream = container_of(node, struct upstream, link);

		if (upstream != but && upstream_is_serving(upstream))
			tell_upstream(upstream, method, uri);
	}
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
	subscriptions_remove(&pool->sharing->subscriptions, subscription);
	if (pool->sharing->subscriptions.count == 0)
		process_slots_note_idle(
			&pool->router->slots); /* none has to stay for notifications */
}

/* ---- calls that wait for the first one's answer ---- */

static void on_waiter_left(struct wait_queue *queue, struct waiter *waiter)
{
	(void)queue;
	sharing_of(call_of_waiter(waiter))->waiting_bytes -= waiter->bytes;
}

static const struct wait_queue_ops waiting_ops = {
	.on_timeout = call_on_wait_timeout,
	.on_left = on_waiter_left,
};

static struct call *take_waiting(struct subscription *subscription)
{
	struct waiter *waiter = wait_queue_first(&subscription->waiting);

	waiter_leave(waiter);
	return call_of_waiter(waiter);
}

/* ---- the first one ---- */

/* It got no agreement. Others may be subscribed from before (subscribe_again), and relied on it. */
static void give_up(struct pool *pool, struct subscription *subscription)
{
	if (is_unused(subscription))
		subscriptions_remove(&pool->sharing->subscriptions, subscription);
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
	bool has_agreed = env->kind == ENVELOPE_RESULT;
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
	if (has_agreed) {
		release_subscriber(pool, subscription);
	} else {
		subscription->subscribers--;
		give_up(pool, subscription);
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
		give_up(call->client->pool, subscription);
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
	struct pool_sharing *sharing = sharing_of(call);
	struct subscription *subscription = subscriptions_find(&sharing->subscriptions, uri);
	bool has_room;

	/* Many calls may wait for the answer to another one, and each keeps its request. DEF-11 */
	if (subscription == NULL)
		has_room = subscriptions_have_room(&sharing->subscriptions, uri.n);
	else
		has_room = subscription->first == NULL ||
			   sharing->waiting_bytes + env->text.n <= WAITING_BYTES_MAX;
	if (!has_room) {
		result_send_error(call, MCP_INTERNAL_ERROR,
				  SLICE_LIT("The server has too many subscriptions"));
		return true;
	}
	if (subscription == NULL) {
		subscription = subscriptions_add(&sharing->subscriptions, uri, call);
		subscription->leader.ops = &leader_ops;
		wait_queue_init(&subscription->waiting, &waiting_ops);
		lead(subscription, call);
		return false;
	}
	if (subscription->first != NULL) {
		call->body = msg_new(env->text);
		wait_queue_append(&subscription->waiting, &call->waiter, env->text.n);
		sharing->waiting_bytes += env->text.n;
		call_wait(call, call->client->server->conf.request_timeout_ms);
	} else {
		add_subscriber(subscription, call->client);
		result_send_own(call, SLICE_LIT("{}"));
	}
	return true;
}

static void unsubscribe(struct client *client, struct slice uri)
{
	struct subscription *subscription =
		subscriptions_find(&client->pool->sharing->subscriptions, uri);

	if (!text_set_remove(&client->subscriptions, uri))
		return;
	kept_session_note(client->kept);
	if (subscription != NULL)
		release_subscriber(client->pool, subscription);
}

bool subscribe_take(struct call *call, const struct envelope *env)
{
	struct buf room = { 0 };
	struct slice uri = subscriptions_spell_uri(env->uri, &room);
	bool is_taken = true;

	CHECK(pool_is_shared(call->client->pool) && call->state == CALL_WAITING);
	if (call->method->id == METHOD_SUBSCRIBE) {
		is_taken = subscribe(call, uri, env);
	} else {
		unsubscribe(call->client, uri);
		result_send_own(call, SLICE_LIT("{}"));
	}
	buf_fini(&room);
	return is_taken;
}

void subscribe_forget(struct client *client)
{
	if (client->pool == NULL || !pool_is_shared(client->pool))
		return;
	while (client->subscriptions.count > 0) {
		struct text_set_item *item =
			container_of(client->subscriptions.items.next, struct text_set_item, link);
		struct slice uri = slice_of(item->text, item->length);
		char *copy = mem_dup_slice(uri);

		unsubscribe(client, slice_of(copy, uri.n));
		free(copy);
	}
}

void subscribe_again(struct client *client)
{
	struct pool *pool = client->pool;
	struct subscriptions *all = &pool->sharing->subscriptions;

	CHECK(pool_is_shared(pool));
	LIST_FOREACH_SAFE(node, &client->subscriptions.items) {
		const struct text_set_item *item = container_of(node, struct text_set_item, link);
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

static void replay_one(struct upstream *upstream, struct slice uri)
{
	tell_upstream(upstream, SLICE_LIT("resources/subscribe"), uri);
}

void subscribe_replay(struct upstream *upstream)
{
	const struct pool *pool = upstream->pool;

	if (!pool_is_shared(pool)) {
		LIST_FOREACH(node, &upstream->client->subscriptions.items) {
			const struct text_set_item *item =
				container_of(node, struct text_set_item, link);

			replay_one(upstream, slice_of(item->text, item->length));
		}
		return;
	}
	LIST_FOREACH(node, &pool->sharing->subscriptions.all) {
		const struct subscription *subscription =
			container_of(node, struct subscription, link);

		if (subscription->first == NULL)
			replay_one(upstream, subscription_uri(subscription));
	}
}
