/* SPDX-License-Identifier: Apache-2.0 */
/* The real program, told of groups and then left alone, as by a keeper that was killed. REL-43. */
#include "keeper/programs.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unit_test.h"
#include "keeper/handover.h"

static struct programs programs;
static struct reaper reaper;
static char directory[64];

/* The build has put it two directories up. */
static int open_program(void **state)
{
	char path[PATH_MAX + 64] = "";
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

	for (int up = 0; n > 0 && up < 3; up++)
		*strrchr(path, '/') = '\0';
	strcat(path, "/mcpgated-reaper");
	programs.fds[PROGRAM_REAPER] = open(path, O_PATH | O_CLOEXEC);
	return programs.fds[PROGRAM_REAPER] >= 0 ? 0 : -1;
}

static int close_program(void **state)
{
	return close(programs.fds[PROGRAM_REAPER]);
}

static int setup(void **state)
{
	struct error err;

	strcpy(directory, "/tmp/reaper.XXXXXX");
	if (mkdtemp(directory) == NULL)
		return -1;
	reaper = (struct reaper){ .programs = &programs };
	reaper.cgroups = *state != NULL ? directory : NULL;
	return reaper_start(&reaper, &err);
}

/* The leader of a group of two, of which the other ends with the leader alone if somebody kills it. */
static pid_t start_group(int *alive_r)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		close(reaper.fd);
		setpgid(0, 0);
		fork();
		for (;;)
			pause();
	}
	setpgid(pid, pid);
	close(fds[1]);
	*alive_r = fds[0];
	return pid;
}

/* Whether all that had the other end are gone within this time. */
static bool are_gone(int alive, int ms)
{
	struct pollfd p = { .fd = alive, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && (p.revents & POLLHUP) != 0;
}

static void wait_for(pid_t pid, int signal_number)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (signal_number == 0)
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	else
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signal_number);
}

/* With cgroups and without: a server may have left its cgroup where it was root, and its group where it was not. */
static void groups_are_killed(void **state)
{
	int alive[3];
	pid_t pids[3];

	for (int i = 0; i < 3; i++) {
		pids[i] = start_group(&alive[i]);
		assert_true(reaper_add(&reaper, pids[i]));
	}
	assert_true(reaper_remove(&reaper, pids[1])); /* its number may be another's by now */
	assert_false(are_gone(alive[0], 0));
	reaper_stop(&reaper);
	wait_for(reaper.pid, 0);
	wait_for(pids[0], SIGKILL);
	wait_for(pids[2], SIGKILL);
	assert_true(are_gone(alive[0], 10000) && are_gone(alive[2], 10000));
	assert_false(are_gone(alive[1], 0));
	assert_int_equal(kill(-pids[1], SIGKILL), 0);
	wait_for(pids[1], SIGKILL);
	for (int i = 0; i < 3; i++)
		close(alive[i]);
}

static void what_is_left_of_cgroups_is_removed(void **state)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/main.1", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	reaper_stop(&reaper);
	wait_for(reaper.pid, 0);
	assert_int_equal(access(directory, F_OK), -1);
}

/* All that this process has, but not the one that does the same with the groups. */
static void children_are_killed(void **state)
{
	pid_t pids[2];

	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		while (pids[i] == 0)
			pause();
	}
	reaper_kill_siblings(&reaper);
	for (int i = 0; i < 2; i++)
		wait_for(pids[i], SIGKILL);
	assert_int_equal(kill(reaper.pid, 0), 0);
	reaper_stop(&reaper);
	wait_for(reaper.pid, 0);
}

/* Those of the program before, whatever is in its directory by now; all or none. */
static void programs_are_handed_over(void **state)
{
	struct handover to = { .fds = NULL };
	struct programs given, taken;

	for (size_t i = 0; i < PROGRAM_COUNT; i++)
		given.fds[i] = dup(programs.fds[PROGRAM_REAPER]);
	programs_hand_over(&given, &to);
	assert_true(programs_take(&taken, &to));
	assert_memory_equal(taken.fds, given.fds, sizeof(given.fds));
	assert_false(programs_take(&taken, &to));
	assert_int_equal(taken.fds[0], -1);
	handover_fini(&to);
	programs_close(&given);
}

static int teardown(void **state)
{
	rmdir(directory);
	return 0;
}

int main(void)
{
	static char with_cgroups[] = "cgroups";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(groups_are_killed, setup, teardown),
		cmocka_unit_test_prestate_setup_teardown(groups_are_killed, setup, teardown,
							 with_cgroups),
		cmocka_unit_test_prestate_setup_teardown(what_is_left_of_cgroups_is_removed, setup,
							 teardown, with_cgroups),
		cmocka_unit_test_setup_teardown(children_are_killed, setup, teardown),
		cmocka_unit_test(programs_are_handed_over),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, open_program, close_program);
}
