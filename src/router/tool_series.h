/* SPDX-License-Identifier: Apache-2.0 */
/* Which tools are counted by name (process/call_stats): those that the lists of their server show, as far as there is room. */
#ifndef MCPGATED_ROUTER_TOOL_SERIES_H
#define MCPGATED_ROUTER_TOOL_SERIES_H

#include "base/slice.h"
#include "mcp/method.h"
#include "process/server.h"

/* A result of this method, as the server wrote it. Of other methods than tools/list nothing comes. */
void tool_series_note(struct server *server, const struct method *method, struct slice result);

#endif
