/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a caller may make these calls now, by the limits of their server and of its tools (policy/call_limits). What is in
 * flight is counted by router/in_flight.
 */
#ifndef MCPGATED_ENDPOINT_CALL_LIMITS_H
#define MCPGATED_ENDPOINT_CALL_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "obs/reason.h"

struct call_limits;
struct envelope;
struct peer;
struct principal;
struct router;
struct rule;

#define CALL_LIMITS_MESSAGES_MAX 64

struct limited_calls {
	struct router *router;
	const struct call_limits *limits;
	const struct principal *principal;
	const struct peer *peer;         /* which anonymous caller it is */
	const struct envelope *messages; /* those that are no calls do not count */
	size_t count;                    /* at most CALL_LIMITS_MESSAGES_MAX */
	bool is_modern;                  /* the gateway itself answers server/discover */
};

/*
 * Takes them from what the caller may call, all of them or none. REASON_NONE; else why not, and *wait_ms_r says when it is
 * worth another try, and *rule_r which rule says so. Calls are what servers hear of but the handshake
 * of either era and pings, be it a notification that names a tool. Those, streams of changes, and requests about tasks have a rate, but do not count as calls in
 * flight.
 */
enum reason call_limits_take(const struct limited_calls *calls, uint64_t *wait_ms_r,
			     struct rule *rule_r) must_check;

#endif
