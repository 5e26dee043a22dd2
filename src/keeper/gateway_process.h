/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that runs the gateway: starting it, and deciding when to start it again. REL-43.
 *
 *	off -> running -> off …
 */
#ifndef MCPGATED_KEEPER_GATEWAY_PROCESS_H
#define MCPGATED_KEEPER_GATEWAY_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/check.h"
#include "base/error.h"
#include "keeper/programs.h"

/* After so many deaths within GATEWAY_DEATHS_WINDOW_MS it is still started again; one more ends the daemon. */
#define GATEWAY_DEATHS_MAX 5
#define GATEWAY_DEATHS_WINDOW_MS 60000

struct gateway_process {
	pid_t pid;                              /* 0: off */
	int fd;                                 /* our end of the connection, or -1 */
	uint64_t deaths_ms[GATEWAY_DEATHS_MAX]; /* the latest, a ring */
	size_t death_count;
	uint64_t restart_at_ms; /* while off: when to start it again */
};

/* What the new process begins with; all borrowed. */
struct gateway_process_conf {
	const struct programs *programs;
	int config;           /* a memory file: what config_print_for_gateway has written */
	int deny;             /* one of DENY_SNAPSHOT_FILE_BYTES */
	int seal;             /* one of SEAL_KEY_BYTES */
	int servers;          /* one of era_store_hand_over */
	int audit;            /* the end of a pipe; -1: there is none */
	int pins;             /* one of struct pin_memory_file */
	int log;              /* the end of a pipe */
	const int *listeners; /* -1: there is none */
	size_t listener_count;
};

/* Ready to be started, at once. */
void gateway_process_init(struct gateway_process *process);
/* Forks and executes it. In the child this does not return. */
int gateway_process_start(struct gateway_process *process, const struct gateway_process_conf *conf,
			  struct error *err) must_check;
/* It has been reaped: sets restart_at_ms; false if it has died too often. */
bool gateway_process_on_exit(struct gateway_process *process);

#endif
