/* SPDX-License-Identifier: Apache-2.0 */
/* The list is looked for twice: at once, and after it was requested. */
#include "router/tool_check.h"

#include "base/clock.h"
#include "base/mem.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "policy/schema.h"
#include "router/client.h"
#include "router/list_cache.h"
#include "router/list_wait.h"
#include "router/listing.h"
#include "router/pages.h"
#include "router/pool.h"
#include "router/result.h"
#include "router/router.h"
#include "session/holder.h"

#define UNLISTED_MS 5000 /* bridging.md §1.8 */

struct tool_check {
	tool_check_passed_fn *on_passed;
	struct list_wait wait;       /* of the call, for the list */
	struct call_watcher watcher; /* of the call */
	bool is_repeated;            /* the list was requested again */
};

/* ---- the verdict ---- */

static bool is_strict(const struct call *call)
{
	return call->client->server->conf.checks_schemas;
}

static enum listed_tool find_tool(const struct call *call, const struct envelope *env,
				  struct listed_entry *entry_r)
{
	if (!pool_is_shared(call->client->pool))
		return own_tools_find(call->client, env->name, entry_r);
	return list_cache_find_tool(call->client, env->name, is_strict(call), entry_r);
}

/* `more` follows the text: it says where the problem is, and repeats no value. */
static void refuse(struct call *call, int code, const char *text, const char *more)
{
	struct buf message = { 0 };

	counter_add(COUNTER_REQUESTS_UNFIT);
	call->refused_by = RULE_SCHEMA;
	call->refused_as = "bad_arguments";
	buf_append_str(&message, text);
	buf_append_str(&message, more);
	result_send_error(call, code, buf_slice(&message));
	buf_fini(&message);
}

static void report_unusable(const struct call *call, const struct envelope *env, const char *why)
{
	struct buf name = { 0 };

	if (scan_decode_string(env->name, &name) == 0)
		LOG_BY(SCHEMA_UNUSABLE, holder_number(call->client->principal, &call->client->peer),
		       LOG_STR("server", call->client->server->conf.name),
		       LOG_SLICE("tool", buf_slice(&name)), LOG_STR("why", why));
	buf_fini(&name);
}

/*
 * A tool without a schema is refused: what its author meant is not known. Returns false if the call
 * was refused. SEC-59
 */
static bool check_schema(struct call *call, const struct envelope *env,
			 const struct listed_entry *entry)
{
	struct slice arguments =
		env->arguments.type != JSON_ABSENT ? env->arguments.text : SLICE_LIT("{}");
	struct cached_schema cached = { .why = "there is none" };
	struct error err;

	if (entry->schema.n > 0)
		cached = schema_cache_get(&call->client->router->schemas, entry->schema,
					  entry->schema_key);
	if (cached.is_new && cached.schema == NULL)
		report_unusable(call, env, cached.why);
	if (cached.schema == NULL)
		refuse(call, MCP_INTERNAL_ERROR,
		       "Internal error: the schema of this tool cannot be used: ", cached.why);
	else if (schema_check(cached.schema, arguments, call->batch, &err) < 0)
		refuse(call, MCP_INVALID_PARAMS, "Invalid params: arguments", err.text);
	else
		return true;
	return false;
}

static bool check_strictly(struct call *call, const struct envelope *env, enum listed_tool listed,
			   const struct listed_entry *entry)
{
	if (listed == LISTED_TOOL)
		return check_schema(call, env, entry);
	if (listed == LISTED_ABSENT)
		refuse(call, MCP_INVALID_PARAMS, "Invalid params: the server lists no such tool",
		       "");
	else
		refuse(call, MCP_INTERNAL_ERROR,
		       "Internal error: the arguments cannot be checked: ",
		       "the server has not told its tools");
	return false;
}

static void decide(struct call *call, const struct envelope *env, enum listed_tool listed,
		   const struct listed_entry *entry, tool_check_passed_fn *on_passed)
{
	struct tool_verdict verdict = { .refusal = NULL };

	CHECK(call->state == CALL_WAITING && call->waiter.queue == NULL);
	if (entry->is_annotated && entry->schema.n > 0 && call->ops->check_tool != NULL)
		verdict = call->ops->check_tool(call, env, entry->schema);
	if (verdict.broken != NULL)
		list_cache_note_broken(call->client, env->name, verdict.broken);
	if (verdict.refusal != NULL)
		result_send_error(call, verdict.code, slice_str(verdict.refusal));
	else if (!is_strict(call) || check_strictly(call, env, listed, entry))
		on_passed(call, env);
}

/* ---- the wait for the list ---- */

/*
 * The list has come, or cannot be had. A strict check asks twice: what has changed while it was
 * fetched is a list that nobody has. A server that does not tell its list is not asked again for
 * each call.
 */
static void on_listed(struct list_wait *wait, const struct envelope *env)
{
	struct tool_check *check = container_of(wait, struct tool_check, wait);
	struct call *call = wait->call;
	struct listed_entry entry;
	enum listed_tool listed;

	if (env == NULL) {
		call_fail(call, REASON_PROTOCOL_ERROR);
		return;
	}
	listed = find_tool(call, env, &entry);
	if ((listed == LISTED_UNKNOWN || listed == LISTED_CHANGED) && is_strict(call) &&
	    !check->is_repeated && !wait->has_timed_out) {
		check->is_repeated = true;
		list_wait_begin(wait, on_listed, call, env);
		return;
	}
	if (listed == LISTED_UNKNOWN)
		call->client->pool->unlisted_until_ms = clock_now_ms() + UNLISTED_MS;
	decide(call, env, listed, &entry, check->on_passed);
}

static void on_end(struct call_watcher *watcher, struct call *call)
{
	struct tool_check *check = container_of(watcher, struct tool_check, watcher);

	list_wait_end(&check->wait);
	loop_defer_free(call->client->router->loop, check);
}

static const struct call_watcher_ops watcher_ops = { .on_end = on_end };

static void await_list(tool_check_passed_fn *on_passed, struct call *call,
		       const struct envelope *env)
{
	struct tool_check *check = mem_zalloc(sizeof(*check));

	check->on_passed = on_passed;
	check->watcher.ops = &watcher_ops;
	check->wait.method = listing_kind_of(PERMISSION_TOOL)->method;
	call_watch(call, &check->watcher);
	list_wait_begin(&check->wait, on_listed, call, env);
}

/* ---- the beginning ---- */

bool tool_check_is_needed(const struct call *call)
{
	return call->method->id == METHOD_TOOLS_CALL &&
	       (is_strict(call) || call->ops->check_tool != NULL);
}

/* If a shared server does not offer tools, the code that gets the call says so. */
static bool is_listing_possible(const struct call *call)
{
	const struct pool *pool = call->client->pool;

	return pool->capabilities.offers & OFFER_TOOLS || !pool_is_shared(pool);
}

void tool_check_begin(tool_check_passed_fn *on_passed, struct call *call,
		      const struct envelope *env)
{
	const struct pool *pool = call->client->pool;
	struct listed_entry entry;
	enum listed_tool listed;

	CHECK(tool_check_is_needed(call));
	if (!is_listing_possible(call)) {
		on_passed(call, env);
		return;
	}
	listed = find_tool(call, env, &entry);
	if (listed == LISTED_CHANGED ||
	    (listed == LISTED_UNKNOWN && clock_now_ms() >= pool->unlisted_until_ms))
		await_list(on_passed, call, env);
	else
		decide(call, env, listed, &entry, on_passed);
}
