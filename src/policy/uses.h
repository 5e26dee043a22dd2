/* SPDX-License-Identifier: Apache-2.0 */
/* What a client's message uses of its server: which tool, prompt or resource. SEC-50. */
#ifndef MCPGATED_POLICY_USES_H
#define MCPGATED_POLICY_USES_H

#include "jsonrpc/scan.h"
#include "policy/permissions.h"

/* One name, as it is written in JSON. Returns false if that is enough. */
typedef bool uses_visit_fn(enum permission_kind kind, struct json name, void *arg);

/*
 * Visits the names in calls of tools, prompts, reads of and subscriptions to resources, completions: whatever in the message a
 * server could take for one. What only looks like such a method (as names of tools are compared) is taken for one.
 *
 * Returns NULL, or what the message uses if a visit was enough, or there is no name to be found: "tool", "prompt",
 * "resource", "prompt or resource" for a completion, "method" for a method that is no name.
 */
const char *uses_visit(const struct envelope *env, uses_visit_fn *visit, void *arg) must_check;

#endif
