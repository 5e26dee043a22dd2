/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that runs the gateway: starts it, and decides when to restart it. REL-43.
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

/*
 * It is restarted after up to this many deaths within GATEWAY_DEATHS_WINDOW_MS; one more ends the
 * daemon.
 */
#define GATEWAY_DEATHS_MAX 5
#define GATEWAY_DEATHS_WINDOW_MS 60000

struct gateway_process {
	pid_t pid;                              /* 0: off */
	int fd;                                 /* our end of the socket, or -1 */
	bool is_closed;                         /* its end is: nothing comes until it is reaped */
	uint64_t deaths_ms[GATEWAY_DEATHS_MAX]; /* the latest, as a ring */
	size_t death_count;
	uint64_t restart_at_ms; /* while off: when to restart it */
};

/* What the new process is given; all borrowed. */
struct gateway_process_conf {
	const struct programs *programs;
	int config;           /* a memory file written by config_print_for_gateway */
	int deny;             /* one of DENY_SNAPSHOT_FILE_BYTES */
	int seal;             /* one of SEAL_KEY_BYTES */
	int servers;          /* one from gateway_process_number_servers */
	int audit;            /* the end of a pipe; -1: none */
	int pins;             /* one of PIN_MEMORY_FILE_BYTES */
	int sessions;         /* one of KEPT_SESSIONS_FILE_BYTES */
	int log;              /* the end of a pipe */
	const int *listeners; /* -1: none */
	size_t listener_count;
};

/* It may be started at once. */
void gateway_process_init(struct gateway_process *process);
/*
 * Creates a memory file for a gateway: the numbers of the servers of its configuration. Returns a
 * descriptor, or -1.
 */
int gateway_process_number_servers(const uint32_t *numbers, size_t count, struct error *err)
	must_check;
/* Forks and executes it. Does not return in the child. */
int gateway_process_start(struct gateway_process *process, const struct gateway_process_conf *conf,
			  struct error *err) must_check;
/* It has been reaped: sets restart_at_ms. False: it has died too often. */
bool gateway_process_on_exit(struct gateway_process *process);

#endif
