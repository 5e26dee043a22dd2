/* SPDX-License-Identifier: Apache-2.0 */
/* The network process: creates all parts, connects them, and takes them down. */
#ifndef MCPGATED_GATEWAY_H
#define MCPGATED_GATEWAY_H

#include <stddef.h>

#include "config/config.h"

/* Once, before the keeper forks the first of these processes: what one of them leaves to the next. */
void gateway_prepare(void);
/*
 * Serves until the keeper says to stop. `config` is borrowed, its secrets may be gone; the listeners are
 * bound sockets; keeper_fd is one end of ipc_pair. Returns the exit status of the process.
 */
int gateway_main(struct config *config, const int *listeners, size_t listener_count, int keeper_fd);

#endif
