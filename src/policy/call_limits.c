/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/call_limits.h"

#include "jsonrpc/scan.h"
#include "policy/operation.h"

void call_limits_finish(struct call_limits *limits)
{
	for (size_t i = 0; i < limits->tools.count; i++)
		names_finish(&limits->tools.items[i].tools);
}

void call_limits_free(struct call_limits *limits)
{
	for (size_t i = 0; i < limits->tools.count; i++)
		names_free(&limits->tools.items[i].tools);
}

bool call_limits_are_set(const struct call_limits *limits)
{
	return limits->all.rate.calls > 0 || limits->all.concurrency > 0 || limits->tools.count > 0;
}

static const struct tool_limit *find(const struct tool_limits *limits, struct json name)
{
	const struct tool_limit *found = &limits->items[0];
	struct buf decoded = { 0 }, folded = { 0 };
	struct slice plain, form;

	if (scan_read_string(name, &decoded, &plain) == 0 &&
	    name_read_form(plain, &folded, &form) == NULL)
		while (found < limits->items + limits->count && !names_fit(&found->tools, form))
			found++;
	buf_fini(&decoded);
	buf_fini(&folded);
	return found;
}

const struct call_limit *call_limits_of_tool(const struct call_limits *limits,
					     const struct envelope *env)
{
	const struct tool_limit *found;

	if (limits->tools.count == 0 || operation_of(env) != OPERATION_TOOL)
		return NULL;
	found = find(&limits->tools, env->name);
	return found < limits->tools.items + limits->tools.count ? &found->limit : NULL;
}
