/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cached list is one list for one principal, on its way or kept. The first call that needs it
 * makes it wanted; calls meanwhile wait for it, and later ones get it at once. A call waits for the
 * list as its answer, or to go on with what the list tells (call->needs_list). When the server says that
 * the list has changed, calls that already wait get what comes, and the next call makes another
 * list.
 *
 * Only the process that a kept list is from can report a change of it: so the list is fetched again
 * when that process is gone and there are others, or after five seconds if it does not report
 * changes. When no process is left, the list is remembered as the pool is (pool_memory). Errors are
 * given to the calls that wait, and forgotten.
 *
 * Whoever looks up one tool accepts an older list: it is the one that clients act on. With pins,
 * also a list that cannot be kept is read to its end, so that all of it is looked at.
 */
#include "router/lists.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/slice.h"
#include "io/aside.h"
#include "mcp/error.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "process/server_rules.h"
#include "router/call.h"
#include "router/client.h"
#include "router/convert.h"
#include "router/pages.h"
#include "router/dispatch.h"
#include "router/listing.h"
#include "router/pool.h"
#include "router/process_slots.h"
#include "router/result.h"
#include "router/router.h"
#include "upstream/send.h"

/* ---- list request ---- */

#define REQUEST_BYTES_MAX 1024 /* of one that may wait for a list: an id, and trace context */

/*
 * Whether it asks for the start of a list, in few bytes, with nothing in it that the server may
 * want to know.
 */
static bool list_request_is_plain(const struct envelope *env)
{
	/* None of these changes the response; those of the modern era never reach a process. */
	static const struct slice harmless[] = { SLICE("progressToken"), SLICE("traceparent"),
						 SLICE("tracestate"), SLICE("baggage") };

	SCAN_MEMBERS(param, env->params.text) {
		if (!slice_is_equal(param.name, SLICE_LIT("_meta")))
			return false;
		SCAN_MEMBERS(member, param.value.text)
			if (!slices_has((struct slices){ harmless, ARRAY_LEN(harmless) },
					member.name) &&
			    !slice_has_prefix(member.name, SLICE_LIT("io.modelcontextprotocol/")))
				return false;
	}
	return env->params.type != JSON_ARRAY && env->text.n <= REQUEST_BYTES_MAX;
}

/* ---- the cache ---- */

#define FRESH_MS 5000
#define PASSED_MS (5 * 60 * 1000) /* how long a list that cannot be kept is not tried again */
#define KEPT_BYTES_MAX (64 * 1024 * 1024)
#define ANNOTATION SLICE_LIT("x-mcp-header")
#define LISTING_MS (10 * 1000) /* T_list, bridging.md §7 */

enum cached_list_state {
	CACHED_LIST_WANTED,
	CACHED_LIST_ASKED,  /* a page is on its way */
	CACHED_LIST_GIVING, /* it, or an error, has come: waiting calls get it */
	CACHED_LIST_KEPT,
	CACHED_LIST_PASSED, /* it cannot be kept: requests are forwarded */
	CACHED_LIST_ENDED,  /* without a list: waiting calls go on without it */
};

struct cached_list {
	struct list link;                /* of the pool's */
	struct list lru;                 /* of those that are kept, or passed */
	struct pool_job job;             /* while it is wanted */
	struct upstream_request request; /* for a page */
	struct pool *pool;               /* NULL: it is freed at the end of the turn */
	struct principal *principal;     /* whose it is: others may see another one */
	const struct listing_kind *kind;
	enum cached_list_state state;
	bool is_current;
	bool is_repeated;                /* a process was lost over it, and another one was asked */
	uint64_t child;                  /* the process it is from */
	uint64_t changes;                /* count_changes before it was asked for */
	uint64_t rules;                  /* server_rules, likewise */
	uint64_t losses;                 /* the pool's lost processes, likewise */
	uint64_t looks;                  /* count_looks, likewise */
	const struct revision *revision; /* of that process */
	uint64_t until_ms; /* fresh, or passed; once its process was closed: remembered */
	struct pages pages;
	bool has_annotations;      /* x-mcp-header occurs somewhere in it */
	struct text_set broken;    /* its tools whose annotations do not count, which was logged */
	size_t bytes;              /* counted among the bytes of all lists */
	struct wait_queue waiting; /* calls */
	enum list_outcome outcome; /* for them, once it has ended or is passed */
	enum reason reason; /* likewise, if it was to be their answer; REASON_NONE: they go on */
	struct timer deadline;
	struct task giving;
	struct aside aside; /* does what `giving` is for, if the list is long */
};

#define TO(state) (1u << CACHED_LIST_##state)
static const unsigned int next_states[] = {
	[CACHED_LIST_WANTED] = TO(ASKED) | TO(ENDED),
	[CACHED_LIST_ASKED] = TO(WANTED) | TO(GIVING) | TO(PASSED) | TO(ENDED),
	[CACHED_LIST_GIVING] = TO(KEPT) | TO(ENDED),
	[CACHED_LIST_KEPT] = TO(ENDED),
	[CACHED_LIST_PASSED] = TO(ENDED),
	[CACHED_LIST_ENDED] = 0,
};
#undef TO

/* ---- the lists ---- */

static struct lists *lists_of(const struct cached_list *list)
{
	return &list->pool->lists;
}

static struct lists_lru *lru_of(const struct cached_list *list)
{
	return &list->pool->router->lists;
}

/* Pointers to principals are far enough apart to add the kind. */
static uint64_t cached_list_key(const struct principal *principal, enum permission_kind kind)
{
	return (uint64_t)(uintptr_t)principal + kind;
}

/* Makes a list that is kept, or passed, the last one to be forgotten. */
static void cached_list_touch(struct cached_list *list)
{
	CHECK(list->is_current || list->state != CACHED_LIST_KEPT);
	list_remove(&list->lru);
	if (list->state == CACHED_LIST_KEPT || list->state == CACHED_LIST_PASSED)
		list_append(&lru_of(list)->kept, &list->lru);
}

static void cached_list_set_state(struct cached_list *list, enum cached_list_state state)
{
	CHECK(next_states[list->state] & 1u << state);
	list->state = state;
	cached_list_touch(list);
}

/* It changes with the server's lists and with its rules: then older lists no longer count. */
static uint64_t lists_count_changes(const struct cached_list *list)
{
	return lists_of(list)->changes[list->kind->kind] + server_rules(list->pool->server);
}

/* When this changes, what whole lists have shown no longer counts. */
static uint64_t count_looks(const struct pool *pool, enum permission_kind kind)
{
	return pool->lists.begun + pool->lists.changes[kind] + server_rules(pool->server);
}

static bool has_come(const struct cached_list *list)
{
	return list->state == CACHED_LIST_GIVING || list->state == CACHED_LIST_KEPT;
}

static void cached_list_count_bytes(struct cached_list *list, size_t bytes)
{
	CHECK(lru_of(list)->bytes >= list->bytes);
	lru_of(list)->bytes += bytes - list->bytes;
	list->bytes = bytes;
}

/* Calls no longer find it. */
static void cached_list_forget(struct cached_list *list)
{
	if (list->is_current)
		map_remove(&lists_of(list)->current,
			   cached_list_key(list->principal, list->kind->kind));
	list->is_current = false;
}

static void cached_list_free(struct cached_list *list)
{
	CHECK(wait_queue_is_empty(&list->waiting));
	cached_list_forget(list);
	list_remove(&list->link);
	list_remove(&list->lru);
	pool_remove_job(&list->job);
	timer_stop(&list->deadline);
	task_cancel(&list->giving);
	aside_cancel(&list->aside);
	cached_list_count_bytes(list, 0);
	pages_reset(&list->pages);
	text_set_fini(&list->broken);
	principal_unref(&list->principal);
	loop_defer_free(list->pool->router->loop, list);
	list->pool = NULL;
}

/*
 * Ends without a list. The calls that wait go on with the outcome, over the next turns; those whose
 * answer it was to be fail for the reason, if there is one.
 */
static void cached_list_end(struct cached_list *list, enum list_outcome outcome, enum reason reason)
{
	cached_list_forget(list);
	pool_remove_job(&list->job);
	timer_stop(&list->deadline);
	pages_reset(&list->pages);
	cached_list_count_bytes(list, sizeof(*list));
	list->outcome = outcome;
	list->reason = reason;
	cached_list_set_state(list, CACHED_LIST_ENDED);
	task_schedule(list->pool->router->loop, &list->giving);
}

/* Calls from now on get another list. */
static void cached_list_outdate(struct cached_list *list)
{
	if (!list->is_current)
		return;
	cached_list_forget(list);
	if (list->state == CACHED_LIST_PASSED && !wait_queue_is_empty(&list->waiting))
		cached_list_end(list, list->outcome, REASON_NONE);
	else if (list->state == CACHED_LIST_KEPT && !wait_queue_is_empty(&list->waiting))
		cached_list_end(list, LIST_OUTDATED, REASON_NONE);
	else if (list->state == CACHED_LIST_KEPT || list->state == CACHED_LIST_PASSED)
		cached_list_free(list);
}

/* ---- waiting calls ---- */

/* What it keeps counts no longer among what its client's calls keep. */
static void discount(const struct call *call)
{
	if (call->needs_list)
		call->client->list_wait_bytes -= call->waiter.bytes;
}

/* A call that waits for the list as its answer is handled anew, after LIST_FAILED as if there were no catalogue. */
static void lists_hand_back(struct call *call, enum list_outcome outcome)
{
	struct router *router = call->client->router;
	at_end(msg_unref) struct msg *body = msg_ref(call->body);

	discount(call);
	call_stop_wait(call);
	msg_unref(&call->body);
	if (call_is_stale(call))
		router->on_stale(call, body->env);
	else if (call->needs_list)
		router->on_list(call, body->env, outcome);
	else if (outcome != LIST_OUTDATED || !lists_take(call, body->env))
		dispatch_call(call, body->env);
}

static bool is_under_other_rules(const struct cached_list *list)
{
	return list->rules != server_rules(list->pool->server);
}

static bool is_awaited_by_stale(const struct cached_list *list)
{
	return !wait_queue_is_empty(&list->waiting) &&
	       call_is_stale(call_of_waiter(wait_queue_first(&list->waiting)));
}

/* The list cannot be kept. LIST_CAME: all of it has come all the same. */
static void cached_list_pass(struct cached_list *list, enum list_outcome outcome)
{
	CHECK(list->request.upstream != NULL);
	if (!list->is_current) {
		cached_list_end(list, outcome, REASON_NONE);
		return;
	}
	LOG_BY(LIST_PASSED, (uintptr_t)list->pool->server,
	       LOG_STR("server", list->pool->server->conf.name),
	       LOG_SLICE("method", list->kind->method), LOG_INT("pages", list->pages.taken));
	pages_reset(&list->pages);
	cached_list_count_bytes(list, sizeof(*list));
	list->until_ms = clock_now_ms() + PASSED_MS;
	list->outcome = outcome;
	list->reason = REASON_NONE;
	cached_list_set_state(list, CACHED_LIST_PASSED);
	task_schedule(list->pool->router->loop, &list->giving);
}

/* The list, or what the call is given of it, may end meanwhile. */
static void cached_list_give_page(struct cached_list *list, struct call *call, size_t page)
{
	at_end(msg_unref) struct msg *msg = msg_ref(list->pages.joined[page]);

	call->may_pause = true;
	result_send_kept(call, list->revision, msg->env);
}

/* The page that the call asks for. */
static size_t find_page(const struct cached_list *list, const struct call *call)
{
	uint64_t number, page;

	if (cursor_open_page(call->body->env->cursor, &number, &page) < 0)
		return 0;
	CHECK(page < list->pages.count);
	return page;
}

static void cached_list_give_to(struct cached_list *list, struct call *call)
{
	bool is_there = has_come(list);

	CHECK(is_there || list->state == CACHED_LIST_PASSED || list->state == CACHED_LIST_ENDED);
	if (is_there && !call->needs_list) {
		size_t page = find_page(list, call);

		call_stop_wait(call);
		cached_list_give_page(list, call, page);
	} else if (is_there) {
		lists_hand_back(call, list->pages.joined[0]->env->kind == ENVELOPE_RESULT ?
					      LIST_CAME :
					      LIST_FAILED);
	} else if (call->needs_list || list->reason == REASON_NONE) {
		lists_hand_back(call, list->outcome);
	} else {
		call_fail(call, list->reason);
	}
}

/* Thousands of calls may wait, each for a long list, or to be checked by it: that takes several turns. */
static void cached_list_give_on(struct cached_list *list)
{
	CHECK(!has_come(list) || list->pages.count > 0);
	if (has_come(list) && !wait_queue_is_empty(&list->waiting) &&
	    (is_under_other_rules(list) || is_awaited_by_stale(list))) {
		cached_list_end(list, LIST_OUTDATED, REASON_NONE);
		return;
	}
	while (!wait_queue_is_empty(&list->waiting)) {
		cached_list_give_to(list, call_of_waiter(wait_queue_first(&list->waiting)));
		if (list->pool == NULL)
			return; /* that has ended its session, and the pool */
		if (loop_turn_is_long(list->pool->router->loop))
			break;
	}
	if (!wait_queue_is_empty(&list->waiting))
		task_schedule(list->pool->router->loop, &list->giving);
	else if (list->state == CACHED_LIST_GIVING && list->is_current)
		cached_list_set_state(list, CACHED_LIST_KEPT);
	else if (list->state != CACHED_LIST_PASSED && list->state != CACHED_LIST_KEPT)
		cached_list_free(list);
}

static void cached_list_on_aside(struct aside *aside)
{
	cached_list_give_on(container_of(aside, struct cached_list, aside));
}

/* Whether to look through it for one client takes so long that it is done aside. */
static bool cached_list_is_long(const struct cached_list *list)
{
	return has_come(list) && list->pages.bytes >= ASIDE_BYTES;
}

static void cached_list_on_giving(struct task *task)
{
	struct cached_list *list = container_of(task, struct cached_list, giving);

	if (!cached_list_is_long(list))
		cached_list_give_on(list);
	else if (!aside_is_pending(&list->aside))
		aside_start(list->pool->router->loop, &list->aside, (uintptr_t)list->pool->server);
}

static void cached_list_give(struct cached_list *list)
{
	cached_list_set_state(list, CACHED_LIST_GIVING);
	task_schedule(list->pool->router->loop, &list->giving);
}

/* ---- fetching ---- */

static void cached_list_ask(struct cached_list *list, struct upstream *upstream)
{
	struct slice cursor = buf_slice(&list->pages.cursor);
	uint64_t id = upstream_next_id(upstream);
	at_end(buf_fini) struct buf params = { 0 };

	if (cursor.n > 0) {
		buf_append_str(&params, "{\"cursor\":");
		splice_append(&params, cursor, NULL, 0, SPLICE_ESCAPE_SEPARATORS);
		buf_append_char(&params, '}');
	}
	send_request(upstream, id, list->kind->method, buf_slice(&params));
	if (list->pages.taken == 0)
		upstream_add_request(upstream, &list->request, id);
	else
		upstream_renumber_request(&list->request, id);
	timer_start(upstream->shared->loop, &list->deadline,
		    upstream->server->conf.request_timeout_ms);
}

static void cached_list_on_turn(struct pool_job *job, struct upstream *upstream)
{
	struct cached_list *list = container_of(job, struct cached_list, job);

	CHECK(list->state == CACHED_LIST_WANTED);
	counter_add(COUNTER_LISTS_FETCHED);
	list->child = upstream_child_number(upstream);
	list->revision = upstream->revision;
	list->changes = lists_count_changes(list);
	list->rules = server_rules(list->pool->server);
	list->losses = list->pool->memory.losses;
	list->looks = count_looks(list->pool, list->kind->kind);
	cached_list_set_state(list, CACHED_LIST_ASKED);
	cached_list_ask(list, upstream);
}

/* Ends the request at the upstream. */
static void cached_list_leave_upstream(struct cached_list *list)
{
	CHECK(list->state == CACHED_LIST_ASKED);
	timer_stop(&list->deadline);
	upstream_end_request(&list->request, true);
}

/* The page that was requested last, as listing_kind_page. */
static uint64_t page_of(const struct cached_list *list)
{
	const struct slice cursor = buf_slice(&list->pages.cursor);

	return listing_kind_page(
		(struct json){ list->pages.taken > 0 ? JSON_STRING : JSON_ABSENT, true, cursor });
}

/* Nothing about tasks of 2025-11-25 is kept. */
static enum pages_outcome cached_list_add_page(const struct cached_list *list, struct pages *pages,
					       uint64_t page, const struct envelope *env)
{
	const struct method *method = method_find(list->kind->method);
	const struct upstream *upstream = list->request.upstream;
	const struct scan_limits *limits = &list->pool->router->limits;
	struct server *server = list->pool->server;
	at_end(convert_fini) struct convert convert = { .text = { 0 } }, bridge = { .text = { 0 } };
	enum pages_outcome outcome;

	listing_look(server, method, env->result.text, page);
	if (upstream_is_modern(upstream))
		env = modern_server_response(&bridge, method, env);
	env = convert_response(&convert, upstream->revision->features & REVISION_TASKS, method,
			       env);
	outcome = pages_add(pages, env->result.text);
	if (outcome == PAGES_UNFIT && server->conf.pin == PIN_ENFORCE)
		outcome = pages_skip(pages, env->result.text);
	if (outcome == PAGES_COMPLETE && !pages->is_skipping)
		pages_join(pages, limits);
	if (pages->count > 0 && !pages->is_skipping && server->conf.checks_schemas)
		pages_name_items(pages);
	return outcome;
}

/* What lists of these pools take that are on their way; of this server, if it is not NULL. */
static size_t coming_bytes(const struct list *pools, const struct server *server)
{
	size_t bytes = 0;

	LIST_EACH(const struct pool, pool, pools, link) {
		if (server != NULL && pool->server != server)
			continue;
		LIST_EACH(const struct cached_list, one, &pool->lists.all, link)
			bytes += one->state == CACHED_LIST_ASKED ? one->bytes : 0;
	}
	return bytes;
}

/*
 * Whether its server has more than a quarter of all room in lists that are on their way, while these take more than
 * half of it together: nothing else makes them give way.
 */
static bool cached_list_takes_too_much(const struct cached_list *list)
{
	const struct process_slots *slots = &list->pool->router->slots;
	const struct server *server = list->pool->server;

	return coming_bytes(&slots->pools, NULL) + coming_bytes(&slots->awake, NULL) >
		       KEPT_BYTES_MAX / 2 &&
	       coming_bytes(&slots->pools, server) + coming_bytes(&slots->awake, server) >
		       KEPT_BYTES_MAX / 4;
}

/*
 * Meanwhile the list may end, and what it has come with: its pages are in nobody's hands but ours. Returns whether it goes
 * on. Room is made by forgetting what has not been asked for for longest.
 */
static bool cached_list_take_page(struct cached_list *list, const struct envelope *env,
				  enum pages_outcome *outcome_r)
{
	const struct upstream_request asked = list->request;
	struct lists_lru *lru = lru_of(list);
	struct pages pages = list->pages;
	uint64_t page = page_of(list);

	list->pages = (struct pages){ .member = pages.member };
	aside_open();
	*outcome_r = cached_list_add_page(list, &pages, page, env);
	aside_close();
	if (list->pool == NULL || list->state != CACHED_LIST_ASKED ||
	    list->request.upstream != asked.upstream || list->request.id != asked.id) {
		pages_reset(&pages);
		return false;
	}
	list->pages = pages;
	cached_list_count_bytes(list, sizeof(*list) + list->pages.bytes);
	while (lru->bytes > KEPT_BYTES_MAX && !list_is_empty(&lru->kept))
		cached_list_outdate(container_of(lru->kept.next, struct cached_list, lru));
	if (lru->bytes > KEPT_BYTES_MAX ||
	    (lru->bytes > KEPT_BYTES_MAX / 2 && cached_list_takes_too_much(list)))
		*outcome_r = list->pool->server->conf.pin == PIN_ENFORCE ?
				     pages_skip(&list->pages, env->result.text) :
				     PAGES_UNFIT;
	return true;
}

static bool cached_list_says(const struct cached_list *list, struct slice word)
{
	for (size_t i = 0; i < list->pages.count; i++) {
		struct slice text = list->pages.joined[i]->text;

		if (memmem(text.p, text.n, word.p, word.n) != NULL)
			return true;
	}
	return false;
}

/* All pages have come, or no more will. */
static void cached_list_end_pages(struct cached_list *list, enum pages_outcome outcome)
{
	bool is_whole = outcome == PAGES_COMPLETE;

	if (is_whole)
		lists_of(list)->looked_at[list->kind->kind] = list->looks + 1;
	if (is_whole && list->pages.count == 0 && !list->pages.is_skipping)
		pages_join(&list->pages, &list->pool->router->limits);
	if (is_whole && !list->pages.is_skipping) {
		cached_list_count_bytes(list, sizeof(*list) + list->pages.bytes);
		list->until_ms = clock_now_ms() + FRESH_MS;
		list->has_annotations = cached_list_says(list, ANNOTATION);
		cached_list_give(list);
	} else {
		cached_list_pass(list, is_whole ? LIST_CAME : LIST_FAILED);
	}
}

static void cached_list_on_page(struct cached_list *list, const struct envelope *env)
{
	struct upstream *upstream = list->request.upstream;
	enum pages_outcome outcome;
	bool is_wanted;

	if (!cached_list_take_page(list, env, &outcome))
		return;
	is_wanted = !wait_queue_is_empty(&list->waiting);
	if (outcome == PAGES_MORE && is_wanted &&
	    upstream_has_room(upstream, list->pages.cursor.len)) {
		cached_list_ask(list, upstream);
		return;
	}
	cached_list_leave_upstream(list);
	if (outcome == PAGES_MORE && !is_wanted)
		cached_list_free(list);
	else if (outcome == PAGES_MORE)
		cached_list_end(list, LIST_FAILED, REASON_OVER_LIMIT);
	else
		cached_list_end_pages(list, outcome);
}

/* The waiting calls have asked for the first page: the error of another one is not for them. */
static void cached_list_on_error(struct cached_list *list, const struct envelope *env)
{
	cached_list_leave_upstream(list);
	if (list->pages.taken > 0 && pages_end(&list->pages) == PAGES_COMPLETE) {
		cached_list_end_pages(list, PAGES_COMPLETE);
	} else if (list->pages.taken > 0) {
		cached_list_end(list, LIST_FAILED, REASON_NONE);
	} else if (pages_set_error(&list->pages, env->text, &list->pool->router->limits) == 0) {
		cached_list_outdate(list);
		cached_list_give(list);
	} else {
		cached_list_end(list, LIST_FAILED, REASON_CHILD_PROTOCOL_ERROR); /* cannot happen */
	}
}

static struct cached_list *cached_list_of(struct upstream_request *request)
{
	return container_of(request, struct cached_list, request);
}

static void cached_list_on_response(struct upstream_request *request, const struct envelope *env)
{
	if (env->kind == ENVELOPE_RESULT)
		cached_list_on_page(cached_list_of(request), env);
	else
		cached_list_on_error(cached_list_of(request), env);
}

static void cached_list_on_malformed(struct upstream_request *request, enum reason reason)
{
	cached_list_leave_upstream(cached_list_of(request));
	cached_list_end(cached_list_of(request), LIST_FAILED, reason);
}

static void cached_list_start_deadline(struct cached_list *list)
{
	timer_start(list->pool->router->loop, &list->deadline,
		    list->pool->server->conf.queue_timeout_ms);
}

/* Makes the list wait for an upstream. Returns why that is in vain, or REASON_NONE. */
static enum reason cached_list_want(struct cached_list *list)
{
	CHECK(list->state == CACHED_LIST_WANTED);
	cached_list_start_deadline(list);
	return pool_add_job(list->pool, &list->job);
}

static void cached_list_on_lost(struct upstream_request *request, enum reason reason)
{
	struct cached_list *list = cached_list_of(request);

	cached_list_leave_upstream(list);
	/* A list that nobody waits for any longer is not fetched. */
	if (list->is_repeated || wait_queue_is_empty(&list->waiting)) {
		cached_list_end(list, LIST_FAILED, reason);
		return;
	}
	list->is_repeated = true;
	pages_reset(&list->pages);
	cached_list_count_bytes(list, sizeof(*list));
	cached_list_set_state(list, CACHED_LIST_WANTED);
	(void)cached_list_want(list); /* the pool itself checks whether there is hope */
}

static const struct upstream_request_ops request_ops = {
	.on_response = cached_list_on_response,
	.on_malformed = cached_list_on_malformed,
	.on_lost = cached_list_on_lost,
};

static void cached_list_on_job_failed(struct pool_job *job, enum reason reason)
{
	cached_list_end(container_of(job, struct cached_list, job), LIST_FAILED, reason);
}

static const struct pool_job_ops job_ops = {
	.on_turn = cached_list_on_turn,
	.on_failed = cached_list_on_job_failed,
};

static void cached_list_on_silence(struct cached_list *list)
{
	struct upstream *upstream = list->request.upstream;
	uint64_t id = list->request.id;

	counter_add(COUNTER_CALLS_TIMED_OUT);
	LOG_BY(CALL_TIMEOUT, (uintptr_t)upstream->server,
	       LOG_STR("server", upstream->server->conf.name),
	       LOG_SLICE("method", list->kind->method), LOG_INT("child_id", id));
	send_given_up(upstream, id, "no answer in time");
	cached_list_leave_upstream(list);
	cached_list_end(list, LIST_FAILED, REASON_TIMEOUT);
	upstream_probe(upstream);
}

/* While a process is being started, the list waits as long as that takes. */
static void cached_list_on_deadline(struct timer *timer)
{
	struct cached_list *list = container_of(timer, struct cached_list, deadline);

	if (list->state == CACHED_LIST_ASKED)
		cached_list_on_silence(list);
	else if (pool_is_coming(list->pool))
		cached_list_start_deadline(list);
	else
		cached_list_end(list, LIST_FAILED, REASON_OVER_LIMIT);
}

/* A list that nobody waits for any longer is not fetched. */
static void lists_on_waiter_left(struct wait_queue *queue, struct waiter *waiter)
{
	struct cached_list *list = container_of(queue, struct cached_list, waiting);

	discount(call_of_waiter(waiter));
	if (list->state == CACHED_LIST_WANTED && wait_queue_is_empty(queue))
		cached_list_free(list);
}

/*
 * While a process is being started, calls wait as long as that takes; those that need not have the
 * list as their answer no longer.
 */
static void on_waiter_timeout(struct wait_queue *queue, struct waiter *waiter)
{
	struct cached_list *list = container_of(queue, struct cached_list, waiting);
	struct call *call = call_of_waiter(waiter);

	if (!call->needs_list) {
		call_fail(call, REASON_TIMEOUT);
	} else if (pool_is_coming(list->pool)) {
		call_wait(call, LISTING_MS);
	} else if (list->state == CACHED_LIST_WANTED && queue->count == 1) {
		cached_list_end(list, LIST_LATE, REASON_NONE); /* nobody waits for it any longer */
	} else {
		lists_hand_back(call, LIST_LATE);
	}
}

static const struct wait_queue_ops waiting_ops = {
	.on_timeout = on_waiter_timeout,
	.on_left = lists_on_waiter_left,
};

static struct cached_list *cached_list_new(const struct client *client,
					   const struct listing_kind *kind)
{
	struct cached_list *list = mem_zalloc(sizeof(*list));
	struct pool *pool = client->pool;

	list->pool = pool;
	list->principal = principal_ref(client->principal);
	list->kind = kind;
	list->pages.member = kind->member;
	list->state = CACHED_LIST_WANTED;
	list->is_current = true;
	map_insert(&pool->lists.current, cached_list_key(client->principal, kind->kind), list);
	list_append(&pool->lists.all, &list->link);
	list_init(&list->lru);
	list_init(&list->job.link);
	text_set_init(&list->broken);
	list->job.ops = &job_ops;
	list->request.ops = &request_ops;
	wait_queue_init(&list->waiting, &waiting_ops);
	timer_init(&list->deadline, cached_list_on_deadline);
	task_init(&list->giving, cached_list_on_giving);
	aside_init(&list->aside, cached_list_on_aside);
	cached_list_count_bytes(list, sizeof(*list));
	return list;
}

/* ---- calls that ask ---- */

/*
 * Whether there is no process to ask, and the list's own was stopped in an orderly way not long
 * ago.
 */
static bool is_remembered(const struct cached_list *list)
{
	return pool_memory_holds(list->pool) && list->losses == list->pool->memory.losses &&
	       clock_now_ms() < list->until_ms;
}

/*
 * Whether the list's process exists and has reported no change, or had reported none until it
 * ended.
 */
static bool is_unchanged(const struct cached_list *list)
{
	const struct pool *pool = list->pool;

	return list->changes == lists_count_changes(list) &&
	       (list->state == CACHED_LIST_ASKED || pool_find_upstream(pool, list->child) != NULL ||
		is_remembered(list));
}

static bool is_fresh(const struct cached_list *list)
{
	if (list->state == CACHED_LIST_WANTED)
		return true;
	if (list->state == CACHED_LIST_PASSED)
		return clock_now_ms() < list->until_ms;
	return is_unchanged(list) && (list->state == CACHED_LIST_ASKED ||
				      list->kind->offer & list->pool->capabilities.tells ||
				      clock_now_ms() < list->until_ms);
}

static struct cached_list *lists_find_current(const struct client *client,
					      enum permission_kind kind)
{
	return map_find(&client->pool->lists.current, cached_list_key(client->principal, kind));
}

/* The list to answer from, perhaps still on its way; NULL: another one is needed. */
static struct cached_list *find_fresh(const struct client *client, enum permission_kind kind)
{
	struct cached_list *list = lists_find_current(client, kind);

	if (list == NULL || is_fresh(list))
		return list;
	cached_list_outdate(list);
	return NULL;
}

/* Queues the call for the list; NULL: for a new one of this kind. */
static void lists_await_in(struct cached_list *list, struct call *call, const struct envelope *env,
			   const struct listing_kind *kind, uint64_t timeout_ms)
{
	bool is_new = list == NULL;
	enum reason reason = REASON_NONE;

	if (is_new)
		list = cached_list_new(call->client, kind);
	call->body = msg_new_scanned(env);
	wait_queue_append(&list->waiting, &call->waiter, env->text.n);
	call_wait(call, timeout_ms);
	if (is_new)
		reason = cached_list_want(list);
	if (reason != REASON_NONE)
		cached_list_end(list, LIST_FAILED, reason);
}

static void cached_list_answer(struct cached_list *list, struct call *call,
			       const struct envelope *env, size_t page)
{
	CHECK(list->is_current && page < list->pages.count);
	counter_add(COUNTER_LISTS_ANSWERED);
	if (list->state == CACHED_LIST_KEPT)
		cached_list_touch(list);
	if (!cached_list_is_long(list)) {
		cached_list_give_page(list, call, page);
		return;
	}
	lists_await_in(list, call, env, list->kind,
		       call->client->server->conf.request_timeout_max_ms);
	task_schedule(call->client->router->loop, &list->giving);
}

/* Answers with the first page, now or once it comes. Returns false if the list cannot be kept. */
static bool answer_first(struct call *call, const struct envelope *env,
			 const struct listing_kind *kind)
{
	struct cached_list *list = find_fresh(call->client, kind->kind);

	if (list != NULL && list->state == CACHED_LIST_PASSED)
		return false;
	if (list != NULL && has_come(list))
		cached_list_answer(list, call, env, 0);
	else
		lists_await_in(list, call, env, kind,
			       call->client->server->conf.request_timeout_max_ms);
	return true;
}

/* Answers with another page of a list that is kept here. */
static void answer_page(struct call *call, const struct envelope *env,
			const struct listing_kind *kind, uint64_t number, uint64_t page)
{
	struct cached_list *list = lists_find_current(call->client, kind->kind);

	if (list != NULL && has_come(list) && list->pages.count > page &&
	    list->pages.number == number && !is_under_other_rules(list))
		cached_list_answer(list, call, env, page);
	else
		result_send_error(call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: unknown cursor"));
}

bool lists_take(struct call *call, const struct envelope *env)
{
	const struct listing_kind *kind = listing_kind_find(call->method);
	uint64_t number, page;

	CHECK(pool_is_shared(call->client->pool) && call->state == CALL_WAITING);
	if (kind == NULL)
		return false;
	if (cursor_open_page(env->cursor, &number, &page) == 0) {
		answer_page(call, env, kind, number, page);
		return true;
	}
	return list_request_is_plain(env) && answer_first(call, env, kind);
}

/* ---- calls that go on when the list has come ---- */

void lists_await(struct call *call, const struct envelope *env, enum permission_kind kind)
{
	struct client *client = call->client;
	struct cached_list *list = find_fresh(client, kind);
	size_t bytes = client->list_wait_bytes;

	CHECK(call->state == CALL_WAITING && call->waiter.queue == NULL);
	if (list != NULL && has_come(list)) {
		client->pool->lists.looked_at[kind] = count_looks(client->pool, kind) + 1;
		client->router->on_list(call, env, LIST_CAME);
		return;
	}
	if (bytes > 0 && bytes + env->text.n > client->server->conf.queue_max) {
		call_fail(call, REASON_OVER_LIMIT);
		return;
	}
	/* What cannot be kept is fetched for this. */
	if (list != NULL && list->state == CACHED_LIST_PASSED) {
		cached_list_outdate(list);
		list = NULL;
	}
	call->needs_list = true;
	client->list_wait_bytes += env->text.n;
	lists_await_in(list, call, env, listing_kind_of(kind), LISTING_MS);
}

bool lists_were_looked_at(const struct pool *pool, enum permission_kind kind)
{
	return pool->lists.looked_at[kind] == count_looks(pool, kind) + 1;
}

/* ---- one tool ---- */

static bool is_broken(const struct cached_list *list, struct json name)
{
	at_end(buf_fini) struct buf text = { 0 };

	return scan_decode_string(name, &text) < 0 ||
	       text_set_has(&list->broken, text_set_key(buf_slice(&text)), buf_slice(&text));
}

enum listed_tool lists_find_tool(const struct client *client, struct json name, bool is_strict,
				 struct listed_entry *entry_r)
{
	struct cached_list *list = lists_find_current(client, PERMISSION_TOOL);
	struct named_item *tool = NULL;

	*entry_r = (struct listed_entry){ .is_annotated = false };
	if (list != NULL && list->state == CACHED_LIST_PASSED && is_fresh(list))
		return LISTED_UNKEPT;
	if (list == NULL || !has_come(list))
		return LISTED_UNKNOWN;
	if (is_strict ? !is_fresh(list) : !is_unchanged(list))
		return LISTED_CHANGED;
	cached_list_touch(list);
	entry_r->is_annotated = list->has_annotations && !is_broken(list, name);
	if (entry_r->is_annotated || is_strict)
		tool = pages_find(&list->pages, name);
	if (tool == NULL)
		return LISTED_ABSENT;
	entry_r->schema = tool->schema;
	entry_r->schema_key = &tool->schema_key;
	return LISTED_TOOL;
}

void lists_note_broken(const struct client *client, struct json name, const char *why)
{
	struct cached_list *list = lists_find_current(client, PERMISSION_TOOL);
	at_end(buf_fini) struct buf text = { 0 };

	CHECK(list != NULL && has_come(list));
	if (scan_decode_string(name, &text) == 0 && text_set_add(&list->broken, buf_slice(&text))) {
		LOG_BY(ANNOTATIONS_BROKEN, (uintptr_t)client->server,
		       LOG_STR("server", client->server->conf.name),
		       LOG_SLICE("tool", buf_slice(&text)), LOG_STR("why", why));
		cached_list_count_bytes(list,
					list->bytes + sizeof(struct text_set_item) + text.len);
	}
}

void lists_note_change(struct pool *pool, unsigned int offer)
{
	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++)
		pool->lists.changes[kind] += listing_kind_of(kind)->offer == offer;
}

void lists_note_ready(struct pool *pool)
{
	pool->lists.begun++;
	LIST_EACH_SAFE(struct cached_list, list, &pool->lists.all, link)
		if (has_come(list) && pool_find_upstream(pool, list->child) == NULL)
			cached_list_outdate(list);
}

void lists_note_closed(struct upstream *upstream)
{
	LIST_EACH(struct cached_list, list, &upstream->pool->lists.all, link)
		if (has_come(list) && list->child == upstream_child_number(upstream))
			list->until_ms = clock_now_ms() + upstream->pool->server->conf.remember_ms;
}

/* ---- beginning and end ---- */

void lists_init(struct lists *lists)
{
	*lists = (struct lists){ .current = { NULL, 0, 0 } };
	list_init(&lists->all);
}

void lists_fini(struct lists *lists)
{
	CHECK(lists != NULL);
	LIST_EACH_SAFE(struct cached_list, list, &lists->all, link) {
		if (list->state == CACHED_LIST_ASKED)
			cached_list_leave_upstream(list);
		cached_list_free(list);
	}
}

void lists_lru_init(struct lists_lru *lru)
{
	list_init(&lru->kept);
	lru->bytes = 0;
}
