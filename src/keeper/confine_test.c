/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The confinement of the process that fetches: what it may do beyond the one that keeper_test looks
 * at, and that it may do no more. Each test confines a process of its own.
 */
#include "keeper/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/unit_test.h"
#include "obs/log.h"

#define NOBODY 65534

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

static bool has_ipv6; /* this machine, at all */

static int look_around(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in any = { .sin_family = AF_INET };
	int is_resolved = 0;
	pthread_t thread;
	int seen = 0;
	pid_t pid;

	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (has_ipv6 && socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0)
		seen |= FAILS;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		seen |= CONNECTS;
	/* As libcurl does it. */
	if (pthread_create(&thread, NULL, resolve, &is_resolved) != 0 ||
	    pthread_join(thread, NULL) != 0)
		seen |= FAILS;
	if (is_resolved)
		seen |= RESOLVES;
	if (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES ||
	    open("/", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
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
static int open_before; /* descriptors */

/* Without a look at any file. */
static int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Runs `look` in a process confined so; its exit status. What it logs is in `text`. */
static int confined(struct confinement what, int (*look)(void))
{
	int status;
	int fds[2];
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		log_set(fds[1], LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
		open_before = count_descriptors();
		confine_apply(&what);
		_exit(look());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	memset(text, 0, sizeof(text));
	n = read(fds[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	close(fds[0]);
	close(fds[1]);
	assert_non_null(strstr(text, "measure=seccomp state=on"));
	/* What the kernel has is used; without it nothing of this could be seen. */
	if (landlock_version() >= 1)
		assert_non_null(strstr(text, "measure=landlock state=on"));
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* SEC-61, DEF-20, DEF-24 */
static void who_fetches_may_connect_and_resolve(void **state)
{
	int seen = confined((struct confinement){ .fetches = true }, look_around);

	assert_int_equal(seen, CONNECTS | RESOLVES | (landlock_version() >= 1 ? 0 : OPENS));
}

/* Only to its port: what listens at another one is out of reach. */
static void who_has_one_port_connects_to_no_other(void **state)
{
	const uint16_t port = ntohs(address.sin_port);
	int expected = landlock_version() >= LANDLOCK_VERSION_NET ? 0 : CONNECTS;
	int opens = landlock_version() >= 1 ? 0 : OPENS;

	(void)state;
	assert_int_equal(confined((struct confinement){ .fetches = true, .port = port },
				  look_around),
			 CONNECTS | RESOLVES | opens);
	assert_int_equal(confined((struct confinement){ .fetches = true,
							.port = (uint16_t)(port ^ 1) },
				  look_around),
			 expected | RESOLVES | opens);
}

static const char *const read_by_resolvers[] = { "/etc/hosts", "/etc/nsswitch.conf" };

static int look_for_files(void)
{
	if (count_descriptors() != open_before)
		return 3;
	for (size_t i = 0; i < ARRAY_LEN(read_by_resolvers); i++)
		if (open(read_by_resolvers[i], O_RDONLY | O_CLOEXEC) < 0 && errno != ENOENT)
			return 1;
	return open("/proc/self/status", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES ? 0 : 2;
}

/* Of the files what names are looked for in, and no others; none of them is left open. */
static void who_fetches_reads_what_resolving_needs(void **state)
{
	if (landlock_version() < 1)
		skip();
	assert_int_equal(confined((struct confinement){ .fetches = true }, look_for_files), 0);
}

/* Their arguments are such that without the filter the kernel says something else than EPERM. */
static const struct {
	long number;
	long arguments[3];
} refused[] = {
	{ SYS_ptrace, { 0 } },
	{ SYS_process_vm_readv, { 0 } },
	{ SYS_process_vm_writev, { 0 } },
	{ SYS_pidfd_open, { INT_MAX } },
	{ SYS_pidfd_getfd, { -1 } },
	{ SYS_pidfd_send_signal, { -1 } },
	{ SYS_kill, { INT_MAX } },
	{ SYS_tkill, { INT_MAX } },
	{ SYS_tgkill, { INT_MAX, INT_MAX } },
	{ SYS_rt_sigqueueinfo, { INT_MAX } },
	{ SYS_kcmp, { INT_MAX, INT_MAX } },
	{ SYS_sched_setaffinity, { INT_MAX } },
	{ SYS_setpriority, { PRIO_PROCESS, INT_MAX } },
	{ SYS_prlimit64, { INT_MAX } },
	{ SYS_execve, { 0 } },
	{ SYS_execveat, { -1, 0 } },
	{ SYS_bind, { -1 } },
	{ SYS_listen, { -1 } },
	{ SYS_splice, { -1, 0, -1 } },
	{ SYS_tee, { -1, -1 } },
	{ SYS_vmsplice, { -1 } },
	{ SYS_sendfile, { -1, -1 } },
	{ SYS_shmget, { 0, 0 } },
	{ SYS_mq_open, { 0 } },
	{ SYS_keyctl, { -1 } },
	{ SYS_unshare, { 0 } },
	{ SYS_setns, { -1 } },
	{ SYS_io_uring_register, { -1 } },
	{ SYS_personality, { 0xffffffff } },
};

/* 0, or 1 + the place of the first that is let through. */
static int look_for_refusals(void)
{
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		const long *arguments = refused[i].arguments;

		if (syscall(refused[i].number, arguments[0], arguments[1], arguments[2], 0, 0, 0) >=
			    0 ||
		    errno != EPERM)
			return 1 + (int)i;
	}
	return 0;
}

/* SEC-61: it does nothing to other processes, executes nothing, and locks no pipe. */
static void who_fetches_does_nothing_else(void **state)
{
	int at = confined((struct confinement){ .fetches = true }, look_for_refusals);

	if (at > 0)
		fail_msg("system call %ld is let through", refused[at - 1].number);
}

/* It does not get beyond the first call. */
static void who_does_not_may_neither(void **state)
{
	confined((struct confinement){ .fetches = false }, look_around);
	assert_non_null(strstr(text, " gateway_forbidden call=socket number="));
}

static int exit_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* In a child; a number for what is not as it should be. */
static int look_at_dumps(void)
{
	struct rlimit limit = { 1, 1 };

	/* Where root gives up its rights the kernel forbids dumps by itself. */
	if (getuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return 1;
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return 2;
	log_set(-1, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	confine_apply(&(struct confinement){ .fetches = true });
	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		return 3;
	return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0 ? 0 : 4;
}

/* SEC-61: its memory is for nobody else of its user's, dead or alive. */
static void memory_is_its_own(void **state)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(look_at_dumps());
	assert_int_equal(exit_of(pid), 0);
}

/* ---- rights ---- */

static bool has_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, own) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if ((own[i].effective | own[i].permitted | own[i].inheritable) != 0)
			return true;
	for (int i = 0; i <= CAP_LAST_CAP; i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, i, 0, 0) == 1 ||
		    prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
			return true;
	return false;
}

static int look_for_capabilities(void)
{
	return has_capabilities() ? 1 : 0;
}

/* As a unit makes it with AmbientCapabilities=: not root, and with rights all the same. */
static int become_privileged_user(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3];

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0 ||
	    syscall(SYS_capget, &header, own) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		own[i].effective = own[i].inheritable = own[i].permitted;
	if (syscall(SYS_capset, &header, own) < 0)
		return -1;
	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_BIND_SERVICE, 0, 0);
}

/* SEC-61: also what the service manager granted; and what cannot be done is not said to be. */
static void rights_of_the_unit_are_given_up(void **state)
{
	pid_t pid;

	if (getuid() != 0)
		skip();
	pid = fork();
	if (pid == 0) {
		if (become_privileged_user() < 0 || !has_capabilities())
			_exit(9);
		_exit(confined((struct confinement){ .fetches = true }, look_for_capabilities) !=
				      0 ?
			      1 :
		      strstr(text, "measure=capabilities state=on") == NULL ? 2 :
		      strstr(text, "measure=user state=\"the daemon was not started as root\"") ==
				      NULL ?
									      3 :
									      0);
	}
	assert_int_equal(exit_of(pid), 0);
}

static int look_for_groups(void)
{
	return getgroups(0, NULL) == 0 && getuid() != 0 && geteuid() != 0 && setuid(0) < 0 ? 0 : 1;
}

/* SEC-61: groups that root was given beside its own, too. */
static void user_and_groups_are_given_up(void **state)
{
	static const gid_t groups[] = { 0, 4711 };
	pid_t pid;

	if (getuid() != 0)
		skip();
	pid = fork();
	if (pid == 0) {
		if (setgroups(ARRAY_LEN(groups), groups) < 0)
			_exit(9);
		_exit(confined((struct confinement){ .fetches = true }, look_for_groups));
	}
	assert_int_equal(exit_of(pid), 0);
}

static int set_up(void **state)
{
	socklen_t size = sizeof(address);

	listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	has_ipv6 = listener >= 0;
	if (has_ipv6)
		close(listener);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return bind(listener, (struct sockaddr *)&address, size) || listen(listener, 8) ||
	       getsockname(listener, (struct sockaddr *)&address, &size);
}

static int tear_down(void **state)
{
	return close(listener);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_fetches_may_connect_and_resolve),
		cmocka_unit_test(who_has_one_port_connects_to_no_other),
		cmocka_unit_test(who_fetches_reads_what_resolving_needs),
		cmocka_unit_test(who_fetches_does_nothing_else),
		cmocka_unit_test(who_does_not_may_neither),
		cmocka_unit_test(memory_is_its_own),
		cmocka_unit_test(rights_of_the_unit_are_given_up),
		cmocka_unit_test(user_and_groups_are_given_up),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
