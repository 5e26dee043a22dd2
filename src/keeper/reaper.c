/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper's side of it. One number a record: the group, negative when it has ended. Records are written whole (they
 * are far below PIPE_BUF), so they are read whole. The child itself reports its group before it executes
 * anything, so the reaper knows each group before there can be anything in it to kill.
 */
#include "keeper/reaper.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define PIPE_BYTES (1 << 20)

int reaper_start(struct reaper *reaper, struct error *err)
{
	int fds[2];

	CHECK(reaper->pid == 0);
	reaper->fd = -1;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_set_errno(err, "pipe");
	fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES); /* as much as it may: best effort */
	/* A reader of the daemon's outputs must see their end when the daemon ends: it gets nothing but its pipe. */
	reaper->pid =
		programs_start(reaper->programs, PROGRAM_REAPER, reaper->cgroups, fds, 1, err);
	close(fds[0]);
	if (reaper->pid < 0) {
		close(fds[1]);
		reaper->pid = 0;
		return -1;
	}
	reaper->fd = fds[1];
	return 0;
}

static bool reaper_tell(const struct reaper *reaper, int32_t record)
{
	return write(reaper->fd, &record, sizeof(record)) == (ssize_t)sizeof(record);
}

bool reaper_add(const struct reaper *reaper, pid_t group)
{
	return reaper_tell(reaper, group);
}

bool reaper_remove(const struct reaper *reaper, pid_t group)
{
	CHECK(group > 0);
	return reaper_tell(reaper, -group);
}

void reaper_stop(struct reaper *reaper)
{
	if (reaper->fd >= 0)
		close(reaper->fd);
	reaper->fd = -1;
}

void reaper_kill_siblings(const struct reaper *reaper)
{
	char path[64];
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", gettid());
	file = fopen(path, "re");
	if (file == NULL)
		return; /* no /proc: the groups have been killed, which is nearly all */
	while (fscanf(file, "%d", &pid) == 1) {
		if (pid != reaper->pid)
			kill(pid, SIGKILL);
	}
	fclose(file);
}
