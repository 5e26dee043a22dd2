/* SPDX-License-Identifier: Apache-2.0 */
/* The table of tools. MCP tools; sampling, elicitation and roots as their sender. */
#ifndef MCPGATED_DEMO_TOOLS_H
#define MCPGATED_DEMO_TOOLS_H

#include "demo/server.h"

json_t *tools_list(struct server *server, struct call *call);
json_t *tools_call(struct server *server, struct call *call);

/* A tool's result of one text, and one that says that the tool failed. Both take text. */
json_t *tool_text(json_t *text);
json_t *tool_error(json_t *text);
/* A string argument; NULL with an error of the call. */
const json_t *tool_string(struct call *call, const json_t *args, const char *name);

/* In asking.c: tools that ask the client something. */
json_t *tool_elicit(struct server *server, struct call *call, const json_t *args);
json_t *tool_sample(struct server *server, struct call *call, const json_t *args);
json_t *tool_roots(struct server *server, struct call *call, const json_t *args);

#endif
