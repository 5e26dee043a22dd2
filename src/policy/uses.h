/* SPDX-License-Identifier: Apache-2.0 */
/* Which tool, prompt or resource of its server a client's message uses. SEC-50. */
#ifndef MCPGATED_POLICY_USES_H
#define MCPGATED_POLICY_USES_H

#include "jsonrpc/scan.h"
#include "policy/permissions.h"

/* Called with a name as written in JSON. Returns false to stop. */
typedef bool uses_visit_fn(enum permission_kind kind, struct json name, void *arg);

/*
 * Visits the names in tool calls, prompts, resource reads and subscriptions, and completions:
 * everything in the message that a server could take for a name. A method that only looks like one
 * of these (compared as tool names are) is treated as one.
 *
 * Returns NULL; or, if a visit returned false or the params are not an object, what the message
 * uses: "tool", "prompt", "resource", "prompt or resource" for a completion, or "method" for a method
 * that is not a valid name. Where a name is missing, visits get JSON_ABSENT; but a completion without
 * `ref`, or with one that names nothing, uses nothing, and there is no visit.
 */
const char *uses_visit(const struct envelope *env, uses_visit_fn *visit, void *arg) must_check;

#endif
