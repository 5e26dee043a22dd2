/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that fail: what is counted together, when it is too much, when it is over. */
#include "endpoint/authorization.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unit_test.h"
#include "obs/log.h"

#define MAX 20

static struct failures failures;
static uint64_t now_ms;

static void pass(uint64_t ms)
{
	now_ms += ms;
	clock_freeze(now_ms);
}

static int setup(void **state)
{
	now_ms = 1; /* as right after the machine's start */
	clock_freeze(now_ms);
	failures_init(&failures, MAX);
	return 0;
}

static int teardown(void **state)
{
	failures_fini(&failures);
	return failures.count != 0 || failures.by_key.slots != NULL;
}

static unsigned int note(const char *address)
{
	struct peer peer = { 0 };

	assert_true(peer_parse(slice_str(address), &peer));
	return failures_note(&failures, &peer);
}

static void forget(const char *address)
{
	struct peer peer = { 0 };

	assert_true(peer_parse(slice_str(address), &peer));
	failures_forget(&failures, &peer);
}

/* So many fail, and no more. */
static void fail_until_slowed(const char *address)
{
	for (unsigned int i = 0; i < MAX; i++)
		assert_int_equal(note(address), 0);
	assert_int_not_equal(note(address), 0);
}

/* AUTH-CH-11 DEF-23 */
static void too_many_in_a_minute_must_wait(void **state)
{
	assert_int_equal(note("192.0.2.1"), 0);
	pass(10000);
	for (unsigned int i = 1; i < MAX; i++)
		assert_int_equal(note("192.0.2.1"), 0);
	assert_int_equal(note("192.0.2.1"), 50);
	pass(49001);
	assert_int_equal(note("192.0.2.1"), 1);
	pass(999);
	fail_until_slowed("192.0.2.1");
}

static struct tally_count told;

static void on_counted(struct tally *tally)
{
	assert_true(tally_take(tally, &told));
}

/* CLU-RATE-01 AUTH-CH-11: what fails at another node counts, is logged when it fails here, and ends with success there. */
static void other_nodes_count_as_well(void **state)
{
	struct tally *shared = &failures.shared;

	shared->on_counted = on_counted;
	assert_int_equal(note("192.0.2.1"), 0);
	assert_int_equal(told.amount, 1);
	told.amount = 9;
	tally_hear(shared, told.key, MAX - 2);
	assert_int_equal(told.amount, 9);
	assert_int_equal(note("192.0.2.1"), 0);
	tally_hear(shared, told.key, UINT64_MAX);
	assert_int_equal(note("192.0.2.1"), 60);
	assert_int_equal(note("192.0.2.2"), 0);
	forget("192.0.2.2");
	assert_true(told.amount == 0 && told.is_anew);
	note("192.0.2.1");
	tally_hear(shared, told.key, 0);
	tally_hear(shared, 77, 0);
	fail_until_slowed("192.0.2.1");
	assert_int_equal(failures.count, 1);
	pass(60000);
	tally_hear(shared, 77, MAX);
	assert_int_equal(failures.count, 1); /* what is over goes */
}

/* AUTH-CH-11: it can be asked without counting. */
static void slowed_is_who_may_not_fail_now(void **state)
{
	struct peer peer = { 0 };

	assert_true(peer_parse(SLICE_LIT("192.0.2.1"), &peer));
	assert_false(failures_is_slowed(&failures, &peer));
	for (unsigned int i = 0; i < MAX; i++) {
		assert_false(failures_is_slowed(&failures, &peer));
		note("192.0.2.1");
	}
	assert_true(failures_is_slowed(&failures, &peer));
	assert_true(failures_is_slowed(&failures, &peer));
	pass(FAILURES_WINDOW_MS);
	assert_false(failures_is_slowed(&failures, &peer));
}

static void who_is_slowed_is_named(void **state)
{
	int fd = memfd_create("log", MFD_CLOEXEC);
	char text[512] = "";

	log_set(fd, LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	fail_until_slowed("192.0.2.7");
	log_set(STDERR_FILENO, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "client=192.0.2.7"));
	close(fd);
}

/* AUTH-CH-11 */
static void good_token_resets(void **state)
{
	fail_until_slowed("192.0.2.1");
	fail_until_slowed("192.0.2.2");
	forget("192.0.2.1");
	forget("192.0.2.3");
	fail_until_slowed("192.0.2.1");
	assert_int_not_equal(note("192.0.2.2"), 0);
}

static void addresses_are_told_apart(void **state)
{
	fail_until_slowed("2001:db8:0:1::1");
	assert_int_not_equal(note("2001:db8:0:1:ffff:ffff:ffff:ffff"), 0); /* the same network */
	assert_int_equal(note("2001:db8:0:2::1"), 0);
	fail_until_slowed("192.0.2.1");
	assert_int_not_equal(note("::ffff:192.0.2.1"), 0);     /* the same, on an IPv6 socket */
	assert_int_not_equal(note("[::ffff:c000:201]:99"), 0); /* likewise */
	assert_int_equal(note("192.0.3.1"), 0);
}

/* Behind a proxy on this machine that nobody has declared, everybody has the same address. */
static void own_machine_is_not_counted(void **state)
{
	const struct peer nobody = { 0 };

	for (unsigned int i = 0; i < 3 * MAX; i++) {
		assert_int_equal(note("127.0.0.1"), 0);
		assert_int_equal(note("127.255.3.4"), 0);
		assert_int_equal(note("::1"), 0);
		assert_int_equal(note("::ffff:127.0.0.1"), 0);
		assert_int_equal(failures_note(&failures, &nobody), 0);
	}
	assert_int_equal(failures.count, 0);
}

static void limit_can_be_off(void **state)
{
	failures_init(&failures, 0);
	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(note("192.0.2.1"), 0);
	assert_int_equal(failures.count, 0);
}

static void table_is_bounded(void **state)
{
	char address[64];

	fail_until_slowed("192.0.2.1");
	for (unsigned int i = 0; i < FAILURES_ADDRESSES_MAX - 1; i++) {
		snprintf(address, sizeof(address), "2001:db8:%x:%x::1", i >> 8, i & 255);
		assert_int_equal(note(address), 0);
	}
	assert_int_equal(failures.count, FAILURES_ADDRESSES_MAX);
	assert_int_not_equal(note("192.0.2.1"), 0);
	assert_int_equal(note("2001:db9::1"), 0);
	assert_int_equal(failures.count, FAILURES_ADDRESSES_MAX);
	assert_int_not_equal(note("192.0.2.1"), 0); /* it was not the one that failed longest ago */
	pass(FAILURES_WINDOW_MS);
	assert_int_equal(note("198.51.100.1"), 0);
	assert_int_equal(failures.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(too_many_in_a_minute_must_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(other_nodes_count_as_well, setup, teardown),
		cmocka_unit_test_setup_teardown(slowed_is_who_may_not_fail_now, setup, teardown),
		cmocka_unit_test_setup_teardown(who_is_slowed_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(good_token_resets, setup, teardown),
		cmocka_unit_test_setup_teardown(addresses_are_told_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(own_machine_is_not_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(limit_can_be_off, setup, teardown),
		cmocka_unit_test_setup_teardown(table_is_bounded, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
