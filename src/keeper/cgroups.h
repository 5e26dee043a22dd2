/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cgroup (version 2) for each process of a server: the kernel counts, limits and kills all processes in it
 * together, also those that have left the server's process group. Where no cgroups can be made there are none;
 * that is an error if the configuration has limits that need them. REL-30, SEC-62.
 */
#ifndef MCPGATED_KEEPER_CGROUPS_H
#define MCPGATED_KEEPER_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/error.h"
#include "base/list.h"
#include "config/config.h"

#define CGROUPS_RETRY_MS 50

struct cgroups {
	char *path;          /* the directory of all children's groups; NULL: there are none */
	int fd;              /* of that directory, or -1 */
	char *home;          /* where the daemon has moved to, or NULL */
	unsigned int kept;   /* controllers whose limits can be kept, a bit for each */
	uint64_t last;       /* number of the group made last */
	struct list leaving; /* groups to be removed in which a process is still ending */
};

/* Whether the configured limits can be kept where this process runs. Changes nothing. */
int cgroups_check(const struct config *config, struct error *err) must_check;

/*
 * Makes the directory of the groups. Fails only if a limit could not be kept; otherwise err is also
 * filled if there are no groups. The daemon's process may have moved to a group of its own: its other
 * processes must be forked afterwards.
 */
int cgroups_open(struct cgroups *cgroups, const struct config *config, struct error *err)
	must_check;
/* The same below a given group; for tests. */
int cgroups_open_at(struct cgroups *cgroups, const char *base, const struct config *config,
		    struct error *err) must_check;
/* Removes all that was made. All processes in the groups have ended. */
void cgroups_close(struct cgroups *cgroups);

/* Whether its limits can be kept: those of a kind that no server had at the start cannot, until the next start. */
bool cgroups_can_keep(const struct cgroups *cgroups, const struct config_server *server);
/* Whether the server has limits that need a group. */
bool cgroups_is_needed(const struct config_server *server);

/*
 * Makes a group with the server's limits. Returns its number (0: there are no groups), or -1 with
 * errno; *group_fd_r, its directory or -1, is the caller's.
 */
int64_t cgroups_make(struct cgroups *cgroups, const struct config_server *server, int *group_fd_r)
	must_check;
/*
 * Moves the calling process into it. Async-signal-safe. Takes some ten milliseconds, because the kernel waits until all
 * processors have seen it; a process that was made there (keeper/new_process.h) does without.
 */
int cgroups_join(int group_fd) must_check;
/* Kills all that is in the group. */
void cgroups_kill(const struct cgroups *cgroups, const struct config_server *server,
		  int64_t number);
/* The option whose limit the group has reached, like "resources.memory"; NULL: none that the kernel counts. */
const char *cgroups_limit_reached(const struct cgroups *cgroups, const struct config_server *server,
				  int64_t number);
/* Removes it, at once or, by cgroups_retry, when nothing is in it any more. */
void cgroups_remove(struct cgroups *cgroups, const struct config_server *server, int64_t number);
/* Returns whether there are still some to be removed: to be called again after CGROUPS_RETRY_MS. */
bool cgroups_retry(struct cgroups *cgroups);

/* Kills what is in the groups below that directory and removes them and it, in `ms` at most. */
void cgroups_sweep(const char *path, unsigned int ms);

#endif
