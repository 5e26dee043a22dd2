/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often, and how many at once, each caller may call a server and individual tools of it. No
 * state: the caller of these functions counts calls. mcpgated.yaml(5)
 */
#ifndef MCPGATED_POLICY_CALL_LIMITS_H
#define MCPGATED_POLICY_CALL_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "policy/name.h"
#include "policy/rate.h"

struct envelope;

struct call_limit {
	struct rate_rule rate;
	uint64_t concurrency; /* maximum number of calls in flight; 0: unlimited */
	/*
	 * Derived: keys under which the usage of each caller is counted (holder.h). They stay the
	 * same in another configuration if the limit does, by the server's name and the tools as
	 * written; rate_scope also requires the same rate.
	 */
	const void *in_flight_scope;
	const void *rate_scope;
};

/* All matching tools are counted together. */
struct tool_limit {
	struct names tools;
	struct call_limit limit;
};

struct tool_limits {
	struct tool_limit *items;
	size_t count;
};

/* All zeros: no limits. */
struct call_limits {
	struct call_limit all; /* all calls to the server */
	struct tool_limits tools;
};

/*
 * Computes the derived members, once the limits of the server of this name are set;
 * call_limits_free frees them.
 */
void call_limits_finish(struct call_limits *limits, struct slice server);
void call_limits_free(struct call_limits *limits);

bool call_limits_are_set(const struct call_limits *limits) must_check;
/*
 * The limit for the tool that a message calls, in addition to `all`: that of the first matching
 * entry. NULL: none, or the message does not call a tool. A tool whose name cannot be compared
 * counts under the first entry.
 */
const struct call_limit *call_limits_of_tool(const struct call_limits *limits,
					     const struct envelope *env) must_check;

#endif
