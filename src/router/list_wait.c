/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that wait for a list; own_tools, the tools of a session that has its server to itself;
 * pin_check, which refuses items that no list has shown.
 *
 * The response to our own call is passed on to nobody. In a shared pool the list cache keeps the
 * list, and asks the server once for all who want it meanwhile; so does own_tools for a session
 * that has its server to itself. If requests are forwarded, one call of a session asks, and others
 * follow it.
 */
#include "router/list_wait.h"

#include <stdint.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/slice.h"
#include "io/loop.h"
#include "jsonrpc/msg.h"
#include "jsonrpc/splice.h"
#include "mcp/error.h"
#include "obs/counters.h"
#include "policy/operation.h"
#include "process/server_rules.h"
#include "router/call.h"
#include "router/client.h"
#include "router/pages.h"
#include "router/dispatch.h"
#include "router/list_cache.h"
#include "router/listing.h"
#include "router/pool.h"
#include "router/pool_demand.h"
#include "router/result.h"
#include "router/router.h"

/* ---- own call ---- */

bool own_call_drop_message(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg)
{
	(void)call;
	(void)kind;
	(void)key;
	(void)msg;
	return false;
}

bool own_call_has_no_reader(const struct call *call)
{
	(void)call;
	return false;
}

/* ---- own tools ---- */

/*
 * The call that fetches is a call of the session like any other, so whatever ends those ends it.
 * Between two pages it has ended: the next page is requested later in the turn.
 */

#define FRESH_MS 5000

struct own_tools {
	struct client *client;
	struct pages pages; /* kept, or being fetched */
	bool is_kept;
	uint64_t child; /* the process they are from */
	uint64_t changes;
	uint64_t until_ms;
	struct call fetch; /* of one page */
	bool is_fetching;  /* that call, or the next, is under way */
	bool is_failed;
	struct task step;
	struct wait_queue waiting;
};

static const struct wait_queue_ops own_tools_waiting_ops = { .on_timeout = call_on_wait_timeout };

/* ---- the fetch ---- */

static uint64_t own_child(const struct client *client)
{
	const struct upstream *own = pool_own_upstream(client->pool);

	return own != NULL && upstream_is_serving(own) ? upstream_child_number(own) : 0;
}

/*
 * The waiting calls only learn whether this has failed; whoever made them goes on later in the
 * turn.
 */
static void wake_all(struct own_tools *tools)
{
	struct wait_queue waiting;

	wait_queue_init(&waiting, &own_tools_waiting_ops);
	wait_queue_move(&waiting, &tools->waiting);
	while (!wait_queue_is_empty(&waiting)) {
		struct call *call = call_of_waiter(wait_queue_first(&waiting));

		if (tools->is_failed)
			call_fail(call, REASON_CHILD_PROTOCOL_ERROR);
		else
			result_send_own(call, SLICE_LIT("{}"));
	}
}

static void own_tools_finish(struct own_tools *tools)
{
	const struct scan_limits *limits = &tools->client->router->limits;

	tools->is_fetching = false;
	if (!tools->is_failed && pages_join(&tools->pages, limits) < 0)
		tools->is_failed = true;
	if (tools->is_failed)
		pages_reset(&tools->pages);
	tools->is_kept = !tools->is_failed;
	tools->child = own_child(tools->client);
	tools->until_ms = clock_now_ms() + FRESH_MS;
	wake_all(tools);
}

static void go_on_soon(struct own_tools *tools, bool is_failed)
{
	tools->is_failed |= is_failed;
	task_schedule(tools->client->router->loop, &tools->step);
}

static struct own_tools *of_fetch(struct call *fetch)
{
	return container_of(fetch, struct own_tools, fetch);
}

/* After the last page, `cursor` is empty. */
static void fetch_on_response(struct call *fetch, const struct slice *parts, size_t count)
{
	struct own_tools *tools = of_fetch(fetch);
	enum pages_outcome outcome = PAGES_UNFIT;
	struct buf text = { 0 };
	struct envelope env;
	struct error err;

	for (size_t i = 0; i < count; i++)
		buf_append_slice(&text, parts[i]);
	if (scan_envelope(buf_slice(&text), &tools->client->router->limits, SCAN_LENIENT, &env,
			  &err) == 0 &&
	    env.kind == ENVELOPE_RESULT)
		outcome = pages_add(&tools->pages, env.result.text);
	if (outcome != PAGES_MORE)
		tools->pages.cursor.len = 0;
	go_on_soon(tools, outcome == PAGES_UNFIT);
	buf_fini(&text);
}

static void fetch_on_failed(struct call *fetch, enum reason reason)
{
	(void)reason;
	go_on_soon(of_fetch(fetch), true);
}

static void fetch_on_cancelled(struct call *fetch)
{
	go_on_soon(of_fetch(fetch), true);
}

static const struct call_ops fetch_ops = {
	.on_message = own_call_drop_message,
	.is_reachable = own_call_has_no_reader,
	.on_response = fetch_on_response,
	.on_failed = fetch_on_failed,
	.on_cancelled = fetch_on_cancelled,
};

static void own_tools_ask(struct own_tools *tools)
{
	struct slice cursor = buf_slice(&tools->pages.cursor);
	struct buf text = { 0 };
	struct envelope env;
	struct error err;

	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"tools/list\"");
	if (cursor.n > 0) {
		buf_append_str(&text, ",\"params\":{\"cursor\":");
		buf_append_slice(&text, cursor);
		buf_append_char(&text, '}');
	}
	buf_append_char(&text, '}');
	if (scan_envelope(buf_slice(&text), &tools->client->router->limits, 0, &env, &err) < 0) {
		go_on_soon(tools, true); /* no client could send this cursor */
	} else {
		call_init(&tools->fetch, &fetch_ops, &env);
		call_link(&tools->fetch, tools->client);
		dispatch_call(&tools->fetch, &env);
	}
	buf_fini(&text);
}

static void own_tools_on_step(struct task *task)
{
	struct own_tools *tools = container_of(task, struct own_tools, step);

	if (!tools->is_failed && tools->pages.cursor.len > 0)
		own_tools_ask(tools);
	else
		own_tools_finish(tools);
}

static uint64_t count_changes(const struct pool *pool)
{
	return pool->tool_changes + server_rules(pool->server);
}

static void begin(struct own_tools *tools)
{
	pages_reset(&tools->pages);
	tools->is_kept = false;
	tools->is_failed = false;
	tools->is_fetching = true;
	tools->changes = count_changes(tools->client->pool);
	own_tools_ask(tools);
}

/* ---- the interface ---- */

static bool is_current(const struct own_tools *tools)
{
	const struct pool *pool = tools->client->pool;

	return tools->child != 0 && tools->child == own_child(tools->client) &&
	       tools->changes == count_changes(pool) &&
	       (pool->capabilities.tells & OFFER_TOOLS || clock_now_ms() < tools->until_ms);
}

enum listed_tool own_tools_find(const struct client *client, struct json name,
				struct listed_entry *entry_r)
{
	struct own_tools *tools = client->own_tools;
	struct named_item *tool;

	*entry_r = (struct listed_entry){ .is_annotated = false };
	if (tools == NULL || !tools->is_kept)
		return LISTED_UNKNOWN;
	if (!is_current(tools))
		return LISTED_CHANGED;
	tool = pages_find(&tools->pages, name);
	if (tool == NULL)
		return LISTED_ABSENT;
	entry_r->schema = tool->schema;
	entry_r->schema_key = &tool->schema_key;
	return LISTED_TOOL;
}

static struct own_tools *own_tools_new(struct client *client)
{
	struct own_tools *tools = mem_zalloc(sizeof(*tools));

	tools->client = client;
	tools->pages.member = SLICE_LIT("tools");
	task_init(&tools->step, own_tools_on_step);
	wait_queue_init(&tools->waiting, &own_tools_waiting_ops);
	return tools;
}

/*
 * A linked call, not yet visible to anyone else, waits for the list: it ends with some response
 * when the list has arrived, or fails. The list is fetched once for all waiting calls.
 */
static void own_tools_await(struct call *call, const struct envelope *env)
{
	struct client *client = call->client;

	CHECK(!pool_is_shared(client->pool) && call->state == CALL_WAITING);
	if (client->own_tools == NULL)
		client->own_tools = own_tools_new(client);
	wait_queue_append(&client->own_tools->waiting, &call->waiter, env->text.n);
	call_wait(call, client->server->conf.request_timeout_max_ms);
	if (!client->own_tools->is_fetching)
		begin(client->own_tools);
}

void own_tools_free(struct own_tools **tools)
{
	if (*tools == NULL)
		return;
	CHECK(wait_queue_is_empty(&(*tools)->waiting));
	task_cancel(&(*tools)->step);
	pages_reset(&(*tools)->pages);
	loop_defer_free((*tools)->client->router->loop, *tools);
	*tools = NULL;
}

/* ---- those who wait ---- */

#define LISTING_MS (10 * 1000) /* T_list, bridging.md §7 */

static struct list_wait *of_listing(struct call *listing)
{
	return container_of(listing, struct list_wait, listing);
}

static const struct client *client_of(const struct list_wait *wait)
{
	return wait->call->client;
}

/* ---- those who ask, and those who follow ---- */

/*
 * The followers continue later in the turn: with the list, by asking themselves, or by following
 * another.
 */
static void dismiss_followers(struct list_wait *wait)
{
	list_remove(&wait->link);
	while (!list_is_empty(&wait->followers)) {
		struct list_wait *other =
			container_of(wait->followers.next, struct list_wait, link);

		list_remove(&other->link);
		other->is_listed = wait->is_listed;
		task_schedule(client_of(wait)->router->loop, &other->step);
	}
}

/* Finds a wait to follow. A list that was requested before a change will not do. */
static struct list_wait *find_asking(const struct list_wait *wait)
{
	LIST_FOREACH(node, &client_of(wait)->list_waits) {
		struct list_wait *other = container_of(node, struct list_wait, link);

		if (other->changes == wait->changes && slice_is_equal(other->method, wait->method))
			return other;
	}
	return NULL;
}

/* ---- the call that waits ---- */

static void finish(struct list_wait *wait)
{
	struct call *call = wait->call;
	struct msg *body = call->body;
	struct envelope env;
	struct error err;
	bool is_read =
		scan_envelope(body->text, &client_of(wait)->router->limits, 0, &env, &err) == 0;

	CHECK(!wait->is_asking);
	dismiss_followers(wait);
	call->client->list_wait_bytes -= call->waiter.bytes;
	call_stop_wait(call);
	call->body = NULL;
	wait->on_done(wait, is_read ? &env : NULL); /* NULL cannot happen: it was read before */
	msg_unref(&body);
}

/* ---- the list ---- */

static void ask(struct list_wait *wait);

static void ask_or_follow(struct list_wait *wait)
{
	struct list_wait *asking = find_asking(wait);

	if (asking != NULL && wait->forwards) {
		list_append(&asking->followers, &wait->link);
	} else {
		if (wait->forwards)
			list_append(&wait->call->client->list_waits, &wait->link);
		ask(wait);
	}
}

/* Continues later in the turn: the code that answers our call is still running. */
static void note_answered(struct list_wait *wait)
{
	wait->is_asking = false;
	task_schedule(client_of(wait)->router->loop, &wait->step);
}

static void on_step(struct task *task)
{
	struct list_wait *wait = container_of(task, struct list_wait, step);

	if (wait->pages == 0 && !wait->is_listed)
		ask_or_follow(wait);
	else if (wait->cursor.len > 0 && wait->pages < PAGES_TAKEN_MAX)
		ask(wait);
	else
		finish(wait);
}

/* If the list is not forwarded, all pages have come with the first. */
static void take_page(struct list_wait *wait, const struct envelope *env)
{
	struct json cursor = scan_member(env->result.text, SLICE_LIT("nextCursor"));
	/* Who names an empty one again has begun from the start. UTIL-PAGE-01 */
	bool is_over =
		cursor_is_empty(cursor) && slice_is_equal(cursor.text, buf_slice(&wait->cursor));

	wait->cursor.len = 0;
	if (env->kind != ENVELOPE_RESULT)
		return;
	if (wait->forwards && cursor.type == JSON_STRING && !is_over &&
	    call_was_sent(&wait->listing))
		splice_append(&wait->cursor, cursor.text, NULL, 0, SPLICE_ONE_LINE);
	else
		wait->is_listed = true;
}

static void listing_on_response(struct call *listing, const struct slice *parts, size_t count)
{
	struct list_wait *wait = of_listing(listing);
	struct buf text = { 0 };
	struct envelope env;
	struct error err;

	for (size_t i = 0; i < count; i++)
		buf_append_slice(&text, parts[i]);
	if (scan_envelope(buf_slice(&text), &client_of(wait)->router->limits, SCAN_LENIENT, &env,
			  &err) == 0)
		take_page(wait, &env);
	buf_fini(&text);
	note_answered(wait);
}

static void listing_on_failed(struct call *listing, enum reason reason)
{
	(void)reason;
	of_listing(listing)->cursor.len = 0;
	note_answered(of_listing(listing));
}

static void listing_on_cancelled(struct call *listing)
{
	listing_on_failed(listing, REASON_CANCELLED);
}

static const struct call_ops listing_ops = {
	.on_message = own_call_drop_message,
	.is_reachable = own_call_has_no_reader,
	.on_response = listing_on_response,
	.on_failed = listing_on_failed,
	.on_cancelled = listing_on_cancelled,
};

static void append_request(const struct list_wait *wait, struct buf *text)
{
	buf_printf(text, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"%.*s\"",
		   SLICE_ARG(wait->method));
	if (wait->cursor.len > 0) {
		buf_append_str(text, ",\"params\":{\"cursor\":");
		buf_append_slice(text, buf_slice(&wait->cursor));
		buf_append_char(text, '}');
	}
	buf_append_char(text, '}');
}

/* Whether our call is answered, or will be, from a list that is kept for others as well. */
static bool is_kept(struct list_wait *wait, const struct envelope *env)
{
	if (pool_is_shared(client_of(wait)->pool))
		return list_cache_take(&wait->listing, env);
	if (!wait->forwards)
		own_tools_await(&wait->listing, env);
	return !wait->forwards;
}

static void ask(struct list_wait *wait)
{
	struct call *listing = &wait->listing;
	struct buf text = { 0 };
	struct envelope env;
	struct error err;

	append_request(wait, &text);
	CHECK(scan_envelope(buf_slice(&text), &client_of(wait)->router->limits, 0, &env, &err) ==
	      0);
	call_init(listing, &listing_ops, &env);
	wait->is_asking = true;
	wait->pages++;
	call_link(listing, wait->call->client);
	if (is_kept(wait, &env))
		goto out;
	if (wait->forwards)
		dispatch_call(listing, &env);
	else
		call_cancel(listing);
out:
	buf_fini(&text);
}

static void stop_asking(struct list_wait *wait)
{
	if (wait->is_asking) {
		call_give_up(&wait->listing, "nobody waits for it any more");
		call_cancel(&wait->listing);
	}
	task_cancel(&wait->step);
}

/* ---- beginning and end ---- */

/* While a process is being started, the call waits as long as that takes. */
static void on_timeout(struct wait_queue *queue, struct waiter *waiter)
{
	struct list_wait *wait = container_of(queue, struct list_wait, waiting);

	CHECK(call_of_waiter(waiter) == wait->call);
	if (pool_is_coming(client_of(wait)->pool)) {
		call_wait(wait->call, LISTING_MS);
	} else {
		stop_asking(wait);
		wait->has_timed_out = true;
		finish(wait);
	}
}

/* The call has ended. */
static void on_left(struct wait_queue *queue, struct waiter *waiter)
{
	call_of_waiter(waiter)->client->list_wait_bytes -= waiter->bytes;
	(void)queue;
}

static const struct wait_queue_ops waiting_ops = { .on_timeout = on_timeout, .on_left = on_left };

static bool has_room(const struct client *client, size_t size)
{
	size_t bytes = client->list_wait_bytes;

	return bytes == 0 || bytes + size <= client->server->conf.queue_max;
}

void list_wait_begin(struct list_wait *wait, list_wait_done_fn *on_done, struct call *call,
		     const struct envelope *env)
{
	CHECK(!wait->is_asking && wait->method.n > 0);
	wait->on_done = on_done;
	wait->call = call;
	wait->is_listed = wait->has_timed_out = false;
	wait->pages = 0;
	wait->cursor.len = 0;
	wait->changes = pool_memory_changes(client_of(wait)->pool);
	list_init(&wait->link);
	list_init(&wait->followers);
	task_init(&wait->step, on_step);
	wait_queue_init(&wait->waiting, &waiting_ops);
	if (!has_room(client_of(wait), env->text.n)) {
		call_fail(call, REASON_OVER_LIMIT);
		return;
	}
	call->client->list_wait_bytes += env->text.n;
	call->body = msg_new(env->text);
	wait_queue_append(&wait->waiting, &call->waiter, env->text.n);
	call_wait(call, LISTING_MS);
	ask_or_follow(wait);
}

void list_wait_end(struct list_wait *wait)
{
	stop_asking(wait);
	wait->is_listed = false;
	dismiss_followers(wait);
	buf_fini(&wait->cursor);
}

/* ---- pin check ---- */

/*
 * Admission has checked that no list has shown that the item is withheld; here a list must have
 * shown the item.
 */

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
