/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcpgated-reaper [CGROUPS]: knows the groups that are running, and kills them and removes what is below CGROUPS when
 * the keeper has gone. reaper.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "keeper/cgroups.h"

#define RECORDS_PER_READ 256
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

/* Signals that stop the daemon must not stop it: it ends when its pipe, its standard input, ends. */
int main(int argc, char **argv)
{
	static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE };
	struct groups groups = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	prctl(PR_SET_NAME, "mcpgated-reaper");
	fcntl(STDIN_FILENO, F_SETFL, O_RDONLY); /* blocking: the reaper does nothing else */
	reaper_read_until_end(STDIN_FILENO, &groups);
	for (size_t i = 0; i < groups.count; i++)
		kill(-groups.items[i], SIGKILL);
	if (argc > 1)
		cgroups_sweep(argv[1], SWEEP_MS);
	free(groups.items);
	return 0;
}
