/* SPDX-License-Identifier: Apache-2.0 */
/* When the gateway and the fetcher are started again after they have ended. Neither is started here. REL-43. */
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unit_test.h"
#include "keeper/programs.h"

#define SOME_PID INT32_MAX /* of no process */
#define FAILED (1 << 8)
#define FIRST_MS 100
#define LONGEST_MS 30000

static uint64_t now_ms = 1000000;

static void pass(uint64_t ms)
{
	clock_freeze(now_ms += ms);
}

static int setup(void **state)
{
	pass(0);
	return 0;
}

/* ---- the gateway ---- */

/* As if it had run and died. */
static bool gateway_dies(struct gateway_process *process)
{
	process->pid = SOME_PID;
	process->fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	return gateway_process_on_exit(process);
}

static void gateway_comes_back_ever_later(void **state)
{
	struct gateway_process process;
	uint64_t wait_ms = 0;

	gateway_process_init(&process);
	for (int i = 0; i < GATEWAY_DEATHS_MAX; i++) {
		assert_true(gateway_dies(&process));
		assert_int_equal(process.pid, 0);
		assert_int_equal(process.fd, -1);
		assert_int_equal(process.restart_at_ms - now_ms, wait_ms);
		wait_ms = wait_ms == 0 ? FIRST_MS : wait_ms * 2;
		pass(1000);
	}
	assert_false(gateway_dies(&process));
}

static void old_deaths_do_not_count(void **state)
{
	struct gateway_process process;

	gateway_process_init(&process);
	for (int i = 0; i < 3 * GATEWAY_DEATHS_MAX; i++) {
		assert_true(gateway_dies(&process));
		assert_int_equal(process.restart_at_ms, now_ms);
		pass(GATEWAY_DEATHS_WINDOW_MS);
	}
	for (int i = 0; i < GATEWAY_DEATHS_MAX; i++)
		assert_true(gateway_dies(&process));
	pass(GATEWAY_DEATHS_WINDOW_MS - 1);
	assert_false(gateway_dies(&process));
}

/* ---- the fetcher ---- */

/* Of a gateway that is there, with issuers. */
static struct fetcher_process fetcher(void)
{
	return (struct fetcher_process){
		.config = 0,
		.gateway_fd = 0,
		.gateway_end = -1,
		.log_relay = { .process = "fetch", .pipe = { -1, -1 } },
	};
}

/* As if it had run for so long; in how long it would be started. */
static uint64_t fetcher_ends(struct fetcher_process *process, uint64_t ran_ms, int status)
{
	process->pid = SOME_PID;
	process->started_ms = now_ms;
	pass(ran_ms);
	fetcher_process_on_exit(process, status);
	assert_int_equal(process->pid, 0);
	assert_int_equal(fetcher_process_do_due(process), process->restart_at_ms);
	return process->restart_at_ms - now_ms;
}

static void fetcher_comes_back_ever_later(void **state)
{
	struct fetcher_process process = fetcher();
	uint64_t wait_ms = FIRST_MS;

	for (int i = 0; i < 100; i++) {
		assert_int_equal(fetcher_ends(&process, 1, FAILED), wait_ms);
		wait_ms = wait_ms * 2 < LONGEST_MS ? wait_ms * 2 : LONGEST_MS;
	}
	assert_int_equal(fetcher_ends(&process, 59999, FAILED), LONGEST_MS);
	assert_int_equal(fetcher_ends(&process, 60000, FAILED), FIRST_MS);
	assert_int_equal(fetcher_ends(&process, 1, 0), 2 * FIRST_MS);
}

/* The next gateway has nothing to do with what became of the last one's. */
static void next_gateway_need_not_wait(void **state)
{
	struct fetcher_process process = fetcher();

	for (int i = 0; i < 10; i++)
		fetcher_ends(&process, 1, FAILED);
	fetcher_process_set_gateway(&process, -1);
	assert_int_equal(fetcher_process_do_due(&process), UINT64_MAX);
	fetcher_process_set_gateway(&process, 0);
	assert_in_range(process.restart_at_ms, 0, now_ms);
	assert_int_equal(fetcher_ends(&process, 1, FAILED), FIRST_MS);
}

/* It died before the gateway was told: that one is not given the end of nothing. */
static void what_was_not_told_is_closed(void **state)
{
	struct fetcher_process process = fetcher();
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	process.gateway_end = fd;
	assert_true(fetcher_process_has_untold(&process));
	fetcher_ends(&process, 1, FAILED);
	assert_false(fetcher_process_has_untold(&process));
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void without_issuers_there_is_none(void **state)
{
	struct fetcher_process process = fetcher();

	process.config = -1;
	assert_int_equal(fetcher_process_do_due(&process), UINT64_MAX);
	assert_false(fetcher_process_has_untold(&process));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(gateway_comes_back_ever_later, setup),
		cmocka_unit_test_setup(old_deaths_do_not_count, setup),
		cmocka_unit_test_setup(fetcher_comes_back_ever_later, setup),
		cmocka_unit_test_setup(next_gateway_need_not_wait, setup),
		cmocka_unit_test_setup(what_was_not_told_is_closed, setup),
		cmocka_unit_test_setup(without_issuers_there_is_none, setup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	log_set(-1, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
