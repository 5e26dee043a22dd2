/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's other programs. They are opened once, at startup, so that later installations do not
 * mix with what runs. Each is executed anew, to get its own address layout, libraries and memory.
 * SEC-61.
 */
#ifndef MCPGATED_KEEPER_PROGRAMS_H
#define MCPGATED_KEEPER_PROGRAMS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/check.h"
#include "base/error.h"

enum program { PROGRAM_GATEWAY, PROGRAM_FETCHER, PROGRAM_REAPER, PROGRAM_COUNT };

struct programs {
	int fds[PROGRAM_COUNT]; /* close-on-exec */
};

/*
 * Opens all of them: next to the running program (in a build), else in libexecdir/mcpgated. Returns
 * 0, or -1 with nothing open, and err says what is missing and where.
 */
int programs_open(struct programs *programs_r, struct error *err) must_check;
/*
 * Where a program of ours may be that is started by its path, as those of servers are: next to the
 * running program, and in libexecdir/mcpgated. A list that ends with NULL; the caller frees the
 * texts and the list.
 */
char **programs_find(const char *name) must_check;
void programs_close(struct programs *programs);
/*
 * Starts the program in a session of its own, without a terminal: with fds[i] as descriptor i (-1:
 * closed) and no others, with `argument` (or NULL) as the only argument, and no environment.
 * Returns its process id, or -1. A process that cannot execute the program exits with 127.
 */
pid_t programs_start(const struct programs *programs, enum program program, const char *argument,
		     const int *fds, size_t count, struct error *err) must_check;

#endif
