/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cgroup (version 2) for each server process: the kernel accounts, limits and kills everything in
 * it together, including processes that have left the server's process group. Where cgroups cannot
 * be created there are none, which is an error if the configuration has limits that need them.
 * REL-30, SEC-62.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "base/list.h"
#include "config/config.h"

#define CGROUPS_RETRY_MS 50

struct cgroups {
	char *path;          /* the parent directory of all children's groups; NULL: no cgroups */
	int fd;              /* of that directory, or -1 */
	char *home;          /* the group the daemon moved into, or NULL */
	unsigned int kept;   /* bit mask of controllers whose limits can be enforced */
	uint64_t last;       /* number of the latest group */
	struct list leaving; /* groups to remove in which a process is still exiting */
};

/* Checks that the configured limits can be enforced where this process runs. Changes nothing. */
int cgroups_check(const struct config *config, struct error *err) must_check;

/*
 * Creates the parent directory. Fails only if a limit could not be enforced; otherwise, err is also
 * set if there are no cgroups. May move the calling process into a group of its own, so fork other
 * processes afterwards.
 */
int cgroups_open(struct cgroups *cgroups, const struct config *config, struct error *err)
	must_check;
/*
 * The same where the program before has done so, whose groups stay: `left` is its cgroups->last, its
 * reaper, which has to move as well, and its cgroups->path, with spaces between.
 */
int cgroups_take_over(struct cgroups *cgroups, const char *left, const struct config *config,
		      struct error *err) must_check;
/* The same below a given group; for tests. */
int cgroups_open_at(struct cgroups *cgroups, const char *base, const struct config *config,
		    struct error *err) must_check;
/* Removes everything that was created. All processes in the groups must have exited. */
void cgroups_close(struct cgroups *cgroups);

/*
 * Whether the server's limits can be enforced: limits of a kind that no server had at startup need
 * a restart.
 */
bool cgroups_can_keep(const struct cgroups *cgroups, const struct config_server *server);
/* Whether the server has limits that need a group. */
bool cgroups_is_needed(const struct config_server *server);

/*
 * Creates a group with the server's limits. Returns its number (0: there are no cgroups), or -1
 * with errno. The caller owns *group_fd_r, its directory or -1.
 */
int64_t cgroups_make(struct cgroups *cgroups, const struct config_server *server, int *group_fd_r)
	must_check;
/*
 * Moves the calling process into it. Async-signal-safe. Takes about ten milliseconds, because the
 * kernel waits until all CPUs have noticed; a process created inside the group
 * (keeper/new_process.h) avoids that.
 */
int cgroups_join(int group_fd) must_check;
/* Kills everything in the group. */
void cgroups_kill(const struct cgroups *cgroups, const struct config_server *server,
		  int64_t number);
/*
 * The option whose limit the group has reached, e.g. "resources.memory"; NULL: none that the kernel
 * counts.
 */
const char *cgroups_limit_reached(const struct cgroups *cgroups, const struct config_server *server,
				  int64_t number);
/* Removes the group: at once or, through cgroups_retry, when it is empty. */
void cgroups_remove(struct cgroups *cgroups, const struct config_server *server, int64_t number);
/* Returns whether groups are left to remove: call again after CGROUPS_RETRY_MS. */
bool cgroups_retry(struct cgroups *cgroups);

/* Kills everything in the groups below that directory and removes them and it, within `ms`. */
void cgroups_sweep(const char *path, unsigned int ms);
