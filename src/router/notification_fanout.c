/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each notification may be for many: a server that repeats itself must not keep the gateway busy.
 * So notifications to the members of a shared pool are collected for a while, and joined.
 *
 * UTIL-LIST-01, UTIL-SUBS-01.
 */
#include "router/notification_fanout.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "jsonrpc/splice.h"
#include "jsonrpc/write.h"
#include "policy/permissions.h"
#include "router/client.h"
#include "router/list_cache.h"
#include "router/pool.h"
#include "router/pool_demand.h"
#include "router/router.h"
#include "router/subscriptions.h"
#include "upstream/upstream.h"

#define TELLING_MS 100 /* changes within this time are reported once. bridging.md §1.7 */
#define UPDATES_MAX 1024
#define UPDATE_BYTES_MAX (1024 * 1024)
#define CONCERN_MAX 16 /* subscriptions at or above one URI; more take longer */

/*
 * A change of a resource that is yet to be reported; its URI is spelled like that of a
 * subscription.
 */
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

static struct pool_member *member_at(struct list *node)
{
	return container_of(node, struct pool_member, link);
}

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

static void tell_members(struct pool *pool, uint64_t key, struct msg *msg)
{
	LIST_FOREACH_SAFE(node, &pool->members)
		member_at(node)->ops->on_notification(member_at(node), key, msg);
}

static struct msg *change_of(size_t list)
{
	struct buf text = { 0 };

	write_call(&text, (struct slice){ NULL, 0 }, lists[list].method, (struct slice){ NULL, 0 });
	return msg_new_take(&text);
}

static uint64_t change_key(size_t list)
{
	return notification_key(lists[list].method, (struct slice){ NULL, 0 });
}

static void tell_change(struct pool *pool, size_t list)
{
	struct msg *msg = change_of(list);

	tell_members(pool, change_key(list), msg);
	msg_unref(&msg);
}

static void update_free(struct pool *pool, struct update *update)
{
	CHECK(pool->sharing->update_bytes >= update->msg->text.n);
	pool->sharing->update_bytes -= update->msg->text.n;
	map_remove(&pool->sharing->updates_by_key, update->key);
	list_remove(&update->link);
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
static bool is_within(struct slice uri, struct slice parent)
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

	if (pool_is_shared(client->pool) && concern->count <= CONCERN_MAX) {
		for (size_t i = 0; set->count > 0 && i < concern->count; i++)
			if (text_set_has(set, concern->keys[i],
					 slice_of(concern->uri.p, concern->lengths[i])))
				return true;
		return false;
	}
	LIST_FOREACH(node, &set->items) {
		const struct text_set_item *item = container_of(node, struct text_set_item, link);

		if (is_within(concern->uri, slice_of(item->text, item->length)))
			return true;
	}
	return false;
}

/* The client's roles, and the server's rules, may have changed since it subscribed. SEC-56 */
static bool may_hear(const struct client *client, struct slice uri)
{
	struct buf quoted = { 0 };
	bool may;

	if (!client->rights.needs_roles && !client->server->conf.permissions.has_rules)
		return true;
	buf_printf(&quoted, "\"%.*s\"", SLICE_ARG(uri));
	may = permissions_allow_json(&client->server->conf.permissions, &client->rights,
				     PERMISSION_RESOURCE,
				     (struct json){ JSON_STRING, true, buf_slice(&quoted) });
	buf_fini(&quoted);
	return may;
}

/* Returns whether anybody is subscribed. */
static bool tell_subscribers(struct pool *pool, struct slice uri, uint64_t key, struct msg *msg)
{
	struct concern concern = { .uri = uri };
	bool is_told = false;

	if (pool_is_shared(pool))
		concern.count = subscriptions_find_above(&pool->sharing->subscriptions, uri,
							 concern.lengths, CONCERN_MAX);
	for (size_t i = 0; i < concern.count && i < CONCERN_MAX; i++)
		concern.keys[i] = text_set_key(slice_of(uri.p, concern.lengths[i]));
	LIST_FOREACH_SAFE(node, &pool->members) {
		struct pool_member *member = member_at(node);

		if (!is_concerned(member->client, &concern) || !may_hear(member->client, uri))
			continue;
		member->ops->on_notification(member, key, msg);
		is_told = true;
	}
	return is_told;
}

static void tell_first_update(struct pool *pool)
{
	struct update *update = container_of(pool->sharing->updates.next, struct update, link);

	tell_subscribers(pool, slice_of(update->uri, update->length), update->key, update->msg);
	update_free(pool, update);
}

static void on_telling(struct timer *timer)
{
	struct pool *pool = container_of(timer, struct pool_sharing, telling)->pool;
	unsigned int changed = pool->sharing->changed;

	pool->sharing->changed = 0;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		if (changed & 1u << i)
			tell_change(pool, i);
	}
	while (!list_is_empty(&pool->sharing->updates))
		tell_first_update(pool);
}

static void tell_soon(struct pool *pool)
{
	CHECK(pool_is_shared(pool));
	if (!timer_is_running(&pool->sharing->telling))
		timer_start(pool->router->loop, &pool->sharing->telling, TELLING_MS);
}

void notification_fanout_tell_changes(struct pool *pool)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		list_cache_note_change(pool, lists[i].offer);
		if (pool->capabilities.tells & lists[i].offer)
			tell_change(pool, i);
	}
}

void notification_fanout_tell_member(struct pool_member *member)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct msg *msg = change_of(i);

		if (member->client->pool->capabilities.tells & lists[i].offer)
			member->ops->on_notification(member, change_key(i), msg);
		msg_unref(&msg);
	}
}

static void tell_update(struct pool *pool, struct slice uri)
{
	static const struct slice method = SLICE("notifications/resources/updated");
	struct buf params = { 0 };
	struct buf text = { 0 };
	struct msg *msg;

	buf_append_str(&params, "{\"uri\":\"");
	splice_append(&params, uri, NULL, 0, SPLICE_ESCAPE_SEPARATORS);
	buf_append_str(&params, "\"}");
	write_call(&text, (struct slice){ NULL, 0 }, method, buf_slice(&params));
	msg = msg_new_take(&text);
	tell_members(pool, notification_key(method, uri), msg);
	msg_unref(&msg);
	buf_fini(&params);
}

void notification_fanout_tell_updates(struct pool *pool)
{
	CHECK(!pool_is_shared(pool));
	LIST_FOREACH(node, &pool_only_member(pool)->client->subscriptions.items) {
		const struct text_set_item *item = container_of(node, struct text_set_item, link);

		tell_update(pool, slice_of(item->text, item->length));
		if (pool->member_count == 0)
			return; /* that has ended the session */
	}
}

static void notify_list(struct upstream *upstream, const struct envelope *env, const char *list)
{
	struct pool *pool = upstream->pool;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		if (strcmp(lists[i].name, list) != 0)
			continue;
		list_cache_note_change(pool, lists[i].offer);
		if (!(pool->capabilities.tells & lists[i].offer))
			continue;
		if (pool_is_shared(pool)) {
			pool->sharing->changed |= 1u << i;
			tell_soon(pool);
		} else {
			struct msg *msg = client_copy_message(env, NULL, 0);

			tell_members(pool, notification_key(env->method, (struct slice){ NULL, 0 }),
				     msg);
			msg_unref(&msg);
		}
	}
}

/* Keeps the update to be reported soon, in place of an earlier one that says the same. */
static void note_update(struct pool *pool, struct slice uri, uint64_t key, struct msg *msg)
{
	struct update *update = map_find(&pool->sharing->updates_by_key, key);

	CHECK(pool_is_shared(pool) && key != 0);
	if (update != NULL)
		update_free(pool, update); /* this one says the same, but later */
	update = mem_alloc(sizeof(*update) + uri.n);
	update->key = key;
	update->msg = msg_ref(msg);
	update->length = uri.n;
	memcpy(update->uri, uri.p, uri.n);
	list_init(&update->link);
	list_append(&pool->sharing->updates, &update->link);
	map_insert(&pool->sharing->updates_by_key, key, update);
	pool->sharing->update_bytes += msg->text.n;
	while (pool->sharing->updates_by_key.count > UPDATES_MAX ||
	       pool->sharing->update_bytes > UPDATE_BYTES_MAX)
		tell_first_update(pool);
	tell_soon(pool);
}

/*
 * What nobody has subscribed to is dropped without asking every session. Whoever has subscribed to
 * something above a denied resource must not hear of it. SEC-50
 */
static void notify_resource(struct upstream *upstream, const struct envelope *env)
{
	static const struct rights all = { .needs_roles = false };
	struct pool *pool = upstream->pool;
	struct buf room = { 0 };
	struct slice uri = subscriptions_spell_uri(env->uri, &room);
	uint64_t key = notification_key(env->method, uri);
	struct msg *msg = NULL;

	if ((pool_is_shared(pool) && !subscriptions_concern(&pool->sharing->subscriptions, uri)) ||
	    !permissions_allow_json(&pool->server->conf.permissions, &all, PERMISSION_RESOURCE,
				    env->uri)) {
		upstream_note_stray(upstream, COUNTER_CHILD_DROPPED, env);
		goto out;
	}
	msg = client_copy_message(env, NULL, 0);
	if (pool_is_shared(pool))
		note_update(pool, uri, key, msg);
	else if (!tell_subscribers(pool, uri, key, msg))
		upstream_note_stray(upstream, COUNTER_CHILD_DROPPED, env);
out:
	msg_unref(&msg);
	buf_fini(&room);
}

void notification_fanout_take(struct upstream *upstream, const struct envelope *env,
			      const struct method *method)
{
	if (method->id == METHOD_LIST_CHANGED)
		notify_list(upstream, env, method->capability);
	else
		notify_resource(upstream, env);
}

/* ---- beginning and end ---- */

void notification_fanout_init(struct pool_sharing *sharing)
{
	list_init(&sharing->updates);
	timer_init(&sharing->telling, on_telling);
}

void notification_fanout_fini(struct pool_sharing *sharing)
{
	timer_stop(&sharing->telling);
	while (!list_is_empty(&sharing->updates))
		update_free(sharing->pool,
			    container_of(sharing->updates.next, struct update, link));
	CHECK(sharing->update_bytes == 0);
	map_fini(&sharing->updates_by_key);
}
