/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets a process when no more may be started. First for pools of one session; from `process
 * slots` on for shared pools, which give processes up to each other.
 *
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
#include "router/process_slots.h"

#include "base/clock.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "process/child.h"
#include "process/server.h"
#include "router/client.h"
#include "router/pool.h"
#include "router/pool_demand.h"
#include "router/router.h"
#include "router/running_tasks.h"
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
	    LOG_SLICE("session", session_shown_id(upstream->client->session)),
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

/* ---- process slots ---- */

/*
 * Idle processes go first, beginning with the one that has been idle for longest. If all are busy,
 * a pool without a process would have to wait for as long as the others have calls. So the pool
 * with most processes gives one up; of pools with one each, one whose process works on no task,
 * then the one that has had it for longest. Calls in flight are never cut short. Each pool that
 * waits gets only one process, and a pool that gave up its own does not take another's for it:
 * calls may be long, and soon all processes would only be finishing theirs.
 *
 * A caller who has more processes of a server than its share gives one up at once, even to a pool
 * that has some, as long as the caller of that pool has less than its share. Pools that everybody
 * uses belong to nobody: in them, calls take turns (fair_queue).
 *
 * The processes that pool.min keeps, and those that sessions with subscriptions need, are left
 * alone.
 */

static struct process_slots *slots_of(const struct pool *pool)
{
	return &pool->router->slots;
}

/* Whether `pool` could start a process in place of one of `other`. */
static bool may_give_to(const struct pool *other, const struct pool *pool)
{
	if (other == pool || server_has_room(pool->server))
		return false;
	return is_of_use(other->server, pool->server);
}

void process_slots_init(struct process_slots *slots, enum reason (*grow)(struct pool *pool))
{
	*slots = (struct process_slots){ .grow = grow };
	list_init(&slots->pools);
}

/* ---- shares ---- */

/* How many processes the caller of the pool has; 0: they are everybody's. */
static size_t held_by_caller(const struct pool *pool)
{
	return pool->holder != NULL ? pool->holder->count : 0;
}

static bool process_slots_is_over_share(const struct pool *pool)
{
	return pool->upstream_count > 0 && held_by_caller(pool) > server_share(pool->server);
}

/* Whether the pool's caller has less than a share, and that of `other` more. */
static bool has_less_than(const struct pool *pool, const struct pool *other)
{
	return other->server == pool->server && pool->principal != NULL &&
	       process_slots_is_over_share(other) &&
	       held_by_caller(pool) < server_share(pool->server);
}

bool process_slots_is_underserved(const struct pool *pool)
{
	if (!pool_is_shared(pool) || pool->principal == NULL || pool_upstreams_needed(pool) == 0)
		return false;
	LIST_FOREACH(node, &slots_of(pool)->pools) {
		if (has_less_than(pool, container_of(node, struct pool, link)))
			return true;
	}
	return false;
}

/* ---- what is idle in shared pools ---- */

/*
 * A caller who has its share may not take a process that was just in use from one who is not over
 * its own share: it would go back and forth.
 */
static bool may_take(const struct pool *pool, const struct upstream *upstream)
{
	const struct pool *other = upstream->pool;

	return pool_can_spare(upstream) &&
	       (pool->principal == NULL || other->server != pool->server ||
		held_by_caller(pool) < server_share(pool->server) ||
		process_slots_is_over_share(other) ||
		clock_now_ms() - upstream->rested_at_ms >= SERVER_IDLE_MS);
}

/* Stops no more processes than are waited for. */
bool process_slots_seek(struct pool *pool)
{
	struct process_slots *slots = slots_of(pool);
	struct upstream *oldest = NULL;

	slots->is_short = true;
	pool->is_short = true;
	if (slots->leaving >= pool_upstreams_needed(pool))
		return true;
	LIST_FOREACH(node, &slots->pools) {
		const struct pool *other = container_of(node, struct pool, link);

		if (!may_give_to(other, pool))
			continue;
		LIST_FOREACH(at, &other->upstreams) {
			struct upstream *upstream = container_of(at, struct upstream, link);

			if (may_take(pool, upstream) &&
			    (oldest == NULL || upstream->idle.due_ms < oldest->idle.due_ms))
				oldest = upstream;
		}
	}
	if (oldest == NULL)
		return false;
	process_slots_note_leaving(oldest);
	upstream_close(oldest, REASON_IDLE_TIMEOUT);
	return true;
}

void process_slots_note_leaving(struct upstream *upstream)
{
	CHECK(!upstream->makes_room && upstream->pool != NULL);
	upstream->makes_room = true;
	slots_of(upstream->pool)->leaving++;
}

/*
 * The upstream that a pool could give away: one that works on no task before others, as it will not
 * finish its tasks; then the one with the fewest calls, and of equals the one that has served for
 * longest.
 */
struct donation {
	struct upstream *upstream;
	size_t among;   /* how many upstreams serve */
	size_t staying; /* how many are not given away yet */
	bool is_excess; /* its caller has more than a share, the receiver less */
};

static bool is_rather_given(const struct upstream *upstream, const struct upstream *than)
{
	if (live_tasks_has_some(upstream) != live_tasks_has_some(than))
		return live_tasks_has_some(than);
	if (upstream_load(upstream) != upstream_load(than))
		return upstream_load(upstream) < upstream_load(than);
	return upstream->ready_at_ms < than->ready_at_ms;
}

static struct donation find_donation(const struct pool *pool)
{
	struct donation donation = { .upstream = NULL };

	LIST_FOREACH(node, &pool->upstreams) {
		struct upstream *upstream = container_of(node, struct upstream, link);

		donation.staying += upstream->state != UPSTREAM_RETIRING;
		if (upstream->state != UPSTREAM_READY)
			continue;
		donation.among++;
		if (donation.upstream == NULL || is_rather_given(upstream, donation.upstream))
			donation.upstream = upstream;
	}
	return donation;
}

/* ---- donations ---- */

/* A pool with only one keeps it for the longest time that others may have to wait. */
static bool is_due(const struct donation *donation)
{
	uint64_t least_ms;

	if (donation->upstream == NULL || donation->among > 1 || donation->is_excess)
		return donation->upstream != NULL;
	least_ms = donation->upstream->server->conf.queue_timeout_ms;
	return clock_now_ms() - donation->upstream->ready_at_ms >= least_ms;
}

/*
 * The number of processes that are leaving, or were given away not long ago and whose place `pool`
 * could use.
 */
static size_t count_promised(const struct pool *pool)
{
	uint64_t wait_ms = pool->server->conf.queue_timeout_ms;
	size_t count = slots_of(pool)->leaving;

	LIST_FOREACH(node, &slots_of(pool)->pools) {
		const struct pool *other = container_of(node, struct pool, link);

		if (!may_give_to(other, pool))
			continue;
		LIST_FOREACH(at, &other->upstreams) {
			const struct upstream *upstream = container_of(at, struct upstream, link);

			count += upstream->donated_at_ms > 0 &&
				 clock_now_ms() - upstream->donated_at_ms < wait_ms;
		}
	}
	return count;
}

/* The number of pools without a process that could use such a place, `pool` included. */
static size_t count_wanting(const struct pool *pool)
{
	size_t count = 0;

	LIST_FOREACH(node, &slots_of(pool)->pools) {
		const struct pool *other = container_of(node, struct pool, link);

		count += other->upstream_count == 0 && pool_is_starved(other) &&
			 (other->server == pool->server ||
			  (!server_is_full(other->server) && !server_is_full(pool->server)));
	}
	return count;
}

static bool is_better(const struct donation *donation, const struct donation *than)
{
	if (than->upstream == NULL || donation->is_excess != than->is_excess)
		return than->upstream == NULL || donation->is_excess;
	if (donation->among != than->among)
		return donation->among > than->among;
	return is_rather_given(donation->upstream, than->upstream);
}

void process_slots_claim(struct pool *pool)
{
	struct donation best = { .upstream = NULL };
	bool has_some = pool->upstream_count > 0;

	if (has_some && !process_slots_is_underserved(pool))
		return;
	if (count_promised(pool) >= count_wanting(pool) + has_some)
		return;
	LIST_FOREACH(node, &slots_of(pool)->pools) {
		const struct pool *other = container_of(node, struct pool, link);
		struct donation donation;

		if (!may_give_to(other, pool) || (has_some && !has_less_than(pool, other)))
			continue;
		donation = find_donation(other);
		donation.is_excess = has_less_than(pool, other);
		if (donation.staying <= pool_least_upstreams(other) || !is_due(&donation))
			continue;
		if (is_better(&donation, &best))
			best = donation;
	}
	if (best.upstream == NULL)
		return;
	best.upstream->donated_at_ms = clock_now_ms();
	upstream_retire(best.upstream);
}

void process_slots_put_last(struct pool *pool)
{
	CHECK(pool_is_shared(pool));
	list_remove(&pool->link);
	list_append(&slots_of(pool)->pools, &pool->link);
}

void process_slots_note_idle(struct process_slots *slots)
{
	if (!slots->is_short)
		return;
	slots->is_short = false;
	LIST_FOREACH(node, &slots->pools) {
		struct pool *pool = container_of(node, struct pool, link);

		if (pool->is_short)
			pool_wake(pool);
		pool->is_short = false;
	}
}

/* The next pool in turn that has no process and may start one; NULL: there is none left to try. */
static struct pool *next_to_grow(const struct process_slots *slots)
{
	LIST_FOREACH(node, &slots->pools) {
		struct pool *pool = container_of(node, struct pool, link);

		if (pool->is_short && !pool->is_passed && pool_is_starved(pool) &&
		    server_has_room(pool->server))
			return pool;
	}
	return NULL;
}

/* Grows pools at once: others may be about to look, too. That may move any pool in the list. */
void process_slots_note_gone(struct process_slots *slots, const struct upstream *upstream)
{
	struct pool *pool;

	CHECK(!upstream->makes_room || slots->leaving > 0);
	slots->leaving -= upstream->makes_room;
	if (!slots->is_short)
		return;
	LIST_FOREACH(node, &slots->pools)
		container_of(node, struct pool, link)->is_passed = false;
	while ((pool = next_to_grow(slots)) != NULL) {
		pool->is_passed = true;
		if (slots->grow(pool) == REASON_NONE)
			process_slots_put_last(pool);
	}
	process_slots_note_idle(slots);
}

/* ---- retry after ---- */

/* Only looks, and promises nothing: others may come first. */

#define UNKNOWN_MS 1000
#define LONGEST_MS (5 * 60 * 1000) /* by then, things may be quite different */

/* The time after which half of all calls are over. */
static uint64_t usual_call_ms(const struct server *server)
{
	return server->stats->answered.count > 0 ?
		       latency_histogram_quantile_ms(&server->stats->answered, 500) :
		       UNKNOWN_MS;
}

static uint64_t process_wait_ms(const struct router *router, const struct server *server)
{
	uint64_t wait_ms = backoff_refuses_for_ms(&server->backoff);

	if (server_has_room(server) && wait_ms > 0)
		return wait_ms;
	if (server->conf.isolation != ISOLATION_SESSION || server_has_room(server))
		return usual_call_ms(server);
	wait_ms = reclaim_wait_ms(&router->reclaim, server);
	return wait_ms != UINT64_MAX ? wait_ms : usual_call_ms(server);
}

static uint64_t limit_wait_ms(const struct router *router, const struct server *server,
			      const struct principal *principal)
{
	uint64_t wait_ms =
		principal != NULL ? session_set_wait_ms(&router->sessions, principal) : 0;

	if (wait_ms == UINT64_MAX)
		return usual_call_ms(server);
	return wait_ms > 0 ? wait_ms : process_wait_ms(router, server);
}

unsigned int retry_after_s(const struct router *router, const struct server *server,
			   const struct principal *principal, enum reason reason)
{
	uint64_t wait_ms = reason == REASON_OVER_LIMIT ? limit_wait_ms(router, server, principal) :
			   reason == REASON_DRAINING   ? UNKNOWN_MS :
							 backoff_wait_ms(&server->backoff);

	if (wait_ms > LONGEST_MS)
		wait_ms = LONGEST_MS;
	/*
	 * A client that counts whole seconds must not be early: a process takes time to stop and to
	 * start.
	 */
	return (unsigned int)((wait_ms + 999) / 1000) + 1;
}
