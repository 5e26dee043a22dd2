/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the gateway and the fetcher are started, and when they are started again after they have ended. Another program stands
 * for them. REL-43.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unit_test.h"
#include "io/ipc.h"
#include "keeper/gateway_entry.h"
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

/* What is executed: it ends at once, and well. */
static struct programs programs;

static int open_programs(void **state)
{
	for (size_t i = 0; i < PROGRAM_COUNT; i++)
		programs.fds[i] = open("/bin/true", O_PATH | O_CLOEXEC);
	return programs.fds[0] >= 0 ? 0 : -1;
}

static int close_programs(void **state)
{
	programs_close(&programs);
	return 0;
}

/* Whether the process at the other end has gone. */
static bool is_closed(int fd)
{
	struct ipc_message message;

	return ipc_recv(fd, &message, NULL) < 0;
}

/* Lets this process open no more than so many descriptors; -1: as many as before. */
static void allow_descriptors(int more)
{
	static struct rlimit before;
	struct rlimit now;
	int first = dup(programs.fds[0]);

	if (before.rlim_max == 0)
		assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	now = (struct rlimit){ (rlim_t)(first + more), before.rlim_max };
	close(first);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, more >= 0 ? &now : &before), 0);
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

static void a_gateway_is_started_whole_or_not_at_all(void **state)
{
	int open_before = unit_test_descriptors(), more = 0, result, status;
	struct gateway_process process;
	int fds[GATEWAY_LISTENERS];
	struct error err;

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = programs.fds[0];
	gateway_process_init(&process);
	do {
		allow_descriptors(more++);
		result = gateway_process_start(&process, &programs, fds, ARRAY_LEN(fds), &err);
		allow_descriptors(-1);
		if (result < 0) {
			assert_int_equal(process.pid, 0);
			assert_int_equal(process.fd, -1);
			assert_int_equal(unit_test_descriptors(), open_before);
		}
	} while (result < 0);
	assert_true(more > 2);
	assert_true(process.pid > 0);
	assert_int_equal(unit_test_descriptors(), open_before + 1);
	assert_int_equal(waitpid(process.pid, &status, 0), process.pid);
	assert_true(is_closed(process.fd));
	assert_true(gateway_process_on_exit(&process));
	assert_int_equal(unit_test_descriptors(), open_before);
}

/* ---- the fetcher ---- */

/* Of a gateway that is there, with issuers. */
static struct helper_process fetcher(void)
{
	return (struct helper_process){
		.config = 0,
		.gateway_fd = 0,
		.gateway_end = -1,
		.log_relay = { .process = "fetch", .pipe = { -1, -1 } },
	};
}

/* As if it had run for so long; in how long it would be started. */
static uint64_t fetcher_ends(struct helper_process *process, uint64_t ran_ms, int status)
{
	process->pid = SOME_PID;
	process->started_ms = now_ms;
	pass(ran_ms);
	helper_process_on_exit(process, status);
	assert_int_equal(process->pid, 0);
	assert_int_equal(helper_process_do_due(process), process->restart_at_ms);
	return process->restart_at_ms - now_ms;
}

static void fetcher_comes_back_ever_later(void **state)
{
	struct helper_process process = fetcher();
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
	struct helper_process process = fetcher();

	for (int i = 0; i < 10; i++)
		fetcher_ends(&process, 1, FAILED);
	helper_process_set_gateway(&process, -1);
	assert_int_equal(helper_process_do_due(&process), UINT64_MAX);
	helper_process_set_gateway(&process, 0);
	assert_in_range(process.restart_at_ms, 0, now_ms);
	assert_int_equal(fetcher_ends(&process, 1, FAILED), FIRST_MS);
}

/* It died before the gateway was told: that one is not given the end of nothing. */
static void what_was_not_told_is_closed(void **state)
{
	struct helper_process process = fetcher();
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	process.gateway_end = fd;
	assert_true(helper_process_has_untold(&process));
	fetcher_ends(&process, 1, FAILED);
	assert_false(helper_process_has_untold(&process));
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void a_helper_is_started_for_a_gateway(void **state)
{
	struct helper_process process = fetcher();
	int open_before = unit_test_descriptors(), pair[2], status;
	struct ipc_message message;
	struct error err;

	process.which = IPC_HELPER_STORE;
	process.sessions = memory_file_shared("sessions", 8, &err);
	process.programs = &programs;
	process.config = programs.fds[0];
	assert_int_equal(ipc_pair(pair, &err), 0);
	process.gateway_fd = pair[0];
	/* Where it cannot be, it is tried again. */
	allow_descriptors(0);
	assert_int_equal(helper_process_do_due(&process), now_ms + FIRST_MS);
	allow_descriptors(-1);
	assert_int_equal(process.failures, 1);
	assert_int_equal(process.pid, 0);
	assert_int_equal(helper_process_do_due(&process), now_ms + FIRST_MS);
	pass(FIRST_MS);
	assert_int_equal(helper_process_do_due(&process), UINT64_MAX);
	assert_true(process.pid > 0);
	assert_int_equal(process.started_ms, now_ms);
	assert_int_equal(unit_test_descriptors(), open_before + 4);
	assert_true(helper_process_has_untold(&process));
	assert_int_equal(helper_process_do_due(&process), UINT64_MAX);
	helper_process_tell(&process);
	assert_false(helper_process_has_untold(&process));
	assert_int_equal(unit_test_descriptors(), open_before + 3);
	assert_int_equal(ipc_recv(pair[1], &message, &err), 1);
	assert_int_equal(message.type, IPC_HELPER);
	assert_int_equal(message.helper.which, IPC_HELPER_STORE);
	assert_int_equal(message.fd_count, 1);
	assert_int_equal(waitpid(process.pid, &status, 0), process.pid);
	assert_true(is_closed(message.fds[0]));
	close(message.fds[0]);
	helper_process_on_exit(&process, status);
	assert_int_equal(process.failures, 2);
	/* There is nobody to be told. */
	process.gateway_end = programs.fds[0];
	process.gateway_fd = -1;
	assert_false(helper_process_has_untold(&process));
	helper_process_tell(&process);
	assert_int_equal(process.gateway_end, programs.fds[0]);
	close(process.sessions);
	ipc_close(pair[0]);
	ipc_close(pair[1]);
}

/* The next gateway gets another process; that it was killed is no failure, and nothing to be logged. */
static void a_helper_ends_with_its_gateway(void **state)
{
	struct helper_process process = fetcher();
	int log_fd = memfd_create("log", MFD_CLOEXEC), status;
	char text[256] = "";

	log_set(log_fd, LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	for (int i = 0; i < 2; i++) {
		process.pid = fork();
		while (process.pid == 0)
			pause();
		if (i == 0)
			helper_process_set_gateway(&process, 0);
		else
			kill(process.pid, SIGKILL);
		assert_int_equal(waitpid(process.pid, &status, 0), process.pid);
		assert_int_equal(WTERMSIG(status), SIGKILL);
		helper_process_on_exit(&process, status);
		assert_int_equal(process.failures, i);
		assert_int_equal(pread(log_fd, text, sizeof(text) - 1, 0) > 0, i == 1);
	}
	assert_non_null(strstr(text, "helper_exit program=mcpgated-fetch pid="));
	assert_non_null(strstr(text, " signal=9\n"));
	log_set(-1, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	close(log_fd);
}

static void without_issuers_there_is_none(void **state)
{
	struct helper_process process = fetcher();

	process.config = -1;
	assert_int_equal(helper_process_do_due(&process), UINT64_MAX);
	assert_false(helper_process_has_untold(&process));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(gateway_comes_back_ever_later, setup),
		cmocka_unit_test_setup(old_deaths_do_not_count, setup),
		cmocka_unit_test_setup(fetcher_comes_back_ever_later, setup),
		cmocka_unit_test_setup(next_gateway_need_not_wait, setup),
		cmocka_unit_test_setup(what_was_not_told_is_closed, setup),
		cmocka_unit_test_setup(a_gateway_is_started_whole_or_not_at_all, setup),
		cmocka_unit_test_setup(a_helper_is_started_for_a_gateway, setup),
		cmocka_unit_test_setup(a_helper_ends_with_its_gateway, setup),
		cmocka_unit_test_setup(without_issuers_there_is_none, setup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	log_set(-1, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	return cmocka_run_group_tests(tests, open_programs, close_programs);
}
