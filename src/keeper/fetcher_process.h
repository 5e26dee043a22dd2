/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that fetches from issuers, and takes spans to the collector (mcpgated-fetch), where the configuration has
 * any. Each gateway has one of its
 * own, started after it, and gets the other end of its socket as a message. One that dies is replaced, after longer and
 * longer pauses; the daemon goes on meanwhile.
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
#include "keeper/log_relay.h"
#include "keeper/programs.h"

struct fetcher_process {
	const struct programs *programs;
	int config;      /* a memory file; -1: nothing to fetch, and all below does nothing */
	int gateway_fd;  /* of the gateway that it is for, borrowed; -1: there is none */
	int gateway_end; /* of the pair, until the gateway has it; else -1 */
	struct log_relay log_relay;
	pid_t pid; /* 0: off */
	bool is_stopped;
	unsigned int failures; /* in a row */
	uint64_t started_ms;
	uint64_t restart_at_ms;
};

int fetcher_process_init(struct fetcher_process *process, const struct config *config,
			 const struct programs *programs, struct error *err) must_check;
void fetcher_process_fini(struct fetcher_process *process);
/* The next one, which is started for the gateway that comes, has this configuration. -1: it cannot be written. */
int fetcher_process_renew(struct fetcher_process *process, const struct config *config,
			  struct error *err) must_check;

/* There is another gateway, or none (-1). The process of the one before is killed. */
void fetcher_process_set_gateway(struct fetcher_process *process, int gateway_fd);
/* Starts it if it is due; returns when it will be, or UINT64_MAX. */
uint64_t fetcher_process_do_due(struct fetcher_process *process);
/* It has been reaped. */
void fetcher_process_on_exit(struct fetcher_process *process, int status);

/* Sends the gateway its end, if it has not got it and the socket takes it. */
void fetcher_process_tell(struct fetcher_process *process);
bool fetcher_process_has_untold(const struct fetcher_process *process);

#endif
