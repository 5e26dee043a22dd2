/* SPDX-License-Identifier: Apache-2.0 */
/* The table of tools. MCP tools. */
#ifndef MCPGATED_DEMO_TOOLS_H
#define MCPGATED_DEMO_TOOLS_H

#include "demo/call.h"
#include "demo/server.h"

json_t *tools_list(struct server *server, struct call *call);
json_t *tools_call(struct server *server, struct call *call);

#endif
