/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who connects to the admin socket: the operator, or a process that a server has started. One that runs as the
 * daemon's user could open the socket, too, and would then control the other servers. SEC-17
 */
#ifndef MCPGATED_KEEPER_OPERATOR_H
#define MCPGATED_KEEPER_OPERATOR_H

#include <stdbool.h>

#include "keeper/launch.h"

/*
 * Whether the process that has connected this unix socket may be the operator: this process, which is the subreaper
 * of all that the servers start, is not among its ancestors. Whoever has ended since is nobody.
 */
bool operator_may_be(const struct launch *launch, int fd);

#endif
