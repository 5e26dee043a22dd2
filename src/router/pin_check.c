/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission has checked that no list has shown that the item is withheld; here a list must have
 * shown the item.
 */
#include "router/pin_check.h"

#include "base/mem.h"
#include "mcp/error.h"
#include "obs/counters.h"
#include "policy/operation.h"
#include "router/client.h"
#include "router/list_wait.h"
#include "router/listing.h"
#include "router/pinning.h"
#include "router/pool.h"
#include "router/result.h"
#include "router/router.h"

struct pin_check {
	pin_check_passed_fn *on_passed;
	enum permission_kind kind;
	struct list_wait wait;       /* of the call, for its list */
	struct call_watcher watcher; /* of the call */
	uint64_t changes;            /* of the pool's lists, before the list was requested */
};

static void refuse(struct call *call, int code, struct slice why)
{
	counter_add(COUNTER_REQUESTS_WITHHELD);
	call->refused_by = RULE_PIN;
	call->refused_as = "not_approved";
	result_send_error(call, code, why);
}

static void judge(struct call *call, const struct envelope *env, enum permission_kind kind,
		  pin_check_passed_fn *on_passed)
{
	if (pinning_shows(call->client->server, kind, env->name))
		on_passed(call, env);
	else
		refuse(call, MCP_INVALID_PARAMS,
		       kind == PERMISSION_TOOL ?
			       SLICE_LIT("Invalid params: there is no such tool, or its "
					 "definition is not approved") :
			       SLICE_LIT("Invalid params: there is no such prompt, or its "
					 "definition is not approved"));
}

/* ---- the wait for the list ---- */

static void on_listed(struct list_wait *wait, const struct envelope *env)
{
	struct pin_check *check = container_of(wait, struct pin_check, wait);
	struct call *call = wait->call;
	struct pool *pool = call->client->pool;

	if (env == NULL) {
		call_fail(call, REASON_PROTOCOL_ERROR);
	} else if (!wait->is_listed) {
		refuse(call, MCP_INTERNAL_ERROR,
		       SLICE_LIT("The server does not tell its list: nothing that is not known "
				 "is called"));
	} else {
		pool->looked_at[check->kind] = check->changes + 1;
		judge(call, env, check->kind, check->on_passed);
	}
}

static void on_end(struct call_watcher *watcher, struct call *call)
{
	struct pin_check *check = container_of(watcher, struct pin_check, watcher);

	list_wait_end(&check->wait);
	loop_defer_free(call->client->router->loop, check);
}

static const struct call_watcher_ops watcher_ops = { .on_end = on_end };

static void await_list(pin_check_passed_fn *on_passed, struct call *call,
		       const struct envelope *env, enum permission_kind kind)
{
	struct pin_check *check = mem_zalloc(sizeof(*check));

	check->on_passed = on_passed;
	check->kind = kind;
	check->changes = pool_memory_changes(call->client->pool);
	check->watcher.ops = &watcher_ops;
	check->wait.method = listing_kind_of(kind)->method;
	check->wait.forwards = true;
	call_watch(call, &check->watcher);
	list_wait_begin(&check->wait, on_listed, call, env);
}

/* ---- beginning ---- */

void pin_check_begin(pin_check_passed_fn *on_passed, struct call *call, const struct envelope *env)
{
	const struct pool *pool = call->client->pool;
	bool is_enforced = call->client->server->conf.pin == PIN_ENFORCE;
	enum operation operation = is_enforced ? operation_of(env) : OPERATION_OTHER;
	enum permission_kind kind =
		operation == OPERATION_TOOL ? PERMISSION_TOOL : PERMISSION_PROMPT;

	if (operation == OPERATION_OTHER)
		on_passed(call, env);
	else if (pool->looked_at[kind] == pool_memory_changes(pool) + 1)
		judge(call, env, kind, on_passed);
	else
		await_list(on_passed, call, env, kind);
}
