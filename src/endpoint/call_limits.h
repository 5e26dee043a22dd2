/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a caller may make these calls now, by the limits of the server and its tools
 * (policy/call_limits). router/call counts what is in flight.
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
	const struct peer *peer;         /* identifies an anonymous caller */
	const struct envelope *messages; /* those that are not calls are ignored */
	size_t count;                    /* at most CALL_LIMITS_MESSAGES_MAX */
	bool is_modern;                  /* the gateway answers server/discover itself */
};

/*
 * Charges the calls to the caller's limits, all of them or none. Returns REASON_NONE, or why not,
 * and then *wait_ms_r is when a retry is worthwhile and *rule_r the rule that refuses. Everything
 * forwarded to a server counts as a call except the handshakes of both eras and pings, even a
 * notification that names a tool. Such notifications, change streams and requests about tasks count
 * for the rate, but not as calls in flight.
 */
enum reason call_limits_take(const struct limited_calls *calls, uint64_t *wait_ms_r,
			     struct rule *rule_r) must_check;

#endif
