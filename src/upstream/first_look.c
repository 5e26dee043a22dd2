/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A first look that fails counts, and is logged, as a failure of the server like that of any other
 * process. A server that refuses initialize is asked again in the modern era, in a new process,
 * unless its era is known.
 */
#include "upstream/first_look.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "io/ipc.h"
#include "io/loop.h"
#include "jsonrpc/msg.h"
#include "mcp/error.h"
#include "mcp/revision.h"
#include "obs/log.h"
#include "process/server.h"
#include "process/spawn.h"
#include "upstream/modern.h"
#include "upstream/send.h"
#include "upstream/stdio.h"
#include "upstream/upstream.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0"
#endif

#define AT_ONCE 4 /* processes */
#define LIST_MS 30000
#define PAGES_MAX 200
#define PAGE_TOOLS_MAX 100000
#define CURSOR_BYTES_MAX 4096

struct first_look {
	struct list link;
	struct first_looks *looks;
	struct server *server;
	struct upstream *upstream; /* NULL: it is gone */
	struct upstream_setup setup;
	struct upstream_request listing;
	bool has_begun; /* its turn has come */
	bool is_listing;
	bool is_over;
	struct list waiters;
	struct task telling;
	struct timer deadline; /* of the whole list */
	uint64_t began_ms;
	uint64_t answered_ms; /* how long the handshake took, at least 1; 0: not answered yet */
	struct buf name;      /* what the server calls itself; decoded */
	struct buf version;
	size_t tools;
	size_t pages;
};

static void first_look_start(struct first_look *look, const struct upstream_era *era);
static void first_looks_go_on(struct first_looks *looks);

static struct first_look *look_of(const struct upstream *upstream)
{
	return container_of(upstream->setup, struct first_look, setup);
}

static void first_look_free(struct first_look *look)
{
	CHECK(look->upstream == NULL && list_is_empty(&look->waiters));
	look->server->users--;
	list_remove(&look->link);
	timer_stop(&look->deadline);
	task_cancel(&look->telling);
	msg_unref(&look->setup.initialize);
	buf_fini(&look->name);
	buf_fini(&look->version);
	loop_defer_free(look->looks->shared->loop, look);
}

/* Waiters may do anything, so they are told when nothing of the process is on the call stack. */
static void first_look_on_telling(struct task *task)
{
	struct first_look *look = container_of(task, struct first_look, telling);
	struct first_looks *looks = look->looks;
	struct list waiters;

	list_init(&waiters);
	list_splice(&waiters, &look->waiters);
	if (look->is_over) {
		CHECK(looks->running > 0);
		looks->running--;
		first_look_free(look);
		first_looks_go_on(looks);
	}
	while (!list_is_empty(&waiters)) {
		struct era_waiter *waiter = container_of(waiters.next, struct era_waiter, link);

		era_waiter_leave(waiter);
		waiter->on_verdict(waiter);
	}
}

static void first_look_tell(struct first_look *look)
{
	task_schedule(look->looks->shared->loop, &look->telling);
}

/* Ends the look. tools: the number of its tools, or an enum ipc_found. */
static void first_look_end(struct first_look *look, int tools)
{
	const struct server *server = look->server;

	CHECK(!look->is_over && look->has_begun);
	spawner_note_found(server->spawner, server->conf.server, tools, buf_slice(&look->name),
			   buf_slice(&look->version));
	look->is_over = true;
	timer_stop(&look->deadline);
	if (look->upstream != NULL)
		upstream_close(look->upstream, REASON_DONE);
	first_look_tell(look);
}

/* ---- its tools ---- */

/* error: why the tools could not be counted, or NULL. */
static void first_look_report(struct first_look *look, const char *error)
{
	const char *server = look->server->conf.name;
	struct slice revision = look->upstream->revision->name;

	CHECK(look->answered_ms > 0 && look->upstream != NULL);
	if (error == NULL)
		LOG_BY(SERVER_FOUND, (uintptr_t)look->server, LOG_STR("server", server),
		       LOG_SLICE("name", buf_slice(&look->name)),
		       LOG_SLICE("version", buf_slice(&look->version)),
		       LOG_SLICE("revision", revision), LOG_INT("tools", look->tools),
		       LOG_INT("start_ms", look->answered_ms));
	else
		LOG_BY(SERVER_UNLISTED, (uintptr_t)look->server, LOG_STR("server", server),
		       LOG_SLICE("name", buf_slice(&look->name)),
		       LOG_SLICE("version", buf_slice(&look->version)),
		       LOG_SLICE("revision", revision), LOG_STR("error", error),
		       LOG_INT("start_ms", look->answered_ms));
	first_look_end(look, error == NULL ? (int)look->tools : IPC_FOUND_UNLISTED);
}

static void first_look_list(struct first_look *look, struct slice cursor)
{
	struct upstream *upstream = look->upstream;
	uint64_t id = upstream_next_id(upstream);
	struct buf params = { 0 };

	CHECK(!look->is_listing);
	if (cursor.n > 0)
		buf_printf(&params, "{\"cursor\":%.*s}", SLICE_ARG(cursor));
	look->is_listing = true;
	upstream_add_request(upstream, &look->listing, id);
	send_request(upstream, id, SLICE_LIT("tools/list"), buf_slice(&params));
	buf_fini(&params);
}

static int count_tool(struct slice element, void *arg)
{
	size_t *count = arg;

	(void)element;
	(*count)++;
	return 0;
}

static void on_list(struct upstream_request *request, const struct envelope *env)
{
	struct first_look *look = container_of(request, struct first_look, listing);
	struct json tools = scan_member(env->result.text, SLICE_LIT("tools"));
	struct json cursor = scan_member(env->result.text, SLICE_LIT("nextCursor"));
	struct error err;

	look->is_listing = false;
	upstream_end_request(request, true);
	if (env->kind != ENVELOPE_RESULT ||
	    scan_array(tools.text, PAGE_TOOLS_MAX, count_tool, &look->tools, &err) < 0)
		first_look_report(look, "tools/list was answered with an error, or with no list");
	else if (cursor.type != JSON_STRING)
		first_look_report(look, NULL);
	else if (++look->pages == PAGES_MAX || cursor.text.n > CURSOR_BYTES_MAX)
		first_look_report(look, "tools/list has no end");
	else
		first_look_list(look, cursor.text);
}

static void on_malformed_list(struct upstream_request *request, enum reason reason)
{
	struct first_look *look = container_of(request, struct first_look, listing);

	look->is_listing = false;
	upstream_end_request(request, true);
	first_look_report(look,
			  reason == REASON_CHILD_LINE_TOO_LONG ?
				  "the answer to tools/list is larger than limits.response" :
				  "tools/list was answered with something that is no message");
}

static void on_lost_list(struct upstream_request *request, enum reason reason)
{
	(void)request;
	(void)reason; /* on_closed takes the request back */
}

static const struct upstream_request_ops list_ops = {
	.on_response = on_list,
	.on_malformed = on_malformed_list,
	.on_lost = on_lost_list,
};

static void first_look_on_deadline(struct timer *timer)
{
	first_look_report(container_of(timer, struct first_look, deadline),
			  "tools/list was not answered within 30 s");
}

/* ---- what the process does ---- */

static void on_ready(struct upstream *upstream, const struct envelope *response,
		     struct slice described)
{
	static const char *const name[] = { "serverInfo", "name" };
	static const char *const version[] = { "serverInfo", "version" };
	static const char *const tools[] = { "capabilities", "tools" };
	struct slice result = response->result.text;
	struct first_look *look = look_of(upstream);

	(void)described;
	look->answered_ms = clock_now_ms() - look->began_ms + 1;
	(void)!scan_decode_string(scan_path(result, name, ARRAY_LEN(name)), &look->name);
	(void)!scan_decode_string(scan_path(result, version, ARRAY_LEN(version)), &look->version);
	if (upstream_is_modern(upstream)) {
		era_note(look->server, ERA_MODERN);
	} else {
		era_note_answered(look->server);
		send_initialized(upstream);
	}
	first_look_tell(look);
	if (scan_path(result, tools, ARRAY_LEN(tools)).type == JSON_ABSENT) {
		first_look_report(look, NULL);
		return;
	}
	timer_start(look->looks->shared->loop, &look->deadline, LIST_MS);
	first_look_list(look, slice_of(NULL, 0));
}

static void on_refused(struct upstream *upstream, const struct envelope *response)
{
	struct first_look *look = look_of(upstream);

	if (upstream_is_modern(upstream) || era_of(look->server) != ERA_UNKNOWN) {
		upstream_era_note_refusal(upstream, response);
		upstream_refuse(upstream);
		return;
	}
	if (modern_is_named(response->error.text))
		era_note(look->server, ERA_MODERN);
	look->is_over = true; /* for a moment: on_closed must not take this for a loss */
	upstream_close(upstream, REASON_DONE);
	look->is_over = false;
	first_look_start(look, &upstream_era_modern);
}

static void on_request(struct upstream *upstream, const struct envelope *env)
{
	if (slice_is_equal(env->method, SLICE_LIT("ping")))
		send_result(upstream, env->id.text, SLICE_LIT("{}"));
	else
		send_error(upstream, env->id.text, MCP_METHOD_NOT_FOUND,
			   SLICE_LIT("Method not found"));
}

static void on_notification(struct upstream *upstream, const struct envelope *env)
{
	(void)upstream;
	(void)env; /* there is no client to pass it to */
}

static void on_request_end(struct upstream *upstream, struct upstream_request *request,
			   bool is_answered)
{
	(void)upstream;
	(void)request;
	(void)is_answered;
}

static void on_rest(struct upstream *upstream)
{
	(void)upstream; /* the answer decides what comes next */
}

static void on_closed(struct upstream *upstream)
{
	struct first_look *look = look_of(upstream);

	CHECK(look->upstream == upstream);
	look->upstream = NULL;
	if (!look->is_over && look->answered_ms == 0 && upstream->era != NULL) {
		if (upstream_is_modern(upstream))
			era_note(look->server, ERA_UNKNOWN);
		else
			era_note_unanswered(look->server);
	}
	if (look->is_listing)
		map_remove(&upstream->requests, look->listing.id);
	look->is_listing = false;
	if (!look->is_over)
		first_look_end(look,
			       look->answered_ms == 0 ? IPC_FOUND_FAILING : IPC_FOUND_UNLISTED);
}

static void on_lost(struct upstream *upstream, enum reason reason)
{
	(void)upstream;
	(void)reason; /* logged where it was noticed; on_closed has run before */
}

static const struct upstream_owner_ops owner_ops = {
	.on_ready = on_ready,
	.on_refused = on_refused,
	.on_request = on_request,
	.on_notification = on_notification,
	.on_request_end = on_request_end,
	.on_rest = on_rest,
	.on_closed = on_closed,
	.on_lost = on_lost,
};

/* ---- the beginning ---- */

static void first_look_start(struct first_look *look, const struct upstream_era *era)
{
	struct upstream_shared *shared = look->looks->shared;
	uint64_t wait_ms = 0;

	CHECK(look->upstream == NULL);
	if (server_admit(look->server, &wait_ms) != REASON_NONE) {
		first_look_end(look, IPC_FOUND_UNLISTED);
		return;
	}
	look->setup.era = era;
	look->upstream = stdio_new(shared, look->server);
	upstream_begin(look->upstream, &owner_ops, &look->setup, wait_ms);
}

static void first_look_begin(struct first_look *look)
{
	bool is_modern = era_of(look->server) == ERA_MODERN;

	CHECK(!look->has_begun);
	look->has_begun = true;
	look->looks->running++;
	look->began_ms = clock_now_ms();
	if (look->server->is_retired)
		first_look_end(look, IPC_FOUND_UNLISTED); /* the answer is no longer needed */
	else
		first_look_start(look, is_modern ? &upstream_era_modern : &upstream_era_legacy);
}

/* Starts as many as may run at once. */
static void first_looks_go_on(struct first_looks *looks)
{
	LIST_FOREACH(node, &looks->all) {
		struct first_look *look = container_of(node, struct first_look, link);

		if (looks->running >= AT_ONCE)
			return;
		if (!look->has_begun)
			first_look_begin(look);
	}
}

static struct msg *make_initialize(const struct revision *revision)
{
	struct buf text = { 0 };

	buf_printf(&text,
		   "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
		   "\"protocolVersion\":\"%.*s\",\"capabilities\":{},\"clientInfo\":{"
		   "\"name\":\"mcpgated\",\"version\":\"" PACKAGE_VERSION "\"}}}",
		   SLICE_ARG(revision->name));
	return msg_new_take(&text);
}

void first_looks_init(struct first_looks *looks, struct upstream_shared *shared)
{
	looks->shared = shared;
	looks->running = 0;
	list_init(&looks->all);
}

void first_looks_add(struct first_looks *looks, struct server *server)
{
	struct first_look *look = mem_zalloc(sizeof(*look));

	CHECK(server->conf.claims.count == 0);
	look->looks = looks;
	look->server = server;
	server->users++;
	look->listing.ops = &list_ops;
	look->setup.revision = revision_newest();
	look->setup.initialize = make_initialize(look->setup.revision);
	list_init(&look->waiters);
	task_init(&look->telling, first_look_on_telling);
	timer_init(&look->deadline, first_look_on_deadline);
	list_append(&looks->all, &look->link);
	first_looks_go_on(looks);
}

bool first_looks_wait(struct first_looks *looks, const struct server *server,
		      struct era_waiter *waiter)
{
	CHECK(waiter->on_verdict != NULL && !era_waiter_is_waiting(waiter));
	LIST_FOREACH(node, &looks->all) {
		struct first_look *look = container_of(node, struct first_look, link);

		if (look->server != server || look->is_over || look->answered_ms > 0)
			continue;
		list_append(&look->waiters, &waiter->link);
		if (!look->has_begun)
			first_look_begin(look); /* somebody needs it now */
		return true;
	}
	return false;
}

void first_looks_end(struct first_looks *looks, enum reason reason)
{
	while (!list_is_empty(&looks->all)) {
		struct first_look *look = container_of(looks->all.next, struct first_look, link);

		look->is_over = true;
		while (!list_is_empty(&look->waiters))
			era_waiter_leave(container_of(look->waiters.next, struct era_waiter, link));
		if (look->upstream != NULL)
			upstream_close(look->upstream, reason);
		first_look_free(look);
	}
	looks->running = 0;
}
