/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The confinement of the process that fetches: what it may do beyond the one that keeper_test looks
 * at, and that it may do no more. Each test confines a process of its own.
 */
#include "keeper/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/unit_test.h"
#include "obs/log.h"

/* Bits of the prisoner's exit status. */
enum {
	CONNECTS = 1,
	RESOLVES = 2,
	OPENS = 4,
	FORKS = 8,
	BINDS = 16,
	FAILS = 32,
	ASKS_SERVICES = 64
};

static int listener;
static struct sockaddr_in address = { .sin_family = AF_INET };

static void *resolve(void *arg)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;

	if (getaddrinfo("localhost", "443", &hints, &found) == 0)
		freeaddrinfo(found);
	*(int *)arg = found != NULL;
	return NULL;
}

/* By a unix socket, of which it would not need to know the path if there were nobody. */
static bool reaches_services(void)
{
	struct sockaddr_un nowhere = { .sun_family = AF_UNIX, .sun_path = "/nowhere" };
	socklen_t size = sizeof(nowhere);
	int pair[2];

	if (connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&nowhere, size) == 0 ||
	    errno == ENOENT)
		return true;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return true; /* which libcurl needs */
	return socketpair(AF_UNIX, SOCK_RAW | SOCK_CLOEXEC, 0, pair) == 0;
}

static int look_around(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in any = { .sin_family = AF_INET };
	int is_resolved = 0;
	pthread_t thread;
	int seen = 0;
	pid_t pid;

	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		seen |= CONNECTS;
	/* As libcurl does it. */
	if (pthread_create(&thread, NULL, resolve, &is_resolved) != 0 ||
	    pthread_join(thread, NULL) != 0)
		seen |= FAILS;
	if (is_resolved)
		seen |= RESOLVES;
	if (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0 || open("/", O_RDONLY | O_CLOEXEC) >= 0)
		seen |= OPENS;
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		seen |= FORKS;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* Without an address the kernel chooses a port. */
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0 || listen(fd, 1) == 0)
		seen |= BINDS;
	if (reaches_services())
		seen |= ASKS_SERVICES;
	return seen;
}

static char text[4096]; /* what it has logged */

/* What a process confined so can do. is_locked_r: whether the kernel has Landlock. */
static int confined(bool fetches, bool *is_locked_r)
{
	int status;
	int fds[2];
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		log_set(fds[1], LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
		confine_apply(fetches);
		_exit(look_around());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	memset(text, 0, sizeof(text));
	n = read(fds[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	close(fds[0]);
	close(fds[1]);
	*is_locked_r = strstr(text, "measure=landlock state=on") != NULL;
	assert_non_null(strstr(text, "measure=seccomp state=on"));
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int expected(int seen, bool is_locked)
{
	return is_locked ? seen : seen | OPENS;
}

/* SEC-61, DEF-20, DEF-24 */
static void who_fetches_may_connect_and_resolve(void **state)
{
	bool is_locked;
	int seen = confined(true, &is_locked);

	assert_int_equal(seen, expected(CONNECTS | RESOLVES, is_locked));
}

/* It does not get beyond the first call. */
static void who_does_not_may_neither(void **state)
{
	bool is_locked;

	confined(false, &is_locked);
	assert_non_null(strstr(text, " gateway_forbidden call=socket number="));
}

/* In a child; a number for what is not as it should be. */
static int look_at_dumps(void)
{
	struct rlimit limit = { 1, 1 };

	/* Where root gives up its rights the kernel forbids dumps by itself. */
	if (getuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		return 1;
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return 2;
	log_set(-1, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	confine_apply(true);
	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		return 3;
	return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0 ? 0 : 4;
}

/* SEC-61: its memory is for nobody else of its user's, dead or alive. */
static void memory_is_its_own(void **state)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(look_at_dumps());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int set_up(void **state)
{
	socklen_t size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return bind(listener, (struct sockaddr *)&address, size) || listen(listener, 8) ||
	       getsockname(listener, (struct sockaddr *)&address, &size);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_fetches_may_connect_and_resolve),
		cmocka_unit_test(who_does_not_may_neither),
		cmocka_unit_test(memory_is_its_own),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, set_up, NULL);
}
