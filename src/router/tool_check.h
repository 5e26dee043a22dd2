/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before a tools/call goes on it is held against the schema of its tool, for two reasons. A front of the modern era has what
 * that says is to be mirrored in the head compared; where the schema is not known the call goes on. And where the operator
 * wants arguments to be checked (tools.arguments.schema) they must fit, in whatever era; there what is not known is refused.
 *
 * The schema is that of the list that is kept; if none is, the list is fetched first. Where it could not be had, the calls of
 * the next 5 s do not ask for it. MOD-HDR-04, -06, -07, SEC-59.
 */
#ifndef MCPGATED_ROUTER_TOOL_CHECK_H
#define MCPGATED_ROUTER_TOOL_CHECK_H

#include <stdbool.h>

#include "jsonrpc/scan.h"
#include "router/call.h"

/* Nothing is wrong with a call, as far as is known: it goes on, with this request. */
typedef void tool_check_passed_fn(struct call *call, const struct envelope *env);

/* Whether that is wanted of this call. */
bool tool_check_is_needed(const struct call *call);
/* Checks such a call, which is linked, and whose client's pool knows its servers. It goes on or ends, now or later. */
void tool_check_begin(tool_check_passed_fn *on_passed, struct call *call,
		      const struct envelope *env);

#endif
