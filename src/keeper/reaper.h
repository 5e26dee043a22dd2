/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reaper (mcpgated-reaper): a tiny program that outlives the keeper by a moment. It knows the process
 * groups of the children, kills them and removes their cgroups when the keeper is gone without having done so itself
 * (`kill -9`). The kernel's parent-death signal reaches the children only, not what they have started.
 * BACK-PROC-03, REL-43.
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
	const char *cgroups; /* the directory of the children's cgroups, or NULL; borrowed */
	int fd; /* our end of its pipe, which closes with the keeper; -1: there is no reaper */
	pid_t pid;
};

/* Starts the reaper, with reaper->programs and reaper->cgroups as they are set. It ends when the keeper ends, or with reaper_stop. */
int reaper_start(struct reaper *reaper, struct error *err) must_check;
/* The group is to be killed, or has ended. Async-signal-safe; false if the reaper cannot be told. */
bool reaper_add(const struct reaper *reaper, pid_t group);
bool reaper_remove(const struct reaper *reaper, pid_t group);
/* It kills the groups that it knows and exits; waiting for it is the caller's. */
void reaper_stop(struct reaper *reaper);
/* Kills all other children of this process, adopted ones as well. */
void reaper_kill_siblings(const struct reaper *reaper);

#endif
