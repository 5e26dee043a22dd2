/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One number a record: the group, negative when it has ended. Records are written whole (they are far
 * below PIPE_BUF), so they are read whole. The child itself reports its group before it executes
 * anything, so the reaper knows each group before there can be anything in it to kill.
 */
#include "keeper/reaper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "keeper/cgroups.h"
#include "keeper/descriptors.h"

#define RECORDS_PER_READ 256
#define PIPE_BYTES (1 << 20)
#define SWEEP_MS 3000

struct groups {
	int32_t *items;
	size_t count;
	size_t size;
};

static void groups_add(struct groups *groups, int32_t group)
{
	CHECK(group > 0 && groups->count <= groups->size);
	if (groups->count == groups->size) {
		groups->size = groups->size * 2 + 64;
		groups->items = mem_resize(groups->items, groups->size * sizeof(*groups->items));
	}
	groups->items[groups->count++] = group;
}

/* The same group may have been added twice: by the child, and by a keeper that replaced its reaper. */
static void groups_remove(struct groups *groups, int32_t group)
{
	for (size_t i = groups->count; i-- > 0;) {
		if (groups->items[i] == group)
			groups->items[i] = groups->items[--groups->count];
	}
}

static void reaper_read_until_end(int fd, struct groups *groups)
{
	int32_t records[RECORDS_PER_READ];
	ssize_t n;

	while ((n = read(fd, records, sizeof(records))) != 0) {
		if (n < 0 && errno != EINTR)
			return;
		for (ssize_t i = 0; i < n / (ssize_t)sizeof(*records); i++) {
			if (records[i] > 0)
				groups_add(groups, records[i]);
			else
				groups_remove(groups, -records[i]);
		}
	}
}

/* Runs in the reaper. Signals that stop the daemon must not stop it: it ends when its pipe ends. */
static void reaper_main(int fd, const char *cgroups)
{
	static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE };
	struct groups groups = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	prctl(PR_SET_NAME, "mcpgated-guard");
	setsid();
	if (fd != STDIN_FILENO)
		dup2(fd, STDIN_FILENO);
	fcntl(STDIN_FILENO, F_SETFL, O_RDONLY); /* blocking: the reaper does nothing else */
	/* A reader of the daemon's outputs must see their end when the daemon ends. */
	descriptors_close_from(STDOUT_FILENO);
	reaper_read_until_end(STDIN_FILENO, &groups);
	for (size_t i = 0; i < groups.count; i++)
		kill(-groups.items[i], SIGKILL);
	if (cgroups != NULL)
		cgroups_sweep(cgroups, SWEEP_MS);
	_exit(0);
}

int reaper_start(struct reaper *reaper, struct error *err)
{
	int fds[2];

	CHECK(reaper->pid == 0);
	reaper->fd = -1;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_set_errno(err, "pipe");
	fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES); /* as much as it may: best effort */
	reaper->pid = fork();
	if (reaper->pid == 0)
		reaper_main(fds[0], reaper->cgroups);
	close(fds[0]);
	if (reaper->pid < 0) {
		close(fds[1]);
		reaper->pid = 0;
		return error_set_errno(err, "fork");
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
