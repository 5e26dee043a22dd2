/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tools are counted by name (process/call_stats): those in their server's lists, as far as
 * there is room.
 */
#ifndef MCPGATED_ROUTER_TOOL_SERIES_H
#define MCPGATED_ROUTER_TOOL_SERIES_H

#include "base/slice.h"
#include "mcp/method.h"
#include "process/server.h"

/* Notes the tools in a result as the server wrote it; ignores methods other than tools/list. */
void tool_series_note(struct server *server, const struct method *method, struct slice result);

#endif
