/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard: a tiny process that outlives the keeper by a moment. It knows the process groups of the
 * children, and kills them (and removes their cgroups) when the keeper has gone without doing so itself (`kill -9`). The death
 * signal of the kernel reaches children only, not what they have started. BACK-PROC-03, REL-43.
 */
#ifndef MCPGATED_KEEPER_GUARD_H
#define MCPGATED_KEEPER_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/check.h"
#include "base/error.h"

struct guard {
	const char *cgroups; /* the directory of the children's cgroups, or NULL; borrowed */
	int fd;              /* its end of the pipe closes with the keeper; -1: there is no guard */
	pid_t pid;
};

/* Forks the guard, with guard->cgroups as it is set. It ends when the keeper ends, or with guard_stop. */
int guard_start(struct guard *guard, struct error *err) must_check;
/* The group is to be killed, or has ended. Async-signal-safe; false if the guard cannot be told. */
bool guard_add(const struct guard *guard, pid_t group);
bool guard_remove(const struct guard *guard, pid_t group);
/* It kills the groups that it knows and exits; waiting for it is the caller's. */
void guard_stop(struct guard *guard);

#endif
