/* SPDX-License-Identifier: Apache-2.0 */
/* What pools need and who waits for a place, of pools made by hand; then of whole ones: who gives, and who is given to. */
#include "router/process_slots.h"

#include "base/mem.h"
#include "process/child.h"
#include "router/client.h"
#include "router/pool.h"
#include "router/pool_stage.h"
#include "session/principal.h"
#include "upstream/upstream_ops.h"

/* ---- pools made by hand ---- */

#define MADE_MAX 8

static struct pool made[MADE_MAX];
static struct upstream made_upstreams[MADE_MAX];
static struct holder holders[4];
static struct pool *refused;

static void on_made_pump(struct task *task)
{
}

/* The i-th one, without members and processes. */
static struct pool *make_pool(size_t i, struct server *server, bool is_shared)
{
	static char class[] = "{}";
	struct pool *pool = &made[i];

	*pool = (struct pool){ .router = &router,
			       .server = server,
			       .class = is_shared ? class : NULL };
	list_init(&pool->link);
	list_init(&pool->joining);
	list_init(&pool->members);
	list_init(&pool->upstreams);
	list_init(&pool->jobs);
	list_init(&pool->verdict.link);
	fair_queue_init(&pool->queue, NULL);
	task_init(&pool->pump, on_made_pump);
	return pool;
}

/* The pool gets the i-th one, in this state and with so many requests. */
static struct upstream *make_upstream(size_t i, struct pool *pool, enum upstream_state state,
				      size_t load)
{
	struct upstream *upstream = &made_upstreams[i];

	*upstream = (struct upstream){ .server = pool->server, .pool = pool, .state = state };
	upstream->requests.count = load;
	list_append(&pool->upstreams, &upstream->link);
	pool->upstream_count++;
	pool->starting += !upstream_is_serving(upstream);
	return upstream;
}

static void joins(struct pool *pool, struct pool_member *member)
{
	list_append(&pool->joining, &member->link);
	pool->member_count++;
}

static void needs_are_counted(void **state)
{
	static const struct {
		size_t calls, joining, jobs, each, least, ready, starting;
		bool is_awoken, is_trying;
		size_t needed;
	} rows[] = {
		{ .each = 2, .needed = 0 },
		{ .calls = 1, .each = 2, .needed = 1 },
		{ .calls = 2, .each = 2, .needed = 1 },
		{ .calls = 3, .each = 2, .needed = 2 },
		{ .calls = 3, .each = 2, .joining = 1, .needed = 2 },
		{ .joining = 1, .each = 2, .needed = 1 },
		{ .jobs = 1, .each = 2, .needed = 1 },
		{ .is_awoken = true, .each = 2, .needed = 1 },
		{ .calls = 3, .each = 2, .is_trying = true, .needed = 0 },
		{ .each = 2, .least = 3, .needed = 3 },
		{ .each = 2, .least = 3, .ready = 2, .needed = 1 },
		{ .each = 2, .least = 3, .ready = 1, .starting = 1, .needed = 2 },
		{ .each = 2, .least = 3, .ready = 3, .needed = 0 },
		{ .each = 2, .least = 3, .ready = 4, .needed = 0 },
		{ .calls = 5, .each = 2, .least = 3, .ready = 1, .needed = 3 },
		{ .calls = 1, .each = 2, .least = 3, .ready = 1, .needed = 2 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pool *pool = make_pool(0, &servers[0], true);
		struct pool_member member = { .ops = NULL };
		struct pool_job job = { .ops = NULL };
		struct list trials;

		list_init(&trials);
		servers[0].conf.calls_per_process = rows[i].each;
		servers[0].conf.pool_min = rows[i].least;
		pool->queue.count = rows[i].calls;
		pool->is_awoken = rows[i].is_awoken;
		for (size_t n = 0; n < rows[i].ready + rows[i].starting; n++)
			make_upstream(n, pool,
				      n < rows[i].ready ? UPSTREAM_READY : UPSTREAM_STARTING, 0);
		if (rows[i].joining > 0)
			joins(pool, &member);
		if (rows[i].jobs > 0)
			list_append(&pool->jobs, &job.link);
		if (rows[i].is_trying)
			list_append(&trials, &pool->verdict.link);
		assert_int_equal(pool_is_waited_for(pool), rows[i].calls + rows[i].jobs > 0);
		assert_int_equal(pool_upstreams_needed(pool), rows[i].needed);
	}
}

/* A process that gets no more calls helps nobody; whose pool has no use for one is not starved; a session waits its own way. */
static void who_is_starved(void **state)
{
	static const struct {
		bool is_shared, waits, is_starved;
		enum upstream_state state; /* UPSTREAM_CLOSED: it has none */
	} rows[] = {
		{ true, true, true, UPSTREAM_CLOSED },   { true, true, true, UPSTREAM_RETIRING },
		{ true, true, false, UPSTREAM_READY },   { true, true, false, UPSTREAM_STARTING },
		{ true, false, false, UPSTREAM_CLOSED }, { true, false, false, UPSTREAM_RETIRING },
		{ false, true, false, UPSTREAM_CLOSED },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pool *pool = make_pool(0, &servers[0], rows[i].is_shared);
		struct pool_member member = { .ops = NULL };

		if (rows[i].waits)
			joins(pool, &member);
		if (rows[i].state != UPSTREAM_CLOSED)
			make_upstream(0, pool, rows[i].state, 0);
		assert_int_equal(pool_is_starved(pool), rows[i].is_starved);
	}
}

static bool any_room(const struct upstream *upstream, size_t size)
{
	return size <= 100;
}

static const struct upstream_ops roomy_ops = { .has_room = any_room };

/* Of equals the first, so that others come to rest. */
static void the_first_of_the_least_loaded_is_chosen(void **state)
{
	struct pool *pool = make_pool(0, &servers[0], true);
	struct upstream *all[5];

	servers[0].conf.calls_per_process = 3;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		all[i] = make_upstream(i, pool, i == 0 ? UPSTREAM_SETTLING : UPSTREAM_READY,
				       i < 1 ? 0 : 2);
		all[i]->ops = &roomy_ops;
	}
	assert_ptr_equal(pool_choose(pool, 100, false), all[1]);
	assert_null(pool_choose(pool, 101, false));
	all[3]->requests.count = all[4]->requests.count = 1;
	assert_ptr_equal(pool_choose(pool, 100, false), all[3]);
	for (size_t i = 1; i < ARRAY_LEN(all); i++)
		all[i]->requests.count = 3;
	assert_null(pool_choose(pool, 100, false));
	all[2]->requests.count = all[3]->requests.count = 0;
	assert_ptr_equal(pool_choose(pool, 100, false), all[2]);
}

static void processes_are_found_by_their_numbers(void **state)
{
	struct child children[3] = { { .spawned = { .id = 7 } },
				     { .spawned = { .id = 8 } },
				     { .spawned = { .id = 9 } } };
	struct pool *pool = make_pool(0, &servers[0], true);
	struct upstream *serves = make_upstream(0, pool, UPSTREAM_READY, 0);
	struct upstream *starts = make_upstream(1, pool, UPSTREAM_HANDSHAKE, 0);
	struct upstream *is_taken = make_upstream(2, pool, UPSTREAM_HANDSHAKE, 0);

	serves->child = &children[0];
	starts->child = &children[1];
	is_taken->child = &children[2];
	serves->is_inherited = is_taken->is_inherited = true;
	for (uint64_t number = 6; number < 11; number++) {
		assert_ptr_equal(pool_find_upstream(pool, number), number == 7 ? serves : NULL);
		assert_int_equal(pool_is_taking(pool, number), number == 9);
	}
}

static void a_sleeping_session_has_no_process(void **state)
{
	struct pool *pool = make_pool(0, &servers[0], false);
	struct upstream *upstream;

	assert_null(pool_own_upstream(pool));
	upstream = make_upstream(0, pool, UPSTREAM_READY, 0);
	assert_ptr_equal(pool_own_upstream(pool), upstream);
	pool = make_pool(1, &servers[0], true);
	make_upstream(1, pool, UPSTREAM_READY, 0);
	assert_null(pool_own_upstream(pool));
}

/* A session's, then a caller's, then everybody's or nobody's. */
static void processes_have_principals(void **state)
{
	struct pool *pool = make_pool(0, &servers[0], true);
	struct upstream *upstream = make_upstream(0, pool, UPSTREAM_READY, 0);
	struct client client = { .principal = alice };

	assert_null(pool_principal_of(upstream));
	pool->principal = bob;
	assert_ptr_equal(pool_principal_of(upstream), bob);
	upstream->client = &client;
	assert_ptr_equal(pool_principal_of(upstream), alice);
	upstream->client = NULL;
	upstream->pool = NULL;
	assert_null(pool_principal_of(upstream));
}

/* Not with a request of either side in flight, nor with a call that waits for something else, nor before or after it serves. */
static void work_of_any_kind_is_no_rest(void **state)
{
	struct upstream *upstream =
		make_upstream(0, make_pool(0, &servers[0], false), UPSTREAM_READY, 0);
	struct client client = { .call_count = 0 };
	struct list asked;

	list_init(&client.server_requests.all);
	upstream->client = &client;
	assert_true(process_slots_is_resting(upstream));
	client.call_count = 1;
	assert_false(process_slots_is_resting(upstream));
	client.call_count = 0;
	upstream->requests.count = 1;
	assert_false(process_slots_is_resting(upstream));
	upstream->lasting = 1; /* a subscription is no work */
	assert_true(process_slots_is_resting(upstream));
	list_init(&asked);
	list_append(&client.server_requests.all, &asked);
	assert_false(process_slots_is_resting(upstream));
	list_remove(&asked);
	upstream->state = UPSTREAM_RETIRING;
	assert_false(process_slots_is_resting(upstream));
}

/* ---- places in the queue ---- */

static void on_refuse(struct pool *pool, enum reason reason)
{
	assert_int_equal(reason, REASON_OVER_LIMIT);
	refused = pool;
}

static enum reason on_grow(struct pool *pool)
{
	return REASON_OVER_LIMIT;
}

static const struct process_slots_ops made_ops = { .grow = on_grow, .refuse = on_refuse };

enum { A, B, C }; /* callers */

/* The i-th pool, of this caller, in which somebody waits for its first process. */
static struct pool *make_waiting(size_t i, struct server *server, size_t caller, bool is_shared)
{
	static struct pool_member waiters[MADE_MAX];
	struct pool *pool = make_pool(i, server, is_shared);

	pool->holder = &holders[caller];
	pool->principal = is_shared ? alice : NULL;
	waiters[i] = (struct pool_member){ .ops = NULL };
	joins(pool, &waiters[i]);
	list_append(is_shared ? &router.slots.pools : &router.slots.waiting, &pool->link);
	return pool;
}

static void begin_places(void)
{
	router.slots.ops = &made_ops;
	memset(holders, 0, sizeof(holders));
	refused = NULL;
}

static void end_places(void)
{
	for (size_t i = 0; i < MADE_MAX; i++) {
		if (made[i].router != NULL)
			list_remove(&made[i].link);
	}
	for (size_t i = 0; i < ARRAY_LEN(holders); i++)
		assert_int_equal(holders[i].waiting, 0); /* it is counted for one question only */
}

/* For sessions and for shared pools alike. */
static void whose_place_is_taken(bool is_shared)
{
	struct pool *newcomer, *theirs[3];

	begin_places();
	servers[0].conf.queue_calls = 3;
	newcomer = make_waiting(0, &servers[0], C, is_shared);
	assert_true(process_slots_find_place(newcomer)); /* it is not in its own way */
	theirs[0] = make_waiting(1, &servers[0], A, is_shared);
	theirs[1] = make_waiting(2, &servers[0], A, is_shared);
	assert_true(process_slots_find_place(newcomer));
	theirs[2] = make_waiting(3, &servers[0], B, is_shared);
	make_waiting(6, &servers[1], A, is_shared); /* her newest, but not here */
	assert_null(refused);
	assert_true(process_slots_find_place(newcomer));
	assert_ptr_equal(refused, theirs[1]); /* the newest of who has most */
	refused = NULL;
	make_waiting(
		4, &servers[0], C,
		!is_shared); /* this one of his is not refused for it, but counts: he has one */
	assert_false(process_slots_find_place(newcomer));
	assert_null(refused);
	make_waiting(5, &servers[0], A, !is_shared); /* and hers are three */
	assert_true(process_slots_find_place(newcomer));
	assert_ptr_equal(refused, theirs[1]);
	end_places();
}

static void sessions_have_their_places(void **state)
{
	whose_place_is_taken(false);
}

static void shared_pools_have_their_places(void **state)
{
	whose_place_is_taken(true);
}

/* Nor does any in whose place nobody could wait: at another server, with a process, or because nobody is there. */
static void others_take_no_places(void **state)
{
	struct pool *newcomer, *pool;

	begin_places();
	servers[0].conf.queue_calls = 1;
	newcomer = make_waiting(0, &servers[0], C, true);
	make_waiting(1, &servers[1], A, true);
	make_upstream(0, make_waiting(2, &servers[0], A, true), UPSTREAM_STARTING, 0);
	pool = make_waiting(3, &servers[0], A, true);
	pool->principal = NULL;
	pool = make_waiting(4, &servers[0], A, true);
	list_remove(pool->joining.next);
	for (size_t i = 5; i < 8; i++)
		make_waiting(i, &servers[0], A, false);
	assert_true(process_slots_find_place(newcomer));
	assert_null(refused);
	end_places();
}

/* A session is queued where there is no room and processes are given away; who only wants its process back, however many wait. */
static void who_waits_is_queued(void **state)
{
	static const struct {
		enum reclaim_mode reclaims;
		size_t pool_max;
		bool is_awaited;
		uint64_t places;
		bool waits;
	} rows[] = {
		{ RECLAIM_IDLE, 0, true, 1, true },   { RECLAIM_IDLE, 1, true, 1, false },
		{ RECLAIM_NEVER, 0, true, 1, false }, { RECLAIM_IDLE, 0, true, 0, false },
		{ RECLAIM_IDLE, 0, false, 0, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pool *pool = make_pool(0, &servers[0], false);
		struct pool_member member = { .ops = NULL };

		begin_places();
		servers[0].conf.reclaims = rows[i].reclaims;
		servers[0].conf.pool_max = rows[i].pool_max;
		servers[0].conf.queue_calls = rows[i].places;
		pool->holder = &holders[A];
		pool->is_awoken = true;
		if (rows[i].is_awaited)
			joins(pool, &member);
		process_slots_seek(pool);
		assert_int_equal(pool->is_waiting, rows[i].waits);
		process_slots_leave(pool);
		assert_false(pool->is_waiting);
		assert_true(list_is_empty(&router.slots.waiting));
		settle();
	}
}

/* What is scheduled ends with it. */
static void nothing_runs_after_the_end(void **state)
{
	struct process_slots *slots = mem_zalloc(sizeof(*slots));

	process_slots_init(slots, loop, &made_ops);
	slots->retiring = 1; /* who waits for that */
	process_slots_note_idle(slots);
	timer_start(loop, &slots->look_again, 10);
	process_slots_fini(slots);
	free(slots);
	pass(20);
}

/* ---- retry after ---- */

static void refusals_name_a_time(void **state)
{
	struct server *server = &servers[0];
	uint64_t most_ms = 5 * 60 * 1000;

	server->conf.backoff_min_ms = server->conf.backoff_max_ms = most_ms;
	server->conf.give_up_after = 1;
	server->conf.isolation = ISOLATION_SESSION;
	assert_int_equal(retry_after_s(&router, server, NULL, REASON_OVER_LIMIT),
			 2); /* nothing is known of its calls */
	assert_int_equal(retry_after_s(&router, server, NULL, REASON_DRAINING), 2);
	assert_int_equal(retry_after_s(&router, server, NULL, REASON_BACKEND_DOWN), 1);
	for (size_t i = 0; i < 100; i++)
		server_note_answer(server, 30000, 30000);
	assert_in_range(retry_after_s(&router, server, NULL, REASON_OVER_LIMIT), 30, 60);
	server->backoff.retry_at_ms = now_ms + 5000;
	assert_int_equal(retry_after_s(&router, server, NULL, REASON_BACKEND_DOWN), 6);
	server->conf.start_rate = 1;
	server->conf.start_timeout_ms = 2000;
	server->backoff.next_start_at_us = (now_ms + 2000 + 4000) * 1000;
	assert_int_equal(retry_after_s(&router, server, NULL, REASON_OVER_LIMIT), 5);
	server->conf.pool_max =
		0; /* then the end of a call matters, not when one could be started */
	assert_in_range(retry_after_s(&router, server, NULL, REASON_OVER_LIMIT), 30, 60);
	server->backoff.retry_at_ms = now_ms + most_ms + 5000;
	assert_int_equal(retry_after_s(&router, server, NULL, REASON_BACKEND_DOWN), 301);
}

static const struct CMUnitTest tests[] = {
	TEST_PRINCIPALS(needs_are_counted),
	TEST_PRINCIPALS(who_is_starved),
	TEST_PRINCIPALS(the_first_of_the_least_loaded_is_chosen),
	TEST_PRINCIPALS(processes_are_found_by_their_numbers),
	TEST_PRINCIPALS(a_sleeping_session_has_no_process),
	TEST_PRINCIPALS(processes_have_principals),
	TEST_PRINCIPALS(work_of_any_kind_is_no_rest),
	TEST_PRINCIPALS(sessions_have_their_places),
	TEST_PRINCIPALS(shared_pools_have_their_places),
	TEST_PRINCIPALS(others_take_no_places),
	TEST_PRINCIPALS(who_waits_is_queued),
	TEST_PRINCIPALS(nothing_runs_after_the_end),
	TEST_PRINCIPALS(refusals_name_a_time),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
