/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execveat(2) on what was opened at the start. REL-32, SEC-60.
 *
 * What runs in the new process (become) runs in this one's memory: keeper/new_process.h.
 */
#include "keeper/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "keeper/descriptors.h"
#include "keeper/new_process.h"

#define FDS_MAX 4096 /* the listeners of a configuration, and a few */

static const char *const names[] = {
	[PROGRAM_GATEWAY] = "mcpgated-gateway",
	[PROGRAM_FETCHER] = "mcpgated-fetch",
	[PROGRAM_REAPER] = "mcpgated-reaper",
};

/* The directory of the running program; "" where there is no /proc. */
static void find_own_directory(char path_r[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path_r, PATH_MAX - 1);

	char *end;

	path_r[n > 0 ? n : 0] = '\0';
	end = strrchr(path_r, '/');
	if (end != NULL)
		*end = '\0';
}

static int open_program(const char *directory, const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? open(path, O_PATH | O_CLOEXEC) :
								  -1;
}

int programs_open(struct programs *programs_r, struct error *err)
{
	char beside[PATH_MAX];

	find_own_directory(beside);
	for (size_t i = 0; i < PROGRAM_COUNT; i++)
		programs_r->fds[i] = -1;
	for (size_t i = 0; i < PROGRAM_COUNT; i++) {
		int *fd = &programs_r->fds[i];

		if (beside[0] != '\0')
			*fd = open_program(beside, names[i]);
		if (*fd < 0)
			*fd = open_program(LIBEXECDIR, names[i]);
		if (*fd < 0) {
			error_set_errno(err,
					"cannot open the program %s, neither in %.100s nor in %s",
					names[i], beside, LIBEXECDIR);
			programs_close(programs_r);
			return -1;
		}
	}
	return 0;
}

char **programs_find(const char *name)
{
	char beside[PATH_MAX];
	char **paths = mem_zalloc(3 * sizeof(*paths));
	size_t count = 0;

	find_own_directory(beside);
	if (beside[0] != '\0')
		paths[count++] = mem_printf("%s/%s", beside, name);
	paths[count++] = mem_printf("%s/%s", LIBEXECDIR, name);
	return paths;
}

void programs_close(struct programs *programs)
{
	for (size_t i = 0; i < PROGRAM_COUNT; i++) {
		if (programs->fds[i] >= 0)
			close(programs->fds[i]);
		programs->fds[i] = -1;
	}
}

/* The sanitizers of a test build are configured by the environment. */
static char **environment(void)
{
	static char *kept[8];
#ifdef __SANITIZE_ADDRESS__
	size_t count = 0;

	for (char **p = environ; *p != NULL && count < ARRAY_LEN(kept) - 1; p++)
		if (strstr(*p, "SAN_OPTIONS=") != NULL)
			kept[count++] = *p;
#endif
	return kept;
}

struct start {
	struct new_process process;
	int program_fd;
	bool keeps_blocked; /* signals, those that this process has blocked for it */
	char **argv;
	char **envp;
	const int *fds;
	size_t count;
};

static void become(const struct new_process *process)
{
	const struct start *start = container_of(process, const struct start, process);
	size_t count = start->count;
	int places[FDS_MAX];
	sigset_t none;

	setsid();
	sigemptyset(&none);
	if (!start->keeps_blocked)
		sigprocmask(SIG_SETMASK, &none, NULL);
	memcpy(places, start->fds, count * sizeof(*places));
	places[count] = start->program_fd;
	if (descriptors_arrange(places, count + 1) == 0 &&
	    fcntl((int)count, F_SETFD, FD_CLOEXEC) == 0)
		execveat((int)count, "", start->argv, start->envp, AT_EMPTY_PATH);
	_exit(127);
}

pid_t programs_start(const struct programs *programs, enum program program, const char *argument,
		     const int *fds, size_t count, struct error *err)
{
	char *argv[] = { (char *)(uintptr_t)names[program], (char *)(uintptr_t)argument, NULL };
	struct start start = {
		.process = { .run = become, .shares_memory = true, .cgroup_fd = -1 },
		.program_fd = programs->fds[program],
		/* Until it ignores those that stop the daemon they must not reach it. */
		.keeps_blocked = program == PROGRAM_REAPER,
		.argv = argv,
		.envp = environment(),
		.fds = fds,
		.count = count,
	};
	pid_t pid;

	CHECK(count < FDS_MAX && start.program_fd >= 0);
	pid = new_process_make(&start.process);
	return pid > 0 ? pid : error_set_errno(err, "fork");
}
