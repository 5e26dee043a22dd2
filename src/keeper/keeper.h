/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: the parent of all processes of the daemon. It opens the listeners and the log, runs the gateway in a
 * confined process of its own, starts and ends the servers' processes when the gateway asks, and makes sure that
 * none of them survives the daemon. architecture.md §1.
 */
#ifndef MCPGATED_KEEPER_KEEPER_H
#define MCPGATED_KEEPER_KEEPER_H

#include "config/config.h"
#include "keeper/programs.h"

/*
 * Runs the daemon until SIGTERM or SIGINT, or until it cannot go on. To be called once, in a process
 * with one thread and no children. Returns the exit code: 0 after a stop that was asked for, else 1.
 *
 * config    a reload replaces it; what is in use at the end is the caller's to free
 * request   what it was loaded with and is loaded with again; NULL: a reload does not read it
 */
int keeper_run(struct config **config, const struct config_request *request,
	       const struct programs *programs) must_check;

#endif
