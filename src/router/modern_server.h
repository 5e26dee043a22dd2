/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a modern server says, as legacy clients get it: without the members by which its results
 * describe themselves and without error codes that those clients do not know; and what tools return
 * is an object. bridging.md §2.2, §3 (8); BACK-MSG-05.
 */
#ifndef MCPGATED_ROUTER_MODERN_SERVER_H
#define MCPGATED_ROUTER_MODERN_SERVER_H

#include <stdbool.h>

#include "jsonrpc/scan.h"
#include "router/convert.h"

/*
 * Converts a response to a request of `method`. Returns `env` itself if nothing changes, else the
 * envelope of the changed response, which lives as long as *convert.
 */
const struct envelope *modern_server_response(struct convert *convert, const struct method *method,
					      const struct envelope *env);
/* A change notification without the id of the subscription that it came by. BACK-MSG-03 */
const struct envelope *modern_server_notification(struct convert *convert,
						  const struct envelope *env);
enum modern_result { MODERN_COMPLETE, MODERN_INPUT_REQUIRED, MODERN_TASK, MODERN_UNKNOWN };
/* The resultType of a result (JSON text). BACK-MSG-05 */
enum modern_result modern_server_kind(struct slice result);

#endif
