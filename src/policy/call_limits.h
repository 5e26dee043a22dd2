/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often, and how many at once, each caller may call a server and individual tools of it. The
 * caller of these functions counts calls in flight. mcpgated.yaml(5)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/list.h"
#include "base/map.h"
#include "base/tally.h"
#include "policy/name.h"

/* ---- token buckets ---- */

/*
 * Rate limits per caller: token buckets. Callers are identified, and refusals handled, in the
 * layers above. mcpgated.yaml(5)
 */

/* `calls` per `per_ms`, and up to `burst` at once after a pause. */
struct rate_rule {
	uint64_t calls; /* 0: unlimited */
	uint64_t per_ms;
	uint64_t burst; /* 0: the same as calls */
	bool is_shared; /* what other nodes of the cluster let through counts as well */
};

#define RATE_CALLERS_MAX 65536 /* beyond that, the least recently active is forgotten */

/* All zeros except `recent`; rate_set_init initializes it. Must not move. */
struct rate_set {
	struct map by_key;
	struct list recent; /* the caller that was active longest ago is first */
	size_t count;
	struct tally shared; /* microseconds taken from buckets whose rule is shared */
};

void rate_set_init(struct rate_set *set);
void rate_set_fini(struct rate_set *set);
/*
 * After how many milliseconds rate_take would succeed; 0: now. This counts as activity of the
 * caller.
 */
uint64_t rate_wait(struct rate_set *set, uint64_t key, const struct rate_rule *rule, size_t count,
		   uint64_t now_ms) must_check;
/*
 * Takes `count` calls from the bucket of `key` (a keyed hash of everything that distinguishes
 * callers, including the rule). Returns 0, or takes nothing and returns the number of milliseconds
 * after which to retry. A count larger than a full bucket is accepted when the bucket is full, and
 * the bucket then stays empty correspondingly longer: a batch is accepted as a whole or not at all.
 */
uint64_t rate_take(struct rate_set *set, uint64_t key, const struct rate_rule *rule, size_t count,
		   uint64_t now_ms) must_check;

/* ---- limits of a server and its tools ---- */

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
