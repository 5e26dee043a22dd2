/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that fetches from issuers and sends spans to the collector (mcpgated-fetch), if
 * either is configured. Each gateway has one of its own, started after it, and receives the other
 * end of its socket in a message. A process that dies is restarted after increasing delays; the
 * daemon continues meanwhile.
 *
 *	off -> running -> off …
 */
#ifndef MCPGATED_KEEPER_FETCHER_PROCESS_H
#define MCPGATED_KEEPER_FETCHER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/check.h"
#include "base/error.h"
#include "config/config.h"
#include "keeper/log_writer.h"
#include "keeper/programs.h"

/* What its program gets, and nothing else, not even an environment. 0 and 1 are the null device. */
enum fetcher_descriptor {
	FETCHER_LOG = 2,     /* a pipe to the keeper: log_writer.h */
	FETCHER_GATEWAY = 3, /* protocol: io/ipc.h */
	FETCHER_CONFIG = 4,  /* a memory file written by config_print_for_fetcher */
	FETCHER_DESCRIPTORS
};

struct fetcher_process {
	const struct programs *programs;
	int config;      /* a memory file; -1: no fetcher is needed, and all functions are no-ops */
	int gateway_fd;  /* of the gateway it serves, borrowed; -1: none */
	int gateway_end; /* of the socket pair, until the gateway has it; else -1 */
	struct log_relay log_relay;
	pid_t pid; /* 0: off */
	bool is_stopped;
	unsigned int failures; /* consecutive */
	uint64_t started_ms;
	uint64_t restart_at_ms;
};

int fetcher_process_init(struct fetcher_process *process, const struct config *config,
			 const struct programs *programs, struct error *err) must_check;
void fetcher_process_fini(struct fetcher_process *process);
/*
 * The process started for the next gateway will have this configuration. -1: the configuration
 * cannot be written.
 */
int fetcher_process_renew(struct fetcher_process *process, const struct config *config,
			  struct error *err) must_check;

/* There is another gateway, or none (-1). Kills the process of the previous one. */
void fetcher_process_set_gateway(struct fetcher_process *process, int gateway_fd);
/* Starts the process if due; returns when it will be, or UINT64_MAX. */
uint64_t fetcher_process_do_due(struct fetcher_process *process);
/* The process has been reaped. */
void fetcher_process_on_exit(struct fetcher_process *process, int status);

/* Sends the gateway its end, if it has not got it and the socket has room. */
void fetcher_process_tell(struct fetcher_process *process);
bool fetcher_process_has_untold(const struct fetcher_process *process);

#endif
