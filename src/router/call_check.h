/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is checked of an admitted call that only a list of its server can tell, before the call is
 * sent.
 *
 * With `pin: enforce`, a call of a tool or prompt is forwarded only once the list of the process that
 * gets it is known, as of its start and of its last reported change. Otherwise the gateway fetches
 * the list first, for a bounded time; without it the call is refused. SEC-66
 *
 * A tools/call is held against the schema of its tool, for two reasons. A modern front compares the
 * values that the schema says are mirrored in the request header; if the schema is not known, the
 * call continues. And if the operator wants arguments checked (tools.arguments.schema), they must
 * match, in either era; if the schema is not known, the call is refused. After a failed fetch, calls
 * do not try again for 5 s. MOD-HDR-04, -06, -07, SEC-59.
 */
#pragma once

#include "jsonrpc/scan.h"
#include "router/call.h"

/* The result of checking a tools/call against the schema of its tool. */
struct tool_verdict {
	const char *broken;  /* why the schema's annotations are ignored; or NULL */
	const char *refusal; /* why the call is refused; or NULL. Both are literals */
	int code;            /* of the refusal: one of enum mcp_error */
};

/*
 * Checks a linked call that waits for nothing, whose client's pool knows its servers: it continues
 * with on_passed, or ends, now or when the list has arrived.
 */
void call_check_begin(struct call *call, const struct envelope *env, call_checked_fn *on_passed);
/* The list has come that the call waited for, or will not (router->on_list). */
void call_check_on_list(struct call *call, const struct envelope *env, enum list_outcome outcome);
