/* SPDX-License-Identifier: Apache-2.0 */
/* This program executes itself: what one leaves comes to the next, and what it cannot read goes back to the one before. */
#include "keeper/upgrade.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unit_test.h"
#include "keeper/programs.h"

#define FINE 40
#define BACK 41
#define CHECKER 42
#define OLD_PATH "/where/the/one/before/was"

static char **own_argv;

/* ---- the next program ---- */

#define DEMAND(what)                          \
	do {                                  \
		if (!(what))                  \
			_exit(__LINE__ % 40); \
	} while (0)

static void take(struct upgrade *upgrade)
{
	struct handover *from = &upgrade->from;
	struct error err;
	const char *line;
	size_t at = 0;
	int fd;

	DEMAND(getenv("MCPGATED_HANDOVER") == NULL);
	line = handover_next(from, "word", &at);
	DEMAND(line != NULL && strcmp(line, "one two") == 0);
	line = handover_next(from, "word", &at);
	DEMAND(line != NULL && strcmp(line, "three") == 0);
	DEMAND(handover_next(from, "word", &at) == NULL);
	DEMAND(handover_take_memory(from, "none", 5, &err) == 0);
	DEMAND(handover_take_memory(from, "five", 6, &err) == -1);
	DEMAND(strstr(err.text, "another kind of memory for five") != NULL);
	fd = handover_take_memory(from, "five", 5, &err);
	DEMAND(fd > STDERR_FILENO && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	DEMAND(handover_take(from, fd) == -1);
	handover_fini(from);
	DEMAND(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	_exit(FINE);
}

/* Never returns. */
static void be_next(char **argv)
{
	struct upgrade upgrade;
	int result = upgrade_begin(&upgrade, argv);

	/* Servers of the same user cannot look into it. */
	DEMAND(prctl(PR_GET_DUMPABLE) == 0);
	if (upgrade.is_checker) {
		int number = 0;

		DEMAND(result == 0 && getenv("MCPGATED_HANDOVER") == NULL);
		DEMAND(prctl(PR_GET_PDEATHSIG, &number) == 0 && number == SIGKILL);
		_exit(CHECKER);
	}
	if (upgrade.is_back) {
		size_t at = 0;
		bool has_path = handover_next(&upgrade.from, "path", &at) != NULL;

		DEMAND((strcmp(upgrade.program, OLD_PATH) == 0) == has_path);
		at = 0;
		DEMAND(has_path == (handover_take_named(&upgrade.from, "program", "some") >= 0));
		_exit(BACK);
	}
	if (result < 0)
		upgrade_fall_back(&upgrade);
	DEMAND(result == 0);
	take(&upgrade);
}

/* ---- the program before ---- */

static int end_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void leave(struct handover *to)
{
	struct error err;
	int fd = memory_file_shared("five", 5, &err);

	handover_write(to, "word %s", "one two");
	handover_write(to, "memory %d %s", handover_give(to, fd), "five");
	handover_write(to, "word %s", "three");
	handover_write(to, "wordy %s", "no");
}

static void what_is_left_comes(void **state)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct handover to = { .fds = NULL };
		struct upgrade upgrade;
		struct error err;

		DEMAND(upgrade_begin(&upgrade, own_argv) == 0 && upgrade.from.text.len == 0);
		leave(&to);
		(void)!upgrade_execute(&upgrade, &to, &err);
		_exit(1);
	}
	assert_int_equal(end_of(pid), FINE);
}

/* Without an end no line of it is taken. */
static void what_is_not_whole_is_not_read(void **state)
{
	struct error err;
	int file = memory_file_sealed("handover", SLICE_LIT("old 0"), &err);
	char number[16];
	pid_t pid;

	snprintf(number, sizeof(number), "%d", file);
	pid = fork();
	if (pid == 0) {
		struct upgrade upgrade;

		setenv("MCPGATED_HANDOVER", number, 1);
		DEMAND(upgrade_begin(&upgrade, own_argv) == -1);
		DEMAND(upgrade.from.text.len == 0 && !upgrade_can_go_back(&upgrade));
		_exit(FINE);
	}
	assert_int_equal(end_of(pid), FINE);
	close(file);
}

/* The gateway of the new program has ended: the program that has handed over gets its own things back. */
static void the_program_before_goes_on(void **state)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct handover to = { .fds = NULL };
		struct upgrade upgrade;
		struct error err;
		int old = open("/proc/self/exe", O_PATH | O_CLOEXEC);

		DEMAND(upgrade_begin(&upgrade, own_argv) == 0);
		handover_write(&upgrade.from, "old %d", handover_give(&upgrade.from, old));
		handover_write(&upgrade.from, "path %s", OLD_PATH);
		handover_write(&upgrade.from, "program %d some",
			       handover_give(&upgrade.from, dup(old)));
		DEMAND(upgrade_can_go_back(&upgrade));
		(void)!upgrade_go_back(&upgrade, &to, &err);
		_exit(1);
	}
	assert_int_equal(end_of(pid), BACK);
}

/* Nothing has changed, so that it can go on, and try again. */
static void what_cannot_be_executed_leaves_all_as_it_was(void **state)
{
	int open_before = unit_test_descriptors(), count = 0;
	struct handover to = { .fds = NULL };
	struct upgrade upgrade;
	struct error err;

	assert_int_equal(upgrade_begin(&upgrade, own_argv), 0);
	while (upgrade.environment[count] != NULL)
		count++;
	strcpy(upgrade.program, "/no/such/program");
	for (int i = 0; i < 2; i++) {
		leave(&to);
		if (i == 1) /* more than any has */
			for (int j = 0; j < 8400; j++)
				handover_write(&to, "child %01000d", j);
		assert_int_equal(upgrade_execute(&upgrade, &to, &err), -1);
		assert_string_equal(err.text,
				    i == 0 ? "/no/such/program cannot be executed: No such file or "
					     "directory" :
					     "there are too many processes to hand over");
		assert_null(upgrade.environment[count]);
		assert_int_equal(fcntl(to.fds[0], F_GETFD), FD_CLOEXEC);
		to.fd_count = 1; /* what was given last is closed */
		handover_fini(&to);
		assert_int_equal(unit_test_descriptors(), open_before);
	}
	upgrade_fini(&upgrade);
}

/* Each once; what nobody took is closed. */
static void what_is_left_is_taken_once(void **state)
{
	struct handover from = { .fds = NULL }, copy = { .fds = NULL };
	int fds[4];

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = handover_give(&from, open("/dev/null", O_RDONLY | O_CLOEXEC));
	handover_write(&from, "x nonsense one");
	handover_write(&from, "x %d one", fds[3] + 100);
	handover_write(&from, "x %d one", fds[0]);
	handover_write(&from, "x %d one", fds[1]);
	handover_write(&from, "x %d two", fds[2]);
	handover_write(&from, "y %d one", fds[3]);
	handover_copy(&copy, &from, "x");
	assert_int_equal(copy.fd_count, 4);
	assert_int_equal(copy.fds[1], fds[0]);
	copy.fd_count = 0; /* they are those of `from` */
	assert_int_equal(handover_take_named(&copy, "y", "one"), -1);
	handover_fini(&copy);
	assert_int_equal(handover_take(&from, -1), -1);
	assert_int_equal(handover_take_named(&from, "x", "one"), fds[0]);
	assert_int_equal(handover_take_named(&from, "x", "one"), fds[1]);
	assert_int_equal(handover_take_named(&from, "x", "one"), -1);
	assert_int_equal(handover_take(&from, fds[2]), fds[2]);
	assert_int_equal(handover_take(&from, fds[2]), -1);
	handover_fini(&from);
	assert_int_equal(from.fd_count, 0);
	assert_int_equal(fcntl(fds[3], F_GETFD), -1);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(close(fds[i]), 0);
}

enum frame { FRAME_NONE, FRAME_CUT, FRAME_WHOLE };

static void put_line(struct buf *text, const char *line)
{
	buf_append(text, line, strlen(line) + 1);
}

/* What becomes of the program that gets a file with this line, and with what says where the program before is. */
static int run_with(const char *line, bool is_ended, bool is_sealed, enum frame frame)
{
	pid_t pid = fork();

	if (pid == 0) {
		int old = open("/proc/self/exe", O_PATH);
		int file = memfd_create("left", MFD_ALLOW_SEALING);
		struct buf text = { 0 };
		char number[32];

		put_line(&text, line);
		snprintf(number, sizeof(number), "old %d", old);
		if (frame != FRAME_NONE)
			put_line(&text, number);
		snprintf(number, sizeof(number), "fd %d", old);
		if (frame != FRAME_NONE)
			put_line(&text, number);
		if (frame != FRAME_CUT)
			put_line(&text, "end ");
		text.len -= !is_ended;
		DEMAND(write(file, text.data, text.len) == (ssize_t)text.len);
		if (is_sealed)
			DEMAND(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE) == 0);
		snprintf(number, sizeof(number), "%d", file);
		setenv("MCPGATED_HANDOVER", number, 1);
		execv("/proc/self/exe", own_argv);
		_exit(1);
	}
	return end_of(pid);
}

/* A newer program that the one before cannot have known, and what no program leaves. */
static void what_cannot_be_read_goes_back(void **state)
{
	assert_int_equal(run_with("mcpgated-handover 9 9 x", true, true, FRAME_WHOLE), BACK);
	assert_int_equal(run_with("mcpgated-handover 1 1 x", true, true, FRAME_CUT), BACK);
	assert_int_equal(run_with("nothing 1", true, true, FRAME_WHOLE), BACK);
	assert_true(run_with("mcpgated-handover 9 9 x", true, true, FRAME_NONE) < FINE);
	assert_true(run_with("mcpgated-handover 1 1 x", true, false, FRAME_WHOLE) < FINE);
	assert_true(run_with("mcpgated-handover 1 1 x", false, true, FRAME_WHOLE) < FINE);
}

/* ---- the check ---- */

static bool check_by(const char *script, struct buf *report)
{
	char *argv[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", NULL };
	char path[] = "/tmp/upgrade-test-XXXXXX";
	int file = mkstemp(path), status;
	struct upgrade upgrade;
	struct error err;
	bool is_fine;

	assert_true(file >= 0);
	assert_true(dprintf(file, "#!/bin/sh\n%s", script) > 0);
	assert_int_equal(fchmod(file, 0700), 0);
	close(file);
	assert_int_equal(upgrade_begin(&upgrade, argv), 0);
	snprintf(upgrade.program, sizeof(upgrade.program), "%s", path);
	assert_int_equal(upgrade_check(&upgrade, 7, (int[]){ -1, 50 }, 2, &err), 0);
	if (strstr(script, "sleep") != NULL) {
		assert_int_equal(upgrade_do_due(&upgrade), clock_now_ms() + UPGRADE_CHECK_MS);
		clock_freeze(clock_now_ms() + UPGRADE_CHECK_MS - 1);
		assert_int_equal(upgrade_do_due(&upgrade), clock_now_ms() + 1);
		clock_freeze(clock_now_ms() + 1);
		assert_true(upgrade_do_due(&upgrade) == UINT64_MAX);
	}
	assert_int_equal(waitpid(upgrade.checker, &status, 0), upgrade.checker);
	is_fine = upgrade_on_checked(&upgrade, status, report);
	assert_int_equal(upgrade.order, 7);
	upgrade_fini(&upgrade);
	unlink(path);
	return is_fine;
}

static void who_only_checks_takes_nothing(void **state)
{
	pid_t pid = fork();

	if (pid == 0) {
		setenv("MCPGATED_HANDOVER", "check", 1);
		execv("/proc/self/exe", own_argv);
		_exit(1);
	}
	assert_int_equal(end_of(pid), CHECKER);
}

static void a_program_that_is_not_there_checks_nothing(void **state)
{
	int open_before = unit_test_descriptors();
	struct upgrade upgrade;
	struct error err;

	assert_int_equal(upgrade_begin(&upgrade, own_argv), 0);
	strcpy(upgrade.program, "/no/such/program");
	handover_give(&upgrade.from, dup(STDIN_FILENO));
	assert_int_equal(upgrade_check(&upgrade, 1, NULL, 0, &err), -1);
	assert_string_equal(err.text, "/no/such/program: No such file or directory");
	assert_int_equal(upgrade.checker, 0);
	assert_int_equal(upgrade.output, -1);
	assert_int_equal(upgrade_do_due(&upgrade), UINT64_MAX);
	upgrade_fini(&upgrade);
	assert_int_equal(unit_test_descriptors(), open_before);
}

static void new_programs_are_asked(void **state)
{
	static const struct {
		const char *script;
		bool is_fine;
		const char *says;
	} rows[] = {
		{ "[ \"$1\" = -t ] && [ \"$MCPGATED_HANDOVER\" = check ] && echo mcpgated-handover 1",
		  true, "" },
		{ "echo mcpgated-handover 2; echo 'mcpgated: warning: odd' >&2", true,
		  "warning odd\n" },
		{ "echo mcpgated-handover 0", false, "is of a release that cannot take over" },
		{ "echo mcpgated: the configuration is fine", false,
		  "is of a release that cannot take over" },
		{ "echo mcpgated-handover 1; echo mcpgated: no >&2; exit 2", false, "error no\n" },
		{ "kill -9 $$", false, "was ended by signal 9" },
		{ "exec sleep 100", false, "was ended by signal 9" },
		/* With the same words, as after login, and with the sockets alone. */
		{ "[ $# = 2 ] && [ \"$2\" = -c ] && echo mcpgated-handover 1", true, "" },
		{ "while read -r key value; do case $key$value in SigBlk:0000000000000000) a=1;; "
		  "SigIgn:*[02468ace][!x][!x][!x]) b=1;; esac; done </proc/self/status; [ $a$b = 11 ] && "
		  "echo mcpgated-handover 1",
		  true, "" },
		{ "[ -e /proc/$$/fd/50 ] && [ ! -e /proc/$$/fd/51 ] && echo mcpgated-handover 1",
		  true, "" },
		{ "echo mcpgated-handover 1; echo; echo mcpgated: no >&2; exit 1", false,
		  "error no\n" },
	};
	const int open_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t blocked;

	for (int i = 50; i < 52; i++)
		assert_int_equal(fcntl(open_fd, F_DUPFD_CLOEXEC, i), i);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGHUP);
	assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, NULL), 0);
	signal(SIGPIPE, SIG_IGN);
	clock_freeze(1000);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf report = { 0 };

		assert_int_equal(check_by(rows[i].script, &report), rows[i].is_fine);
		assert_non_null(strstr(buf_terminate(&report), rows[i].says));
		if (rows[i].is_fine)
			assert_string_equal(report.data, rows[i].says);
		buf_fini(&report);
	}
	sigprocmask(SIG_UNBLOCK, &blocked, NULL);
	for (int i = 50; i < 52; i++)
		close(i);
	close(open_fd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_comes),
		cmocka_unit_test(what_is_not_whole_is_not_read),
		cmocka_unit_test(the_program_before_goes_on),
		cmocka_unit_test(what_cannot_be_read_goes_back),
		cmocka_unit_test(what_cannot_be_executed_leaves_all_as_it_was),
		cmocka_unit_test(what_is_left_is_taken_once),
		cmocka_unit_test(who_only_checks_takes_nothing),
		cmocka_unit_test(a_program_that_is_not_there_checks_nothing),
		cmocka_unit_test(new_programs_are_asked),
	};

	own_argv = argv;
	if (getenv("MCPGATED_HANDOVER") != NULL)
		be_next(argv);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
