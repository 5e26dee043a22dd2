/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's other programs. They are opened once, when it starts: what is installed later does not mix with what
 * runs. Each is executed anew, so that it has an address layout, libraries and memory of its own. SEC-61.
 */
#ifndef MCPGATED_KEEPER_PROGRAMS_H
#define MCPGATED_KEEPER_PROGRAMS_H

#include <stddef.h>

#include "base/check.h"
#include "base/error.h"

enum program { PROGRAM_GATEWAY, PROGRAM_FETCHER, PROGRAM_REAPER, PROGRAM_COUNT };

struct programs {
	int fds[PROGRAM_COUNT]; /* close-on-exec */
};

/*
 * Opens all of them: beside the running program (in a build), else in libexecdir/mcpgated. Returns 0, or -1 with
 * nothing open; the text names what is missing and where.
 */
int programs_open(struct programs *programs_r, struct error *err) must_check;
void programs_close(struct programs *programs);
/*
 * Becomes the program, in a process that was forked for it: fds[i] as its descriptor i (-1: it has none there) and no
 * others; `argument` (or NULL) alone, and no environment. Sorts nothing out in memory, so the caller may have forked
 * from anywhere. Does not return: where the program cannot be executed, the process exits with 127.
 */
void programs_become(const struct programs *programs, enum program program, const char *argument,
		     const int *fds, size_t count) __attribute__((noreturn));

#endif
