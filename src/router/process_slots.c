/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions. A session that waits gets the place of a process that is being stopped anyway, or has one stopped
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
 * Nothing is searched unless somebody waits; then all processes of sessions are, once per turn. A
 * place that becomes free goes to whoever's turn it is then, not to the session for which it was
 * freed.
 *
 * Shared pools. Idle processes go first, beginning with the one that has been idle for longest. If
 * all are busy, a pool without a process would have to wait for as long as the others have calls. So
 * the pool with most processes gives one up; of pools with one each, one whose process works on no
 * task, then the one that has had it for longest. Each pool that waits gets only one process, and a
 * pool that gave up its own does not take another's for it: calls may be long, and soon all processes
 * would only be finishing theirs.
 *
 * A caller who has more processes of a server than its share gives one up at once, even to a pool
 * that has some, as long as the caller of that pool has less than its share. Pools that everybody
 * uses belong to nobody: in them, calls take turns (fair_queue).
 *
 * Both take what is idle from each other. The processes that pool.min keeps, and those that sessions
 * with subscriptions need, are left alone. Calls in flight are never cut short.
 */
#include "router/process_slots.h"

#include "base/clock.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "process/child.h"
#include "process/server.h"
#include "router/client.h"
#include "router/pool.h"
#include "router/router.h"
#include "router/running_tasks.h"
#include "session/principal.h"
#include "session/session.h"
#include "upstream/stdio.h"
#include "upstream/upstream.h"

#define LOOK_STEP_MS 50 /* so that the loop's timers have few distinct durations */
#define RETIRE_AFTER_MS (2 * SERVER_IDLE_MS)

/* ---- what pools need ---- */

struct pool_member *pool_only_member(const struct pool *pool)
{
	const struct list *list = list_is_empty(&pool->joining) ? &pool->members : &pool->joining;

	CHECK(!pool_is_shared(pool) && pool->member_count == 1);
	return container_of(list->next, struct pool_member, link);
}

struct upstream *pool_own_upstream(const struct pool *pool)
{
	if (pool_is_shared(pool) || list_is_empty(&pool->upstreams))
		return NULL;
	return container_of(pool->upstreams.next, struct upstream, link);
}

bool pool_is_waited_for(const struct pool *pool)
{
	return !fair_queue_is_empty(&pool->queue) || !list_is_empty(&pool->jobs);
}

size_t pool_least_upstreams(const struct pool *pool)
{
	bool is_shared = pool_is_shared(pool);
	bool is_everybodys = is_shared && pool->principal == NULL && !pool_is_retired(pool);
	size_t least = is_everybodys ? pool->server->conf.pool_min : 0;

	/*
	 * One process is kept for clients that wait for its notifications, and may never ask again.
	 * bridging.md §1.5, §4
	 */
	if (least == 0 && pool->subscriptions.count > 0)
		least = is_shared || !pool->router->is_draining;
	return least;
}

bool pool_can_spare(const struct upstream *upstream)
{
	const struct pool *pool = upstream->pool;

	return upstream->state == UPSTREAM_READY && upstream_load(upstream) == 0 &&
	       pool->upstream_count > pool_least_upstreams(pool) && !live_tasks_has_some(upstream);
}

bool pool_is_over(const struct upstream *upstream)
{
	return upstream->state == UPSTREAM_RETIRING &&
	       (upstream->donated_at_ms > 0 || !live_tasks_has_some(upstream));
}

size_t pool_upstreams_needed(const struct pool *pool)
{
	size_t waiting = pool->queue.count > 0 ? pool->queue.count : !list_is_empty(&pool->jobs);
	size_t least = pool_least_upstreams(pool);
	size_t ready = pool->upstream_count - pool->starting;
	size_t each = pool_is_shared(pool) ? pool->server->conf.calls_per_process : SIZE_MAX;
	size_t needed;

	CHECK(pool->starting <= pool->upstream_count);
	if (trial_waiter_is_waiting(&pool->verdict))
		return 0; /* it is not known yet in which era to start them */
	if (pool_is_leased(pool))
		each = 1;
	needed = waiting == 0 ? 0 : (waiting - 1) / each + 1;
	if (needed == 0 && (!list_is_empty(&pool->joining) || pool->is_awoken))
		needed = 1;
	return needed + ready < least ? least - ready : needed;
}

bool pool_is_starved(const struct pool *pool)
{
	if (!pool_is_shared(pool) || pool_upstreams_needed(pool) == 0)
		return false;
	LIST_EACH(struct upstream, upstream, &pool->upstreams, link)
		if (upstream->state != UPSTREAM_RETIRING)
			return false;
	return true;
}

/*
 * A list may be requested beside a call that has the upstream to itself: servers ask nothing while
 * they work on a list.
 */
bool pool_may_load(const struct upstream *upstream, bool is_list)
{
	const struct pool *pool = upstream->pool;

	if (!pool_is_shared(pool))
		return true;
	if (!is_list && upstream->lease != NULL)
		return false;
	return upstream_load(upstream) < pool->server->conf.calls_per_process;
}

struct upstream *pool_choose(const struct pool *pool, size_t size, bool is_list)
{
	size_t least = SIZE_MAX;
	struct upstream *chosen = NULL;

	LIST_EACH(struct upstream, upstream, &pool->upstreams, link) {
		size_t load = upstream_load(upstream);

		if (upstream->state != UPSTREAM_READY || load >= least ||
		    !pool_may_load(upstream, is_list))
			continue;
		if ((pool_is_shared(pool) || is_list) && !upstream_has_room(upstream, size))
			continue;
		chosen = upstream;
		least = load;
	}
	return chosen;
}

static struct upstream *find_numbered(const struct pool *pool, uint64_t child_number, bool serves)
{
	LIST_EACH(struct upstream, upstream, &pool->upstreams, link)
		if (upstream_is_serving(upstream) == serves &&
		    upstream_child_number(upstream) == child_number)
			return upstream;
	return NULL;
}

struct upstream *pool_find_upstream(const struct pool *pool, uint64_t child_number)
{
	return find_numbered(pool, child_number, true);
}

bool pool_is_taking(const struct pool *pool, uint64_t child_number)
{
	const struct upstream *found = find_numbered(pool, child_number, false);

	return found != NULL && found->is_inherited;
}

const struct principal *pool_principal_of(const struct upstream *upstream)
{
	if (upstream->client != NULL)
		return upstream->client->principal;
	return upstream->pool != NULL ? upstream->pool->principal : NULL;
}

/* ---- who waits ---- */

static struct process_slots *slots_of(const struct pool *pool)
{
	return &pool->router->slots;
}

static void look_soon(struct process_slots *slots)
{
	if (!list_is_empty(&slots->waiting) || slots->retiring > 0)
		task_schedule(slots->loop, &slots->look);
}

/* Whether nobody waits in the pool: it only wants its process back when there is room. */
static bool is_background(const struct pool *pool)
{
	return list_is_empty(&pool->joining) && !pool_is_waited_for(pool);
}

static void note_sooner(uint64_t *soonest_ms, uint64_t wait_ms)
{
	if (wait_ms < *soonest_ms)
		*soonest_ms = wait_ms;
}

/* ---- what is idle ---- */

/* Whether neither side owes the other a response. */
static bool is_quiet(const struct upstream *upstream)
{
	return upstream_load(upstream) == 0 &&
	       list_is_empty(&upstream->client->server_requests.all);
}

bool process_slots_is_resting(const struct upstream *upstream)
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

	return count_kept(pool) > has + 1;
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
static uint64_t process_slots_wait_for(const struct pool *pool, const struct pool *to)
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
static struct pool *process_slots_find_idle(const struct process_slots *slots,
					    const struct server *server, const struct pool *to,
					    uint64_t *wait_ms_r)
{
	struct pool *best = NULL;

	*wait_ms_r = UINT64_MAX;
	LIST_EACH(struct pool, pool, &slots->awake, link) {
		uint64_t wait_ms;

		if (!pool->server->conf.reclaims || !is_of_use(pool->server, server) ||
		    !process_slots_is_resting(pool_own_upstream(pool)))
			continue;
		wait_ms = process_slots_wait_for(pool, to);
		if (wait_ms > 0)
			note_sooner(wait_ms_r, wait_ms);
		else if (best == NULL || goes_before(pool, best))
			best = pool;
	}
	return best;
}

void process_slots_put_to_sleep(struct upstream *upstream, enum reason reason)
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

/* A shared pool takes the process of an idle session. */
static void take_idle(const struct pool *pool)
{
	uint64_t wait_ms;
	struct pool *idle = process_slots_find_idle(slots_of(pool), pool->server, NULL, &wait_ms);

	if (idle == NULL)
		return;
	process_slots_note_leaving(pool_own_upstream(idle));
	process_slots_put_to_sleep(pool_own_upstream(idle), REASON_RECLAIMED);
}

/* ---- places that become free ---- */

/* A process of the server that is being stopped, and whose place nobody waits for. */
static struct upstream *find_leaving(const struct server *server)
{
	LIST_EACH(struct child, child, &server->children, link)
		if (child->state == CHILD_STOPPING && !stdio_of_child(child)->is_awaited)
			return stdio_of_child(child);
	return NULL;
}

bool process_slots_has_leaving(const struct server *server)
{
	return find_leaving(server) != NULL;
}

static void process_slots_await(struct pool *pool, struct upstream *upstream)
{
	CHECK(pool->awaited == NULL && !upstream->is_awaited);
	pool->holder->coming += !pool->is_promised;
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

void process_slots_leave(struct pool *pool)
{
	if (!pool->is_waiting)
		return;
	list_remove(&pool->link);
	pool->is_waiting = false;
	await_no_more(pool);
	look_soon(slots_of(pool)); /* what it waited for is for another pool */
}

/* ---- what is never idle ---- */

/* The pool whose process is to retire for `to`: the one with the fewest calls. */
static struct pool *find_busy(const struct process_slots *slots, const struct pool *to)
{
	struct pool *best = NULL;

	LIST_EACH(struct pool, pool, &slots->awake, link) {
		const struct upstream *upstream = pool_own_upstream(pool);

		if (upstream->state == UPSTREAM_READY && pool->server->conf.reclaims &&
		    is_of_use(pool->server, to->server) && is_to_give(pool, to) &&
		    (best == NULL ||
		     upstream_load(upstream) < upstream_load(pool_own_upstream(best))))
			best = pool;
	}
	return best;
}

static void retire(struct process_slots *slots, struct pool *pool)
{
	slots->retiring++;
	pool->holder->leaving++;
	upstream_retire(pool_own_upstream(pool));
}

/* Retires one process for each pool that has waited for long enough. Returns when to look again. */
static uint64_t retire_for_all(struct process_slots *slots)
{
	uint64_t soonest_ms = UINT64_MAX;

	LIST_EACH(struct pool, pool, &slots->waiting, link) {
		struct pool *busy;
		uint64_t waited_ms = clock_now_ms() - pool->waiting_since_ms;

		if (pool->awaited != NULL || pool->is_promised || is_background(pool))
			continue;
		busy = find_busy(slots, pool);
		if (busy == NULL)
			continue;
		if (waited_ms >= RETIRE_AFTER_MS) {
			pool->holder->coming++;
			pool->is_promised = true;
			retire(slots, busy);
		} else {
			note_sooner(&soonest_ms, RETIRE_AFTER_MS - waited_ms);
		}
	}
	return soonest_ms;
}

static void stop_retired(struct process_slots *slots)
{
	if (slots->retiring == 0)
		return;
	LIST_EACH_SAFE(struct pool, pool, &slots->awake, link) {
		struct upstream *upstream = pool_own_upstream(pool);

		if (upstream->state == UPSTREAM_RETIRING && is_quiet(upstream))
			process_slots_put_to_sleep(upstream, REASON_RECLAIMED);
	}
}

/* ---- shared pools ---- */

/* Whether `pool` could start a process in place of one of `other`. */
static bool may_give_to(const struct pool *other, const struct pool *pool)
{
	if (other == pool || server_has_room(pool->server))
		return false;
	return is_of_use(other->server, pool->server);
}

/* How many processes the caller of the pool has; 0: they are everybody's. */
static size_t held_by_caller(const struct pool *pool)
{
	return pool->holder != NULL ? pool->holder->count : 0;
}

static bool caller_is_over_share(const struct pool *pool)
{
	return held_by_caller(pool) > server_share(pool->server);
}

/* Whether the pool's caller has less than a share, and that of `other` more. */
static bool has_less_than(const struct pool *pool, const struct pool *other)
{
	return other->server == pool->server && caller_is_over_share(other) &&
	       held_by_caller(pool) < server_share(pool->server);
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
		held_by_caller(pool) < server_share(pool->server) || caller_is_over_share(other) ||
		clock_now_ms() - upstream->rested_at_ms >= SERVER_IDLE_MS);
}

static uint64_t idles_until(const struct upstream *upstream)
{
	return upstream->rested_at_ms + upstream->server->conf.idle_ms;
}

/*
 * Stops an idle process of a shared pool, but no more than are waited for. Returns whether processes
 * are exiting.
 */
static bool stop_idle(struct pool *pool)
{
	struct process_slots *slots = slots_of(pool);
	struct upstream *oldest = NULL;

	slots->is_short = true;
	pool->is_short = true;
	if (slots->leaving >= pool_upstreams_needed(pool))
		return true;
	LIST_EACH(const struct pool, other, &slots->pools, link) {
		if (!may_give_to(other, pool))
			continue;
		LIST_EACH(struct upstream, upstream, &other->upstreams, link)
			if (may_take(pool, upstream) &&
			    (oldest == NULL || idles_until(upstream) < idles_until(oldest)))
				oldest = upstream;
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

/* ---- turns ---- */

static bool comes_before(const struct pool *a, const struct pool *b)
{
	if (is_background(a) != is_background(b))
		return is_background(b);
	return a->holder->count < b->holder->count;
}

/* The pool whose turn it is to start a process, of those for which there is room. */
static struct pool *next_to_start(const struct process_slots *slots)
{
	struct pool *next = NULL;

	LIST_EACH(struct pool, pool, &slots->waiting, link)
		if (server_has_room(pool->server) && (next == NULL || comes_before(pool, next)))
			next = pool;
	return next;
}

/* The pool whose turn it is, of those that wait for no process in particular. */
static struct pool *next_to_look(const struct process_slots *slots)
{
	struct pool *next = NULL;

	LIST_EACH(struct pool, pool, &slots->waiting, link)
		if (pool->awaited == NULL && !pool->is_passed && !is_background(pool) &&
		    (next == NULL || comes_before(pool, next)))
			next = pool;
	return next;
}

static void start_all(struct process_slots *slots)
{
	struct pool *pool;

	LIST_EACH_SAFE(struct pool, each, &slots->waiting, link) {
		if (pool_upstreams_needed(each) == 0)
			process_slots_leave(each); /* whoever waited in it has gone */
	}
	while ((pool = next_to_start(slots)) != NULL) {
		enum reason reason = slots->ops->grow(pool);

		process_slots_leave(pool);
		if (reason == REASON_NONE)
			continue; /* it has one, or the era of its server will wake it */
		pool_wake(pool);  /* it may want one all the same, when one can be started again */
		slots->ops->refuse(pool, reason);
	}
}

/* There is nothing for the other waiting pools of the server either: they have no better claim. */
static void pass_over(struct process_slots *slots, const struct server *server)
{
	LIST_EACH(struct pool, pool, &slots->waiting, link)
		if (pool->server == server)
			pool->is_passed = true;
}

/* Returns when to look again; UINT64_MAX: when something has changed. */
static uint64_t look_for_all(struct process_slots *slots)
{
	uint64_t soonest_ms = UINT64_MAX;
	struct pool *pool;

	LIST_EACH(struct pool, each, &slots->waiting, link)
		each->is_passed = false;
	while ((pool = next_to_look(slots)) != NULL) {
		struct upstream *leaving = find_leaving(pool->server);
		struct pool *idle;
		uint64_t wait_ms;

		if (leaving != NULL) {
			process_slots_await(pool, leaving);
			continue;
		}
		idle = process_slots_find_idle(slots, pool->server, pool, &wait_ms);
		if (idle == NULL) {
			(void)stop_idle(pool);
			note_sooner(&soonest_ms, wait_ms);
			pass_over(slots, pool->server);
			continue;
		}
		process_slots_await(pool, pool_own_upstream(idle));
		process_slots_put_to_sleep(pool->awaited, REASON_RECLAIMED);
	}
	note_sooner(&soonest_ms, retire_for_all(slots));
	return soonest_ms;
}

static void on_look(struct task *task)
{
	struct process_slots *slots = container_of(task, struct process_slots, look);
	uint64_t again_ms;

	stop_retired(slots);
	start_all(slots);
	again_ms = look_for_all(slots);
	if (again_ms != UINT64_MAX)
		timer_start(slots->loop, &slots->look_again,
			    (again_ms + LOOK_STEP_MS - 1) / LOOK_STEP_MS * LOOK_STEP_MS);
}

static void on_look_again(struct timer *timer)
{
	look_soon(container_of(timer, struct process_slots, look_again));
}

static void put_last(struct pool *pool)
{
	list_move(&slots_of(pool)->pools, &pool->link);
}

/* ---- waiting ---- */

/* Whether somebody else waits in the pool for its first process: a session, or callers of a principal. */
static bool waits_like(const struct pool *pool, const struct pool *newcomer)
{
	if (pool == newcomer || pool->server != newcomer->server || pool->upstream_count > 0)
		return false;
	return pool_is_shared(pool) ? pool->principal != NULL && !list_is_empty(&pool->joining) :
				      !is_background(pool);
}

/* Adds, or takes back, what the callers of these pools have waiting. Returns how many pools wait. */
static size_t process_slots_count_waiting(const struct list *pools, const struct pool *newcomer,
					  bool is_over)
{
	size_t count = 0;

	LIST_EACH(struct pool, pool, pools, link) {
		if (!waits_like(pool, newcomer))
			continue;
		pool->holder->waiting += is_over ? (size_t)-1 : 1;
		count++;
	}
	return count;
}

/*
 * The newest of these waiting pools of the caller with most, if the caller of `newcomer` would have
 * fewer; NULL: there is none.
 */
static struct pool *process_slots_find_excess(const struct list *pools, const struct pool *newcomer)
{
	size_t most = newcomer->holder->waiting + 2;
	struct pool *excess = NULL;

	LIST_EACH(struct pool, pool, pools, link) {
		if (!waits_like(pool, newcomer) || pool->holder->waiting < most)
			continue;
		most = pool->holder->waiting;
		excess = pool;
	}
	return excess;
}

/* A caller's pools of both kinds count; those of the other kind take no place from this one. */
bool process_slots_find_place(struct pool *pool)
{
	struct process_slots *slots = slots_of(pool);
	const struct list *alike = pool_is_shared(pool) ? &slots->pools : &slots->waiting;
	const struct list *others = pool_is_shared(pool) ? &slots->waiting : &slots->pools;
	size_t count = process_slots_count_waiting(alike, pool, false);
	struct pool *excess;

	(void)process_slots_count_waiting(others, pool, false);
	excess = process_slots_find_excess(alike, pool);
	(void)process_slots_count_waiting(alike, pool, true);
	(void)process_slots_count_waiting(others, pool, true);
	if (count < pool->server->conf.queue_calls)
		return true;
	if (excess != NULL)
		slots->ops->refuse(excess, REASON_OVER_LIMIT);
	return excess != NULL;
}

/* Queues the pool of a session, unless that is futile or too many wait. */
static void process_slots_enter(struct pool *pool)
{
	struct process_slots *slots = slots_of(pool);

	CHECK(!pool_is_shared(pool) && pool->upstream_count == 0);
	if (!pool->server->conf.reclaims || server_has_room(pool->server))
		return;
	if (!pool->is_waiting) {
		if (!is_background(pool) && !process_slots_find_place(pool))
			return;
		list_append(&slots->waiting, &pool->link);
		pool->is_waiting = true;
		pool->waiting_since_ms = clock_now_ms();
	}
	look_soon(slots);
}

void process_slots_seek(struct pool *pool)
{
	bool is_coming = stop_idle(pool);

	if (!pool_is_shared(pool))
		process_slots_enter(pool);
	else if (!is_coming)
		take_idle(pool);
}

/* ---- what pools report ---- */

void process_slots_note_started(struct pool *pool)
{
	if (pool_is_shared(pool))
		return;
	process_slots_leave(pool);
	list_append(&slots_of(pool)->awake, &pool->link);
}

void process_slots_note_stopped(const struct upstream *upstream)
{
	struct pool *pool = upstream->pool;
	struct process_slots *slots = slots_of(pool);

	if (pool_is_shared(pool)) {
		put_last(pool);
		return;
	}
	list_remove(&pool->link);
	if (upstream->state == UPSTREAM_RETIRING) {
		CHECK(slots->retiring > 0 && pool->holder->leaving > 0);
		slots->retiring--;
		pool->holder->leaving--;
	}
	look_soon(slots);
}

/* The time until another pool may have the process of this one; UINT64_MAX: it is in use. */
static uint64_t free_in_ms(const struct pool *pool)
{
	const struct upstream *upstream = pool_own_upstream(pool);

	if (!process_slots_is_resting(upstream))
		return UINT64_MAX;
	if (pool->server->conf.reclaims)
		return process_slots_wait_for(pool, NULL);
	return session_left_ms(upstream->client->session);
}

static uint64_t wait_ms_of(const struct process_slots *slots, const struct server *server)
{
	uint64_t least_ms = UINT64_MAX;

	LIST_EACH(const struct pool, pool, &slots->awake, link)
		if (is_of_use(pool->server, server))
			note_sooner(&least_ms, free_in_ms(pool));
	return least_ms;
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

	LIST_EACH(struct upstream, upstream, &pool->upstreams, link) {
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

	LIST_EACH(const struct pool, other, &slots_of(pool)->pools, link) {
		if (!may_give_to(other, pool))
			continue;
		LIST_EACH(const struct upstream, upstream, &other->upstreams, link)
			count += upstream->donated_at_ms > 0 &&
				 clock_now_ms() - upstream->donated_at_ms < wait_ms;
	}
	return count;
}

/* The number of pools without a process that could use such a place, `pool` included. */
static size_t count_wanting(const struct pool *pool)
{
	size_t count = 0;

	LIST_EACH(const struct pool, other, &slots_of(pool)->pools, link)
		count += other->upstream_count == 0 && pool_is_starved(other) &&
			 (other->server == pool->server ||
			  (!server_is_full(other->server) && !server_is_full(pool->server)));
	return count;
}

static bool is_better(const struct donation *donation, const struct donation *than)
{
	if (donation->is_excess != than->is_excess)
		return donation->is_excess;
	if (donation->among != than->among)
		return donation->among > than->among;
	return is_rather_given(donation->upstream, than->upstream);
}

void process_slots_claim(struct pool *pool)
{
	struct donation best = { .upstream = NULL };
	bool has_some = pool->upstream_count > 0;

	if (!pool_is_shared(pool) || count_promised(pool) >= count_wanting(pool) + has_some)
		return;
	LIST_EACH(const struct pool, other, &slots_of(pool)->pools, link) {
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

void process_slots_note_idle(struct process_slots *slots)
{
	look_soon(slots);
	if (!slots->is_short)
		return;
	slots->is_short = false;
	LIST_EACH(struct pool, pool, &slots->pools, link) {
		if (pool->is_short)
			pool_wake(pool);
		pool->is_short = false;
	}
}

/* The next pool in turn that has no process and may start one; NULL: there is none left to try. */
static struct pool *next_to_grow(const struct process_slots *slots)
{
	LIST_EACH(struct pool, pool, &slots->pools, link)
		if (pool->is_short && !pool->is_passed && pool_is_starved(pool) &&
		    server_has_room(pool->server))
			return pool;
	return NULL;
}

/* Starved pools get the place of a process that is gone. That may move any pool in the list. */
static void grow_starved(struct process_slots *slots)
{
	struct pool *pool;

	if (!slots->is_short)
		return;
	LIST_EACH(struct pool, each, &slots->pools, link)
		each->is_passed = false;
	while ((pool = next_to_grow(slots)) != NULL) {
		pool->is_passed = true;
		if (slots->ops->grow(pool) == REASON_NONE)
			put_last(pool);
	}
}

/* At once: others may be about to look, too. */
void process_slots_note_gone(struct process_slots *slots, const struct upstream *upstream)
{
	CHECK(!upstream->makes_room || slots->leaving > 0);
	slots->leaving -= upstream->makes_room;
	grow_starved(slots);
	LIST_EACH(struct pool, pool, &slots->waiting, link)
		if (pool->awaited == upstream)
			await_no_more(pool);
	start_all(slots);
	process_slots_note_idle(slots);
}

/* ---- beginning and end ---- */

void process_slots_init(struct process_slots *slots, struct loop *loop,
			const struct process_slots_ops *ops)
{
	*slots = (struct process_slots){ .loop = loop, .ops = ops };
	list_init(&slots->pools);
	list_init(&slots->awake);
	list_init(&slots->waiting);
	task_init(&slots->look, on_look);
	timer_init(&slots->look_again, on_look_again);
}

void process_slots_fini(struct process_slots *slots)
{
	CHECK(list_is_empty(&slots->awake) && list_is_empty(&slots->waiting));
	task_cancel(&slots->look);
	timer_stop(&slots->look_again);
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
	wait_ms = wait_ms_of(&router->slots, server);
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
