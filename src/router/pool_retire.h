/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of a server that a reload has retired: nobody will come to them. */
#ifndef MCPGATED_ROUTER_POOL_RETIRE_H
#define MCPGATED_ROUTER_POOL_RETIRE_H

#include "router/pool.h"

/* Of a shared pool without members, whose server is retired: its idle processes are stopped. Else nothing. */
void pool_close_idle(struct pool *pool);
/* The server has been retired: its pools look at the end of the turn what of them is needed. */
void pool_retire_all(struct router *router, const struct server *server);

#endif
