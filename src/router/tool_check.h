/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a tools/call against the schema of its tool before forwarding, for two reasons. A modern
 * front compares the values that the schema says are mirrored in the request header; if the schema
 * is not known, the call continues. And if the operator wants arguments checked
 * (tools.arguments.schema), they must match, in either era; if the schema is not known, the call is
 * refused.
 *
 * The schema is that of the cached list; if there is none, the list is fetched first. After a
 * failed fetch, calls do not try again for 5 s. MOD-HDR-04, -06, -07, SEC-59.
 */
#ifndef MCPGATED_ROUTER_TOOL_CHECK_H
#define MCPGATED_ROUTER_TOOL_CHECK_H

#include <stdbool.h>

#include "jsonrpc/scan.h"
#include "router/call.h"

/* The result of checking a tools/call against the schema of its tool. */
struct tool_verdict {
	const char *broken;  /* why the schema's annotations are ignored; or NULL */
	const char *refusal; /* why the call is refused; or NULL. Both are literals */
	int code;            /* of the refusal: one of enum mcp_error */
};

/* Called when no fault was found: the call continues with this request. */
typedef void tool_check_passed_fn(struct call *call, const struct envelope *env);

/* Whether this call has to be checked. */
bool tool_check_is_needed(const struct call *call);
/*
 * Checks such a linked call, whose client's pool knows its servers. It continues or ends, now or
 * later.
 */
void tool_check_begin(tool_check_passed_fn *on_passed, struct call *call,
		      const struct envelope *env);

#endif
