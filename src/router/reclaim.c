/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that waits gets the place of a process that is being stopped anyway, or has one stopped
 * for it: that of a session that has done nothing for a while. First goes that of a caller with
 * more than a share, then that of a session whose stream nobody reads and that waits for no
 * notification, then that of the caller with most processes; of equals, the one that has been idle
 * for longest. Of those who wait, the caller with the fewest processes comes first, then who has
 * waited for longest.
 *
 * While a caller waits, no other keeps two processes more than that caller has. The excess goes as
 * soon as it is at rest, and need not have been idle. Sessions whose calls overlap are never at
 * rest: so one of their processes gets no more calls (it retires); when those that it has are over,
 * its session sleeps, and gets another process for the calls that came meanwhile.
 *
 * Nothing is searched unless somebody waits; then all processes of sessions are, once per turn.
 * Calls in flight are never cut short. A place that becomes free goes to whoever's turn it is then,
 * not to the session for which it was freed.
 */
#include "router/reclaim.h"

#include "base/clock.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "process/child.h"
#include "router/client.h"
#include "router/pool.h"
#include "router/pool_demand.h"
#include "router/process_slots.h"
#include "router/router.h"
#include "session/holder.h"
#include "session/session.h"
#include "upstream/stdio.h"
#include "upstream/upstream.h"

#define LOOK_STEP_MS 50 /* so that the loop's timers have few distinct durations */
#define RETIRE_AFTER_MS (2 * SERVER_IDLE_MS)

static struct pool *pool_at(struct list *node)
{
	return container_of(node, struct pool, link);
}

static struct reclaim *reclaim_of(const struct pool *pool)
{
	return &pool->router->reclaim;
}

void reclaim_wake(struct reclaim *reclaim)
{
	if (!list_is_empty(&reclaim->waiting) || reclaim->retiring > 0)
		task_schedule(reclaim->loop, &reclaim->look);
}

/* Whether nobody waits in the pool: it only wants its process back when there is room. */
static bool is_background(const struct pool *pool)
{
	return list_is_empty(&pool->joining) && !pool_is_waited_for(pool);
}

bool reclaim_is_waiting(const struct pool *pool)
{
	return pool->is_waiting;
}

/* ---- what is idle ---- */

/* Whether neither side owes the other a response. */
static bool is_quiet(const struct upstream *upstream)
{
	return upstream_load(upstream) == 0 &&
	       list_is_empty(&upstream->client->server_requests.all);
}

bool reclaim_is_resting(const struct upstream *upstream)
{
	return upstream->state == UPSTREAM_READY && is_quiet(upstream) &&
	       upstream->client->call_count == 0;
}

/* Whether the client is there to receive what its server reports. */
static bool is_listening(const struct client *client)
{
	return client->subscriptions.count > 0 || stream_has_reader(&client->session->standalone);
}

/* How many processes the caller keeps, without those that are promised to others. */
static size_t count_kept(const struct pool *pool)
{
	return pool->holder->count - pool->holder->leaving;
}

static bool is_over_share(const struct pool *pool)
{
	return count_kept(pool) > server_share(pool->server);
}

/* Whether the caller of `pool`, after giving a process to that of `to`, still has no fewer. */
static bool is_to_give(const struct pool *pool, const struct pool *to)
{
	size_t has = to->holder->count + to->holder->coming - to->is_promised;

	return to->holder != pool->holder && count_kept(pool) > has + 1;
}

/* Whether one process less of `server` would make room for one of `to`. */
static bool is_of_use(const struct server *server, const struct server *to)
{
	return server == to || (!server_is_full(to) && server_is_fleet_full(to));
}

/*
 * The time until the process of `pool`, which is at rest, may be taken: until its session has been
 * idle for long enough; or until `to`, unless that is NULL, has waited for that long, if its caller
 * has fewer processes.
 */
static uint64_t wait_for(const struct pool *pool, const struct pool *to)
{
	uint64_t since_ms = pool_own_upstream(pool)->rested_at_ms, idle_ms;

	if (to != NULL && to->waiting_since_ms < since_ms && is_to_give(pool, to))
		since_ms = to->waiting_since_ms;
	idle_ms = clock_now_ms() - since_ms;
	return idle_ms < SERVER_IDLE_MS ? SERVER_IDLE_MS - idle_ms : 0;
}

/* Whether the process of `a` is to go before that of `b`. */
static bool goes_before(const struct pool *a, const struct pool *b)
{
	const struct upstream *first = pool_own_upstream(a), *second = pool_own_upstream(b);

	if (is_over_share(a) != is_over_share(b))
		return is_over_share(a);
	if (is_listening(first->client) != is_listening(second->client))
		return is_listening(second->client);
	if (a->holder->count != b->holder->count)
		return a->holder->count > b->holder->count;
	return first->rested_at_ms < second->rested_at_ms;
}

/*
 * The pool whose process is to be stopped for one of `server`; NULL: none yet, and *wait_ms_r says
 * when to look again.
 */
static struct pool *find_idle(const struct reclaim *reclaim, const struct server *server,
			      const struct pool *to, uint64_t *wait_ms_r)
{
	struct pool *best = NULL;

	*wait_ms_r = UINT64_MAX;
	LIST_FOREACH(node, &reclaim->awake) {
		struct pool *pool = pool_at(node);
		uint64_t wait_ms;

		if (!pool->server->conf.reclaims || !is_of_use(pool->server, server) ||
		    !reclaim_is_resting(pool_own_upstream(pool)))
			continue;
		wait_ms = wait_for(pool, to);
		if (wait_ms > 0)
			*wait_ms_r = wait_ms < *wait_ms_r ? wait_ms : *wait_ms_r;
		else if (best == NULL || goes_before(pool, best))
			best = pool;
	}
	return best;
}

void reclaim_put_to_sleep(struct upstream *upstream, enum reason reason)
{
	struct pool *pool = upstream->pool;

	CHECK(!pool_is_shared(pool) && is_quiet(upstream));
	counter_add(COUNTER_SESSIONS_ASLEEP);
	LOG(SESSION_ASLEEP, LOG_STR("server", pool->server->conf.name),
	    LOG_SLICE("session", slice_of(upstream->client->session->entry.id, SESSION_ID_SHOWN)),
	    LOG_INT("pid", upstream_pid(upstream)), LOG_STR("reason", reason_get(reason)->text),
	    LOG_INT("idle_ms", clock_now_ms() - upstream->rested_at_ms));
	upstream_close(upstream, reason);
	pool_wake(pool); /* it may want another one, when there is room */
}

void reclaim_make_room(const struct pool *pool)
{
	uint64_t wait_ms;
	struct pool *idle = find_idle(reclaim_of(pool), pool->server, NULL, &wait_ms);

	CHECK(pool_is_shared(pool));
	if (idle == NULL)
		return;
	process_slots_note_leaving(pool_own_upstream(idle));
	reclaim_put_to_sleep(pool_own_upstream(idle), REASON_RECLAIMED);
}

/* ---- places that become free ---- */

/* A process of the server that is being stopped, and whose place nobody waits for. */
static struct upstream *find_leaving(const struct server *server)
{
	LIST_FOREACH(node, &server->children) {
		struct child *child = container_of(node, struct child, link);

		if (child->state == CHILD_STOPPING && !stdio_of_child(child)->is_awaited)
			return stdio_of_child(child);
	}
	return NULL;
}

/* The coming process is counted among those of its caller. */
static void expect(struct pool *pool)
{
	if (pool->awaited == NULL && !pool->is_promised)
		pool->holder->coming++;
}

static void await(struct pool *pool, struct upstream *upstream)
{
	CHECK(pool->awaited == NULL && !upstream->is_awaited);
	expect(pool);
	pool->is_promised = false; /* this is the one */
	pool->awaited = upstream;
	upstream->is_awaited = true;
}

static void await_no_more(struct pool *pool)
{
	if (pool->awaited != NULL || pool->is_promised) {
		CHECK(pool->holder->coming > 0);
		pool->holder->coming--;
	}
	if (pool->awaited != NULL)
		pool->awaited->is_awaited = false;
	pool->awaited = NULL;
	pool->is_promised = false;
}

void reclaim_leave(struct pool *pool)
{
	if (!pool->is_waiting)
		return;
	list_remove(&pool->link);
	pool->is_waiting = false;
	await_no_more(pool);
	reclaim_wake(reclaim_of(pool)); /* what it waited for is for another pool */
}

/* ---- what is never idle ---- */

/* The pool whose process is to retire for `to`: the one with the fewest calls. */
static struct pool *find_busy(const struct reclaim *reclaim, const struct pool *to)
{
	struct pool *best = NULL;

	LIST_FOREACH(node, &reclaim->awake) {
		struct pool *pool = pool_at(node);
		const struct upstream *upstream = pool_own_upstream(pool);

		if (upstream->state == UPSTREAM_READY && pool->server->conf.reclaims &&
		    is_of_use(pool->server, to->server) && is_to_give(pool, to) &&
		    (best == NULL ||
		     upstream_load(upstream) < upstream_load(pool_own_upstream(best))))
			best = pool;
	}
	return best;
}

static void retire(struct reclaim *reclaim, struct pool *pool)
{
	reclaim->retiring++;
	pool->holder->leaving++;
	upstream_retire(pool_own_upstream(pool));
}

/* Retires one process for each pool that has waited for long enough. Returns when to look again. */
static uint64_t retire_for_all(struct reclaim *reclaim)
{
	uint64_t soonest_ms = UINT64_MAX;

	LIST_FOREACH(node, &reclaim->waiting) {
		struct pool *pool = pool_at(node), *busy;
		uint64_t waited_ms = clock_now_ms() - pool->waiting_since_ms;

		if (pool->awaited != NULL || pool->is_promised || is_background(pool))
			continue;
		busy = find_busy(reclaim, pool);
		if (busy == NULL)
			continue;
		if (waited_ms >= RETIRE_AFTER_MS) {
			expect(pool);
			pool->is_promised = true;
			retire(reclaim, busy);
		} else if (RETIRE_AFTER_MS - waited_ms < soonest_ms) {
			soonest_ms = RETIRE_AFTER_MS - waited_ms;
		}
	}
	return soonest_ms;
}

static void stop_retired(struct reclaim *reclaim)
{
	if (reclaim->retiring == 0)
		return;
	LIST_FOREACH_SAFE(node, &reclaim->awake) {
		struct upstream *upstream = pool_own_upstream(pool_at(node));

		if (upstream->state == UPSTREAM_RETIRING && is_quiet(upstream))
			reclaim_put_to_sleep(upstream, REASON_RECLAIMED);
	}
}

/* ---- turns ---- */

static bool comes_before(const struct pool *a, const struct pool *b)
{
	if (is_background(a) != is_background(b))
		return is_background(b);
	return a->holder->count < b->holder->count;
}

/* The pool whose turn it is to start a process, of those for which there is room. */
static struct pool *next_to_start(const struct reclaim *reclaim)
{
	struct pool *next = NULL;

	LIST_FOREACH(node, &reclaim->waiting) {
		struct pool *pool = pool_at(node);

		if (server_has_room(pool->server) && (next == NULL || comes_before(pool, next)))
			next = pool;
	}
	return next;
}

/* The pool whose turn it is, of those that wait for no process in particular. */
static struct pool *next_to_look(const struct reclaim *reclaim)
{
	struct pool *next = NULL;

	LIST_FOREACH(node, &reclaim->waiting) {
		struct pool *pool = pool_at(node);

		if (pool->awaited == NULL && !pool->is_passed && !is_background(pool) &&
		    (next == NULL || comes_before(pool, next)))
			next = pool;
	}
	return next;
}

static void start_all(struct reclaim *reclaim)
{
	struct pool *pool;

	LIST_FOREACH_SAFE(node, &reclaim->waiting) {
		if (pool_upstreams_needed(pool_at(node)) == 0)
			reclaim_leave(pool_at(node)); /* whoever waited in it has gone */
	}
	while ((pool = next_to_start(reclaim)) != NULL) {
		enum reason reason = reclaim->ops->grow(pool);

		if (reason == REASON_NONE && !pool->is_waiting)
			continue;
		reclaim_leave(pool);
		if (reason == REASON_NONE)
			continue; /* it waits for the era of its server, which wakes it */
		pool_wake(pool);  /* it may want one all the same, when one can be started again */
		reclaim->ops->refuse(pool, reason);
	}
}

/* There is nothing for the other waiting pools of the server either: they have no better claim. */
static void pass_over(struct reclaim *reclaim, const struct server *server)
{
	LIST_FOREACH(node, &reclaim->waiting) {
		if (pool_at(node)->server == server)
			pool_at(node)->is_passed = true;
	}
}

/* Returns when to look again; UINT64_MAX: when something has changed. */
static uint64_t look_for_all(struct reclaim *reclaim)
{
	uint64_t soonest_ms = UINT64_MAX, retire_ms;
	struct pool *pool;

	LIST_FOREACH(node, &reclaim->waiting)
		pool_at(node)->is_passed = false;
	while ((pool = next_to_look(reclaim)) != NULL) {
		struct upstream *leaving = find_leaving(pool->server);
		struct pool *idle;
		uint64_t wait_ms;

		if (leaving != NULL) {
			await(pool, leaving);
			continue;
		}
		idle = find_idle(reclaim, pool->server, pool, &wait_ms);
		if (idle == NULL) {
			(void)process_slots_seek(pool);
			soonest_ms = wait_ms < soonest_ms ? wait_ms : soonest_ms;
			pass_over(reclaim, pool->server);
			continue;
		}
		await(pool, pool_own_upstream(idle));
		reclaim_put_to_sleep(pool->awaited, REASON_RECLAIMED);
	}
	retire_ms = retire_for_all(reclaim);
	return retire_ms < soonest_ms ? retire_ms : soonest_ms;
}

static void on_look(struct task *task)
{
	struct reclaim *reclaim = container_of(task, struct reclaim, look);
	uint64_t again_ms;

	stop_retired(reclaim);
	start_all(reclaim);
	again_ms = look_for_all(reclaim);
	timer_stop(&reclaim->look_again);
	if (again_ms != UINT64_MAX)
		timer_start(reclaim->loop, &reclaim->look_again,
			    (again_ms + LOOK_STEP_MS - 1) / LOOK_STEP_MS * LOOK_STEP_MS);
}

static void on_look_again(struct timer *timer)
{
	reclaim_wake(container_of(timer, struct reclaim, look_again));
}

void reclaim_note_gone(struct reclaim *reclaim, const struct upstream *upstream)
{
	LIST_FOREACH(node, &reclaim->waiting) {
		if (pool_at(node)->awaited == upstream)
			await_no_more(pool_at(node));
	}
	start_all(reclaim); /* now: others may be about to start theirs */
	reclaim_wake(reclaim);
}

/* ---- waiting ---- */

static bool counts_as_waiting(const struct pool *pool, const struct server *server)
{
	return pool->server == server && !is_background(pool);
}

/*
 * The newest waiting pool of the caller with most of them, if the caller of `pool` would have
 * fewer; NULL: there is none.
 */
static struct pool *find_excess(const struct reclaim *reclaim, const struct pool *pool)
{
	struct pool *excess = NULL;
	size_t most;

	LIST_FOREACH(node, &reclaim->waiting)
		pool_at(node)->holder->waiting += counts_as_waiting(pool_at(node), pool->server);
	most = pool->holder->waiting + 2;
	LIST_FOREACH(node, &reclaim->waiting) {
		struct pool *other = pool_at(node);

		if (!counts_as_waiting(other, pool->server) || other->holder->waiting < most)
			continue;
		most = other->holder->waiting;
		excess = other;
	}
	/* Pools of the same caller that are no session's are counted there as well: pool.c */
	LIST_FOREACH(node, &reclaim->waiting)
		pool_at(node)->holder->waiting -= counts_as_waiting(pool_at(node), pool->server);
	return excess;
}

static size_t count_waiting(const struct reclaim *reclaim, const struct server *server)
{
	size_t count = 0;

	LIST_FOREACH(node, &reclaim->waiting)
		count += counts_as_waiting(pool_at(node), server);
	return count;
}

bool reclaim_wait(struct pool *pool)
{
	struct reclaim *reclaim = reclaim_of(pool);

	CHECK(!pool_is_shared(pool) && pool->upstream_count == 0);
	if (!pool->server->conf.reclaims || server_has_room(pool->server))
		return false;
	if (!pool->is_waiting) {
		if (!is_background(pool) &&
		    count_waiting(reclaim, pool->server) >= pool->server->conf.queue_calls) {
			struct pool *excess = find_excess(reclaim, pool);

			if (excess == NULL)
				return false;
			reclaim->ops->refuse(excess, REASON_OVER_LIMIT);
		}
		list_append(&reclaim->waiting, &pool->link);
		pool->is_waiting = true;
		pool->waiting_since_ms = clock_now_ms();
	}
	reclaim_wake(reclaim);
	return true;
}

/* ---- what pools report ---- */

void reclaim_note_started(struct pool *pool)
{
	reclaim_leave(pool);
	list_append(&reclaim_of(pool)->awake, &pool->link);
}

void reclaim_note_stopped(struct pool *pool)
{
	struct reclaim *reclaim = reclaim_of(pool);

	list_remove(&pool->link);
	if (pool_own_upstream(pool)->state == UPSTREAM_RETIRING) {
		CHECK(reclaim->retiring > 0 && pool->holder->leaving > 0);
		reclaim->retiring--;
		pool->holder->leaving--;
	}
	reclaim_wake(reclaim);
}

/* The time until another pool may have the process of this one; UINT64_MAX: it is in use. */
static uint64_t free_in_ms(const struct pool *pool)
{
	const struct upstream *upstream = pool_own_upstream(pool);

	if (!reclaim_is_resting(upstream))
		return UINT64_MAX;
	if (pool->server->conf.reclaims)
		return wait_for(pool, NULL);
	return session_left_ms(upstream->client->session);
}

uint64_t reclaim_wait_ms(const struct reclaim *reclaim, const struct server *server)
{
	uint64_t least_ms = UINT64_MAX;

	LIST_FOREACH(node, &reclaim->awake) {
		const struct pool *pool = pool_at(node);
		uint64_t wait_ms = is_of_use(pool->server, server) ? free_in_ms(pool) : UINT64_MAX;

		if (wait_ms < least_ms)
			least_ms = wait_ms;
	}
	return least_ms;
}

void reclaim_init(struct reclaim *reclaim, struct loop *loop, const struct reclaim_ops *ops)
{
	*reclaim = (struct reclaim){ .loop = loop, .ops = ops };
	list_init(&reclaim->awake);
	list_init(&reclaim->waiting);
	task_init(&reclaim->look, on_look);
	timer_init(&reclaim->look_again, on_look_again);
}

void reclaim_fini(struct reclaim *reclaim)
{
	CHECK(list_is_empty(&reclaim->awake) && list_is_empty(&reclaim->waiting));
	task_cancel(&reclaim->look);
	timer_stop(&reclaim->look_again);
}
