/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the list is there is looked at twice: at once, and when it was asked for. */
#include "router/tool_check.h"

#include "base/clock.h"
#include "base/mem.h"
#include "io/loop.h"
#include "mcp/method.h"
#include "router/client.h"
#include "router/list_cache.h"
#include "router/list_wait.h"
#include "router/pool.h"
#include "router/result.h"
#include "router/router.h"

#define UNLISTED_MS 5000 /* bridging.md §1.8 */

struct tool_check {
	tool_check_passed_fn *on_passed;
	struct list_wait wait; /* of the tools/call, for tools/list */
};

/* ---- the verdict ---- */

/* The schema is empty if it is not known: then there is nothing to check. */
static void go_on(struct call *call, const struct envelope *env, struct slice schema,
		  tool_check_passed_fn *on_passed)
{
	struct tool_verdict verdict = { .refusal = NULL };

	CHECK(call->state == CALL_WAITING && call->waiter.queue == NULL);
	if (schema.n > 0)
		verdict = call->ops->check_tool(call, env, schema);
	if (verdict.broken != NULL)
		list_cache_note_broken(call->client, env->name, verdict.broken);
	if (verdict.refusal != NULL)
		result_send_error(call, verdict.code, slice_str(verdict.refusal));
	else
		on_passed(call, env);
}

/* A server that does not tell it is not asked again for each call. */
static void note_unlisted(struct pool *pool)
{
	pool->sharing->unlisted_until_ms = clock_now_ms() + UNLISTED_MS;
}

/*
 * The list is there, or it is not to be had: a server that has not told its list in time is called unchecked. bridging.md §7
 */
static void on_listed(struct list_wait *wait, const struct envelope *env)
{
	struct tool_check *check = container_of(wait, struct tool_check, wait);
	struct slice schema = { NULL, 0 };

	if (env == NULL) {
		call_fail(wait->call, REASON_PROTOCOL_ERROR);
		return;
	}
	if (list_cache_find_tool(wait->call->client, env->name, &schema) == LISTED_UNKNOWN)
		note_unlisted(wait->call->client->pool);
	go_on(wait->call, env, schema, check->on_passed);
}

static struct tool_check *await_list(tool_check_passed_fn *on_passed, struct call *call,
				     const struct envelope *env)
{
	struct tool_check *check = mem_zalloc(sizeof(*check));

	check->on_passed = on_passed;
	check->wait.method = slice_str("tools/list");
	list_wait_begin(&check->wait, on_listed, call, env);
	return check;
}

/* ---- beginning and end ---- */

struct tool_check *tool_check_begin(tool_check_passed_fn *on_passed, struct call *call,
				    const struct envelope *env)
{
	const struct pool *pool = call->client->pool;
	enum listed_tool listed = LISTED_PLAIN;
	struct slice schema = { NULL, 0 };

	CHECK(call->method->id == METHOD_TOOLS_CALL && call->ops->check_tool != NULL);
	if (pool->capabilities.offers & OFFER_TOOLS)
		listed = list_cache_find_tool(call->client, env->name, &schema);
	if (listed == LISTED_UNKNOWN && clock_now_ms() < pool->sharing->unlisted_until_ms)
		listed = LISTED_PLAIN;
	if (listed == LISTED_UNKNOWN || listed == LISTED_CHANGED)
		return await_list(on_passed, call, env);
	go_on(call, env, schema, on_passed);
	return NULL;
}

void tool_check_end(struct tool_check **check)
{
	if (*check == NULL)
		return;
	list_wait_end(&(*check)->wait);
	loop_defer_free((*check)->wait.call->client->router->loop, *check);
	*check = NULL;
}
