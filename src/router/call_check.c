/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins first, then the schema. A call waits for a list at most once for each; a strict check waits
 * once more, for a list that has changed while it was fetched.
 */
#include "router/call_check.h"

#include "base/clock.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "policy/permissions.h"
#include "policy/schema.h"
#include "router/client.h"
#include "router/listing.h"
#include "router/lists.h"
#include "router/pool.h"
#include "router/result.h"
#include "router/router.h"
#include "session/principal.h"

#define UNLISTED_MS 5000 /* bridging.md §1.8 */

static void await_list(struct call *call, const struct envelope *env, enum permission_kind kind)
{
	call->lists_awaited++;
	lists_await(call, env, kind);
}

/* ---- pins ---- */

/*
 * Whether pins decide about the call, and by which list. Admission has checked that no list has shown
 * that the item is withheld; here a list must have shown the item.
 */
static bool is_pinned(const struct call *call, const struct envelope *env,
		      enum permission_kind *kind_r)
{
	bool is_enforced = call->client->server->conf.pin == PIN_ENFORCE;
	enum operation operation = is_enforced ? operation_of(env) : OPERATION_OTHER;

	*kind_r = operation == OPERATION_TOOL ? PERMISSION_TOOL : PERMISSION_PROMPT;
	return operation != OPERATION_OTHER;
}

static void withhold(struct call *call, int code, struct slice why)
{
	counter_add(COUNTER_REQUESTS_WITHHELD);
	call->refused_by = RULE_PIN;
	call->refused_as = "not_approved";
	result_send_error(call, code, why);
}

/* Returns false if the call was refused. */
static bool check_pin(struct call *call, const struct envelope *env, enum permission_kind kind,
		      enum list_outcome outcome)
{
	if (outcome != LIST_CAME)
		withhold(call, MCP_INTERNAL_ERROR,
			 SLICE_LIT("The server does not tell its list: nothing that is not known "
				   "is called"));
	else if (pinning_shows(call->client->server, kind, env->name))
		return true;
	else
		withhold(call, MCP_INVALID_PARAMS,
			 kind == PERMISSION_TOOL ?
				 SLICE_LIT("Invalid params: there is no such tool, or its "
					   "definition is not approved") :
				 SLICE_LIT("Invalid params: there is no such prompt, or its "
					   "definition is not approved"));
	return false;
}

/* ---- the schema of a tool ---- */

static bool is_strict(const struct call *call)
{
	return call->client->server->conf.checks_schemas;
}

/* If a shared server does not offer tools, the code that gets the call says so. */
static bool has_schema(const struct call *call)
{
	const struct pool *pool = call->client->pool;

	return call->method->id == METHOD_TOOLS_CALL &&
	       (is_strict(call) || call->ops->check_tool != NULL) &&
	       (pool->capabilities.offers & OFFER_TOOLS || !pool_is_shared(pool));
}

/* `more` follows the text: it says where the problem is, and repeats no value. */
static void call_check_refuse(struct call *call, int code, const char *text, const char *more)
{
	at_end(buf_fini) struct buf message = { 0 };

	counter_add(COUNTER_REQUESTS_UNFIT);
	call->refused_by = RULE_SCHEMA;
	call->refused_as = "bad_arguments";
	buf_append_str(&message, text);
	buf_append_str(&message, more);
	result_send_error(call, code, buf_slice(&message));
}

static void report_unusable(const struct call *call, const struct envelope *env, const char *why)
{
	at_end(buf_fini) struct buf name = { 0 };

	if (scan_decode_string(env->name, &name) == 0)
		LOG_BY(SCHEMA_UNUSABLE, holder_number(call->client->principal, &call->client->peer),
		       LOG_STR("server", call->client->server->conf.name),
		       LOG_SLICE("tool", buf_slice(&name)), LOG_STR("why", why));
}

/*
 * A tool without a schema is refused: what its author meant is not known. Returns false if the call
 * was refused. SEC-59
 */
static bool check_schema(struct call *call, const struct envelope *env,
			 const struct listed_entry *entry)
{
	struct canonical_form arguments = { .text = SLICE_LIT("{}") };
	at_end(buf_fini) struct buf room = { 0 };
	struct cached_schema cached = { .why = "there is none" };
	struct error err;

	if (env->arguments.type != JSON_ABSENT)
		arguments = canonical_get(env, &room);
	if (entry->schema.n > 0)
		cached = schema_cache_get(&call->client->router->schemas, entry->schema,
					  entry->schema_key);
	if (cached.is_new && cached.schema == NULL)
		report_unusable(call, env, cached.why);
	if (cached.schema == NULL)
		call_check_refuse(call, MCP_INTERNAL_ERROR,
				  "Internal error: the schema of this tool cannot be used: ",
				  cached.why);
	else if (schema_check(cached.schema, &arguments, call->batch, &err) < 0)
		call_check_refuse(call, MCP_INVALID_PARAMS, "Invalid params: arguments", err.text);
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
		call_check_refuse(call, MCP_INVALID_PARAMS,
				  "Invalid params: the server lists no such tool", "");
	else
		call_check_refuse(call, MCP_INTERNAL_ERROR,
				  "Internal error: the arguments cannot be checked: ",
				  "the server has not told its tools");
	return false;
}

static void decide(struct call *call, const struct envelope *env, enum listed_tool listed,
		   const struct listed_entry *entry)
{
	struct tool_verdict verdict = { .refusal = NULL };

	CHECK(call->state == CALL_WAITING && call->waiter.queue == NULL);
	if (entry->is_annotated && entry->schema.n > 0 && call->ops->check_tool != NULL)
		verdict = call->ops->check_tool(call, env, entry->schema);
	if (verdict.broken != NULL)
		lists_note_broken(call->client, env->name, verdict.broken);
	if (verdict.refusal != NULL)
		result_send_error(call, verdict.code, slice_str(verdict.refusal));
	else if (!is_strict(call) || check_strictly(call, env, listed, entry))
		call->on_checked(call, env);
}

/*
 * The list is looked for at once, and after it was fetched. A strict check fetches twice: what has
 * changed while it was fetched is a list that nobody has. A server that does not tell its list is
 * not asked again for each call.
 */
static bool must_wait(const struct call *call, enum listed_tool listed, enum list_outcome outcome)
{
	if (listed != LISTED_CHANGED && listed != LISTED_UNKNOWN)
		return false;
	if (call->lists_awaited > 0)
		return is_strict(call) && call->lists_awaited == 1 && outcome != LIST_LATE;
	return listed == LISTED_CHANGED ||
	       clock_now_ms() >= call->client->pool->lists.unlisted_until_ms;
}

static void call_check_tool(struct call *call, const struct envelope *env,
			    enum list_outcome outcome)
{
	struct listed_entry entry;
	enum listed_tool listed = lists_find_tool(call->client, env->name, is_strict(call), &entry);

	if (must_wait(call, listed, outcome)) {
		await_list(call, env, PERMISSION_TOOL);
		return;
	}
	if (listed == LISTED_UNKNOWN && call->lists_awaited > 0)
		call->client->pool->lists.unlisted_until_ms = clock_now_ms() + UNLISTED_MS;
	decide(call, env, listed, &entry);
}

/* ---- the check ---- */

static void check(struct call *call, const struct envelope *env, enum list_outcome outcome)
{
	enum permission_kind kind;

	if (is_pinned(call, env, &kind) && !check_pin(call, env, kind, outcome))
		return;
	if (has_schema(call))
		call_check_tool(call, env, outcome);
	else
		call->on_checked(call, env);
}

void call_check_on_list(struct call *call, const struct envelope *env, enum list_outcome outcome)
{
	if (outcome == LIST_OUTDATED)
		call_check_begin(call, env, call->on_checked);
	else
		check(call, env, outcome);
}

void call_check_begin(struct call *call, const struct envelope *env, call_checked_fn *on_passed)
{
	enum permission_kind kind;

	call->on_checked = on_passed;
	call->lists_awaited = 0;
	if (is_pinned(call, env, &kind) && !lists_were_looked_at(call->client->pool, kind))
		await_list(call, env, kind);
	else
		check(call, env, LIST_CAME);
}
