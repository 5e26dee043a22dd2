/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start, handshake, end of an upstream. An upstream belongs to one pool until it is lost or closed; after that
 * it only waits for its process to go.
 */
#include "router/upstream.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/claims.h"
#include "router/deliver.h"
#include "router/forward.h"
#include "router/pool.h"
#include "router/process_slots.h"
#include "router/route.h"
#include "router/warm.h"

#define PROBE_MS 5000
#define REFUSAL_LOGGED 300
#define WARM_PROVEN_MS 60000
#define ID_MAX INT32_MAX           /* many servers read ids into 32 bits */
#define ID_LATE (ID_MAX - 1000000) /* what is our own has ids, too */

#define TO(state) (1u << UPSTREAM_##state)
static const struct {
	const char *name;
	unsigned int next;
} states[] = {
	[UPSTREAM_DELAYED] = { "delayed", TO(STARTING) | TO(CLOSED) },
	[UPSTREAM_STARTING] = { "starting", TO(WARM) | TO(HANDSHAKE) | TO(CLOSED) },
	[UPSTREAM_WARM] = { "spare", TO(HANDSHAKE) | TO(CLOSED) },
	[UPSTREAM_HANDSHAKE] = { "handshake", TO(READY) | TO(CLOSED) },
	[UPSTREAM_READY] = { "ready", TO(SETTLING) | TO(RETIRING) | TO(CLOSED) },
	[UPSTREAM_SETTLING] = { "settling", TO(READY) | TO(CLOSED) },
	[UPSTREAM_RETIRING] = { "retiring", TO(CLOSED) },
	[UPSTREAM_CLOSED] = { "closed", 0 },
};
#undef TO

static void upstream_set_state(struct upstream *upstream, enum upstream_state state)
{
	CHECK(states[upstream->state].next & 1u << state);
	upstream->state = state;
}

static void upstream_free(struct upstream *upstream)
{
	map_fini(&upstream->calls);
	loop_defer_free(upstream->child.server->loop, upstream);
}

/* What the child asked for that call is nobody's concern any more. */
static void upstream_end_lease(struct upstream *upstream)
{
	struct route *route = upstream->route;

	if (upstream->lease == NULL)
		return;
	LIST_FOREACH_SAFE(node, &route->server_requests) {
		struct server_request *server_request =
			container_of(node, struct server_request, link);

		if (server_request->upstream != upstream)
			continue;
		deliver_server_request_cancelled(server_request);
		forward_refusal(server_request,
				SLICE_LIT("the request that this was asked for is over"));
		route_close_server_request(server_request);
	}
	upstream->lease = NULL;
	upstream->route = NULL;
}

static void upstream_unjoin(struct upstream *upstream)
{
	struct pool *pool = upstream->pool;

	if (!upstream_is_serving(upstream))
		pool->starting--;
	upstream_end_lease(upstream);
	list_remove(&upstream->link);
	pool->upstream_count--;
	if (!pool->is_pool)
		return;
	process_slots_put_last(pool);
	pool_wake(pool);
}

/* Unlinks upstream and pool; that says what happens to its calls. NULL: it had none. */
static struct pool *upstream_detach(struct upstream *upstream)
{
	struct pool *pool = upstream->pool;

	if (upstream->state == UPSTREAM_DELAYED)
		server_release(upstream->child.server);
	if (pool != NULL)
		upstream_unjoin(upstream);
	else if (upstream->warm_set != NULL)
		warm_set_on_lost(upstream);
	upstream_set_state(upstream, UPSTREAM_CLOSED);
	timer_stop(&upstream->start);
	timer_stop(&upstream->probe);
	timer_stop(&upstream->idle);
	upstream->pool = NULL;
	upstream->route = NULL;
	return pool;
}

/* A warm one has started well, if it ever was one for long: nobody asked it for more. */
static bool is_starting(const struct upstream *upstream)
{
	return !upstream_is_serving(upstream) &&
	       (upstream->state != UPSTREAM_WARM ||
		clock_now_ms() - upstream->child.started_at_ms < WARM_PROVEN_MS);
}

/* The child has failed, or was given up as if it had. */
static void upstream_lose(struct upstream *upstream, enum reason reason)
{
	bool is_start = is_starting(upstream);
	struct server *server = upstream->child.server;
	struct pool *pool = upstream_detach(upstream);

	if (is_start)
		server_note_failed(server);
	else if (!upstream->was_used && reason != REASON_RESTARTED)
		server_note_crashed(server, upstream->ready_at_ms);
	if (is_start && reason == REASON_CHILD_EXITED)
		reason = REASON_START_FAILED;
	if (pool != NULL)
		pool_on_lost(pool, upstream, reason);
}

static void upstream_give_up(struct upstream *upstream, enum reason reason, const char *error)
{
	child_note_failure(&upstream->child, error, NULL);
	child_kill(&upstream->child, reason);
	upstream_lose(upstream, reason);
}

static void upstream_on_started(struct child *child)
{
	struct upstream *upstream = container_of(child, struct upstream, child);

	if (upstream->pool != NULL) {
		upstream_set_state(upstream, UPSTREAM_HANDSHAKE);
		forward_handshake(upstream);
	} else {
		upstream_set_state(upstream, UPSTREAM_WARM);
		timer_stop(&upstream->start);
	}
}

static void upstream_on_line(struct child *child, struct slice line)
{
	struct upstream *upstream = container_of(child, struct upstream, child);

	if (upstream->state == UPSTREAM_CLOSED)
		return;
	if (upstream->pool == NULL) {
		child_note_garbage(child, line, "nothing was asked yet");
		return;
	}
	if (upstream->state != UPSTREAM_SETTLING) {
		upstream->probe_id = 0;
		timer_stop(&upstream->probe);
	}
	deliver_line(upstream, line);
}

static void upstream_on_lost(struct child *child, enum reason reason)
{
	struct upstream *upstream = container_of(child, struct upstream, child);

	if (upstream->state != UPSTREAM_CLOSED)
		upstream_lose(upstream, reason);
}

static void upstream_on_gone(struct child *child)
{
	struct upstream *upstream = container_of(child, struct upstream, child);

	if (upstream->state != UPSTREAM_CLOSED)
		upstream_lose(upstream, REASON_CHILD_EXITED);
	if (upstream->makes_room)
		upstream->router->leaving--;
	process_slots_note_gone(upstream->router);
	upstream_free(upstream);
}

static const struct child_ops upstream_child_ops = {
	.on_started = upstream_on_started,
	.on_line = upstream_on_line,
	.on_lost = upstream_on_lost,
	.on_gone = upstream_on_gone,
};

static void upstream_start(struct upstream *upstream)
{
	struct server *server = upstream->child.server;
	int claims_fd = -1;

	/* A warm one is nobody's yet; servers with claims have none. */
	if (upstream->pool != NULL)
		claims_fd = claims_open(buf_slice(&upstream->pool->claims));
	upstream_set_state(upstream, UPSTREAM_STARTING);
	upstream->has_process = true;
	child_start(&upstream->child, server, claims_fd, &upstream_child_ops);
	timer_start(server->loop, &upstream->start, server->conf.start_timeout_ms);
}

static void upstream_on_start_timer(struct timer *timer)
{
	struct upstream *upstream = container_of(timer, struct upstream, start);

	if (upstream->state == UPSTREAM_DELAYED) {
		server_release(upstream->child.server);
		upstream_start(upstream);
	} else {
		upstream_give_up(upstream, REASON_START_TIMEOUT,
				 "no answer to initialize within start.timeout");
	}
}

static void upstream_on_probe_timer(struct timer *timer)
{
	struct upstream *upstream = container_of(timer, struct upstream, probe);

	upstream_give_up(upstream, REASON_CHILD_HUNG,
			 "neither a call nor a ping was answered in time");
}

static void upstream_on_idle(struct timer *timer)
{
	pool_on_idle(container_of(timer, struct upstream, idle));
}

static void upstream_join(struct upstream *upstream, struct pool *pool, struct route *route)
{
	upstream->pool = pool;
	upstream->route = route;
	list_append(&pool->upstreams, &upstream->link);
	pool->upstream_count++;
	pool->starting++;
}

static void upstream_begin(struct upstream *upstream, uint64_t wait_ms)
{
	if (wait_ms == 0) {
		upstream_start(upstream);
		return;
	}
	server_reserve(upstream->child.server);
	timer_start(upstream->child.server->loop, &upstream->start, wait_ms);
}

static struct upstream *upstream_make(struct router *router, struct server *server)
{
	struct upstream *upstream = mem_zalloc(sizeof(*upstream));

	upstream->router = router;
	upstream->level = -1;
	upstream->state = UPSTREAM_DELAYED;
	upstream->child.server = server;
	list_init(&upstream->link);
	list_init(&upstream->fetches);
	timer_init(&upstream->start, upstream_on_start_timer);
	timer_init(&upstream->probe, upstream_on_probe_timer);
	timer_init(&upstream->idle, upstream_on_idle);
	return upstream;
}

struct upstream *upstream_new(struct pool *pool, struct route *route, uint64_t wait_ms)
{
	struct upstream *upstream = upstream_make(pool->router, pool->server);

	upstream_join(upstream, pool, route);
	upstream_begin(upstream, wait_ms);
	return upstream;
}

struct upstream *upstream_new_warm(struct router *router, struct server *server, uint64_t wait_ms)
{
	struct upstream *upstream = upstream_make(router, server);

	upstream_begin(upstream, wait_ms);
	return upstream;
}

void upstream_adopt(struct upstream *upstream, struct pool *pool, struct route *route)
{
	upstream_join(upstream, pool, route);
	if (upstream->state != UPSTREAM_WARM)
		return; /* it comes by itself */
	timer_start(upstream->child.server->loop, &upstream->start,
		    upstream->child.server->conf.start_timeout_ms);
	upstream_set_state(upstream, UPSTREAM_HANDSHAKE);
	forward_handshake(upstream);
}

void upstream_close(struct upstream *upstream, enum reason reason)
{
	upstream_detach(upstream);
	if (upstream->has_process)
		child_stop(&upstream->child, reason);
	else
		upstream_free(upstream);
}

/* After two thousand million calls it begins anew: the process' state is worth more than fresh ids. Pools
   take another process then (upstream_add_call). */
uint64_t upstream_next_id(struct upstream *upstream)
{
	do {
		upstream->last_id = upstream->last_id % ID_MAX + 1;
	} while (map_find(&upstream->calls, upstream->last_id) != NULL);
	return upstream->last_id;
}

/* Without calls: it may be one too many. */
static void upstream_rest(struct upstream *upstream)
{
	if (upstream->state == UPSTREAM_RETIRING) {
		if (upstream->given_at_ms > 0)
			process_slots_note_leaving(upstream);
		upstream_close(upstream, REASON_IDLE_TIMEOUT);
	} else if (upstream->pool->is_pool) {
		timer_start(upstream->child.server->loop, &upstream->idle,
			    upstream->child.server->conf.idle_ms);
		/* Or it will have another one in a moment: all others would look for it in vain. */
		if (!pool_is_waited_for(upstream->pool))
			process_slots_note_idle(upstream->router);
	}
}

void upstream_set_ready(struct upstream *upstream)
{
	upstream_set_state(upstream, UPSTREAM_READY);
	upstream->pool->starting--;
	upstream->ready_at_ms = clock_now_ms();
	timer_stop(&upstream->start);
	server_note_started(upstream->child.server);
	upstream_rest(upstream);
}

void upstream_note_refusal(struct upstream *upstream, struct slice error)
{
	struct buf text = { 0 };

	if (error.n > REFUSAL_LOGGED)
		error.n = REFUSAL_LOGGED;
	buf_printf(&text, "the server answered initialize with an error: %.*s", SLICE_ARG(error));
	child_note_failure(&upstream->child, buf_terminate(&text), NULL);
	buf_fini(&text);
}

void upstream_refuse(struct upstream *upstream)
{
	upstream_give_up(upstream, REASON_HANDSHAKE_REFUSED,
			 "the server did not accept initialize");
}

void upstream_probe(struct upstream *upstream)
{
	if (upstream == NULL || !upstream_is_serving(upstream) || upstream->probe_id != 0)
		return;
	upstream->probe_id = upstream_next_id(upstream);
	forward_ping(upstream, upstream->probe_id);
	timer_start(upstream->child.server->loop, &upstream->probe, PROBE_MS);
}

const char *upstream_state_name(const struct upstream *upstream)
{
	return states[upstream->state].name;
}

bool upstream_restart(struct upstream *upstream)
{
	if (!upstream_is_serving(upstream) && upstream->state != UPSTREAM_WARM)
		return false;
	child_stop(&upstream->child, REASON_RESTARTED);
	if (upstream->state == UPSTREAM_WARM)
		upstream_detach(upstream);
	else
		upstream_lose(upstream, REASON_RESTARTED);
	return true;
}

int upstream_read_id(struct json id, uint64_t *id_r)
{
	return text_parse_u64(id.type == JSON_STRING ? scan_plain_string(id) : id.text, id_r);
}

bool upstream_is_serving(const struct upstream *upstream)
{
	return upstream->state == UPSTREAM_READY || upstream->state == UPSTREAM_SETTLING ||
	       upstream->state == UPSTREAM_RETIRING;
}

void upstream_retire(struct upstream *upstream)
{
	upstream_set_state(upstream, UPSTREAM_RETIRING);
	if (upstream_load(upstream) == 0)
		upstream_rest(upstream);
}

uint64_t upstream_child_number(const struct upstream *upstream)
{
	return upstream->child.spawned.id;
}

void upstream_add_call(struct upstream *upstream, struct call *call)
{
	map_insert(&upstream->calls, call->upstream_id, call);
	upstream->was_used = true;
	timer_stop(&upstream->idle);
	if (upstream->pool->is_leased) {
		upstream->lease = call;
		upstream->route = call->route;
	}
	if (call->upstream_id >= ID_LATE && upstream->pool->is_pool &&
	    upstream->state == UPSTREAM_READY)
		upstream_retire(upstream);
}

size_t upstream_load(const struct upstream *upstream)
{
	return upstream->calls.count + upstream->fetch_count;
}

void upstream_add_fetch(struct upstream *upstream)
{
	upstream->fetch_count++;
	upstream->was_used = true;
	timer_stop(&upstream->idle);
}

/* It has room again. */
static void upstream_relax(struct upstream *upstream)
{
	if (pool_is_waited_for(upstream->pool))
		pool_wake(upstream->pool);
	if (upstream_load(upstream) == 0)
		upstream_rest(upstream);
}

void upstream_remove_fetch(struct upstream *upstream)
{
	upstream->fetch_count--;
	if (upstream->pool != NULL)
		upstream_relax(upstream);
}

/* Its work may go on although nobody wants it: the next call has to wait for that. bridging.md §2.3.3 */
static void upstream_settle(struct upstream *upstream, uint64_t upstream_id)
{
	if (upstream->state != UPSTREAM_READY)
		return;
	upstream_probe(upstream);
	upstream->settling_id = upstream_id;
	upstream_set_state(upstream, UPSTREAM_SETTLING);
}

void upstream_note_stray(struct upstream *upstream, struct json id)
{
	uint64_t upstream_id = 0;

	if (upstream->state != UPSTREAM_SETTLING || upstream_read_id(id, &upstream_id) < 0 ||
	    (upstream_id != upstream->settling_id && upstream_id != upstream->probe_id))
		return;
	upstream->probe_id = 0;
	timer_stop(&upstream->probe);
	upstream_set_state(upstream, UPSTREAM_READY);
	pool_wake(upstream->pool);
	if (upstream_load(upstream) == 0)
		upstream_rest(upstream);
}

void upstream_remove_call(struct upstream *upstream, struct call *call, bool is_answered)
{
	bool is_lease = upstream->lease == call;

	map_remove(&upstream->calls, call->upstream_id);
	if (upstream->pool == NULL)
		return;
	upstream_end_lease(upstream);
	if (is_lease && !is_answered)
		upstream_settle(upstream, call->upstream_id);
	upstream_relax(upstream);
}

struct call *upstream_any_call(const struct upstream *upstream)
{
	for (size_t i = 0; i < upstream->calls.size; i++) {
		if (upstream->calls.slots[i].value != NULL)
			return upstream->calls.slots[i].value;
	}
	return NULL;
}

struct call *upstream_find_call(const struct upstream *upstream, struct json id)
{
	uint64_t upstream_id;

	return upstream_read_id(id, &upstream_id) < 0 ? NULL :
							map_find(&upstream->calls, upstream_id);
}
