/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint/call_limits.h"

#include "base/clock.h"
#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "policy/call_limits.h"
#include "policy/operation.h"
#include "policy/rule.h"
#include "router/router.h"
#include "session/holder.h"

/* A guess: nobody knows when a call in flight will end. */
#define CONCURRENCY_WAIT_MS 1000

/* What the calls take from one limit. */
struct charge {
	const struct call_limit *limit;
	size_t calls;
	size_t in_flight; /* of these */
	uint64_t key;     /* of this caller's bucket */
};

struct charges {
	struct charge items[1 + CALL_LIMITS_MESSAGES_MAX];
	size_t count;
};

/*
 * Whether the limits apply to the message: to all that reaches the server, except its handshake and
 * what we answer ourselves. A call sent as a notification counts: the server may execute it.
 */
static bool is_call(const struct envelope *env, bool is_modern)
{
	if (env->kind != ENVELOPE_REQUEST)
		return operation_of(env) != OPERATION_OTHER;
	/* To a client that gets 429 here, the server would seem to be of another era. */
	if (is_modern && slice_is_equal(env->method, SLICE_LIT("server/discover")))
		return false;
	return !slice_is_equal(env->method, SLICE_LIT("initialize")) &&
	       !slice_is_equal(env->method, SLICE_LIT("ping"));
}

/*
 * Not in flight: subscription streams, which stay open for as long as they like; requests about
 * tasks, which are how tasks end; and notifications, whose end is not known.
 */
static bool is_in_flight(const struct envelope *env)
{
	enum method_id method = method_find(env->method)->id;

	return env->kind == ENVELOPE_REQUEST && method != METHOD_LISTEN && method != METHOD_TASKS;
}

static uint64_t key_of(const struct limited_calls *calls, const struct call_limit *limit)
{
	return holder_key(&calls->router->sessions.holders, limit->rate_scope, calls->principal,
			  calls->peer);
}

static void add(struct charges *charges, const struct limited_calls *calls,
		const struct call_limit *limit, const struct envelope *env)
{
	struct charge *charge = charges->items;

	while (charge < charges->items + charges->count && charge->limit != limit)
		charge++;
	if (charge == charges->items + charges->count) {
		CHECK(charges->count < ARRAY_LEN(charges->items));
		charges->items[charges->count++] =
			(struct charge){ .limit = limit, .key = key_of(calls, limit) };
	}
	charge->calls++;
	charge->in_flight += is_in_flight(env);
}

static bool is_over_concurrency(const struct limited_calls *calls, const struct charge *charge)
{
	uint64_t most = charge->limit->concurrency;
	const struct holder *holder;

	if (most == 0 || charge->in_flight == 0)
		return false;
	holder = holder_find(&calls->router->sessions.holders, charge->limit->in_flight_scope,
			     calls->principal, calls->peer);
	return (holder != NULL ? holder->count : 0) + charge->in_flight > most;
}

/* The rule with this limit. Its key is `of_all` if the limit is for all calls of the server. */
static struct rule rule_of(const struct limited_calls *calls, const struct charge *charge,
			   enum rule_key of_all)
{
	const struct tool_limit *first = calls->limits->tools.items;
	const struct call_limit *limit = charge->limit;

	if (limit == &calls->limits->all)
		return (struct rule){ .key = of_all };
	return (struct rule){
		.key = RULE_TOOL_LIMITS,
		.has_entry = true,
		.entry = (size_t)(container_of(limit, const struct tool_limit, limit) - first),
	};
}

static enum reason judge(const struct limited_calls *calls, const struct charges *charges,
			 uint64_t now_ms, uint64_t *wait_ms_r, struct rule *rule_r)
{
	*wait_ms_r = CONCURRENCY_WAIT_MS;
	for (size_t i = 0; i < charges->count; i++) {
		*rule_r = rule_of(calls, &charges->items[i], RULE_CONCURRENCY);
		if (is_over_concurrency(calls, &charges->items[i]))
			return REASON_OVER_CONCURRENCY;
	}
	*wait_ms_r = 0;
	for (size_t i = 0; i < charges->count; i++) {
		const struct charge *charge = &charges->items[i];
		uint64_t wait_ms = rate_wait(&calls->router->rates, charge->key,
					     &charge->limit->rate, charge->calls, now_ms);

		if (wait_ms > *wait_ms_r)
			*rule_r = rule_of(calls, charge, RULE_RATE);
		*wait_ms_r = wait_ms > *wait_ms_r ? wait_ms : *wait_ms_r;
	}
	return *wait_ms_r > 0 ? REASON_OVER_RATE : REASON_NONE;
}

/* Cannot fail: judge() has just checked it. */
static void take(const struct limited_calls *calls, const struct charge *charge, uint64_t now_ms)
{
	uint64_t wait_ms = rate_take(&calls->router->rates, charge->key, &charge->limit->rate,
				     charge->calls, now_ms);

	CHECK(wait_ms == 0);
}

static void add_message(struct charges *charges, const struct limited_calls *calls,
			const struct envelope *env)
{
	const struct call_limit *of_tool = call_limits_of_tool(calls->limits, env);

	if (!is_call(env, calls->is_modern))
		return;
	add(charges, calls, &calls->limits->all, env);
	if (of_tool != NULL)
		add(charges, calls, of_tool, env);
}

enum reason call_limits_take(const struct limited_calls *calls, uint64_t *wait_ms_r,
			     struct rule *rule_r)
{
	uint64_t now_ms = clock_now_ms();
	struct charges charges;
	enum reason reason;

	*wait_ms_r = 0;
	*rule_r = (struct rule){ .key = RULE_NONE };
	if (!call_limits_are_set(calls->limits))
		return REASON_NONE;
	charges.count = 0;
	for (size_t i = 0; i < calls->count; i++)
		add_message(&charges, calls, &calls->messages[i]);
	reason = judge(calls, &charges, now_ms, wait_ms_r, rule_r);
	for (size_t i = 0; i < charges.count && reason == REASON_NONE; i++)
		take(calls, &charges.items[i], now_ms);
	return reason;
}
