/* SPDX-License-Identifier: Apache-2.0 */
/* When a server may start a process: its limits, its back-off, start.rate. No process is started here. */
#include "process/server.h"

#include "process/stage.h"

static int setup(void **state)
{
	stage_open();
	servers[0].conf.pool_max = 2;
	servers[0].conf.start_timeout_ms = 60000;
	return 0;
}

/* BACK-PROC-04, REL-29: each failure doubles the wait; after some the next callers hear it at once. */
static void failures_back_off(void **state)
{
	uint64_t wait_ms = 1;

	assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_NONE);
	assert_int_equal(wait_ms, 0);
	for (unsigned int i = 0; i < 2; i++) {
		backoff_note_failed(&servers[0].backoff);
		assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_NONE);
		assert_in_range(wait_ms, (1000u << i) * 3 / 4, 1000u << i);
		assert_int_equal(wait_ms % 250, 0);
		pass(wait_ms);
	}
	backoff_note_failed(&servers[0].backoff);
	assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_BACKEND_DOWN);
	assert_in_range(wait_ms, 3000, 4000);
	pass(wait_ms);
	assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_NONE); /* one may try again */
	assert_int_equal(wait_ms, 0);
	for (int i = 0; i < 20; i++) {
		backoff_note_failed(&servers[0].backoff);
		pass(60000);
	}
	assert_in_range(servers[0].backoff.retry_at_ms, now_ms - 60000 + 6000,
			now_ms - 60000 + 8000);
	backoff_note_started(&servers[0].backoff);
	assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_NONE);
	assert_int_equal(wait_ms, 0);
	assert_true(is_logged("server_recovered"));
}

/* REL-29, REL-51: no wait is longer than the longest, and servers that failed together do not start together. */
static void waits_are_bounded_and_differ(void **state)
{
	struct server_conf conf = servers[0].conf;
	size_t others = 0;
	uint64_t first = 0;

	conf.backoff_min_ms = 1000;
	conf.backoff_max_ms = 5000; /* no double of the shortest */
	for (int i = 0; i < 16; i++) {
		struct backoff backoff;

		backoff_init(&backoff, &conf);
		for (int j = 0; j < 4; j++) {
			backoff_note_failed(&backoff);
			assert_in_range(backoff.retry_at_ms - now_ms, 1, 5000);
			backoff.retry_at_ms -= j < 3 ? 10000 : 0; /* it has passed */
		}
		first = i == 0 ? backoff.retry_at_ms : first;
		others += backoff.retry_at_ms != first;
	}
	assert_true(others > 0);
}

/* REL-29: several that fail together are one failure. */
static void failures_at_once_count_once(void **state)
{
	uint64_t wait_ms;

	for (int i = 0; i < 10; i++)
		backoff_note_failed(&servers[0].backoff);
	assert_int_equal(servers[0].backoff.failures, 1);
	assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_NONE);
	assert_in_range(wait_ms, 750, 1000);
}

/* pool.max counts those that run and those that will. */
static void pool_is_limited(void **state)
{
	uint64_t wait_ms;

	server_count_child(&servers[0], true);
	assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_NONE);
	servers[0].reserved++;
	assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_OVER_LIMIT);
	assert_true(wait_ms > 0);
	servers[0].reserved--;
	assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_NONE);
	server_count_child(&servers[0], false);
}

/* REL-29: what comes up and crashes is backed off, too; only an answer of a later process ends that. */
static void crashes_of_young_processes_back_off(void **state)
{
	uint64_t wait_ms;

	for (int i = 0; i < 3; i++)
		backoff_note_crashed(&servers[0].backoff, now_ms);
	assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_NONE);
	assert_int_equal(wait_ms, 0);
	backoff_note_crashed(&servers[0].backoff, now_ms);
	assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_NONE);
	assert_in_range(wait_ms, 750, 1000);
	pass(wait_ms);
	backoff_note_started(&servers[0].backoff);
	assert_false(is_logged("server_recovered"));
	backoff_note_answered(&servers[0].backoff, now_ms - wait_ms);
	assert_false(is_logged("server_recovered")); /* it was ready before the crash */
	backoff_note_answered(&servers[0].backoff, now_ms);
	assert_true(is_logged("server_recovered"));
	assert_int_equal(servers[0].backoff.crashes, 0);
}

/* Crashes of processes that had run for a while say nothing about the next start. */
static void crashes_of_old_processes_do_not_count(void **state)
{
	for (int i = 0; i < 10; i++)
		backoff_note_crashed(&servers[0].backoff, now_ms - 60000);
	assert_int_equal(servers[0].backoff.crashes, 0);
	assert_int_equal(servers[0].backoff.failures, 0);
}

/* A second's worth of starts may come at once; then one waits for its turn, or is refused. */
static void starts_are_spread(void **state)
{
	uint64_t wait_ms;

	servers[0].conf.start_rate = 10;
	servers[0].conf.start_timeout_ms = 200;
	for (int i = 0; i <= 10; i++) {
		assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_NONE);
		assert_int_equal(wait_ms, 0);
	}
	for (uint64_t i = 1; i <= 2; i++) {
		assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_NONE);
		assert_int_equal(wait_ms, i * 100);
	}
	assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_OVER_LIMIT);
	assert_true(is_logged("start.rate"));
	pass(100);
	assert_int_equal(server_admit(&servers[0], &wait_ms), REASON_NONE);
	assert_int_equal(wait_ms, 200);
}

/* In the place of another: what was counted goes on, for both, and is freed with the last. */
static void a_server_takes_the_place_of_another(void **state)
{
	server_note_failure(&servers[0], "before", NULL);
	servers[0].restarts = 3;
	server_share_stats(&servers[1], &servers[0]);
	assert_int_equal(servers[1].restarts, 3);
	server_note_failure(&servers[1], "after", "status 1");
	assert_int_equal(servers[0].stats->failures, 2);
	assert_string_equal(servers[0].stats->failure, "after: status 1");
	assert_int_equal(servers[1].stats->users, 2);
	stderr_ring_add(&servers[0].stats->stderr_ring, 1, SLICE_LIT("of the one before"));
	assert_non_null(stderr_ring_next(&servers[1].stats->stderr_ring, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, stage_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(failures_back_off),
		TEST(waits_are_bounded_and_differ),
		TEST(failures_at_once_count_once),
		TEST(pool_is_limited),
		TEST(crashes_of_young_processes_back_off),
		TEST(crashes_of_old_processes_do_not_count),
		TEST(starts_are_spread),
		TEST(a_server_takes_the_place_of_another),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
