/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often, and how many at once, each caller may call a server, and some of its tools. Pure: what was called is counted by
 * whoever asks. product.md §4
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
	uint64_t concurrency; /* in flight; 0: any number */
	/*
	 * What follows from that: under these what each caller has of it is counted (holder.h). They are the same in another
	 * configuration if the limit is, by the server's name and the tools as they are written; the one of the rate, if that is as well.
	 */
	const void *in_flight_scope;
	const void *rate_scope;
};

/* All the tools that fit are counted together. */
struct tool_limit {
	struct names tools;
	struct call_limit limit;
};

struct tool_limits {
	struct tool_limit *items;
	size_t count;
};

/* All zeros: none. */
struct call_limits {
	struct call_limit all; /* calls of the server, whatever they are */
	struct tool_limits tools;
};

/* Once the limits of the server of this name are there, and what that has made. */
void call_limits_finish(struct call_limits *limits, struct slice server);
void call_limits_free(struct call_limits *limits);

bool call_limits_are_set(const struct call_limits *limits) must_check;
/*
 * The limit of the tool that a message calls, besides `all`: of the first entry that fits. NULL: none, or it calls no tool.
 * A tool whose name cannot be compared is counted at the first entry.
 */
const struct call_limit *call_limits_of_tool(const struct call_limits *limits,
					     const struct envelope *env) must_check;

#endif
