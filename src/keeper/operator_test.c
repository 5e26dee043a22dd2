/* SPDX-License-Identifier: Apache-2.0 */
/* This process is the keeper; whoever descends from it is not the operator. SEC-17. */
#include "keeper/children.c"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unit_test.h"

static const struct config config = { .server_count = 0 };
static const struct server_slots slots;
static const struct launch launch = { .config = &config }; /* no server has a user of its own */
static char path[64];
static int listener;
static int gate[2]; /* closed at its writing end: whoever has connected may end */

static int setup(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *tmp = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%.40s/operator.%d", tmp != NULL ? tmp : "/tmp", getpid());
	strcpy(address.sun_path, path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return prctl(PR_SET_CHILD_SUBREAPER, 1) || pipe2(gate, O_CLOEXEC) ||
	       bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 8);
}

static int teardown(void **state)
{
	if (gate[1] >= 0)
		close(gate[1]);
	while (waitpid(-1, NULL, 0) > 0)
		;
	close(gate[0]);
	close(listener);
	return unlink(path);
}

static int connect_to_keeper(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
}

/* In a child: connects, and stays until the test is over. */
static void connect_and_stay(void)
{
	char byte;

	close(gate[1]);
	if (connect_to_keeper() < 0)
		_exit(1);
	_exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);
}

/* Whether the next one who has connected may be the operator. */
static bool may_be(void)
{
	int fd = accept(listener, NULL, NULL);
	bool result;

	assert_true(fd >= 0);
	result = operator_may_be(&slots, &launch, fd);
	close(fd);
	return result;
}

static void who_does_not_descend_may_be(void **state)
{
	int fd = connect_to_keeper(); /* as anybody whose parents are not this process */

	assert_true(fd >= 0);
	assert_true(may_be());
	close(fd);
}

/* A keeper in a namespace of processes sees who is outside without a number. */
static void who_is_outside_of_its_namespace_may_be(void **state)
{
	int fd = connect_to_keeper();
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		pid_t inside;

		if (unshare(CLONE_NEWPID) < 0)
			_exit(2);
		inside = fork();
		if (inside == 0)
			_exit(may_be() ? 0 : 1);
		_exit(waitpid(inside, &status, 0) == inside && WIFEXITED(status) ?
			      WEXITSTATUS(status) :
			      1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(fd);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		skip(); /* root may */
	assert_int_equal(status, 0);
}

static void children_may_not(void **state)
{
	pid_t pid = fork();

	if (pid == 0)
		connect_and_stay();
	assert_true(pid > 0);
	assert_false(may_be());
}

/* The name stands in /proc/PID/stat before the parent's number, and says here that this is 1. */
static void names_do_not_mislead(void **state)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NAME, ") S 1 (x) S 1 ");
		connect_and_stay();
	}
	assert_true(pid > 0);
	assert_false(may_be());
}

static void orphans_may_not(void **state)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (fork() == 0) {
			setsid();
			connect_and_stay();
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(may_be());
}

/* More processes one below the other than are looked at. */
static void long_chains_may_not(void **state)
{
	char byte;

	for (int depth = 0; depth < 140; depth++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid > 0 && depth == 0) {
			assert_false(may_be());
			return;
		}
		if (pid > 0) {
			close(gate[1]);
			_exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);
		}
	}
	connect_and_stay();
}

/* Of whoever has gone nothing is known. */
static void who_has_ended_may_not(void **state)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(connect_to_keeper() >= 0 ? 0 : 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(may_be());
}

/* ---- where processes are hidden ---- */

enum { USER = 1000, OTHER = 1001 };

/* Server 0 has a user of its own, server 1 the daemon's, server 2 is not there any more. */
static void users_of_servers_are_known(void **state)
{
	static struct server_slot numbers[3];
	struct server_slots some = { .slots = numbers, .table.server_count = 3 };
	struct launch_spec specs[3] = { { .has_user = true, .uid = USER },
					{ .uid = OTHER },
					{ .has_user = true, .uid = OTHER } };
	const struct launch users = { .config = &config, .specs = specs };
	const struct ucred peer = { .pid = getpid(), .uid = USER },
			   other = { .pid = getpid(), .uid = OTHER };
	int status;
	pid_t pid;

	assert_false(is_user_of_a_server(&some, &users, USER));
	numbers[0].is_known = true;
	assert_true(is_user_of_a_server(&some, &users, USER));
	assert_false(is_user_of_a_server(&some, &users, OTHER));
	assert_false(is_user_of_a_server(&some, &users, geteuid()));
	numbers[1].is_known = true;
	assert_true(is_user_of_a_server(&some, &users, geteuid()));
	/* Who is hidden may be the operator, if no server has that user; an ancestor, if it cannot be signalled. */
	assert_false(may_hidden_be(&some, &users, &peer, getpid()));
	assert_true(may_hidden_be(&some, &users, &other, getpid()));
	assert_false(may_hidden_be(&some, &users, &other, getppid()));
	assert_false(may_hidden_be(&some, &users, &other, INT32_MAX)); /* it has ended */
	pid = fork();
	if (pid == 0) /* process 1 is another user's */
		_exit((getuid() == 0 && setuid(65534) < 0) ||
				      (kill(1, 0) < 0 && !may_hidden_be(&some, &users, &other, 1)) ?
			      1 :
			      0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A number counts for nothing without a process that is held. */
static void each_step_is_of_a_process_that_lives(void **state)
{
	struct process self = { getpid(), pidfd_open(getpid(), 0) }, parent = { .fd = -1 }, gone;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	gone = (struct process){ pid, pidfd_open(pid, 0) };
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(is_alive(&self));
	assert_false(is_alive(&gone));
	assert_false(is_alive(&parent));
	assert_int_equal(take_parent(&gone, &parent), STEP_CHANGED);
	assert_int_equal(take_parent(&(struct process){ getpid(), gone.fd }, &parent),
			 STEP_CHANGED);
	assert_int_equal(take_parent(&(struct process){ getpid(), -1 }, &parent), STEP_CHANGED);
	assert_int_equal(take_parent(&(struct process){ pid, self.fd }, &parent), STEP_HIDDEN);
	assert_int_equal(take_parent(&(struct process){ 1, self.fd }, &parent), STEP_TOP);
	if (getppid() > 1) {
		assert_int_equal(take_parent(&self, &parent), STEP_UP);
		assert_int_equal(parent.pid, getppid());
		assert_true(is_alive(&parent));
		close(parent.fd);
	}
	close(self.fd);
	close(gone.fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_does_not_descend_may_be),
		TEST(children_may_not),
		TEST(who_is_outside_of_its_namespace_may_be),
		TEST(names_do_not_mislead),
		TEST(orphans_may_not),
		TEST(long_chains_may_not),
		TEST(who_has_ended_may_not),
		TEST(users_of_servers_are_known),
		TEST(each_step_is_of_a_process_that_lives),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
