/* SPDX-License-Identifier: Apache-2.0 */
/* The pools of a server that a reload has retired: they get no new members. */
#ifndef MCPGATED_ROUTER_POOL_RETIRE_H
#define MCPGATED_ROUTER_POOL_RETIRE_H

#include "router/pool.h"

/*
 * Stops the idle processes of a shared pool without members whose server is retired. Else a no-op.
 */
void pool_close_idle(struct pool *pool);
/* The server has been retired: its pools check at the end of the turn what they still need. */
void pool_retire_all(struct router *router, const struct server *server);

#endif
