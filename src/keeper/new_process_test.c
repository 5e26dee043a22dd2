/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that share this one's memory, and such that have a copy; each ends or executes /bin/true. SEC-61. */
#include "keeper/new_process.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unit_test.h"
#include "config/config.h"
#include "keeper/cgroups.h"

static volatile int written;
static volatile sig_atomic_t handled;
static char place[512]; /* what the new process has read in /proc/self/cgroup */

/* Not in Valgrind, in some containers, and on processors for which it is not written. */
static bool has_clone3(void)
{
#ifdef __x86_64__
	return syscall(SYS_clone3, NULL, 0) < 0 && errno == EINVAL;
#else
	return false;
#endif
}

static int wait_for(pid_t pid)
{
	int status = -1;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void write_and_end(const struct new_process *process)
{
	written = 1;
	errno = EXDEV;
	_exit(7);
}

static void write_and_execute(const struct new_process *process)
{
	static char *const argv[] = { "true", NULL };

	written = 1;
	execve("/bin/true", argv, argv + 1);
	_exit(127);
}

static void only_what_is_asked_for_is_shared(void **state)
{
	static const bool shared[] = { true, false };

	for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
		struct new_process ends = { .run = write_and_end,
					    .shares_memory = shared[i],
					    .cgroup_fd = -1 };
		struct new_process executes = { .run = write_and_execute,
						.shares_memory = shared[i],
						.cgroup_fd = -1 };

		written = 0;
		assert_int_equal(WEXITSTATUS(wait_for(new_process_make(&ends))), 7);
		assert_int_equal(written, shared[i] && has_clone3());
		written = 0;
		assert_int_equal(wait_for(new_process_make(&executes)), 0);
		assert_int_equal(written, shared[i] && has_clone3());
	}
}

/* What this function has on its stack, and what is called next, have to be as if nobody had used the stack below. */
static void use_the_stack(unsigned char *bytes, int depth)
{
	unsigned char more[256];

	memset(more, depth, sizeof(more));
	for (size_t i = 0; i < sizeof(more); i++)
		bytes[i] = (unsigned char)(bytes[i] + more[i]);
	if (depth > 1)
		use_the_stack(more, depth - 1);
}

static void the_stack_is_whole_afterwards(void **state)
{
	struct new_process process = { .run = write_and_end,
				       .shares_memory = true,
				       .cgroup_fd = -1 };

	for (int i = 0; i < 1000; i++) {
		unsigned char bytes[256] = { 1 };

		wait_for(new_process_make(&process));
		use_the_stack(bytes, 40);
		assert_int_equal(bytes[0], 41);
		assert_int_equal(bytes[255], 40);
	}
}

static void on_signal(int number)
{
	handled++;
}

/* It is sent a signal that this program handles. */
static void signal_itself(const struct new_process *process)
{
	sigset_t blocked;

	kill(getpid(), SIGUSR1);
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	for (int i = 1; i < 32; i++)
		if (i != SIGKILL && i != SIGSTOP && sigismember(&blocked, i) != 1)
			_exit(1);
	if (!process->has_no_handlers)
		signal(SIGUSR1, SIG_DFL);
	sigemptyset(&blocked);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	_exit(2);
}

static void no_handler_runs_in_it(void **state)
{
	struct new_process process = { .run = signal_itself,
				       .shares_memory = true,
				       .cgroup_fd = -1 };
	sigset_t before, after;
	int status;

	signal(SIGUSR1, on_signal);
	sigemptyset(&before);
	sigaddset(&before, SIGHUP);
	sigprocmask(SIG_SETMASK, &before, NULL);
	handled = 0;
	status = wait_for(new_process_make(&process));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
	assert_int_equal(process.has_no_handlers, has_clone3());
	assert_int_equal(handled, 0);
	sigprocmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&after, SIGHUP), 1);
	assert_int_equal(sigismember(&after, SIGUSR1), 0);
	/* Here it is still handled. */
	raise(SIGUSR1);
	assert_int_equal(handled, 1);
	signal(SIGUSR1, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &before, NULL);
}

/* Leaves where it is in the memory, if that is shared. */
static void say_place(const struct new_process *process)
{
	char text[sizeof(place)] = "";
	int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		_exit(1);
	memcpy(place, text, sizeof(place));
	_exit(process->is_in_group && strstr(text, "/notes.1") == NULL ? 2 : 0);
}

static void it_begins_in_its_group(void **state)
{
	struct config_server server = { .conf.name = "notes", .enabled = true };
	struct config config = { .servers = &server, .server_count = 1 };
	struct new_process process = { .run = say_place, .shares_memory = true };
	struct error err = { ERROR_NONE, "" };
	struct cgroups cgroups;

	assert_int_equal(cgroups_open(&cgroups, &config, &err), 0);
	if (cgroups.path == NULL) {
		print_message("# no groups here: %s\n", err.text);
		assert_true(strlen(err.text) > 0);
		skip();
	}
	assert_int_equal(cgroups_make(&cgroups, &server, &process.cgroup_fd), 1);
	assert_int_equal(wait_for(new_process_make(&process)), 0);
	assert_int_equal(process.is_in_group, has_clone3());
	assert_int_equal(process.shares_memory, has_clone3());
	assert_int_equal(strstr(place, "/notes.1") != NULL, has_clone3());
	process.shares_memory = false;
	assert_int_equal(wait_for(new_process_make(&process)), 0);
	close(process.cgroup_fd);
	cgroups_remove(&cgroups, &server, 1);
	cgroups_close(&cgroups);
}

static void report_group(const struct new_process *process)
{
	_exit(process->is_in_group ? 1 : 5);
}

/* A directory that is no group stands for all that the kernel may refuse. */
static void what_the_kernel_refuses_is_left_to_fork(void **state)
{
	struct new_process process = { .run = report_group,
				       .shares_memory = true,
				       .cgroup_fd = open("/tmp", O_PATH | O_DIRECTORY) };

	assert_true(process.cgroup_fd >= 0);
	assert_int_equal(WEXITSTATUS(wait_for(new_process_make(&process))), 5);
	close(process.cgroup_fd);
}

static void a_start_leaves_dumpability_alone(void **state)
{
	struct new_process process = { .run = write_and_execute,
				       .shares_memory = true,
				       .cgroup_fd = -1 };

	assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0);
	assert_int_equal(wait_for(new_process_make(&process)), 0);
	assert_int_equal(prctl(PR_GET_DUMPABLE), 0);
	prctl(PR_SET_DUMPABLE, 1);
}

static void standard_streams_are_open_and_no_others(void **state)
{
	int first = dup(STDIN_FILENO);
	pid_t pid;

	close(first);
	pid = fork();
	if (pid == 0) {
		close(STDIN_FILENO);
		close(STDERR_FILENO);
		descriptors_fill_standard();
		_exit(write(STDERR_FILENO, "x", 1) != 1 || read(STDIN_FILENO, place, 1) != 0 ? 1 :
		      dup(STDIN_FILENO) != first                                             ? 2 :
											       0);
	}
	assert_int_equal(wait_for(pid), 0);
}

/* Older than Linux 5.11, or where a container does not know the call. */
static void descriptors_are_closed_without_ranges(void **state)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	pid_t pid;

	assert_int_equal(seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(close_range), 0),
			 0);
	pid = fork();
	if (pid == 0) {
		int fds[] = { dup(STDIN_FILENO), dup2(STDIN_FILENO, 100) };

		if (seccomp_load(filter) < 0)
			_exit(1);
		descriptors_set_cloexec();
		for (size_t i = 0; i < ARRAY_LEN(fds); i++)
			if (fcntl(fds[i], F_GETFD) != FD_CLOEXEC)
				_exit(2);
		descriptors_close_from((unsigned int)fds[0] + 1);
		_exit(fcntl(fds[0], F_GETFD) >= 0 && fcntl(fds[1], F_GETFD) < 0 ? 0 : 3);
	}
	assert_int_equal(wait_for(pid), 0);
	seccomp_release(filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_asked_for_is_shared),
		cmocka_unit_test(the_stack_is_whole_afterwards),
		cmocka_unit_test(no_handler_runs_in_it),
		cmocka_unit_test(it_begins_in_its_group),
		cmocka_unit_test(what_the_kernel_refuses_is_left_to_fork),
		cmocka_unit_test(a_start_leaves_dumpability_alone),
		cmocka_unit_test(standard_streams_are_open_and_no_others),
		cmocka_unit_test(descriptors_are_closed_without_ranges),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
