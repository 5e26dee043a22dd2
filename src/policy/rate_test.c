/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets that fill evenly, one for each caller. */
#include "policy/call_limits.h"

#include "base/clock.h"
#include "base/unit_test.h"

static struct rate_set set;

/* How many of up to 1000 calls are let in at this time. */
static unsigned int taken(uint64_t key, const struct rate_rule *rule, uint64_t now_ms)
{
	unsigned int count = 0;

	while (count < 1000 && rate_take(&set, key, rule, 1, now_ms) == 0)
		count++;
	return count;
}

static int begin(void **state)
{
	rate_set_init(&set);
	return 0;
}

static int end(void **state)
{
	rate_set_fini(&set);
	return 0;
}

static void a_burst_then_evenly(void **state)
{
	const struct rate_rule rule = { .calls = 60, .per_ms = 60000, .burst = 5 };

	assert_int_equal(taken(1, &rule, 1000), 5);
	assert_int_equal(rate_take(&set, 1, &rule, 1, 1000), 1000);
	assert_int_equal(rate_take(&set, 1, &rule, 1, 1999), 1);
	assert_int_equal(taken(1, &rule, 2000), 1);
	assert_int_equal(taken(1, &rule, 4500), 2);
	assert_int_equal(taken(1, &rule, 5000), 1);
	/* After a rest no more than a burst. */
	assert_int_equal(taken(1, &rule, 1000000), 5);
}

static void without_a_burst_as_many_as_calls(void **state)
{
	const struct rate_rule rule = { .calls = 10, .per_ms = 1000 };

	assert_int_equal(taken(1, &rule, 1), 10);
	assert_int_equal(taken(1, &rule, 100), 0);
	assert_int_equal(taken(1, &rule, 101), 1);
	assert_int_equal(taken(1, &rule, 1101), 10);
}

static struct tally_count told;

static void on_counted(struct tally *tally)
{
	assert_true(tally_take(tally, &told));
}

/* CLU-RATE-01: what others let through is as if it had been let through here, and not told again. */
static void others_may_let_through_as_well(void **state)
{
	struct rate_rule rule = { .calls = 10, .per_ms = 1000, .is_shared = true };

	clock_freeze(1);
	set.shared.on_counted = on_counted;
	assert_int_equal(rate_take(&set, 1, &rule, 3, 1), 0);
	assert_int_equal(told.key, 1);
	assert_int_equal(told.amount, 300000);
	told.key = 0;
	tally_hear(&set.shared, 1, 400000);
	tally_hear(&set.shared, 2, 1000000);
	assert_int_equal(told.key, 0);
	rule.is_shared = false;
	assert_int_equal(taken(1, &rule, 1), 3);
	assert_int_equal(taken(2, &rule, 1), 0);
	assert_int_equal(taken(2, &rule, 101), 1);
	assert_int_equal(told.key, 0);
	/* Together they were too many. */
	tally_hear(&set.shared, 1, 500000);
	assert_int_equal(rate_wait(&set, 1, &rule, 1, 1), 600);
	/* Whatever is told, what sixteen nodes may let through at once is the end. */
	tally_hear(&set.shared, 1, UINT64_MAX);
	assert_int_equal(rate_wait(&set, 1, &rule, 1, 1), 15100);
	assert_int_equal(rate_take(&set, 1, &rule, 1, 15100), 1);
	assert_int_equal(rate_take(&set, 1, &rule, 1, 15101), 0);
}

/* CLU-RATE-01: also of one that is full for days only after a rest. */
static void others_may_let_through_for_days(void **state)
{
	const struct rate_rule rule = { .calls = 100, .per_ms = 24 * 3600 * 1000, .burst = 1000 };
	const uint64_t each_us = UINT64_C(864000000);

	clock_freeze(1);
	assert_int_equal(taken(1, &rule, 1), 1000);
	tally_hear(&set.shared, 1, 1000 * each_us);
	assert_int_equal(rate_wait(&set, 1, &rule, 1, 1), 1001 * each_us / 1000);
}

static void asking_takes_nothing(void **state)
{
	const struct rate_rule rule = { .calls = 2, .per_ms = 1000 };

	for (int i = 0; i < 5; i++)
		assert_int_equal(rate_wait(&set, 1, &rule, 2, 1), 0);
	assert_int_equal(taken(1, &rule, 1), 2);
	for (int i = 0; i < 5; i++)
		assert_int_equal(rate_wait(&set, 1, &rule, 1, 1), 500);
	assert_int_equal(rate_wait(&set, 1, &rule, 1, 501), 0);
	assert_int_equal(rate_wait(&set, 1, &rule, 0, 1), 0);
}

static void each_caller_has_its_own(void **state)
{
	const struct rate_rule rule = { .calls = 2, .per_ms = 1000 };

	assert_int_equal(taken(1, &rule, 1), 2);
	assert_int_equal(taken(2, &rule, 1), 2);
	assert_int_equal(taken(1, &rule, 1), 0);
}

static void without_a_rule_any_number(void **state)
{
	const struct rate_rule rule = { .calls = 0 };

	assert_int_equal(taken(1, &rule, 1), 1000);
	assert_int_equal(set.count, 0);
}

static void several_are_taken_together_or_not(void **state)
{
	const struct rate_rule rule = { .calls = 10, .per_ms = 10000, .burst = 4 };

	assert_int_equal(rate_take(&set, 1, &rule, 3, 1), 0);
	assert_int_equal(rate_take(&set, 1, &rule, 2, 1), 1000);
	assert_int_equal(rate_take(&set, 1, &rule, 1, 1), 0);
	assert_int_equal(rate_take(&set, 1, &rule, 1, 1), 1000);
	/* More than there ever are wait for a full one. */
	assert_int_equal(rate_take(&set, 2, &rule, 100, 1), 0);
	assert_int_equal(rate_take(&set, 2, &rule, 100, 2001), 2000);
	assert_int_equal(rate_take(&set, 2, &rule, 100, 4001), 0);
}

static void very_fast_rates_are_counted(void **state)
{
	const struct rate_rule rule = { .calls = 1000000000, .per_ms = 1, .burst = 3 };

	assert_int_equal(taken(1, &rule, 1), 3);
	assert_int_equal(taken(1, &rule, 2), 3);
}

static void callers_are_bounded(void **state)
{
	const struct rate_rule slow = { .calls = 1, .per_ms = 3600000 };
	const struct rate_rule fast = { .calls = 1, .per_ms = 1 };

	for (uint64_t i = 1; i <= RATE_CALLERS_MAX + 10; i++)
		assert_int_equal(rate_take(&set, i, &slow, 1, 1), 0);
	assert_int_equal(set.count, RATE_CALLERS_MAX);
	assert_int_not_equal(rate_take(&set, 11, &slow, 1, 1), 0);
	assert_int_equal(rate_take(&set, 1, &slow, 1, 1), 0);      /* was forgotten */
	assert_int_not_equal(rate_take(&set, 11, &slow, 1, 1), 0); /* came since the twelfth */
	rate_set_fini(&set);
	rate_set_init(&set);
	/* Those whose buckets are full again go by and by. */
	for (uint64_t i = 1; i <= 1000; i++)
		assert_int_equal(rate_take(&set, i, &fast, 1, i * 10), 0);
	assert_in_range(set.count, 1, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_burst_then_evenly, begin, end),
		cmocka_unit_test_setup_teardown(without_a_burst_as_many_as_calls, begin, end),
		cmocka_unit_test_setup_teardown(others_may_let_through_as_well, begin, end),
		cmocka_unit_test_setup_teardown(others_may_let_through_for_days, begin, end),
		cmocka_unit_test_setup_teardown(asking_takes_nothing, begin, end),
		cmocka_unit_test_setup_teardown(each_caller_has_its_own, begin, end),
		cmocka_unit_test_setup_teardown(without_a_rule_any_number, begin, end),
		cmocka_unit_test_setup_teardown(several_are_taken_together_or_not, begin, end),
		cmocka_unit_test_setup_teardown(very_fast_rates_are_counted, begin, end),
		cmocka_unit_test_setup_teardown(callers_are_bounded, begin, end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
