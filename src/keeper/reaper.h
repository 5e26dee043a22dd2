/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reaper (mcpgated-reaper): a tiny program that briefly outlives the keeper. It knows the
 * children's process groups, and kills them and removes their cgroups if the keeper is gone without
 * having done so itself (`kill -9`). The kernel's parent-death signal reaches only the children,
 * not what they have started. BACK-PROC-03, REL-43.
 */
#ifndef MCPGATED_KEEPER_REAPER_H
#define MCPGATED_KEEPER_REAPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/check.h"
#include "base/error.h"
#include "keeper/programs.h"

struct reaper {
	const struct programs *programs; /* borrowed */
	const char *cgroups; /* the parent directory of the children's cgroups, or NULL; borrowed */
	int fd;              /* our end of its pipe, which closes with the keeper; -1: no reaper */
	pid_t pid;
};

/*
 * Starts it with reaper->programs and reaper->cgroups. It ends with the keeper or with reaper_stop.
 */
int reaper_start(struct reaper *reaper, struct error *err) must_check;
/*
 * Adds a group to kill; removes one that has ended. Async-signal-safe; false: the reaper cannot be
 * told.
 */
bool reaper_add(const struct reaper *reaper, pid_t group);
bool reaper_remove(const struct reaper *reaper, pid_t group);
/* Makes it kill the groups that it knows and exit; the caller reaps it. */
void reaper_stop(struct reaper *reaper);
/* Kills all other children of this process, including adopted ones. */
void reaper_kill_siblings(const struct reaper *reaper);

#endif
