/* SPDX-License-Identifier: Apache-2.0 */
/* The prompt greet{name} and the completion of its name. MCP prompts, completion. */
#ifndef MCPGATED_DEMO_PROMPTS_H
#define MCPGATED_DEMO_PROMPTS_H

#include "demo/call.h"
#include "demo/server.h"

json_t *prompts_list(struct server *server, struct call *call);
json_t *prompts_get(struct server *server, struct call *call);
json_t *prompts_complete(struct server *server, struct call *call);

#endif
