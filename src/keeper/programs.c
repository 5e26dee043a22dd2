/* SPDX-License-Identifier: Apache-2.0 */
/* execveat(2) on what was opened at the start. REL-32, SEC-60. */
#include "keeper/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "keeper/descriptors.h"

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

void programs_become(const struct programs *programs, enum program program, const char *argument,
		     const int *fds, size_t count)
{
	char *argv[] = { (char *)(uintptr_t)names[program], (char *)(uintptr_t)argument, NULL };
	int places[FDS_MAX];

	CHECK(count < FDS_MAX && programs->fds[program] >= 0);
	memcpy(places, fds, count * sizeof(*fds));
	places[count] = programs->fds[program];
	if (descriptors_arrange(places, count + 1) == 0 &&
	    fcntl((int)count, F_SETFD, FD_CLOEXEC) == 0)
		execveat((int)count, "", argv, environment(), AT_EMPTY_PATH);
	_exit(127);
}
