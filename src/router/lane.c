/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start, handshake, end of a lane. A lane belongs to one partition until it is lost or closed; after that
 * it only waits for its process to go.
 */
#include "router/lane.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/claims.h"
#include "router/deliver.h"
#include "router/forward.h"
#include "router/partition.h"
#include "router/places.h"
#include "router/route.h"
#include "router/spares.h"

#define PROBE_MS 5000
#define REFUSAL_LOGGED 300
#define SPARE_PROVEN_MS 60000
#define BID_MAX INT32_MAX            /* many servers read ids into 32 bits */
#define BID_LATE (BID_MAX - 1000000) /* what is our own has ids, too */

#define TO(state) (1u << LANE_##state)
static const struct {
	const char *name;
	unsigned int next;
} states[] = {
	[LANE_DELAYED] = { "delayed", TO(STARTING) | TO(CLOSED) },
	[LANE_STARTING] = { "starting", TO(SPARE) | TO(HANDSHAKE) | TO(CLOSED) },
	[LANE_SPARE] = { "spare", TO(HANDSHAKE) | TO(CLOSED) },
	[LANE_HANDSHAKE] = { "handshake", TO(READY) | TO(CLOSED) },
	[LANE_READY] = { "ready", TO(SETTLING) | TO(RETIRING) | TO(CLOSED) },
	[LANE_SETTLING] = { "settling", TO(READY) | TO(CLOSED) },
	[LANE_RETIRING] = { "retiring", TO(CLOSED) },
	[LANE_CLOSED] = { "closed", 0 },
};
#undef TO

static void lane_set_state(struct lane *lane, enum lane_state state)
{
	CHECK(states[lane->state].next & 1u << state);
	lane->state = state;
}

static void lane_free(struct lane *lane)
{
	map_fini(&lane->calls);
	loop_defer_free(lane->child.backend->loop, lane);
}

/* What the child asked for that call is nobody's concern any more. */
static void lane_end_lease(struct lane *lane)
{
	struct route *route = lane->route;

	if (lane->lease == NULL)
		return;
	LIST_FOREACH_SAFE(node, &route->asks) {
		struct ask *ask = container_of(node, struct ask, link);

		if (ask->lane != lane)
			continue;
		deliver_ask_cancelled(ask);
		forward_refusal(ask, SLICE_LIT("the request that this was asked for is over"));
		route_close_ask(ask);
	}
	lane->lease = NULL;
	lane->route = NULL;
}

static void lane_unjoin(struct lane *lane)
{
	struct partition *partition = lane->partition;

	if (!lane_is_serving(lane))
		partition->starting--;
	lane_end_lease(lane);
	list_remove(&lane->link);
	partition->lane_count--;
	if (!partition->is_pool)
		return;
	places_put_last(partition);
	partition_wake(partition);
}

/* Unlinks lane and partition; that says what happens to its calls. NULL: it had none. */
static struct partition *lane_detach(struct lane *lane)
{
	struct partition *partition = lane->partition;

	if (lane->state == LANE_DELAYED)
		backend_release(lane->child.backend);
	if (partition != NULL)
		lane_unjoin(lane);
	else if (lane->spares != NULL)
		spares_on_lost(lane);
	lane_set_state(lane, LANE_CLOSED);
	timer_stop(&lane->start);
	timer_stop(&lane->probe);
	timer_stop(&lane->idle);
	lane->partition = NULL;
	lane->route = NULL;
	return partition;
}

/* A spare has started well, if it ever was one for long: nobody asked it for more. */
static bool is_starting(const struct lane *lane)
{
	return !lane_is_serving(lane) &&
	       (lane->state != LANE_SPARE ||
		clock_now_ms() - lane->child.started_at_ms < SPARE_PROVEN_MS);
}

/* The child has failed, or was given up as if it had. */
static void lane_lose(struct lane *lane, enum reason reason)
{
	bool is_start = is_starting(lane);
	struct backend *backend = lane->child.backend;
	struct partition *partition = lane_detach(lane);

	if (is_start)
		backend_note_failed(backend);
	else if (!lane->was_used && reason != REASON_RESTARTED)
		backend_note_crashed(backend, lane->ready_at_ms);
	if (is_start && reason == REASON_CHILD_EXITED)
		reason = REASON_START_FAILED;
	if (partition != NULL)
		partition_on_lost(partition, lane, reason);
}

static void lane_give_up(struct lane *lane, enum reason reason, const char *error)
{
	child_note_failure(&lane->child, error, NULL);
	child_kill(&lane->child, reason);
	lane_lose(lane, reason);
}

static void lane_on_started(struct child *child)
{
	struct lane *lane = container_of(child, struct lane, child);

	if (lane->partition != NULL) {
		lane_set_state(lane, LANE_HANDSHAKE);
		forward_handshake(lane);
	} else {
		lane_set_state(lane, LANE_SPARE);
		timer_stop(&lane->start);
	}
}

static void lane_on_line(struct child *child, struct slice line)
{
	struct lane *lane = container_of(child, struct lane, child);

	if (lane->state == LANE_CLOSED)
		return;
	if (lane->partition == NULL) {
		child_note_garbage(child, line, "nothing was asked yet");
		return;
	}
	if (lane->state != LANE_SETTLING) {
		lane->probe_bid = 0;
		timer_stop(&lane->probe);
	}
	deliver_line(lane, line);
}

static void lane_on_lost(struct child *child, enum reason reason)
{
	struct lane *lane = container_of(child, struct lane, child);

	if (lane->state != LANE_CLOSED)
		lane_lose(lane, reason);
}

static void lane_on_gone(struct child *child)
{
	struct lane *lane = container_of(child, struct lane, child);

	if (lane->state != LANE_CLOSED)
		lane_lose(lane, REASON_CHILD_EXITED);
	if (lane->makes_room)
		lane->router->leaving--;
	places_note_gone(lane->router);
	lane_free(lane);
}

static const struct child_ops lane_child_ops = {
	.on_started = lane_on_started,
	.on_line = lane_on_line,
	.on_lost = lane_on_lost,
	.on_gone = lane_on_gone,
};

static void lane_start(struct lane *lane)
{
	struct backend *backend = lane->child.backend;
	int claims_fd = -1;

	/* A spare is nobody's yet; servers with claims have none. */
	if (lane->partition != NULL)
		claims_fd = claims_open(buf_slice(&lane->partition->claims));
	lane_set_state(lane, LANE_STARTING);
	lane->has_process = true;
	child_start(&lane->child, backend, claims_fd, &lane_child_ops);
	timer_start(backend->loop, &lane->start, backend->conf.start_timeout_ms);
}

static void lane_on_start_timer(struct timer *timer)
{
	struct lane *lane = container_of(timer, struct lane, start);

	if (lane->state == LANE_DELAYED) {
		backend_release(lane->child.backend);
		lane_start(lane);
	} else {
		lane_give_up(lane, REASON_START_TIMEOUT,
			     "no answer to initialize within start.timeout");
	}
}

static void lane_on_probe_timer(struct timer *timer)
{
	struct lane *lane = container_of(timer, struct lane, probe);

	lane_give_up(lane, REASON_CHILD_HUNG, "neither a call nor a ping was answered in time");
}

static void lane_on_idle(struct timer *timer)
{
	partition_on_idle(container_of(timer, struct lane, idle));
}

static void lane_join(struct lane *lane, struct partition *partition, struct route *route)
{
	lane->partition = partition;
	lane->route = route;
	list_append(&partition->lanes, &lane->link);
	partition->lane_count++;
	partition->starting++;
}

static void lane_begin(struct lane *lane, uint64_t wait_ms)
{
	if (wait_ms == 0) {
		lane_start(lane);
		return;
	}
	backend_reserve(lane->child.backend);
	timer_start(lane->child.backend->loop, &lane->start, wait_ms);
}

static struct lane *lane_make(struct router *router, struct backend *backend)
{
	struct lane *lane = mem_zalloc(sizeof(*lane));

	lane->router = router;
	lane->level = -1;
	lane->state = LANE_DELAYED;
	lane->child.backend = backend;
	list_init(&lane->link);
	list_init(&lane->fetches);
	timer_init(&lane->start, lane_on_start_timer);
	timer_init(&lane->probe, lane_on_probe_timer);
	timer_init(&lane->idle, lane_on_idle);
	return lane;
}

struct lane *lane_new(struct partition *partition, struct route *route, uint64_t wait_ms)
{
	struct lane *lane = lane_make(partition->router, partition->backend);

	lane_join(lane, partition, route);
	lane_begin(lane, wait_ms);
	return lane;
}

struct lane *lane_new_spare(struct router *router, struct backend *backend, uint64_t wait_ms)
{
	struct lane *lane = lane_make(router, backend);

	lane_begin(lane, wait_ms);
	return lane;
}

void lane_adopt(struct lane *lane, struct partition *partition, struct route *route)
{
	lane_join(lane, partition, route);
	if (lane->state != LANE_SPARE)
		return; /* it comes by itself */
	timer_start(lane->child.backend->loop, &lane->start,
		    lane->child.backend->conf.start_timeout_ms);
	lane_set_state(lane, LANE_HANDSHAKE);
	forward_handshake(lane);
}

void lane_close(struct lane *lane, enum reason reason)
{
	lane_detach(lane);
	if (lane->has_process)
		child_stop(&lane->child, reason);
	else
		lane_free(lane);
}

/* After two thousand million calls it begins anew: the process' state is worth more than fresh ids. Pools
   take another process then (lane_add_call). */
uint64_t lane_next_bid(struct lane *lane)
{
	do {
		lane->last_bid = lane->last_bid % BID_MAX + 1;
	} while (map_find(&lane->calls, lane->last_bid) != NULL);
	return lane->last_bid;
}

/* Without calls: it may be one too many. */
static void lane_rest(struct lane *lane)
{
	if (lane->state == LANE_RETIRING) {
		if (lane->given_at_ms > 0)
			places_note_leaving(lane);
		lane_close(lane, REASON_IDLE_TIMEOUT);
	} else if (lane->partition->is_pool) {
		timer_start(lane->child.backend->loop, &lane->idle,
			    lane->child.backend->conf.idle_ms);
		/* Or it will have another one in a moment: all others would look for it in vain. */
		if (!partition_is_waited_for(lane->partition))
			places_note_idle(lane->router);
	}
}

void lane_set_ready(struct lane *lane)
{
	lane_set_state(lane, LANE_READY);
	lane->partition->starting--;
	lane->ready_at_ms = clock_now_ms();
	timer_stop(&lane->start);
	backend_note_started(lane->child.backend);
	lane_rest(lane);
}

void lane_note_refusal(struct lane *lane, struct slice error)
{
	struct buf text = { 0 };

	if (error.n > REFUSAL_LOGGED)
		error.n = REFUSAL_LOGGED;
	buf_printf(&text, "the server answered initialize with an error: %.*s", SLICE_ARG(error));
	child_note_failure(&lane->child, buf_terminate(&text), NULL);
	buf_fini(&text);
}

void lane_refuse(struct lane *lane)
{
	lane_give_up(lane, REASON_HANDSHAKE_REFUSED, "the server did not accept initialize");
}

void lane_probe(struct lane *lane)
{
	if (lane == NULL || !lane_is_serving(lane) || lane->probe_bid != 0)
		return;
	lane->probe_bid = lane_next_bid(lane);
	forward_ping(lane, lane->probe_bid);
	timer_start(lane->child.backend->loop, &lane->probe, PROBE_MS);
}

const char *lane_state_name(const struct lane *lane)
{
	return states[lane->state].name;
}

bool lane_restart(struct lane *lane)
{
	if (!lane_is_serving(lane) && lane->state != LANE_SPARE)
		return false;
	child_stop(&lane->child, REASON_RESTARTED);
	if (lane->state == LANE_SPARE)
		lane_detach(lane);
	else
		lane_lose(lane, REASON_RESTARTED);
	return true;
}

int lane_read_bid(struct json id, uint64_t *bid_r)
{
	return text_parse_u64(id.type == JSON_STRING ? scan_plain_string(id) : id.text, bid_r);
}

bool lane_is_serving(const struct lane *lane)
{
	return lane->state == LANE_READY || lane->state == LANE_SETTLING ||
	       lane->state == LANE_RETIRING;
}

void lane_retire(struct lane *lane)
{
	lane_set_state(lane, LANE_RETIRING);
	if (lane_load(lane) == 0)
		lane_rest(lane);
}

uint64_t lane_child_number(const struct lane *lane)
{
	return lane->child.spawned.id;
}

void lane_add_call(struct lane *lane, struct call *call)
{
	map_insert(&lane->calls, call->bid, call);
	lane->was_used = true;
	timer_stop(&lane->idle);
	if (lane->partition->is_leased) {
		lane->lease = call;
		lane->route = call->route;
	}
	if (call->bid >= BID_LATE && lane->partition->is_pool && lane->state == LANE_READY)
		lane_retire(lane);
}

size_t lane_load(const struct lane *lane)
{
	return lane->calls.count + lane->fetch_count;
}

void lane_add_fetch(struct lane *lane)
{
	lane->fetch_count++;
	lane->was_used = true;
	timer_stop(&lane->idle);
}

/* It has room again. */
static void lane_relax(struct lane *lane)
{
	if (partition_is_waited_for(lane->partition))
		partition_wake(lane->partition);
	if (lane_load(lane) == 0)
		lane_rest(lane);
}

void lane_remove_fetch(struct lane *lane)
{
	lane->fetch_count--;
	if (lane->partition != NULL)
		lane_relax(lane);
}

/* Its work may go on although nobody wants it: the next call has to wait for that. bridging.md §2.3.3 */
static void lane_settle(struct lane *lane, uint64_t bid)
{
	if (lane->state != LANE_READY)
		return;
	lane_probe(lane);
	lane->settling_bid = bid;
	lane_set_state(lane, LANE_SETTLING);
}

void lane_note_stray(struct lane *lane, struct json id)
{
	uint64_t bid = 0;

	if (lane->state != LANE_SETTLING || lane_read_bid(id, &bid) < 0 ||
	    (bid != lane->settling_bid && bid != lane->probe_bid))
		return;
	lane->probe_bid = 0;
	timer_stop(&lane->probe);
	lane_set_state(lane, LANE_READY);
	partition_wake(lane->partition);
	if (lane_load(lane) == 0)
		lane_rest(lane);
}

void lane_remove_call(struct lane *lane, struct call *call, bool is_answered)
{
	bool is_lease = lane->lease == call;

	map_remove(&lane->calls, call->bid);
	if (lane->partition == NULL)
		return;
	lane_end_lease(lane);
	if (is_lease && !is_answered)
		lane_settle(lane, call->bid);
	lane_relax(lane);
}

struct call *lane_any_call(const struct lane *lane)
{
	for (size_t i = 0; i < lane->calls.size; i++) {
		if (lane->calls.slots[i].value != NULL)
			return lane->calls.slots[i].value;
	}
	return NULL;
}

struct call *lane_find_call(const struct lane *lane, struct json id)
{
	uint64_t bid;

	return lane_read_bid(id, &bid) < 0 ? NULL : map_find(&lane->calls, bid);
}
