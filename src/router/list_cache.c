/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cached list is one list for one principal, on its way or kept. The first who asks makes it wanted; who asks meanwhile
 * waits for it, who asks later gets it at once. When the server says that it has changed, whoever waits already gets
 * what comes, and the next one who asks makes another.
 *
 * What is kept is told by nobody but its process: when that has gone, or if it does not tell of changes, five seconds
 * have passed, it is fetched again. Errors are given to who waits, and forgotten.
 */
#include "router/list_cache.h"

#include "base/clock.h"
#include "base/mem.h"
#include "mcp/error.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/client.h"
#include "router/convert.h"
#include "router/cursor.h"
#include "router/dispatch.h"
#include "router/pages.h"
#include "router/pool.h"
#include "router/result.h"
#include "router/router.h"
#include "upstream/send.h"

#define FRESH_MS 5000
#define PASSED_MS (5 * 60 * 1000) /* what cannot be kept is not tried again for so long */
#define KEPT_BYTES_MAX (64 * 1024 * 1024)
#define REQUEST_BYTES_MAX 1024 /* of a request that may wait here: an id, and where it comes from */
#define HAND_OUT_BYTES (256 * 1024) /* at a time: there may be thousands who wait for a long list */

struct kind {
	struct slice method;
	struct slice member; /* of its results */
	unsigned int offer;
};

static const struct kind kinds[LIST_CACHE_KINDS] = {
	{ SLICE("tools/list"), SLICE("tools"), OFFER_TOOLS },
	{ SLICE("prompts/list"), SLICE("prompts"), OFFER_PROMPTS },
	{ SLICE("resources/list"), SLICE("resources"), OFFER_RESOURCES },
	{ SLICE("resources/templates/list"), SLICE("resourceTemplates"), OFFER_RESOURCES },
};

enum cached_list_state {
	CACHED_LIST_WANTED,
	CACHED_LIST_ASKED,  /* a page is on its way */
	CACHED_LIST_GIVING, /* it, or an error, is there: those who waited get it */
	CACHED_LIST_KEPT,
	CACHED_LIST_PASSED, /* it cannot be kept: requests are forwarded */
};

struct cached_list {
	struct list link;                /* of the pool's */
	struct list lru;                 /* of those that are kept, or passed */
	struct pool_job job;             /* while it is wanted */
	struct upstream_request request; /* for a page */
	struct pool *pool;
	struct principal *principal; /* whose it is: what he sees may be for him alone */
	const struct method *method;
	size_t kind;
	enum cached_list_state state;
	bool is_current;
	bool is_repeated;                /* a process was lost over it, and another one was asked */
	uint64_t child;                  /* that it is from */
	uint64_t changes;                /* before it was asked for */
	const struct revision *revision; /* of that one */
	uint64_t until_ms;               /* fresh, or passed */
	struct pages pages;
	size_t bytes;              /* counted in the store */
	struct wait_queue waiting; /* calls */
	struct timer deadline;
	struct task giving;
};

#define TO(state) (1u << CACHED_LIST_##state)
static const unsigned int next_states[] = {
	[CACHED_LIST_WANTED] = TO(ASKED),
	[CACHED_LIST_ASKED] = TO(WANTED) | TO(GIVING) | TO(PASSED),
	[CACHED_LIST_GIVING] = TO(KEPT),
	[CACHED_LIST_KEPT] = 0,
	[CACHED_LIST_PASSED] = 0,
};
#undef TO

/* ---- what is there ---- */

static struct list_cache *list_cache_of(const struct cached_list *cached_list)
{
	return &cached_list->pool->sharing->lists;
}

static struct list_cache_lru *store_of(const struct cached_list *cached_list)
{
	return &cached_list->pool->router->lists;
}

/* Pointers to principals are far enough apart. */
static uint64_t cached_list_key(const struct principal *principal, size_t kind)
{
	return (uint64_t)(uintptr_t)principal + kind;
}

/* What is kept, or passed, is the last to be forgotten. */
static void cached_list_touch(struct cached_list *cached_list)
{
	CHECK(cached_list->is_current || cached_list->state != CACHED_LIST_KEPT);
	list_remove(&cached_list->lru);
	if (cached_list->state == CACHED_LIST_KEPT || cached_list->state == CACHED_LIST_PASSED)
		list_append(&store_of(cached_list)->kept, &cached_list->lru);
}

static void cached_list_set_state(struct cached_list *cached_list, enum cached_list_state state)
{
	CHECK(next_states[cached_list->state] & 1u << state);
	cached_list->state = state;
	cached_list_touch(cached_list);
}

static void cached_list_count_bytes(struct cached_list *cached_list, size_t bytes)
{
	CHECK(store_of(cached_list)->bytes >= cached_list->bytes);
	store_of(cached_list)->bytes += bytes - cached_list->bytes;
	cached_list->bytes = bytes;
}

static void cached_list_free(struct cached_list *cached_list)
{
	CHECK(wait_queue_is_empty(&cached_list->waiting));
	if (cached_list->is_current)
		map_remove(&list_cache_of(cached_list)->current,
			   cached_list_key(cached_list->principal, cached_list->kind));
	list_remove(&cached_list->link);
	list_remove(&cached_list->lru);
	pool_remove_job(&cached_list->job);
	timer_stop(&cached_list->deadline);
	task_cancel(&cached_list->giving);
	cached_list_count_bytes(cached_list, 0);
	pages_reset(&cached_list->pages);
	principal_unref(&cached_list->principal);
	loop_defer_free(cached_list->pool->router->loop, cached_list);
}

/* Who asks from now on gets another one. */
static void cached_list_outdate(struct cached_list *cached_list)
{
	if (!cached_list->is_current)
		return;
	map_remove(&list_cache_of(cached_list)->current,
		   cached_list_key(cached_list->principal, cached_list->kind));
	cached_list->is_current = false;
	if (cached_list->state == CACHED_LIST_KEPT || cached_list->state == CACHED_LIST_PASSED)
		cached_list_free(cached_list);
}

/* Makes room by forgetting what was not asked for for longest. Returns false if that is not enough. */
static bool cached_list_find_room(struct cached_list *cached_list)
{
	struct list_cache_lru *store = store_of(cached_list);

	cached_list_count_bytes(cached_list, sizeof(*cached_list) + cached_list->pages.bytes);
	while (store->bytes > KEPT_BYTES_MAX && !list_is_empty(&store->kept))
		cached_list_outdate(container_of(store->kept.next, struct cached_list, lru));
	return store->bytes <= KEPT_BYTES_MAX;
}

/* ---- those who wait ---- */

static struct call *call_of(struct waiter *waiter)
{
	return container_of(waiter, struct call, waiter);
}

/* They have asked for something that is over: nobody hears of those who leave, or time out, on the way to the end. */
static void on_leftover_timeout(struct wait_queue *queue, struct waiter *waiter)
{
	(void)queue;
	call_fail(call_of(waiter), REASON_TIMEOUT);
}

static const struct wait_queue_ops leftover_ops = { .on_timeout = on_leftover_timeout };

/* It ends without a list. The calls that waited are for the caller: they may lead anywhere. */
static void cached_list_end(struct cached_list *cached_list, struct wait_queue *waiting_r)
{
	wait_queue_init(waiting_r, &leftover_ops);
	wait_queue_move(waiting_r, &cached_list->waiting);
	cached_list_outdate(cached_list);
	cached_list_free(cached_list);
}

static void fail_all(struct wait_queue *waiting, enum reason reason)
{
	while (!wait_queue_is_empty(waiting))
		call_fail(call_of(wait_queue_first(waiting)), reason);
}

static void cached_list_fail(struct cached_list *cached_list, enum reason reason)
{
	struct wait_queue waiting;

	cached_list_end(cached_list, &waiting);
	fail_all(&waiting, reason);
}

/* As if there were no cache. */
static void pass_on(struct wait_queue *waiting)
{
	while (!wait_queue_is_empty(waiting)) {
		struct call *call = call_of(wait_queue_first(waiting));
		struct msg *body = msg_ref(call->body);
		struct envelope env;
		struct error err;

		wait_queue_remove(&call->waiter);
		if (scan_envelope(body->text, &call->client->router->limits, 0, &env, &err) < 0)
			call_fail(call,
				  REASON_PROTOCOL_ERROR); /* it was accepted before: cannot be */
		else
			dispatch_call(call, &env);
		msg_unref(&body);
	}
}

static void cached_list_pass(struct cached_list *cached_list)
{
	struct wait_queue waiting;

	CHECK(cached_list->request.upstream != NULL);
	if (!cached_list->is_current) {
		cached_list_end(cached_list, &waiting);
	} else {
		LOG(LIST_PASSED, LOG_STR("server", cached_list->pool->server->conf.name),
		    LOG_SLICE("method", cached_list->method->name),
		    LOG_INT("pages", cached_list->pages.taken));
		wait_queue_init(&waiting, &leftover_ops);
		wait_queue_move(&waiting, &cached_list->waiting);
		pages_reset(&cached_list->pages);
		cached_list_count_bytes(cached_list, sizeof(*cached_list));
		cached_list->until_ms = clock_now_ms() + PASSED_MS;
		cached_list_set_state(cached_list, CACHED_LIST_PASSED);
	}
	pass_on(&waiting);
}

static void cached_list_on_giving(struct task *task)
{
	struct cached_list *cached_list = container_of(task, struct cached_list, giving);
	size_t given = 0;

	CHECK(cached_list->state == CACHED_LIST_GIVING && cached_list->pages.count > 0);
	while (!wait_queue_is_empty(&cached_list->waiting) && given < HAND_OUT_BYTES) {
		struct call *call = call_of(wait_queue_first(&cached_list->waiting));

		wait_queue_remove(&call->waiter);
		given += cached_list->pages.joined[0].msg->text.n;
		result_send_kept(call, cached_list->revision, &cached_list->pages.joined[0].env);
	}
	if (!wait_queue_is_empty(&cached_list->waiting))
		task_schedule(cached_list->pool->router->loop, task);
	else if (cached_list->is_current)
		cached_list_set_state(cached_list, CACHED_LIST_KEPT);
	else
		cached_list_free(cached_list);
}

static void cached_list_give(struct cached_list *cached_list)
{
	cached_list_set_state(cached_list, CACHED_LIST_GIVING);
	task_schedule(cached_list->pool->router->loop, &cached_list->giving);
}

/* ---- fetching ---- */

static void cached_list_ask(struct cached_list *cached_list, struct upstream *upstream)
{
	struct slice cursor = buf_slice(&cached_list->pages.cursor);
	uint64_t id = upstream_next_id(upstream);
	struct buf params = { 0 };

	if (cursor.n > 0) {
		buf_append_str(&params, "{\"cursor\":");
		splice_append(&params, cursor, NULL, 0, SPLICE_ESCAPE_SEPARATORS);
		buf_append_char(&params, '}');
	}
	send_request(upstream, id, cached_list->method->name, buf_slice(&params));
	buf_fini(&params);
	if (cached_list->pages.taken == 0)
		upstream_add_request(upstream, &cached_list->request, id);
	else
		upstream_renumber_request(&cached_list->request, id);
	timer_start(upstream->shared->loop, &cached_list->deadline,
		    upstream->server->conf.request_timeout_ms);
}

static void cached_list_on_turn(struct pool_job *job, struct upstream *upstream)
{
	struct cached_list *cached_list = container_of(job, struct cached_list, job);

	CHECK(cached_list->state == CACHED_LIST_WANTED);
	counter_add(COUNTER_LISTS_FETCHED);
	cached_list->child = upstream_child_number(upstream);
	cached_list->revision = upstream->revision;
	cached_list->changes = list_cache_of(cached_list)->changes[cached_list->kind];
	cached_list_set_state(cached_list, CACHED_LIST_ASKED);
	cached_list_ask(cached_list, upstream);
}

/* Nothing more is asked of the upstream. */
static void cached_list_leave_upstream(struct cached_list *cached_list)
{
	CHECK(cached_list->state == CACHED_LIST_ASKED);
	timer_stop(&cached_list->deadline);
	upstream_end_request(&cached_list->request, true);
}

static void cached_list_ask_more(struct cached_list *cached_list)
{
	struct upstream *upstream = cached_list->request.upstream;

	if (wait_queue_is_empty(&cached_list->waiting)) {
		cached_list_leave_upstream(cached_list);
		cached_list_free(cached_list); /* nobody wants it any more */
	} else if (!upstream_has_room(upstream, cached_list->pages.cursor.len)) {
		cached_list_leave_upstream(cached_list);
		cached_list_fail(cached_list, REASON_OVER_LIMIT);
	} else {
		cached_list_ask(cached_list, upstream);
	}
}

/* Tasks are not offered by pools: what is said of them is left out for all, here. bridging.md §2.5 */
static enum pages_outcome cached_list_take_page(struct cached_list *cached_list,
						const struct envelope *env)
{
	struct convert convert = { .text = { 0 } };
	enum pages_outcome outcome;

	env = convert_response(&convert, REVISION_TASKS, cached_list->method, env);
	outcome = pages_add(&cached_list->pages, env->result.text);
	convert_fini(&convert);
	return cached_list_find_room(cached_list) ? outcome : PAGES_UNFIT;
}

static void cached_list_on_page(struct cached_list *cached_list, const struct envelope *env)
{
	enum pages_outcome outcome = cached_list_take_page(cached_list, env);

	CHECK(cached_list->state == CACHED_LIST_ASKED);
	if (outcome == PAGES_MORE) {
		cached_list_ask_more(cached_list);
		return;
	}
	cached_list_leave_upstream(cached_list);
	if (outcome == PAGES_COMPLETE &&
	    pages_join(&cached_list->pages, &cached_list->pool->router->limits) == 0) {
		cached_list_count_bytes(cached_list,
					sizeof(*cached_list) + cached_list->pages.bytes);
		cached_list->until_ms = clock_now_ms() + FRESH_MS;
		cached_list_give(cached_list);
	} else {
		cached_list_pass(cached_list);
	}
}

/* Those who wait have asked for the first page: the error of another one is not for them. */
static void cached_list_on_error(struct cached_list *cached_list, const struct envelope *env)
{
	struct wait_queue waiting;

	cached_list_leave_upstream(cached_list);
	if (cached_list->pages.taken > 0) {
		cached_list_end(cached_list, &waiting);
		pass_on(&waiting);
	} else if (pages_set_error(&cached_list->pages, env->text,
				   &cached_list->pool->router->limits) == 0) {
		cached_list_outdate(cached_list);
		cached_list_give(cached_list);
	} else {
		cached_list_fail(cached_list, REASON_CHILD_PROTOCOL_ERROR); /* cannot be */
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

static void cached_list_on_malformed(struct upstream_request *request)
{
	cached_list_leave_upstream(cached_list_of(request));
	cached_list_fail(cached_list_of(request), REASON_CHILD_PROTOCOL_ERROR);
}

static void cached_list_start_deadline(struct cached_list *cached_list)
{
	timer_start(cached_list->pool->router->loop, &cached_list->deadline,
		    cached_list->pool->server->conf.queue_timeout_ms);
}

/* It waits for an upstream. Returns why that is in vain, or REASON_NONE. */
static enum reason cached_list_want(struct cached_list *cached_list)
{
	CHECK(cached_list->state == CACHED_LIST_WANTED);
	cached_list_start_deadline(cached_list);
	return pool_add_job(cached_list->pool, &cached_list->job);
}

static void cached_list_on_lost(struct upstream_request *request, enum reason reason)
{
	struct cached_list *cached_list = cached_list_of(request);

	cached_list_leave_upstream(cached_list);
	/* What nobody waits for any more is not asked for. */
	if (cached_list->is_repeated || wait_queue_is_empty(&cached_list->waiting)) {
		cached_list_fail(cached_list, reason);
		return;
	}
	cached_list->is_repeated = true;
	pages_reset(&cached_list->pages);
	cached_list_count_bytes(cached_list, sizeof(*cached_list));
	cached_list_set_state(cached_list, CACHED_LIST_WANTED);
	(void)cached_list_want(cached_list); /* the pool looks itself whether there is hope */
}

static const struct upstream_request_ops request_ops = {
	.on_response = cached_list_on_response,
	.on_malformed = cached_list_on_malformed,
	.on_lost = cached_list_on_lost,
};

static void cached_list_on_job_failed(struct pool_job *job, enum reason reason)
{
	cached_list_fail(container_of(job, struct cached_list, job), reason);
}

static const struct pool_job_ops job_ops = {
	.on_turn = cached_list_on_turn,
	.on_failed = cached_list_on_job_failed,
};

static void cached_list_on_silence(struct cached_list *cached_list)
{
	struct upstream *upstream = cached_list->request.upstream;
	uint64_t id = cached_list->request.id;

	counter_add(COUNTER_CALLS_TIMED_OUT);
	LOG(CALL_TIMEOUT, LOG_STR("server", upstream->server->conf.name),
	    LOG_SLICE("method", cached_list->method->name), LOG_INT("child_id", id));
	send_given_up(upstream, id, "no answer in time");
	cached_list_leave_upstream(cached_list);
	cached_list_fail(cached_list, REASON_TIMEOUT);
	upstream_probe(upstream);
}

/* Who waits for a process that is being started waits as long as that takes. */
static void cached_list_on_deadline(struct timer *timer)
{
	struct cached_list *cached_list = container_of(timer, struct cached_list, deadline);

	if (cached_list->state == CACHED_LIST_ASKED)
		cached_list_on_silence(cached_list);
	else if (cached_list->pool->starting > 0)
		cached_list_start_deadline(cached_list);
	else
		cached_list_fail(cached_list, REASON_OVER_LIMIT);
}

static void on_waiter_timeout(struct wait_queue *queue, struct waiter *waiter)
{
	(void)queue;
	call_fail(call_of(waiter), REASON_TIMEOUT);
}

/* What nobody waits for any more is not asked for. */
static void on_waiter_left(struct wait_queue *queue, struct waiter *waiter)
{
	struct cached_list *cached_list = container_of(queue, struct cached_list, waiting);

	(void)waiter;
	if (cached_list->state == CACHED_LIST_WANTED && wait_queue_is_empty(queue))
		cached_list_free(cached_list);
}

static const struct wait_queue_ops waiting_ops = {
	.on_timeout = on_waiter_timeout,
	.on_left = on_waiter_left,
};

static struct cached_list *cached_list_new(struct pool *pool, struct principal *principal,
					   const struct method *method, size_t kind)
{
	struct cached_list *cached_list = mem_zalloc(sizeof(*cached_list));

	cached_list->pool = pool;
	cached_list->principal = principal_ref(principal);
	cached_list->method = method;
	cached_list->kind = kind;
	cached_list->pages.member = kinds[kind].member;
	cached_list->state = CACHED_LIST_WANTED;
	cached_list->is_current = true;
	map_insert(&pool->sharing->lists.current, cached_list_key(principal, kind), cached_list);
	list_append(&pool->sharing->lists.all, &cached_list->link);
	list_init(&cached_list->lru);
	list_init(&cached_list->job.link);
	cached_list->job.ops = &job_ops;
	cached_list->request.ops = &request_ops;
	wait_queue_init(&cached_list->waiting, &waiting_ops);
	timer_init(&cached_list->deadline, cached_list_on_deadline);
	task_init(&cached_list->giving, cached_list_on_giving);
	cached_list_count_bytes(cached_list, sizeof(*cached_list));
	return cached_list;
}

/* ---- those who ask ---- */

static int check_meta(struct slice name, struct json value, void *arg)
{
	/* Nothing of these changes an answer; those of the modern era never reach a child. */
	static const struct slice harmless[] = {
		SLICE("progressToken"),
		SLICE("traceparent"),
		SLICE("tracestate"),
		SLICE("baggage"),
	};
	bool *is_plain = arg;

	(void)value;
	for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
		if (slice_is_equal(name, harmless[i]))
			return 0;
	}
	*is_plain = slice_has_prefix(name, SLICE_LIT("io.modelcontextprotocol/"));
	return *is_plain ? 0 : -1;
}

static int check_param(struct slice name, struct json value, void *arg)
{
	bool *is_plain = arg;

	if (slice_is_equal(name, SLICE_LIT("_meta")))
		scan_members(value.text, check_meta, arg);
	else
		*is_plain = false;
	return *is_plain ? 0 : -1;
}

/* Whether it asks for the list, and says nothing that the server may want to know. */
static bool is_plain(const struct envelope *env)
{
	bool is_plain = env->params.type != JSON_ARRAY && env->text.n <= REQUEST_BYTES_MAX;

	scan_members(env->params.text, check_param, &is_plain);
	return is_plain;
}

static bool is_fresh(const struct cached_list *cached_list)
{
	const struct pool *pool = cached_list->pool;

	if (cached_list->state == CACHED_LIST_WANTED)
		return true;
	if (cached_list->state == CACHED_LIST_PASSED)
		return clock_now_ms() < cached_list->until_ms;
	if (cached_list->changes != pool->sharing->lists.changes[cached_list->kind])
		return false;
	if (cached_list->state == CACHED_LIST_ASKED)
		return true;
	return pool_find_upstream(pool, cached_list->child) != NULL &&
	       (kinds[cached_list->kind].offer & pool->capabilities.tells ||
		clock_now_ms() < cached_list->until_ms);
}

static void cached_list_answer(struct cached_list *cached_list, struct call *call, size_t page)
{
	CHECK(cached_list->is_current && page < cached_list->pages.count);
	counter_add(COUNTER_LISTS_ANSWERED);
	if (cached_list->state == CACHED_LIST_KEPT)
		cached_list_touch(cached_list);
	result_send_kept(call, cached_list->revision, &cached_list->pages.joined[page].env);
}

static void cached_list_await(struct cached_list *cached_list, struct call *call,
			      const struct envelope *env)
{
	call->body = msg_new(env->text);
	wait_queue_append(&cached_list->waiting, &call->waiter, env->text.n);
	call_wait(call, call->client->server->conf.request_timeout_max_ms);
}

/* The list's first page, or the place where it will be. */
static bool answer_first(struct call *call, const struct envelope *env, size_t kind)
{
	struct pool *pool = call->client->pool;
	struct principal *principal = call->client->principal;
	struct cached_list *cached_list =
		map_find(&pool->sharing->lists.current, cached_list_key(principal, kind));
	enum reason reason;

	if (cached_list != NULL && !is_fresh(cached_list)) {
		cached_list_outdate(cached_list);
		cached_list = NULL;
	}
	if (cached_list != NULL && cached_list->state == CACHED_LIST_PASSED)
		return false;
	if (cached_list != NULL && cached_list->state >= CACHED_LIST_GIVING) {
		cached_list_answer(cached_list, call, 0);
		return true;
	}
	if (cached_list != NULL) {
		cached_list_await(cached_list, call, env);
		return true;
	}
	cached_list = cached_list_new(pool, principal, call->method, kind);
	cached_list_await(cached_list, call, env);
	reason = cached_list_want(cached_list);
	if (reason != REASON_NONE)
		cached_list_fail(cached_list, reason);
	return true;
}

/* Another page of a list that is kept here. */
static void answer_page(struct call *call, size_t kind, uint64_t number, uint64_t page)
{
	const struct client *client = call->client;
	struct cached_list *cached_list = map_find(&client->pool->sharing->lists.current,
						   cached_list_key(client->principal, kind));

	if (cached_list != NULL && cached_list->state >= CACHED_LIST_GIVING &&
	    cached_list->pages.count > page && cached_list->pages.number == number)
		cached_list_answer(cached_list, call, page);
	else
		result_send_error(call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: unknown cursor"));
}

static bool kind_find(const struct method *method, size_t *kind_r)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		*kind_r = i;
		if (slice_is_equal(kinds[i].method, method->name))
			return true;
	}
	return false;
}

bool list_cache_take(struct call *call, const struct envelope *env)
{
	uint64_t number;
	uint64_t page;
	size_t kind;

	CHECK(pool_is_shared(call->client->pool) && call->state == CALL_WAITING);
	if (!(call->method->flags & METHOD_PAGED) || !kind_find(call->method, &kind))
		return false;
	if (cursor_open_page(scan_member(env->params.text, SLICE_LIT("cursor")), &number, &page) ==
	    0) {
		answer_page(call, kind, number, page);
		return true;
	}
	return is_plain(env) && answer_first(call, env, kind);
}

void list_cache_note_change(struct pool *pool, unsigned int offer)
{
	for (size_t i = 0; pool_is_shared(pool) && i < LIST_CACHE_KINDS; i++)
		pool->sharing->lists.changes[i] += kinds[i].offer == offer;
}

/* ---- beginning and end ---- */

void list_cache_init(struct list_cache *lists)
{
	list_init(&lists->all);
	lists->current = (struct map){ NULL, 0, 0 };
	memset(lists->changes, 0, sizeof(lists->changes));
}

void list_cache_fini(struct list_cache *lists)
{
	CHECK(lists != NULL);
	LIST_FOREACH_SAFE(node, &lists->all)
		cached_list_free(container_of(node, struct cached_list, link));
	map_fini(&lists->current);
}

void list_cache_lru_init(struct list_cache_lru *store)
{
	list_init(&store->kept);
	store->bytes = 0;
}
