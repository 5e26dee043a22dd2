/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listing is one list for one principal, on its way or kept. The first who asks makes it wanted; who asks meanwhile
 * waits for it, who asks later gets it at once. When the server says that it has changed, whoever waits already gets
 * what comes, and the next one who asks makes another.
 *
 * What is kept is told by nobody but its process: when that has gone, or if it does not tell of changes, five seconds
 * have passed, it is fetched again. Errors are given to who waits, and forgotten.
 */
#include "router/listings.h"

#include "base/clock.h"
#include "base/mem.h"
#include "mcp/error.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/convert.h"
#include "router/cursor.h"
#include "router/deliver.h"
#include "router/forward.h"
#include "router/lane.h"
#include "router/pages.h"
#include "router/route.h"

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

static const struct kind kinds[LISTINGS_KINDS] = {
	{ SLICE("tools/list"), SLICE("tools"), OFFER_TOOLS },
	{ SLICE("prompts/list"), SLICE("prompts"), OFFER_PROMPTS },
	{ SLICE("resources/list"), SLICE("resources"), OFFER_RESOURCES },
	{ SLICE("resources/templates/list"), SLICE("resourceTemplates"), OFFER_RESOURCES },
};

enum listing_state {
	LISTING_WANTED,
	LISTING_ASKED,  /* a page is on its way */
	LISTING_GIVING, /* it, or an error, is there: those who waited get it */
	LISTING_KEPT,
	LISTING_PASSED, /* it cannot be kept: requests are forwarded */
};

struct listing {
	struct list link;  /* of the partition's */
	struct list place; /* of those in its state: wanted, of a lane, kept */
	struct partition *partition;
	struct principal *principal; /* whose it is: what he sees may be for him alone */
	const struct method *method;
	size_t kind;
	enum listing_state state;
	bool is_current;
	bool is_repeated;  /* a process was lost over it, and another one was asked */
	struct lane *lane; /* that was asked */
	uint64_t bid;
	uint64_t child;                  /* that it is from */
	uint64_t changes;                /* before it was asked for */
	const struct revision *revision; /* of that one */
	uint64_t until_ms;               /* fresh, or passed */
	struct pages pages;
	size_t bytes;        /* counted in the store */
	struct list waiting; /* calls */
	struct timer deadline;
	struct task giving;
};

#define TO(state) (1u << LISTING_##state)
static const unsigned int next_states[] = {
	[LISTING_WANTED] = TO(ASKED), [LISTING_ASKED] = TO(WANTED) | TO(GIVING) | TO(PASSED),
	[LISTING_GIVING] = TO(KEPT),  [LISTING_KEPT] = 0,
	[LISTING_PASSED] = 0,
};
#undef TO

/* ---- what is there ---- */

static struct listings *listings_of(const struct listing *listing)
{
	return &listing->partition->commons->lists;
}

static struct listings_store *store_of(const struct listing *listing)
{
	return &listing->partition->router->lists;
}

/* Pointers to principals are far enough apart. */
static uint64_t listing_key(const struct principal *principal, size_t kind)
{
	return (uint64_t)(uintptr_t)principal + kind;
}

/* Puts it among those in its state. */
static void listing_place(struct listing *listing)
{
	list_remove(&listing->place);
	if (listing->state == LISTING_WANTED)
		list_append(&listings_of(listing)->wanted, &listing->place);
	else if (listing->state == LISTING_ASKED)
		list_append(&listing->lane->fetches, &listing->place);
	else if (listing->state != LISTING_GIVING)
		list_append(&store_of(listing)->kept, &listing->place);
}

static void listing_set_state(struct listing *listing, enum listing_state state)
{
	CHECK(next_states[listing->state] & 1u << state);
	listing->state = state;
	listing_place(listing);
}

static void listing_count_bytes(struct listing *listing, size_t bytes)
{
	store_of(listing)->bytes += bytes - listing->bytes;
	listing->bytes = bytes;
}

static void listing_free(struct listing *listing)
{
	CHECK(list_is_empty(&listing->waiting));
	if (listing->is_current)
		map_remove(&listings_of(listing)->current,
			   listing_key(listing->principal, listing->kind));
	list_remove(&listing->link);
	list_remove(&listing->place);
	timer_stop(&listing->deadline);
	task_cancel(&listing->giving);
	listing_count_bytes(listing, 0);
	pages_reset(&listing->pages);
	principal_unref(&listing->principal);
	loop_defer_free(listing->partition->router->loop, listing);
}

/* Who asks from now on gets another one. */
static void listing_outdate(struct listing *listing)
{
	if (!listing->is_current)
		return;
	map_remove(&listings_of(listing)->current, listing_key(listing->principal, listing->kind));
	listing->is_current = false;
	if (listing->state == LISTING_KEPT || listing->state == LISTING_PASSED)
		listing_free(listing);
}

/* Makes room by forgetting what was not asked for for longest. Returns false if that is not enough. */
static bool listing_find_room(struct listing *listing)
{
	struct listings_store *store = store_of(listing);

	listing_count_bytes(listing, sizeof(*listing) + listing->pages.bytes);
	while (store->bytes > KEPT_BYTES_MAX && !list_is_empty(&store->kept))
		listing_outdate(container_of(store->kept.next, struct listing, place));
	return store->bytes <= KEPT_BYTES_MAX;
}

/* ---- those who wait ---- */

static struct call *first_of(struct list *waiting)
{
	return container_of(waiting->next, struct call, place);
}

/* It ends without a list. The calls that waited are for the caller: they may lead anywhere. */
static void listing_end(struct listing *listing, struct list *waiting_r)
{
	list_init(waiting_r);
	list_splice(waiting_r, &listing->waiting);
	listing_outdate(listing);
	listing_free(listing);
}

static void listing_fail(struct listing *listing, enum reason reason)
{
	struct list waiting;

	listing_end(listing, &waiting);
	while (!list_is_empty(&waiting))
		call_fail(first_of(&waiting), reason);
}

/* As if there were no cache. */
static void pass_on(struct list *waiting)
{
	while (!list_is_empty(waiting)) {
		struct call *call = first_of(waiting);
		struct msg *body = msg_ref(call->body);
		struct envelope env;
		struct error err;

		list_remove(&call->place);
		if (scan_envelope(body->text, &call->route->router->limits, 0, &env, &err) < 0)
			call_fail(call,
				  REASON_PROTOCOL_ERROR); /* it was accepted before: cannot be */
		else
			partition_dispatch(call->route->partition, call, &env);
		msg_unref(&body);
	}
}

static void listing_pass(struct listing *listing)
{
	struct list waiting;

	if (!listing->is_current) {
		listing_end(listing, &waiting);
	} else {
		LOG(LIST_PASSED, LOG_STR("server", listing->partition->backend->conf.name),
		    LOG_SLICE("method", listing->method->name),
		    LOG_INT("pages", listing->pages.taken));
		list_init(&waiting);
		list_splice(&waiting, &listing->waiting);
		pages_reset(&listing->pages);
		listing_count_bytes(listing, sizeof(*listing));
		listing->until_ms = clock_now_ms() + PASSED_MS;
		listing_set_state(listing, LISTING_PASSED);
	}
	pass_on(&waiting);
}

static void listing_on_giving(struct task *task)
{
	struct listing *listing = container_of(task, struct listing, giving);
	size_t given = 0;

	while (!list_is_empty(&listing->waiting) && given < HAND_OUT_BYTES) {
		struct call *call = first_of(&listing->waiting);

		list_remove(&call->place);
		given += listing->pages.joined[0].msg->text.n;
		deliver_stored(call, listing->revision, &listing->pages.joined[0].env);
	}
	if (!list_is_empty(&listing->waiting))
		task_schedule(listing->partition->router->loop, task);
	else if (listing->is_current)
		listing_set_state(listing, LISTING_KEPT);
	else
		listing_free(listing);
}

static void listing_give(struct listing *listing)
{
	listing_set_state(listing, LISTING_GIVING);
	task_schedule(listing->partition->router->loop, &listing->giving);
}

/* ---- fetching ---- */

static void listing_ask(struct listing *listing)
{
	struct lane *lane = listing->lane;

	listing->bid = forward_list(lane, listing->method->name, buf_slice(&listing->pages.cursor));
	timer_start(lane->router->loop, &listing->deadline,
		    lane->child.backend->conf.request_timeout_ms);
}

static void listing_begin(struct listing *listing, struct lane *lane)
{
	counter_add(COUNTER_LISTS_FETCHED);
	listing->lane = lane;
	listing->child = lane_child_number(lane);
	listing->revision = lane->revision;
	listing->changes = listings_of(listing)->changes[listing->kind];
	lane_add_fetch(lane);
	listing_set_state(listing, LISTING_ASKED);
	listing_ask(listing);
}

/* Nothing more is asked of the lane. */
static void listing_leave_lane(struct listing *listing)
{
	struct lane *lane = listing->lane;

	timer_stop(&listing->deadline);
	list_remove(&listing->place);
	listing->lane = NULL;
	lane_remove_fetch(lane);
}

static void listing_ask_more(struct listing *listing)
{
	if (list_is_empty(&listing->waiting)) {
		listing_leave_lane(listing);
		listing_free(listing); /* nobody wants it any more */
	} else if (!child_has_room(&listing->lane->child, listing->pages.cursor.len)) {
		listing_leave_lane(listing);
		listing_fail(listing, REASON_OVER_LIMIT);
	} else {
		listing_ask(listing);
	}
}

/* Tasks are not offered by pools: what is said of them is left out for all, here. bridging.md §2.5 */
static enum pages_outcome listing_take_page(struct listing *listing, const struct envelope *env)
{
	struct convert convert = { .text = { 0 } };
	enum pages_outcome outcome;

	env = convert_response(&convert, REVISION_TASKS, listing->method, env);
	outcome = pages_add(&listing->pages, env->result.text);
	convert_fini(&convert);
	return listing_find_room(listing) ? outcome : PAGES_UNFIT;
}

static void listing_on_page(struct listing *listing, const struct envelope *env)
{
	enum pages_outcome outcome = listing_take_page(listing, env);

	if (outcome == PAGES_MORE) {
		listing_ask_more(listing);
		return;
	}
	listing_leave_lane(listing);
	if (outcome == PAGES_COMPLETE &&
	    pages_join(&listing->pages, &listing->partition->router->limits) == 0) {
		listing_count_bytes(listing, sizeof(*listing) + listing->pages.bytes);
		listing->until_ms = clock_now_ms() + FRESH_MS;
		listing_give(listing);
	} else {
		listing_pass(listing);
	}
}

/* Those who wait have asked for the first page: the error of another one is not for them. */
static void listing_on_error(struct listing *listing, const struct envelope *env)
{
	struct list waiting;

	listing_leave_lane(listing);
	if (listing->pages.taken > 0) {
		listing_end(listing, &waiting);
		pass_on(&waiting);
	} else if (pages_set_error(&listing->pages, env->text,
				   &listing->partition->router->limits) == 0) {
		listing_outdate(listing);
		listing_give(listing);
	} else {
		listing_fail(listing, REASON_CHILD_PROTOCOL_ERROR); /* cannot be */
	}
}

static struct listing *find_asked(const struct lane *lane, struct json id)
{
	uint64_t bid;

	if (lane_read_bid(id, &bid) < 0)
		return NULL;
	LIST_FOREACH(node, &lane->fetches) {
		struct listing *listing = container_of(node, struct listing, place);

		if (listing->bid == bid)
			return listing;
	}
	return NULL;
}

bool listings_take(struct lane *lane, const struct envelope *env)
{
	struct listing *listing = find_asked(lane, env->id);

	if (listing == NULL)
		return false;
	if (env->kind == ENVELOPE_RESULT)
		listing_on_page(listing, env);
	else
		listing_on_error(listing, env);
	return true;
}

bool listings_refuse(struct lane *lane, struct json id)
{
	struct listing *listing = find_asked(lane, id);

	if (listing == NULL)
		return false;
	listing_leave_lane(listing);
	listing_fail(listing, REASON_CHILD_PROTOCOL_ERROR);
	return true;
}

static void listing_wait_for_lane(struct listing *listing)
{
	timer_start(listing->partition->router->loop, &listing->deadline,
		    listing->partition->backend->conf.queue_timeout_ms);
}

void listings_on_lost(struct lane *lane, enum reason reason)
{
	while (!list_is_empty(&lane->fetches)) {
		struct listing *listing = container_of(lane->fetches.next, struct listing, place);

		listing_leave_lane(listing);
		if (listing->is_repeated) {
			listing_fail(listing, reason);
			continue;
		}
		listing->is_repeated = true;
		pages_reset(&listing->pages);
		listing_count_bytes(listing, sizeof(*listing));
		listing_set_state(listing, LISTING_WANTED);
		listing_wait_for_lane(listing);
	}
}

bool listings_wait(const struct partition *partition)
{
	return partition->is_pool && !list_is_empty(&partition->commons->lists.wanted);
}

bool listings_serve_one(struct partition *partition)
{
	while (listings_wait(partition)) {
		struct listing *listing =
			container_of(partition->commons->lists.wanted.next, struct listing, place);
		struct lane *lane;

		if (list_is_empty(&listing->waiting)) {
			listing_free(listing);
			continue;
		}
		lane = partition_find_lane(partition);
		if (lane != NULL)
			listing_begin(listing, lane);
		return lane != NULL;
	}
	return false;
}

void listings_fail_waiting(struct partition *partition, enum reason reason)
{
	while (listings_wait(partition))
		listing_fail(container_of(partition->commons->lists.wanted.next, struct listing,
					  place),
			     reason);
}

static void listing_on_silence(struct listing *listing)
{
	struct lane *lane = listing->lane;

	counter_add(COUNTER_CALLS_TIMED_OUT);
	LOG(CALL_TIMEOUT, LOG_STR("server", lane->child.backend->conf.name),
	    LOG_SLICE("method", listing->method->name), LOG_INT("child_id", listing->bid));
	forward_give_up(lane, listing->bid, SLICE_LIT("no answer in time"));
	listing_leave_lane(listing);
	listing_fail(listing, REASON_TIMEOUT);
	lane_probe(lane);
}

/* Who waits for a process that is being started waits as long as that takes. */
static void listing_on_deadline(struct timer *timer)
{
	struct listing *listing = container_of(timer, struct listing, deadline);

	if (listing->state == LISTING_ASKED)
		listing_on_silence(listing);
	else if (listing->partition->starting > 0 && !list_is_empty(&listing->waiting))
		listing_wait_for_lane(listing);
	else
		listing_fail(listing, REASON_OVER_LIMIT);
}

static struct listing *listing_new(struct partition *partition, struct principal *principal,
				   const struct method *method, size_t kind)
{
	struct listing *listing = mem_zalloc(sizeof(*listing));

	listing->partition = partition;
	listing->principal = principal_ref(principal);
	listing->method = method;
	listing->kind = kind;
	listing->pages.member = kinds[kind].member;
	listing->state = LISTING_WANTED;
	listing->is_current = true;
	map_insert(&partition->commons->lists.current, listing_key(principal, kind), listing);
	list_append(&partition->commons->lists.all, &listing->link);
	list_init(&listing->place);
	list_init(&listing->waiting);
	timer_init(&listing->deadline, listing_on_deadline);
	task_init(&listing->giving, listing_on_giving);
	listing_count_bytes(listing, sizeof(*listing));
	listing_place(listing);
	listing_wait_for_lane(listing);
	return listing;
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

static bool is_fresh(const struct listing *listing)
{
	const struct partition *partition = listing->partition;

	if (listing->state == LISTING_WANTED)
		return true;
	if (listing->state == LISTING_PASSED)
		return clock_now_ms() < listing->until_ms;
	if (listing->changes != partition->commons->lists.changes[listing->kind])
		return false;
	if (listing->state == LISTING_ASKED)
		return true;
	return partition_has_child(partition, listing->child) &&
	       (kinds[listing->kind].offer & partition->abilities.tells ||
		clock_now_ms() < listing->until_ms);
}

static void listing_answer(struct listing *listing, struct route *route, struct call *call,
			   size_t page)
{
	counter_add(COUNTER_LISTS_ANSWERED);
	call_link(call, route);
	if (listing->state == LISTING_KEPT)
		listing_place(listing); /* the last that goes */
	deliver_stored(call, listing->revision, &listing->pages.joined[page].env);
}

static void listing_await(struct listing *listing, struct route *route, struct call *call,
			  const struct envelope *env)
{
	call->body = msg_new(env->text);
	call_link(call, route);
	list_append(&listing->waiting, &call->place);
	call_wait(call, route->backend->conf.request_timeout_max_ms);
}

/* The list's first page, or the place where it will be. */
static bool answer_first(struct route *route, struct call *call, const struct envelope *env,
			 size_t kind)
{
	struct partition *partition = route->partition;
	struct principal *principal = route->session.principal;
	struct listing *listing =
		map_find(&partition->commons->lists.current, listing_key(principal, kind));
	enum reason reason;

	if (listing != NULL && !is_fresh(listing)) {
		listing_outdate(listing);
		listing = NULL;
	}
	if (listing != NULL && listing->state == LISTING_PASSED)
		return false;
	if (listing != NULL && listing->state >= LISTING_GIVING) {
		listing_answer(listing, route, call, 0);
		return true;
	}
	if (listing != NULL) {
		listing_await(listing, route, call, env);
		return true;
	}
	listing = listing_new(partition, principal, call->method, kind);
	listing_await(listing, route, call, env);
	reason = partition_await_lane(partition);
	if (reason != REASON_NONE)
		listing_fail(listing, reason);
	return true;
}

/* Another page of a list that is kept here. */
static void answer_page(struct route *route, struct call *call, size_t kind, uint64_t number,
			uint64_t page)
{
	struct listing *listing = map_find(&route->partition->commons->lists.current,
					   listing_key(route->session.principal, kind));

	if (listing != NULL && listing->state >= LISTING_GIVING && listing->pages.count > page &&
	    listing->pages.number == number)
		listing_answer(listing, route, call, page);
	else
		forward_own_error(route, call, MCP_INVALID_PARAMS,
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

bool listings_answer(struct route *route, struct call *call, const struct envelope *env)
{
	uint64_t number;
	uint64_t page;
	size_t kind;

	if (!(call->method->flags & METHOD_PAGED) || !kind_find(call->method, &kind))
		return false;
	if (cursor_open_page(scan_member(env->params.text, SLICE_LIT("cursor")), &number, &page) ==
	    0) {
		answer_page(route, call, kind, number, page);
		return true;
	}
	return is_plain(env) && answer_first(route, call, env, kind);
}

void listings_note_change(struct partition *partition, unsigned int offer)
{
	for (size_t i = 0; partition->is_pool && i < LISTINGS_KINDS; i++)
		partition->commons->lists.changes[i] += kinds[i].offer == offer;
}

/* ---- beginning and end ---- */

void listings_init(struct listings *lists)
{
	list_init(&lists->all);
	list_init(&lists->wanted);
	lists->current = (struct map){ NULL, 0, 0 };
	memset(lists->changes, 0, sizeof(lists->changes));
}

void listings_fini(struct listings *lists)
{
	LIST_FOREACH_SAFE(node, &lists->all)
		listing_free(container_of(node, struct listing, link));
	map_fini(&lists->current);
}

void listings_store_init(struct listings_store *store)
{
	list_init(&store->kept);
	store->bytes = 0;
}
