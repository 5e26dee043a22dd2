/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: the parent of all processes of the daemon. It opens the listeners and the log, runs the gateway in a
 * confined process of its own, starts and ends the servers' processes when the gateway asks, and makes sure that
 * none of them survives the daemon. architecture.md §1.
 */
#ifndef MCPGATED_KEEPER_KEEPER_H
#define MCPGATED_KEEPER_KEEPER_H

#include <stddef.h>

#include "config/config.h"

/*
 * What runs in the gateway's process, after it has given up all rights that it does not need. `listeners`
 * are in the order of config->listen, non-blocking; LISTENERS_MORE others follow them, -1 where there is
 * none. keeper_fd speaks io/ipc.h. The log is set up; TERM, INT, HUP and PIPE are ignored: the keeper says
 * when to stop (IPC_DRAIN). The return value is the exit status of the process.
 */
enum listener_more { LISTENER_ADMIN, LISTENER_METRICS, LISTENERS_MORE };

typedef int keeper_gateway_fn(struct config *config, const int *listeners, size_t listener_count,
			      int keeper_fd);

/*
 * Runs the daemon until SIGTERM or SIGINT, or until it cannot go on. To be called once, in a process
 * with one thread and no children. Returns the exit code: 0 after a stop that was asked for, else 1.
 */
int keeper_run(struct config *config, keeper_gateway_fn *gateway_main);

#endif
