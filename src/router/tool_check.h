/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before a tools/call of the modern era goes on, its front holds it against the schema of its tool: what that says is to be
 * mirrored in the head must be there. The schema is that of the list that is kept; if none is, the list is fetched
 * first. Where the list cannot be had, or does not have the tool, the call goes on unchecked; where it could not be had,
 * the calls of the next 5 s do not ask for it. MOD-HDR-04, -06, -07.
 */
#ifndef MCPGATED_ROUTER_TOOL_CHECK_H
#define MCPGATED_ROUTER_TOOL_CHECK_H

#include "jsonrpc/scan.h"
#include "router/call.h"

struct tool_check;

/* Nothing is wrong with a call, as far as is known: it goes on, with this request. */
typedef void tool_check_passed_fn(struct call *call, const struct envelope *env);

/*
 * Checks the linked tools/call of a client that is a member of a pool that knows its servers, and whose front wants that.
 * It goes on or ends: now, and NULL is returned; or later, when the list is there, and the check is the caller's until
 * tool_check_end.
 */
struct tool_check *tool_check_begin(tool_check_passed_fn *on_passed, struct call *call,
				    const struct envelope *env);
/* Its call has ended. Accepts NULL; sets the caller's pointer to NULL. */
void tool_check_end(struct tool_check **check);

#endif
