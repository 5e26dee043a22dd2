/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call that fetches is a call of the session like any other, so whatever ends those ends it.
 * Between two pages it has ended: the next page is requested later in the turn.
 */
#include "router/own_tools.h"

#include "base/clock.h"
#include "base/mem.h"
#include "io/loop.h"
#include "process/server_rules.h"
#include "router/call.h"
#include "router/client.h"
#include "router/dispatch.h"
#include "router/own_call.h"
#include "router/pages.h"
#include "router/pool.h"
#include "router/pool_demand.h"
#include "router/result.h"
#include "router/router.h"

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

static const struct wait_queue_ops waiting_ops = { .on_timeout = call_on_wait_timeout };

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

	wait_queue_init(&waiting, &waiting_ops);
	wait_queue_move(&waiting, &tools->waiting);
	while (!wait_queue_is_empty(&waiting)) {
		struct call *call = call_of_waiter(wait_queue_first(&waiting));

		if (tools->is_failed)
			call_fail(call, REASON_CHILD_PROTOCOL_ERROR);
		else
			result_send_own(call, SLICE_LIT("{}"));
	}
}

static void finish(struct own_tools *tools)
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

static void ask(struct own_tools *tools)
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

static void on_step(struct task *task)
{
	struct own_tools *tools = container_of(task, struct own_tools, step);

	if (!tools->is_failed && tools->pages.cursor.len > 0)
		ask(tools);
	else
		finish(tools);
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
	ask(tools);
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
	task_init(&tools->step, on_step);
	wait_queue_init(&tools->waiting, &waiting_ops);
	return tools;
}

void own_tools_await(struct call *call, const struct envelope *env)
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
