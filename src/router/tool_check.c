/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the list is there is looked at twice: at once, and when it was asked for. It is asked for by a call of our own
 * that nobody hears the answer of: the list cache keeps it, and asks the server once for all who want it meanwhile.
 */
#include "router/tool_check.h"

#include "base/clock.h"
#include "base/mem.h"
#include "io/loop.h"
#include "jsonrpc/msg.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "policy/schema.h"
#include "router/client.h"
#include "router/list_cache.h"
#include "router/own_tools.h"
#include "router/pool.h"
#include "router/result.h"
#include "router/router.h"
#include "router/wait_queue.h"

/* T_list: a server that has not told its list by then is called unchecked, or not at all. bridging.md §7 */
#define LISTING_MS (10 * 1000)
#define UNLISTED_MS 5000 /* bridging.md §1.8 */

struct tool_check {
	tool_check_passed_fn *on_passed;
	struct call *call;           /* the tools/call */
	struct call_watcher watcher; /* of that */
	struct wait_queue waiting;   /* that call, while the list is fetched */
	struct call listing;         /* tools/list, by a call of our own */
	bool is_listing;             /* its answer is awaited */
	bool is_repeated;            /* it was asked for again */
	struct task step;
};

static const struct client *client_of(const struct tool_check *check)
{
	return check->call->client;
}

/* ---- the list ---- */

/* Later in the turn: whoever answers this call is still at work. */
static void note_listed(struct call *listing)
{
	struct tool_check *check = container_of(listing, struct tool_check, listing);

	check->is_listing = false;
	task_schedule(client_of(check)->router->loop, &check->step);
}

static bool listing_on_message(struct call *listing, enum stream_kind kind, uint64_t key,
			       struct msg *msg)
{
	(void)listing;
	(void)kind;
	(void)key;
	(void)msg;
	return false;
}

static bool listing_is_reachable(const struct call *listing)
{
	(void)listing;
	return false;
}

static void listing_on_response(struct call *listing, const struct slice *parts, size_t count)
{
	(void)parts; /* it is kept, or it is an error */
	(void)count;
	note_listed(listing);
}

static void listing_on_failed(struct call *listing, enum reason reason)
{
	(void)reason;
	note_listed(listing);
}

static const struct call_ops listing_ops = {
	.on_message = listing_on_message,
	.is_reachable = listing_is_reachable,
	.on_response = listing_on_response,
	.on_failed = listing_on_failed,
	.on_cancelled = note_listed,
};

static void stop_listing(struct tool_check *check)
{
	if (check->is_listing) {
		call_give_up(&check->listing, "nobody waits for it any more");
		call_cancel(&check->listing);
	}
	task_cancel(&check->step);
}

static void list_tools(struct tool_check *check)
{
	struct call *listing = &check->listing;
	struct envelope env;
	struct error err;

	CHECK(scan_envelope(SLICE_LIT("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"tools/list\"}"),
			    &client_of(check)->router->limits, 0, &env, &err) == 0);
	call_init(listing, &listing_ops, &env);
	check->is_listing = true;
	call_link(listing, check->call->client);
	if (!pool_is_shared(listing->client->pool))
		own_tools_await(listing, &env);
	else if (!list_cache_take(listing, &env))
		call_cancel(listing); /* the list cannot be kept */
}

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

/* `more` is what follows the text; a reader knows where a schema is wrong, and no value is repeated. */
static void refuse(struct call *call, int code, const char *text, const char *more)
{
	struct buf message = { 0 };

	counter_add(COUNTER_REQUESTS_UNFIT);
	buf_append_str(&message, text);
	buf_append_str(&message, more);
	result_send_error(call, code, buf_slice(&message));
	buf_fini(&message);
}

static void report_unusable(const struct call *call, const struct envelope *env, const char *why)
{
	struct buf name = { 0 };

	if (scan_decode_string(env->name, &name) == 0)
		LOG(SCHEMA_UNUSABLE, LOG_STR("server", call->client->server->conf.name),
		    LOG_SLICE("tool", buf_slice(&name)), LOG_STR("why", why));
	buf_fini(&name);
}

/* An empty schema is none: what its author meant is not known. False: it is refused. SEC-59 */
static bool check_schema(struct call *call, const struct envelope *env, struct slice text)
{
	struct slice arguments =
		env->arguments.type != JSON_ABSENT ? env->arguments.text : SLICE_LIT("{}");
	struct cached_schema cached = { .why = "there is none" };
	struct error err;

	if (text.n > 0)
		cached = schema_cache_get(&call->client->router->schemas, text);
	if (cached.is_new && cached.schema == NULL)
		report_unusable(call, env, cached.why);
	if (cached.schema == NULL)
		refuse(call, MCP_INTERNAL_ERROR,
		       "Internal error: the schema of this tool cannot be used: ", cached.why);
	else if (schema_check(cached.schema, arguments, &err) < 0)
		refuse(call, MCP_INVALID_PARAMS, "Invalid params: arguments", err.text);
	else
		return true;
	return false;
}

static bool check_strictly(struct call *call, const struct envelope *env, enum listed_tool listed,
			   const struct listed_entry *entry)
{
	if (listed == LISTED_TOOL)
		return check_schema(call, env, entry->schema);
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

/* ---- the end of a wait ---- */

/* Nothing of it is heard of any more. */
static void release(struct tool_check *check)
{
	stop_listing(check);
	call_unwatch(&check->watcher);
	loop_defer_free(client_of(check)->router->loop, check);
}

static void on_call_end(struct call_watcher *watcher, struct call *call)
{
	(void)call;
	release(container_of(watcher, struct tool_check, watcher));
}

static const struct call_watcher_ops watcher_ops = { .on_end = on_call_end };

/* The list is there, or it is not to be had. A server that does not tell it is not asked again for each call. */
static void go_on(struct tool_check *check)
{
	struct call *call = check->call;
	tool_check_passed_fn *on_passed = check->on_passed;
	struct msg *body = call->body;
	struct listed_entry entry;
	enum listed_tool listed;
	struct envelope env;
	struct error err;

	call_stop_wait(call);
	call->body = NULL;
	release(check);
	if (scan_envelope(body->text, &call->client->router->limits, 0, &env, &err) < 0) {
		call_fail(call, REASON_PROTOCOL_ERROR); /* it was accepted before: cannot be */
	} else {
		listed = find_tool(call, &env, &entry);
		if (listed == LISTED_UNKNOWN)
			call->client->pool->unlisted_until_ms = clock_now_ms() + UNLISTED_MS;
		decide(call, &env, listed, &entry, on_passed);
	}
	msg_unref(&body);
}

/* ---- the wait for it ---- */

/* Who is strict asks twice: what has changed while it was fetched is no list that anybody has. */
static void on_step(struct task *task)
{
	struct tool_check *check = container_of(task, struct tool_check, step);
	struct listed_entry entry;
	enum listed_tool listed;
	struct envelope env;
	struct error err;

	CHECK(!check->is_listing);
	if (!check->is_repeated && is_strict(check->call) &&
	    scan_envelope(check->call->body->text, &client_of(check)->router->limits, 0, &env,
			  &err) == 0) {
		check->is_repeated = true;
		listed = find_tool(check->call, &env, &entry);
		if (listed == LISTED_UNKNOWN || listed == LISTED_CHANGED) {
			list_tools(check);
			return;
		}
	}
	go_on(check);
}

/* Who waits for a process that is being started waits as long as that takes. */
static void on_timeout(struct wait_queue *queue, struct waiter *waiter)
{
	struct tool_check *check = container_of(queue, struct tool_check, waiting);

	CHECK(call_of_waiter(waiter) == check->call);
	if (pool_is_coming(client_of(check)->pool))
		call_wait(check->call, LISTING_MS);
	else
		go_on(check);
}

static const struct wait_queue_ops waiting_ops = { .on_timeout = on_timeout };

static void await_list(tool_check_passed_fn *on_passed, struct call *call,
		       const struct envelope *env)
{
	struct tool_check *check = mem_zalloc(sizeof(*check));

	check->on_passed = on_passed;
	check->call = call;
	check->watcher.ops = &watcher_ops;
	call_watch(call, &check->watcher);
	task_init(&check->step, on_step);
	wait_queue_init(&check->waiting, &waiting_ops);
	call->body = msg_new(env->text);
	wait_queue_append(&check->waiting, &call->waiter, env->text.n);
	call_wait(call, LISTING_MS);
	list_tools(check);
}

/* ---- the beginning ---- */

bool tool_check_is_needed(const struct call *call)
{
	return call->method->id == METHOD_TOOLS_CALL &&
	       (is_strict(call) || call->ops->check_tool != NULL);
}

/* What a shared server does not offer is answered as that by whoever gets the call. */
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
