/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who connects to the admin socket: the operator, or a process that a server has started. The
 * latter could also open the socket if it runs as the daemon's user, and would then control the
 * other servers. SEC-17
 */
#ifndef MCPGATED_KEEPER_OPERATOR_H
#define MCPGATED_KEEPER_OPERATOR_H

#include <stdbool.h>

#include "keeper/launch.h"
#include "keeper/server_slots.h"

/*
 * Whether the process that connected this unix socket may be the operator, i.e. this process, the
 * subreaper of everything that servers start, is not among its ancestors. False if it has exited
 * since.
 */
bool operator_may_be(const struct server_slots *slots, const struct launch *launch, int fd);

#endif
