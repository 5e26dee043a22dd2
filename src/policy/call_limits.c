/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/call_limits.h"

#include "base/text.h"
#include "jsonrpc/scan.h"
#include "policy/operation.h"

/* Odd: no object lies there, so it is nobody else's. */
static const void *scope_of(uint64_t hash)
{
	return (const void *)(uintptr_t)(hash | 1);
}

static void set_scopes(struct call_limit *limit, uint64_t hash)
{
	const struct rate_rule *rate = &limit->rate;
	const uint64_t numbers[] = { rate->calls, rate->per_ms, rate->burst };

	limit->in_flight_scope = scope_of(hash);
	limit->rate_scope =
		scope_of(text_hash_part(hash, slice_of((const char *)numbers, sizeof(numbers))));
}

void call_limits_finish(struct call_limits *limits, struct slice server)
{
	uint64_t of_server = text_hash_part(0, server);

	set_scopes(&limits->all, of_server);
	for (size_t i = 0; i < limits->tools.count; i++) {
		struct tool_limit *tool = &limits->tools.items[i];
		uint64_t hash = of_server;

		for (size_t j = 0; j < tool->tools.written.count; j++)
			hash = text_hash_part(hash, tool->tools.written.items[j]);
		set_scopes(&tool->limit, hash);
		names_finish(&tool->tools);
	}
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
