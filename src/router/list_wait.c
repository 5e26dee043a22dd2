/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The response to our own call is passed on to nobody. In a shared pool the list cache keeps the
 * list, and asks the server once for all who want it meanwhile; so does own_tools for a session
 * that has its server to itself. If requests are forwarded, one call of a session asks, and others
 * follow it.
 */
#include "router/list_wait.h"

#include "io/loop.h"
#include "jsonrpc/msg.h"
#include "jsonrpc/splice.h"
#include "router/client.h"
#include "router/cursor.h"
#include "router/dispatch.h"
#include "router/list_cache.h"
#include "router/own_call.h"
#include "router/own_tools.h"
#include "router/pages.h"
#include "router/pool.h"
#include "router/router.h"

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
