/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another version of the program takes the place of this one in the same process, so that for systemd
 * the daemon goes on, and the processes of servers stay its children. The keeper has the new program
 * check the configuration; the gateway finishes its calls and exits; then the program is executed with
 * what it has to know: open sockets, memory files, and the processes of servers. If it cannot go on
 * with that, it executes the program before, which can.
 *
 *	idle -> checking -> handing over
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "keeper/handover.h"

/*
 * The first line of what is left has the number of the format, and the lowest number of a program that
 * can read it.
 */
#define HANDOVER_FORMAT 1
#define HANDOVER_LOWEST 1

#define UPGRADE_CHECK_MS 30000 /* what the new program gets to check the configuration */

struct upgrade {
	char **argv;            /* of this process, borrowed; NULL: there can be no upgrade */
	char **environment;     /* as it was at the start, and a free place */
	char program[PATH_MAX]; /* where the new one will be */
	struct handover from;   /* of the program before, until the first gateway serves */
	int file;               /* that it came in */
	bool is_back;           /* the new program could not go on: this is the one before again */
	bool is_checker;        /* this process checks, for the keeper, which is its parent */
	pid_t checker;          /* the process of the new program that checks; 0: none */
	int output;             /* its memory file */
	uint64_t order;         /* of the operator, by IPC_RELOAD */
	uint64_t check_by_ms;
};

/*
 * At the beginning of the program, before anything is read that is secret: notes how it was started,
 * and takes what the program before has left, with all descriptors close-on-exec again. Returns -1 if
 * that cannot be read: upgrade_fall_back.
 */
int upgrade_begin(struct upgrade *upgrade_r, char **argv) must_check;
/*
 * What was left cannot be used: executes the program before, with the same. Returns if there is none,
 * or if that is what this program is.
 */
void upgrade_fall_back(struct upgrade *upgrade);
void upgrade_fini(struct upgrade *upgrade);

/*
 * The new program begins to check the configuration. It gets these sockets, since the addresses are
 * not free.
 */
int upgrade_check(struct upgrade *upgrade, uint64_t order, const int *sockets, size_t count,
		  struct error *err) must_check;
/* What the checker prints if all is well: that it can take over. */
void upgrade_print_format(void);
/* Ends the check if it takes too long. Returns when to call it again; UINT64_MAX: no check runs. */
uint64_t upgrade_do_due(struct upgrade *upgrade);
/*
 * The checker was reaped, with this wait status. Returns whether the new program can take over, and
 * appends what it has said, as lines of the report of keeper/reload.h.
 */
bool upgrade_on_checked(struct upgrade *upgrade, int status, struct buf *report) must_check;
/* Executes the new program with this. Returns -1: it cannot be executed, and nothing has changed. */
int upgrade_execute(const struct upgrade *upgrade, struct handover *handover, struct error *err)
	must_check;
/* Whether the program before is still there. */
bool upgrade_can_go_back(const struct upgrade *upgrade);
/* Executes it, like that. */
int upgrade_go_back(const struct upgrade *upgrade, struct handover *handover, struct error *err)
	must_check;
