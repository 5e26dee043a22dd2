/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server of the modern era says, as older clients get it: what its results say of themselves, and codes of errors
 * that those clients do not know, are left out; what tools return is an object. bridging.md §2.2, §3 (8); BACK-MSG-05.
 */
#ifndef MCPGATED_ROUTER_MODERN_SERVER_H
#define MCPGATED_ROUTER_MODERN_SERVER_H

#include <stdbool.h>

#include "jsonrpc/scan.h"
#include "router/convert.h"

/*
 * Takes a response to a request of `method`. Returns `env` itself where nothing is to be changed, else the envelope of the
 * changed one, which lives as long as *convert.
 */
const struct envelope *modern_server_response(struct convert *convert, const struct method *method,
					      const struct envelope *env);
/* A change notification without the name of the subscription that it came by. BACK-MSG-03 */
const struct envelope *modern_server_notification(struct convert *convert,
						  const struct envelope *env);
enum modern_result { MODERN_COMPLETE, MODERN_INPUT_REQUIRED, MODERN_TASK, MODERN_UNKNOWN };
/* What a result (JSON text) says of itself: its resultType. BACK-MSG-05 */
enum modern_result modern_server_kind(struct slice result);

#endif
