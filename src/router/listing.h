/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filters a server's lists to what a client may use, so that lists and calls agree. mcpgated.yaml(5).
 */
#ifndef MCPGATED_ROUTER_LISTING_H
#define MCPGATED_ROUTER_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "policy/permissions.h"
#include "process/server.h"
#include "router/convert.h"

struct call;

/*
 * The response to this call without the items that its caller may not use or see. As with
 * convert_response, returns `env` itself if nothing is left out, or else the envelope of the
 * changed response, which lives as long as *convert. NULL: clients could read a different list in
 * it than the one that was checked.
 */
const struct envelope *listing_filter(struct convert *convert, const struct call *call,
				      const struct envelope *env);

/* ---- tool series ---- */

/*
 * Which tools are counted by name (process/call_stats): those in their server's lists, as far as
 * there is room.
 */

/* Notes the tools in a result as the server wrote it; ignores methods other than tools/list. */
void tool_series_note(struct server *server, const struct method *method, struct slice result);

#endif
