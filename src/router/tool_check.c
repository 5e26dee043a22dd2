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
#include "mcp/method.h"
#include "router/client.h"
#include "router/list_cache.h"
#include "router/pool.h"
#include "router/result.h"
#include "router/router.h"
#include "router/wait_queue.h"

/* T_list: a server that has not told its list by then is called unchecked. bridging.md §7 */
#define LISTING_MS (10 * 1000)
#define UNLISTED_MS 5000 /* bridging.md §1.8 */

struct tool_check {
	tool_check_passed_fn *on_passed;
	struct call *call;         /* the tools/call */
	struct wait_queue waiting; /* that call, while the list is fetched */
	struct call listing;       /* tools/list, by a call of our own */
	bool is_listing;           /* its answer is awaited */
	struct task step;
};

static const struct client *client_of(const struct tool_check *check)
{
	return check->call->client;
}

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

/* The list is there, or it is not to be had. */
static void go_on_later(struct tool_check *check)
{
	struct call *call = check->call;
	struct msg *body = call->body;
	struct slice schema = { NULL, 0 };
	struct envelope env;
	struct error err;

	call_stop_wait(call);
	call->body = NULL;
	if (scan_envelope(body->text, &call->client->router->limits, 0, &env, &err) < 0) {
		call_fail(call, REASON_PROTOCOL_ERROR); /* it was accepted before: cannot be */
	} else {
		if (list_cache_find_tool(call->client, env.name, &schema) == LISTED_UNKNOWN)
			note_unlisted(call->client->pool);
		go_on(call, &env, schema, check->on_passed);
	}
	msg_unref(&body);
}

/* ---- the list ---- */

/* Later in the turn: whoever answers this call is still at work. */
static void note_listed(struct call *listing)
{
	struct tool_check *check = container_of(listing, struct tool_check, listing);

	check->is_listing = false;
	task_schedule(client_of(check)->router->loop, &check->step);
}

static void on_step(struct task *task)
{
	struct tool_check *check = container_of(task, struct tool_check, step);

	CHECK(!check->is_listing);
	go_on_later(check);
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
	if (!list_cache_take(listing, &env))
		call_cancel(listing); /* the list cannot be kept */
}

/* ---- the wait for it ---- */

/* Who waits for a process that is being started waits as long as that takes. */
static void on_timeout(struct wait_queue *queue, struct waiter *waiter)
{
	struct tool_check *check = container_of(queue, struct tool_check, waiting);

	CHECK(call_of_waiter(waiter) == check->call);
	if (pool_is_coming(client_of(check)->pool)) {
		call_wait(check->call, LISTING_MS);
	} else {
		stop_listing(check);
		go_on_later(check);
	}
}

static const struct wait_queue_ops waiting_ops = { .on_timeout = on_timeout };

static struct tool_check *await_list(tool_check_passed_fn *on_passed, struct call *call,
				     const struct envelope *env)
{
	struct tool_check *check = mem_zalloc(sizeof(*check));

	check->on_passed = on_passed;
	check->call = call;
	task_init(&check->step, on_step);
	wait_queue_init(&check->waiting, &waiting_ops);
	call->body = msg_new(env->text);
	wait_queue_append(&check->waiting, &call->waiter, env->text.n);
	call_wait(call, LISTING_MS);
	list_tools(check);
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
	stop_listing(*check);
	loop_defer_free(client_of(*check)->router->loop, *check);
	*check = NULL;
}
