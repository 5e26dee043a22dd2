/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets which child, and when there are more or fewer of them. A call goes to the child that has the fewest;
 * when all have as many as they may, another one is started; when there may not be another, calls wait.
 *
 * Invariant: while calls or new sessions wait, a child is on its way to them, or works, or the wait is limited.
 */
#include "router/partition.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/claims.h"
#include "router/class.h"
#include "router/convert.h"
#include "router/cursor.h"
#include "router/deliver.h"
#include "router/forward.h"
#include "router/lane.h"
#include "router/places.h"
#include "router/route.h"
#include "router/sharing.h"
#include "router/spares.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

#define RETRY_MS 1000
#define OWN_QUEUE_CALLS 4096 /* of one session while its child is started */

/* ---- the life of a partition ---- */

static void partition_on_pump(struct task *task);
static void partition_on_retry(struct timer *timer);

static struct partition *partition_new(struct router *router, struct backend *backend)
{
	struct partition *partition = mem_zalloc(sizeof(*partition));

	partition->router = router;
	partition->backend = backend;
	partition->is_pool = backend->conf.isolation != ISOLATION_SESSION;
	list_init(&partition->members);
	list_init(&partition->lanes);
	queue_init(&partition->queue);
	task_init(&partition->pump, partition_on_pump);
	timer_init(&partition->retry, partition_on_retry);
	sharing_init(partition);
	list_init(&partition->link);
	return partition;
}

static void partition_free(struct partition *partition)
{
	list_remove(&partition->link);
	task_cancel(&partition->pump);
	timer_stop(&partition->retry);
	sharing_fini(partition);
	msg_unref(&partition->handshake);
	msg_unref(&partition->welcome);
	principal_unref(&partition->principal);
	buf_fini(&partition->claims);
	free(partition->class);
	loop_defer_free(partition->router->loop, partition);
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

static struct partition *partition_for_one(struct route *route, const struct envelope *env,
					   struct slice claims)
{
	struct partition *partition = partition_new(route->router, route->backend);

	buf_append_slice(&partition->claims, claims);
	partition->revision = route->revision;
	partition->handshake = msg_new(env->text);
	return partition;
}

static struct partition *partition_for_class(struct router *router, struct backend *backend,
					     struct principal *principal, struct slice claims,
					     struct slice class)
{
	struct partition *partition;

	LIST_FOREACH(node, &router->pools) {
		partition = container_of(node, struct partition, link);
		if (partition->backend == backend && partition->principal == principal &&
		    slice_is_equal(buf_slice(&partition->claims), claims) &&
		    slice_is_equal(slice_str(partition->class), class))
			return partition;
	}
	partition = partition_new(router, backend);
	buf_append_slice(&partition->claims, claims);
	partition->revision = revision_newest();
	partition->handshake = make_handshake(partition->revision, class);
	partition->class = mem_dup_slice(class);
	partition->is_leased = class.n > 2;
	partition->principal = principal != NULL ? principal_ref(principal) : NULL;
	list_append(&router->pools, &partition->link);
	return partition;
}

static struct partition *partition_for(struct route *route, const struct envelope *env,
				       struct slice claims)
{
	const struct backend_conf *conf = &route->backend->conf;
	struct principal *principal =
		conf->isolation == ISOLATION_PRINCIPAL ? route->session.principal : NULL;
	struct convert convert = { .text = { 0 } };
	struct buf class = { 0 };
	struct partition *partition;

	if (conf->isolation == ISOLATION_SHARED || (principal != NULL && conf->never_asks))
		return partition_for_class(route->router, route->backend, principal, claims,
					   SLICE_LIT("{}"));
	env = convert_initialize(&convert, revision_lacks(route->revision, revision_newest()), env);
	class_append(&class, scan_member(env->params.text, SLICE_LIT("capabilities")).text);
	if (principal == NULL)
		partition = partition_for_one(route, env, claims);
	else
		partition = partition_for_class(route->router, route->backend, principal, claims,
						buf_slice(&class));
	convert_fini(&convert);
	buf_fini(&class);
	return partition;
}

static struct route *member_of(struct list *node)
{
	return container_of(node, struct route, member);
}

/* ---- lanes ---- */

struct lane *partition_own_lane(const struct partition *partition)
{
	if (partition->is_pool || list_is_empty(&partition->lanes))
		return NULL;
	return container_of(partition->lanes.next, struct lane, link);
}

/* One child is kept for those who wait for news of it. bridging.md §1.5 */
size_t partition_least_lanes(const struct partition *partition)
{
	bool is_everybodys = partition->is_pool && partition->principal == NULL;
	size_t least = is_everybodys ? partition->backend->conf.pool_min : 0;

	if (least == 0 && partition->is_pool && partition->commons->topics.count > 0)
		return 1;
	return least;
}

bool partition_is_spare(const struct lane *lane)
{
	const struct partition *partition = lane->partition;

	return lane->state == LANE_READY && lane_load(lane) == 0 &&
	       partition->lane_count > partition_least_lanes(partition);
}

static size_t calls_per_lane(const struct partition *partition)
{
	if (partition->is_leased)
		return 1;
	return partition->is_pool ? partition->backend->conf.calls_per_process : SIZE_MAX;
}

/* How much it may work on at once. A list may be asked for beside a call that has the lane for itself: it is no work
   during which servers ask. */
static bool has_room(const struct lane *lane, bool is_list)
{
	const struct partition *partition = lane->partition;

	if (!partition->is_pool)
		return true;
	if (partition->is_leased && !is_list && lane->calls.count > 0)
		return false;
	return lane_load(lane) < partition->backend->conf.calls_per_process;
}

static bool has_openings(const struct partition *partition)
{
	return !partition->is_known && partition->member_count > 0;
}

size_t partition_lanes_needed(const struct partition *partition)
{
	size_t waiting =
		partition->queue.count > 0 ? partition->queue.count : listings_wait(partition);
	size_t least = partition_least_lanes(partition);
	size_t ready = partition->lane_count - partition->starting;
	size_t needed = waiting == 0 ? 0 : (waiting - 1) / calls_per_lane(partition) + 1;

	if (needed == 0 && has_openings(partition))
		needed = 1;
	return needed + ready < least ? least - ready : needed;
}

const struct principal *partition_party(const struct partition *partition, const struct route *only)
{
	return only != NULL ? only->session.principal : partition->principal;
}

static enum reason partition_start_lane(struct partition *partition)
{
	struct route *only = partition->is_pool ? NULL : member_of(partition->members.next);
	uint64_t wait_ms = 0;
	struct lane *spare;
	enum reason reason = REASON_NONE;

	spare = spares_take(partition->router, partition->backend);
	if (spare == NULL)
		reason = backend_admit(partition->backend, &wait_ms);
	if (reason == REASON_OVER_LIMIT)
		places_seek(partition);
	if (reason != REASON_NONE)
		return reason;
	if (only != NULL && only->opening == NULL)
		LOG(SESSION_RESPAWN, LOG_STR("server", partition->backend->conf.name),
		    LOG_INT("restarts", only->restarts));
	if (spare != NULL)
		lane_adopt(spare, partition, only);
	else
		lane_new(partition, only, wait_ms);
	return REASON_NONE;
}

static bool is_too_old(const struct lane *lane)
{
	uint64_t max_age_ms = lane->child.backend->conf.max_age_ms;

	return max_age_ms > 0 && lane->partition->is_pool &&
	       clock_now_ms() - lane->ready_at_ms >= max_age_ms;
}

/* The lane with the least to do that has room for a request of `size` bytes; NULL: none has. */
static struct lane *partition_choose(const struct partition *partition, size_t size, bool is_list)
{
	size_t least = SIZE_MAX;
	struct lane *chosen = NULL;

	LIST_FOREACH_SAFE(node, &partition->lanes) {
		struct lane *lane = container_of(node, struct lane, link);

		if (lane->state != LANE_READY || lane_load(lane) >= least ||
		    !has_room(lane, is_list))
			continue;
		if (is_too_old(lane)) {
			lane_retire(lane);
			continue;
		}
		if (partition->is_pool && !child_has_room(&lane->child, size))
			continue;
		chosen = lane;
		least = lane_load(lane);
	}
	return chosen;
}

struct lane *partition_find_lane(struct partition *partition)
{
	return partition_choose(partition, 0, true);
}

bool partition_has_child(const struct partition *partition, uint64_t child)
{
	LIST_FOREACH(node, &partition->lanes) {
		const struct lane *lane = container_of(node, struct lane, link);

		if (lane_is_serving(lane) && lane_child_number(lane) == child)
			return true;
	}
	return false;
}

/* ---- waiting ---- */

static void partition_try_again(struct partition *partition)
{
	if (!timer_is_running(&partition->retry))
		timer_start(partition->router->loop, &partition->retry, RETRY_MS);
}

enum reason partition_grow(struct partition *partition)
{
	size_t needed = partition_lanes_needed(partition);
	enum reason reason = REASON_NONE;

	if (!partition->is_pool && partition->lane_count > 0)
		return REASON_NONE;
	while (reason == REASON_NONE && partition->starting < needed)
		reason = partition_start_lane(partition);
	if (reason != REASON_NONE &&
	    (partition->lane_count < partition_least_lanes(partition) || places_is_poor(partition)))
		partition_try_again(partition);
	return reason;
}

/* Nobody will come to them. */
static void partition_fail_waiting(struct partition *partition, enum reason reason)
{
	LIST_FOREACH_SAFE(node, &partition->members) {
		struct route *route = member_of(node);

		if (route->opening != NULL)
			session_end(&route->session, reason);
	}
	while (!queue_is_empty(&partition->queue))
		call_fail(queue_first(&partition->queue), reason);
	listings_fail_waiting(partition, reason);
}

static void partition_on_retry(struct timer *timer)
{
	struct partition *partition = container_of(timer, struct partition, retry);

	if (places_is_poor(partition))
		places_claim(partition);
	partition_wake(partition);
}

/* The processes of a pool come and go: for a place it can be waited, for a while. */
static bool may_wait_for(const struct partition *partition, enum reason reason)
{
	return reason == REASON_NONE || (reason == REASON_OVER_LIMIT && partition->is_pool);
}

static bool serve_call(struct partition *partition)
{
	struct call *call;
	struct lane *lane;

	if (queue_is_empty(&partition->queue))
		return false;
	call = queue_first(&partition->queue);
	lane = partition_choose(partition, call->body->text.n, false);
	if (lane == NULL)
		return false;
	queue_remove(&partition->queue, call);
	forward_waiting(lane, call);
	return true;
}

/* Calls and lists take turns: neither keeps the other from its lane. */
static bool serve_one(struct partition *partition)
{
	bool is_lists_turn = partition->is_lists_turn;

	if (is_lists_turn ? listings_serve_one(partition) : serve_call(partition)) {
		partition->is_lists_turn = !is_lists_turn;
		return true;
	}
	return is_lists_turn ? serve_call(partition) : listings_serve_one(partition);
}

static void partition_on_pump(struct task *task)
{
	struct partition *partition = container_of(task, struct partition, pump);
	enum reason reason;

	if (partition->principal != NULL && partition->member_count == 0 &&
	    partition->lane_count == 0) {
		partition_free(partition);
		return;
	}
	while (serve_one(partition))
		;
	reason = partition_grow(partition);
	if (partition->lane_count == 0 && !may_wait_for(partition, reason))
		partition_fail_waiting(partition, reason);
}

void partition_wake(struct partition *partition)
{
	task_schedule(partition->router->loop, &partition->pump);
}

/* Those who take turns: principals, or sessions of those who are not told apart. */
static const void *party_of(const struct route *route)
{
	const struct principal *principal = route->session.principal;

	if (route->partition->principal != NULL || principal_is_anonymous(principal))
		return route;
	return principal;
}

/*
 * What waits is bounded as what waits for one process' stdin. Who has least of it gets his place from who has
 * most. Returns whether one of `size` bytes may wait.
 */
static bool partition_find_place(struct partition *partition, const void *party, size_t size)
{
	const struct backend_conf *conf = &partition->backend->conf;
	const struct queue *queue = &partition->queue;
	size_t calls_max = partition->is_pool ? conf->queue_calls : OWN_QUEUE_CALLS;

	for (;;) {
		bool is_full = queue->count >= calls_max;
		struct call *excess;

		if (!is_full && (queue->bytes == 0 || queue->bytes + size <= conf->queue_max))
			return true;
		excess = queue_find_excess(queue, party, is_full ? QUEUE_CALLS : QUEUE_BYTES,
					   is_full ? 1 : size);
		if (excess == NULL)
			return false;
		call_fail(excess, REASON_OVER_LIMIT);
	}
}

/* Somebody has begun to wait. Returns why that would be in vain. */
static enum reason partition_on_wanted(struct partition *partition)
{
	enum reason reason = partition_grow(partition);

	return partition->lane_count > 0 || may_wait_for(partition, reason) ? REASON_NONE : reason;
}

static void partition_enqueue(struct partition *partition, struct call *call)
{
	enum reason reason = REASON_OVER_LIMIT;

	if (partition_find_place(partition, party_of(call->route), call->body->text.n)) {
		queue_push(&partition->queue, call, party_of(call->route));
		call_wait(call, partition->is_pool ? partition->backend->conf.queue_timeout_ms : 0);
		reason = partition_on_wanted(partition);
	}
	if (reason != REASON_NONE)
		call_fail(call, reason);
}

void partition_put_back(struct call *call)
{
	struct partition *partition = call->route->partition;

	queue_push(&partition->queue, call, party_of(call->route));
	call_wait(call, partition->backend->conf.queue_timeout_ms);
	partition_wake(partition);
}

bool partition_is_waited_for(const struct partition *partition)
{
	return !queue_is_empty(&partition->queue) || listings_wait(partition);
}

enum reason partition_await_lane(struct partition *partition)
{
	if (queue_is_empty(&partition->queue) && listings_serve_one(partition))
		return REASON_NONE;
	return partition_on_wanted(partition);
}

/* Who waits for a process that is being started waits as long as that takes. */
void partition_on_wait_over(struct call *call)
{
	const struct partition *partition = call->route->partition;

	if (call->party == NULL && call != call->route->opening)
		call_fail(call,
			  REASON_TIMEOUT); /* it waited for an answer that others wait for, too */
	else if (partition->starting > 0)
		call_wait(call, partition->backend->conf.queue_timeout_ms);
	else if (call == call->route->opening)
		session_end(&call->route->session, REASON_OVER_LIMIT);
	else
		call_fail(call, REASON_OVER_LIMIT);
}

/* The rest of a list is with the child that gave the first part of it. */
static struct lane *partition_find_by_cursor(struct partition *partition, struct json cursor)
{
	struct buf inside = { 0 };
	struct lane *found = NULL;
	uint64_t child;

	if (cursor_open(cursor, &child, &inside) == 0) {
		LIST_FOREACH(node, &partition->lanes) {
			struct lane *lane = container_of(node, struct lane, link);

			if (lane_is_serving(lane) && lane_child_number(lane) == child)
				found = lane;
		}
	}
	buf_fini(&inside);
	return found;
}

/* A child that works on a call which has it for itself is not asked anything else meanwhile. */
static void partition_dispatch_rest(struct partition *partition, struct call *call,
				    const struct envelope *env, struct json cursor)
{
	struct lane *lane = partition_find_by_cursor(partition, cursor);

	if (lane == NULL)
		forward_own_error(call->route, call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: unknown cursor"));
	else if (!has_room(lane, false) || (partition->is_leased && lane->state != LANE_READY))
		call_fail(call, REASON_OVER_LIMIT);
	else
		forward_call(lane, call, env);
}

void partition_dispatch(struct partition *partition, struct call *call, const struct envelope *env)
{
	struct lane *lane = NULL;

	if (partition->is_pool && call->method->flags & METHOD_PAGED) {
		struct json cursor = scan_member(env->params.text, SLICE_LIT("cursor"));

		if (cursor.type != JSON_ABSENT) {
			partition_dispatch_rest(partition, call, env, cursor);
			return;
		}
	}
	if (!partition_is_waited_for(partition))
		lane = partition_choose(partition, env->text.n, false);
	if (lane != NULL) {
		forward_call(lane, call, env);
		return;
	}
	if (call->body == NULL)
		call->body = msg_new(env->text);
	partition_enqueue(partition, call);
}

/* ---- sessions ---- */

/* As all children of the pool would. */
static void partition_welcome(struct partition *partition, struct route *route)
{
	struct envelope env;
	struct error err;

	if (scan_envelope(partition->welcome->text, &partition->router->limits, SCAN_LENIENT, &env,
			  &err) == 0)
		route_welcome(route, partition->agreed, &env);
	else
		session_end(&route->session, REASON_CHILD_PROTOCOL_ERROR); /* cannot be */
}

/* Another process for so many more sessions, ahead of their calls. */
static void partition_spread(struct partition *partition)
{
	size_t each = partition->backend->conf.sessions_per_process;

	if (!partition->is_leased && partition->lane_count > 0 && partition->starting == 0 &&
	    partition->member_count > partition->lane_count * each &&
	    backend_has_room(partition->backend))
		(void)partition_start_lane(partition);
}

void partition_prepare(struct router *router, struct backend *backend)
{
	const struct slice none = { NULL, 0 };

	partition_wake(partition_for_class(router, backend, NULL, none, SLICE_LIT("{}")));
}

/* What its caller's token says now is what its processes are told as long as it lives. NULL: that lacks something. */
static struct partition *partition_join(struct route *route, const struct envelope *env)
{
	struct partition *partition = NULL;
	struct buf claims = { 0 };

	if (claims_append(&claims, &route->backend->conf, route->session.principal) == 0) {
		partition = partition_for(route, env, buf_slice(&claims));
		route->partition = partition;
		list_append(&partition->members, &route->member);
		partition->member_count++;
	}
	buf_fini(&claims);
	return partition;
}

enum reason partition_enter(struct route *route, const struct envelope *env)
{
	enum reason reason = REASON_NONE;
	struct partition *partition = partition_join(route, env);

	if (partition == NULL)
		return REASON_CLAIM_MISSING;
	if (partition->welcome != NULL) {
		partition_spread(partition);
		partition_welcome(partition, route);
		return REASON_NONE;
	}
	if (partition->lane_count == 0)
		reason = partition_grow(partition);
	if (partition->is_pool)
		call_wait(route->opening, partition->backend->conf.queue_timeout_ms);
	return may_wait_for(partition, reason) ? REASON_NONE : reason;
}

void partition_leave(struct route *route, enum reason reason)
{
	struct partition *partition = route->partition;

	sharing_forget(route);
	list_remove(&route->member);
	partition->member_count--;
	route->partition = NULL;
	if (partition->is_pool) {
		partition_wake(partition);
		return;
	}
	if (!list_is_empty(&partition->lanes))
		lane_close(partition_own_lane(partition), reason);
	partition_free(partition);
}

/* ---- what lanes report ---- */

static bool read_revision(struct lane *lane, struct slice result)
{
	struct json version = scan_member(result, SLICE_LIT("protocolVersion"));

	lane->revision = revision_find(scan_plain_string(version));
	if (lane->revision != NULL)
		return true;
	LOG(CHILD_FAILED, LOG_STR("server", lane->child.backend->conf.name),
	    LOG_INT("pid", lane->child.pid),
	    LOG_STR("error", "the server answered initialize with a revision that nobody knows"),
	    LOG_SLICE("revision", version.text));
	return false;
}

/* Returns whether it is other than it was. */
static bool partition_set_welcome(struct partition *partition, struct slice result)
{
	struct msg *before = partition->welcome;
	bool is_other;

	partition->welcome = sharing_make_welcome(result, partition->principal == NULL);
	abilities_read(&partition->abilities,
		       scan_member(partition->welcome->text, SLICE_LIT("result")).text);
	is_other = before != NULL && !slice_is_equal(before->text, partition->welcome->text);
	msg_unref(&before);
	return is_other;
}

void partition_on_ready(struct lane *lane, const struct envelope *response)
{
	struct partition *partition = lane->partition;
	struct slice result = response->result.text;
	bool is_first = !partition->is_known;
	bool is_other = !partition->is_pool;

	if (!read_revision(lane, result)) {
		lane_refuse(lane);
		return;
	}
	lane_set_ready(lane);
	partition->is_known = true;
	partition->agreed = lane->revision;
	if (partition->is_pool)
		is_other = partition_set_welcome(partition, result);
	else
		abilities_read(&partition->abilities, result);
	forward_initialized(lane);
	if (partition->is_pool)
		sharing_replay(lane);
	else if (!is_first)
		forward_replay(lane);
	/* The process before may have had other lists than this one has. bridging.md §4 */
	if (!is_first && is_other)
		sharing_tell_changes(partition);
	LIST_FOREACH_SAFE(node, &partition->members) {
		struct route *route = member_of(node);

		if (route->opening == NULL)
			continue;
		if (partition->is_pool)
			partition_welcome(partition, route);
		else
			route_welcome(route, lane->revision, response);
	}
	/* Who had it for himself may have left when he was told, and have taken it along. */
	if (partition->is_pool || partition->member_count > 0)
		partition_on_pump(&partition->pump);
}

void partition_on_refused(struct lane *lane, const struct envelope *response)
{
	struct partition *partition = lane->partition;
	bool was_asked = false;

	lane_note_refusal(lane, response->error.text);
	LIST_FOREACH_SAFE(node, &partition->members) {
		struct route *route = member_of(node);

		if (route->opening == NULL)
			continue;
		was_asked = true;
		route_refuse(route, response);
	}
	if (lane->state == LANE_CLOSED)
		return;
	if (was_asked)
		lane_close(lane, REASON_HANDSHAKE_REFUSED);
	else
		lane_refuse(lane); /* the same request was fine before */
}

/* Nothing has come of it, or the same will come of it another time. bridging.md §4, I5 */
static bool may_be_repeated(const struct call *call)
{
	return call->method->flags & METHOD_SAFE && !call->is_repeated && call->body != NULL;
}

void partition_on_lost(struct partition *partition, struct lane *lane, enum reason reason)
{
	struct call *call;

	if (!partition->is_pool) {
		route_on_lost(member_of(partition->members.next), reason);
		return;
	}
	while ((call = lane_any_call(lane)) != NULL) {
		if (may_be_repeated(call)) {
			call_recall(call);
			partition_enqueue(partition, call);
		} else {
			call_fail(call, reason);
		}
	}
	listings_on_lost(lane, reason);
	/* It could not be started, and others are not there. */
	if (partition->lane_count == 0 && reason_get(reason)->http_status == 503)
		partition_fail_waiting(partition, reason);
	partition_wake(partition);
}

void partition_on_idle(struct lane *lane)
{
	if (partition_is_spare(lane))
		lane_close(lane, REASON_IDLE_TIMEOUT);
	else
		timer_start(lane->router->loop, &lane->idle, lane->child.backend->conf.idle_ms);
}

void partition_end_all(struct router *router, enum reason reason)
{
	LIST_FOREACH_SAFE(node, &router->pools) {
		struct partition *partition = container_of(node, struct partition, link);

		while (!list_is_empty(&partition->lanes))
			lane_close(container_of(partition->lanes.next, struct lane, link), reason);
		partition_free(partition);
	}
}
