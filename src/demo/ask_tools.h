/* SPDX-License-Identifier: Apache-2.0 */
/* The tools elicit, sample and roots, which ask the client. MCP elicitation, sampling, roots. */
#ifndef MCPGATED_DEMO_ASK_TOOLS_H
#define MCPGATED_DEMO_ASK_TOOLS_H

#include "demo/call.h"
#include "demo/server.h"

json_t *ask_tools_elicit(struct server *server, struct call *call, const json_t *args);
json_t *ask_tools_sample(struct server *server, struct call *call, const json_t *args);
json_t *ask_tools_roots(struct server *server, struct call *call, const json_t *args);

#endif
