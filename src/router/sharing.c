/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merging what several sessions want of one child, and spreading what it tells. A topic is a resource that
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
#include "router/lane.h"
#include "router/listings.h"
#include "router/places.h"
#include "router/route.h"
#include "router/topics.h"

#define TELLING_MS 100 /* changes that come together are told once. bridging.md §1.7 */
#define UPDATES_MAX 1024
#define UPDATE_BYTES_MAX (1024 * 1024)
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

struct msg *sharing_make_welcome(struct slice result, bool is_for_all)
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

static void tell_members(struct partition *partition, uint64_t key, struct msg *msg)
{
	LIST_FOREACH(node, &partition->members) {
		struct route *route = member_of(node);

		if (route->opening == NULL)
			stream_push(&route->session.standalone, STREAM_NEWS, key, msg);
	}
}

static void tell_change(struct partition *partition, size_t list)
{
	struct buf text = { 0 };
	struct msg *msg;

	write_call(&text, (struct slice){ NULL, 0 }, lists[list].method, (struct slice){ NULL, 0 });
	msg = msg_new_take(&text);
	tell_members(partition, deliver_news_key(lists[list].method, (struct slice){ NULL, 0 }),
		     msg);
	msg_unref(&msg);
}

static void update_free(struct partition *partition, struct update *update)
{
	partition->commons->update_bytes -= update->msg->text.n;
	map_remove(&partition->commons->updates_by_key, update->key);
	list_remove(&update->link);
	msg_unref(&update->msg);
	free(update);
}

/* The topics that an update concerns, as every member's set is asked for them. */
struct concern {
	struct slice uri;
	size_t count;
	size_t lengths[CONCERN_MAX]; /* of beginnings of uri */
	uint64_t keys[CONCERN_MAX];
};

static struct concern find_concern(const struct partition *partition, struct slice uri)
{
	struct concern concern = { .uri = uri };

	if (partition->is_pool)
		concern.count = topics_find_above(&partition->commons->topics, uri, concern.lengths,
						  CONCERN_MAX);
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
	if (!route->partition->is_pool || concern->count > CONCERN_MAX)
		return route_is_subscribed(route, concern->uri);
	for (size_t i = 0; i < concern->count; i++) {
		if (text_set_has(set, concern->keys[i],
				 slice_of(concern->uri.p, concern->lengths[i])))
			return true;
	}
	return false;
}

/* Returns whether anybody is subscribed. */
static bool tell_subscribers(struct partition *partition, struct slice uri, uint64_t key,
			     struct msg *msg)
{
	const struct concern concern = find_concern(partition, uri);
	bool is_told = false;

	LIST_FOREACH(node, &partition->members) {
		struct route *route = member_of(node);

		if (!is_concerned(route, &concern))
			continue;
		stream_push(&route->session.standalone, STREAM_NEWS, key, msg);
		is_told = true;
	}
	return is_told;
}

static void tell_first_update(struct partition *partition)
{
	struct update *update = container_of(partition->commons->updates.next, struct update, link);

	tell_subscribers(partition, slice_of(update->uri, update->length), update->key,
			 update->msg);
	update_free(partition, update);
}

static void on_telling(struct timer *timer)
{
	struct partition *partition = container_of(timer, struct commons, telling)->partition;
	unsigned int news = partition->commons->news;

	partition->commons->news = 0;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		if (news & 1u << i)
			tell_change(partition, i);
	}
	while (!list_is_empty(&partition->commons->updates))
		tell_first_update(partition);
}

static void tell_soon(struct partition *partition)
{
	if (!timer_is_running(&partition->commons->telling))
		timer_start(partition->router->loop, &partition->commons->telling, TELLING_MS);
}

void sharing_tell_changes(struct partition *partition)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		listings_note_change(partition, lists[i].offer);
		if (partition->abilities.tells & lists[i].offer)
			tell_change(partition, i);
	}
}

static void notify_list(struct lane *lane, const struct envelope *env, const char *list)
{
	struct partition *partition = lane->partition;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		if (strcmp(lists[i].name, list) != 0)
			continue;
		listings_note_change(partition, lists[i].offer);
		if (!(partition->abilities.tells & lists[i].offer))
			continue;
		if (partition->is_pool) {
			partition->commons->news |= 1u << i;
			tell_soon(partition);
		} else {
			struct msg *msg = deliver_make_msg(env);

			tell_members(partition,
				     deliver_news_key(env->method, (struct slice){ NULL, 0 }), msg);
			msg_unref(&msg);
		}
	}
}

/*
 * Each is told to many: a server that says the same again and again must not keep the gateway busy with that. What
 * nobody has subscribed to is dropped without asking every session.
 */
static void note_update(struct partition *partition, struct slice uri, uint64_t key,
			struct msg *msg)
{
	struct update *update = map_find(&partition->commons->updates_by_key, key);

	if (update != NULL)
		update_free(partition, update); /* this one says the same, later */
	update = mem_alloc(sizeof(*update) + uri.n);
	update->key = key;
	update->msg = msg_ref(msg);
	update->length = uri.n;
	memcpy(update->uri, uri.p, uri.n);
	list_init(&update->link);
	list_append(&partition->commons->updates, &update->link);
	map_insert(&partition->commons->updates_by_key, key, update);
	partition->commons->update_bytes += msg->text.n;
	while (partition->commons->updates_by_key.count > UPDATES_MAX ||
	       partition->commons->update_bytes > UPDATE_BYTES_MAX)
		tell_first_update(partition);
	tell_soon(partition);
}

static void notify_of(struct lane *lane, const struct envelope *env, struct slice uri)
{
	struct partition *partition = lane->partition;
	uint64_t key = deliver_news_key(env->method, uri);
	struct msg *msg;

	if (partition->is_pool && !topics_concern(&partition->commons->topics, uri)) {
		deliver_note_dropped(lane, env);
		return;
	}
	msg = deliver_make_msg(env);
	if (partition->is_pool)
		note_update(partition, uri, key, msg);
	else if (!tell_subscribers(partition, uri, key, msg))
		deliver_note_dropped(lane, env);
	msg_unref(&msg);
}

static void notify_resource(struct lane *lane, const struct envelope *env)
{
	struct buf room = { 0 };

	notify_of(lane, env, route_spell_uri(env->uri, &room));
	buf_fini(&room);
}

void sharing_notify(struct lane *lane, const struct envelope *env, const struct method *method)
{
	if (method->id == METHOD_LIST_CHANGED)
		notify_list(lane, env, method->capability);
	else
		notify_resource(lane, env);
}

/* ---- subscriptions ---- */

/* Returns false if there is no room for it any more. */
static bool topic_add(struct topic *topic, struct route *route)
{
	struct slice uri = topic_uri(topic);

	if (text_set_add(&route->subscriptions, uri))
		topic->subscribers++;
	return text_set_has(&route->subscriptions, text_set_key(uri), uri);
}

/* All children but one, which knows. */
static void tell_lanes(struct partition *partition, const struct lane *but, struct slice method,
		       struct slice uri)
{
	LIST_FOREACH(node, &partition->lanes) {
		struct lane *lane = container_of(node, struct lane, link);

		if (lane != but && lane_is_serving(lane))
			forward_subscription(lane, method, uri);
	}
}

static void topic_release(struct partition *partition, struct topic *topic)
{
	if (--topic->subscribers > 0)
		return;
	tell_lanes(partition, NULL, SLICE_LIT("resources/unsubscribe"), topic_uri(topic));
	topics_remove(&partition->commons->topics, topic);
	if (partition->commons->topics.count == 0)
		places_note_idle(partition->router); /* none has to stay for news any more */
}

bool sharing_settle(struct call *call, const struct envelope *env)
{
	struct partition *partition = call->route->partition;
	struct topic *topic = call->topic;
	bool has_agreed = env->kind == ENVELOPE_RESULT;
	bool is_kept = true;

	call->topic = NULL;
	if (topic->first != call)
		return true;
	topic->first = NULL;
	topic->subscribers++; /* ourselves: who is told may end his session */
	if (has_agreed) {
		is_kept = topic_add(topic, call->route);
		tell_lanes(partition, call->lane, SLICE_LIT("resources/subscribe"),
			   topic_uri(topic));
	}
	while (!list_is_empty(&topic->waiting)) {
		struct call *next = container_of(topic->waiting.next, struct call, place);

		list_remove(&next->place);
		next->topic = NULL;
		/* Many may have been asked for at once. DEF-11 */
		if (has_agreed && !topic_add(topic, next->route))
			forward_no_room(next->route, next);
		else
			deliver_response(next, env);
	}
	if (has_agreed)
		topic_release(partition, topic);
	else
		topics_remove(&partition->commons->topics, topic);
	if (!is_kept)
		forward_no_room(call->route, call);
	return is_kept;
}

void sharing_abandon(struct call *call)
{
	struct partition *partition = call->route->partition;
	struct topic *topic = call->topic;
	struct call *next;

	call->topic = NULL;
	if (topic->first != call)
		return; /* it only waited */
	if (list_is_empty(&topic->waiting)) {
		topics_remove(&partition->commons->topics, topic);
		return;
	}
	next = container_of(topic->waiting.next, struct call, place);
	list_remove(&next->place);
	topic->first = next;
	partition_put_back(next);
}

static void subscribe(struct route *route, struct call *call, struct slice uri,
		      const struct envelope *env)
{
	struct topic *topic = topics_find(&route->partition->commons->topics, uri);

	if (topic == NULL && !topics_have_room(&route->partition->commons->topics, uri.n)) {
		forward_own_error(route, call, MCP_INTERNAL_ERROR,
				  SLICE_LIT("The server has too many subscriptions"));
		return;
	}
	call_link(call, route);
	if (topic == NULL) {
		call->topic = topics_add(&route->partition->commons->topics, uri, call);
		forward_request(route, call, env);
	} else if (topic->first != NULL) {
		call->topic = topic;
		call->body = msg_new(env->text);
		list_append(&topic->waiting, &call->place);
		call_wait(call, route->backend->conf.request_timeout_ms);
	} else {
		topic_add(topic, route);
		forward_own_result(route, call, SLICE_LIT("{}"));
	}
}

static void unsubscribe(struct partition *partition, struct route *route, struct slice uri)
{
	struct topic *topic = topics_find(&partition->commons->topics, uri);

	if (text_set_remove(&route->subscriptions, uri) && topic != NULL)
		topic_release(partition, topic);
}

void sharing_forget(struct route *route)
{
	while (route->partition->is_pool && route->subscriptions.count > 0) {
		struct text_set_item *item =
			container_of(route->subscriptions.items.next, struct text_set_item, link);
		struct slice uri = slice_of(item->text, item->length);
		char *copy = mem_dup_slice(uri);

		unsubscribe(route->partition, route, slice_of(copy, uri.n));
		free(copy);
	}
}

void sharing_replay(struct lane *lane)
{
	LIST_FOREACH(node, &lane->partition->commons->topics.all) {
		const struct topic *topic = container_of(node, struct topic, link);

		if (topic->first == NULL)
			forward_subscription(lane, SLICE_LIT("resources/subscribe"),
					     topic_uri(topic));
	}
}

/* ---- requests ---- */

bool sharing_answer(struct route *route, struct call *call, const struct envelope *env)
{
	struct buf room = { 0 };
	struct slice uri;

	if (call->method->needs & ~route->partition->abilities.offers) {
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
		unsubscribe(route->partition, route, uri);
		forward_own_result(route, call, SLICE_LIT("{}"));
	}
	buf_fini(&room);
	return true;
}

void sharing_init(struct partition *partition)
{
	struct commons *commons;

	if (!partition->is_pool)
		return;
	commons = mem_zalloc(sizeof(*commons));
	commons->partition = partition;
	listings_init(&commons->lists);
	topics_init(&commons->topics);
	list_init(&commons->updates);
	timer_init(&commons->telling, on_telling);
	partition->commons = commons;
}

void sharing_fini(struct partition *partition)
{
	struct commons *commons = partition->commons;

	if (commons == NULL)
		return;
	timer_stop(&commons->telling);
	while (!list_is_empty(&commons->updates))
		update_free(partition, container_of(commons->updates.next, struct update, link));
	map_fini(&commons->updates_by_key);
	topics_fini(&commons->topics);
	listings_fini(&commons->lists);
	loop_defer_free(partition->router->loop, commons);
}
