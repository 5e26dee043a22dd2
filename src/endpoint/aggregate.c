/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gateway sends waits in `inbox` and is taken at the end of the turn: never does a leg answer while its question is
 * still being asked. A message that must wait (for a leg, or a list) stays there until something has changed. A list is gathered
 * from all legs; a leg that does not answer in time is left out, and when it is back, the client is told that lists have changed.
 */
#include "endpoint/aggregate.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "endpoint/answer.h"
#include "endpoint/catalogue.h"
#include "endpoint/leg.h"
#include "endpoint/search.h"
#include "io/aside.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "obs/log.h"
#include "policy/permissions.h"
#include "router/client.h"
#include "router/dispatch.h"
#include "router/forward.h"
#include "router/pool.h"
#include "router/router.h"
#include "router/text_set.h"
#include "upstream/upstream.h"
#include "upstream/upstream_ops.h"

#define PATIENCE_MS 10000 /* how long a handshake or a list waits for a leg */
#define MISSED_MS 1000    /* likewise, if it was waited for before */
#define SLOW_MS 45000     /* likewise, if it was too slow the last time */
#define GATHERS_MAX 2     /* of one list, for one caller */
#define PAGES_MAX 1000    /* of one list of one leg */

static const struct slice none = { NULL, 0 };

enum share_state { SHARE_DUE, SHARE_ASKED, SHARE_DONE };

/* What one leg has of a list. */
struct share {
	struct gather *gather;
	enum share_state state;
	struct msg **pages;
	size_t page_count;
};

/* A list that is being fetched from all legs. */
struct gather {
	struct list link;
	struct aggregate *aggregate;
	enum catalogue_kind kind;
	struct buf ids; /* of the requests that it answers, a line each; gather_give_one */
	struct access access;
	struct timer patience;
	uint64_t configuration; /* by whose rules: router->configuration */
	size_t waited;          /* how many of the `waits` are over */
	bool is_stale;          /* a list has changed since it began */
	struct aside joining; /* once all shares are done, or time is up: joins them, and answers */
	struct catalogue catalogue; /* until they have been joined */
	struct buf result;          /* of joining them; else empty */
	size_t bytes;
	struct share shares[];
};

/* A message of the gateway. */
struct inbound {
	struct list link;
	struct msg *msg;
	uint64_t until[CATALOGUE_KINDS]; /* which list it waits for: a->fetched; 0: none */
	uint64_t seen;                   /* a->news, when it was last looked at; 0: never */
};

struct aggregate {
	struct upstream upstream;
	struct legs legs;
	struct list inbox, gathers;
	size_t inbox_bytes;
	struct catalogue catalogues[CATALOGUE_KINDS];
	uint64_t fetched[CATALOGUE_KINDS]; /* how often */
	uint64_t configuration;            /* by whose rules they are: router->configuration */
	struct inbound *current;           /* the message that is being taken */
	uint64_t news;                     /* grows with what waiting messages may wait for */
	struct text_set *tasks;            /* of each leg: ids of those that calls have become */
	struct task task;
	struct timer patience; /* of the handshake */
	bool is_started, is_late, is_shaken, is_stopped;
};

static struct aggregate *aggregate_of(const struct upstream *upstream)
{
	return container_of(upstream, struct aggregate, upstream);
}

static void look_again(struct aggregate *a)
{
	task_schedule(a->upstream.shared->loop, &a->task);
}

/* Messages that wait for a leg, or a list, are looked at again. */
static void note_news(struct aggregate *a)
{
	a->news++;
	look_again(a);
}

/* ---- to the client ---- */

/* may_pause: anything may end meanwhile. leg: the one that answers, perhaps with a task; NULL: none. */
static void hand_up(struct aggregate *a, struct slice text, bool may_pause, const struct leg *leg)
{
	bool gave_way = a->upstream.gives_way; /* this may be in the middle of another one */
	struct json task = { .type = JSON_ABSENT };
	struct envelope env;
	int result;

	if (may_pause)
		aside_open();
	result = scan_envelope(text, &scan_limits_none, SCAN_LENIENT, &env, NULL);
	if (leg != NULL && result == 0 && env.made_task.type == JSON_OBJECT)
		task = scan_member(env.made_task.text, SLICE_LIT("taskId"));
	aside_close();
	if (result < 0 || a->upstream.state == UPSTREAM_CLOSED)
		return;
	if (task.type == JSON_STRING)
		text_set_push(&a->tasks[leg->index], task.text);
	upstream_on_sign_of_life(&a->upstream);
	a->upstream.gives_way = may_pause;
	upstream_on_message(&a->upstream, &env);
	a->upstream.gives_way = gave_way;
}

static void deliver(struct aggregate *a, struct slice text)
{
	hand_up(a, text, false, NULL);
}

static void deliver_error(struct aggregate *a, struct slice id, int code, const char *message)
{
	at_end(buf_fini) struct buf text = { 0 };

	write_error(&text, id, code, slice_str(message), none);
	deliver(a, buf_slice(&text));
}

static void deliver_unknown(struct aggregate *a, const struct envelope *env)
{
	at_end(buf_fini) struct buf text = { 0 };

	legs_append_unknown(env->text, &text);
	deliver(a, buf_slice(&text));
}

static void deliver_result(struct aggregate *a, struct slice id, struct slice result)
{
	at_end(buf_fini) struct buf text = { 0 };

	write_result(&text, id, result);
	deliver(a, buf_slice(&text));
}

static void deliver_reason(struct aggregate *a, struct slice id, enum reason reason,
			   const char *server)
{
	at_end(buf_fini) struct buf text = { 0 };

	answer_append_reason(&text, id, reason, server);
	deliver(a, buf_slice(&text));
}

static void outdate_gathers(struct aggregate *a)
{
	LIST_EACH(struct gather, gather, &a->gathers, link)
		gather->is_stale = true;
}

static void outdate_all(struct aggregate *a)
{
	for (enum catalogue_kind kind = 0; kind < CATALOGUE_KINDS; kind++)
		a->catalogues[kind].is_known = false;
	outdate_gathers(a);
}

/* The lists that the leg has part in may have changed. */
static void tell_changes(struct aggregate *a, const struct leg *leg)
{
	outdate_all(a);
	for (size_t i = 0; i < METHOD_CHANGES && a->is_shaken; i++) {
		at_end(buf_fini) struct buf text = { 0 };

		if (!(leg->capabilities.offers & method_changes[i].offer))
			continue;
		write_call(&text, none, method_changes[i].notification, none);
		deliver(a, buf_slice(&text));
	}
}

/* ---- what legs report ---- */

static void client_answer(struct leg_call *call, struct slice response, enum reason reason);

static void note_list_change(struct aggregate *a, struct slice capability)
{
	outdate_gathers(a);
	if (slice_is_equal(capability, SLICE_LIT("tools"))) {
		a->catalogues[CATALOGUE_TOOLS].is_known = false;
	} else if (slice_is_equal(capability, SLICE_LIT("prompts"))) {
		a->catalogues[CATALOGUE_PROMPTS].is_known = false;
	} else {
		a->catalogues[CATALOGUE_RESOURCES].is_known = false;
		a->catalogues[CATALOGUE_TEMPLATES].is_known = false;
	}
}

/* The call that this one was made for; NULL: there is none any more. */
static struct call *find_call(const struct aggregate *a, const struct leg_call *call)
{
	struct json id = { .type = JSON_NUMBER, .text = call->call.id };
	struct upstream_request *request = upstream_find_request(&a->upstream, id);

	if (call->on_answer != client_answer || request == NULL || !dispatch_is_of_call(request))
		return NULL;
	return container_of(request, struct call, request);
}

static void legs_on_message(struct legs *legs, const struct leg_call *call, struct slice text)
{
	struct aggregate *a = container_of(legs, struct aggregate, legs);
	struct call *own = call != NULL ? find_call(a, call) : NULL;
	const struct method *method;
	struct envelope env;

	if (a->upstream.state == UPSTREAM_CLOSED ||
	    scan_envelope(text, &scan_limits_none, SCAN_LENIENT, &env, NULL) < 0)
		return;
	method = method_find(env.method);
	if (method->id == METHOD_LIST_CHANGED)
		note_list_change(a, slice_str(method->capability));
	upstream_on_sign_of_life(&a->upstream);
	a->upstream.about = own != NULL ? &own->request : NULL;
	upstream_on_message(&a->upstream, &env);
	a->upstream.about = NULL;
}

static void legs_on_change(struct legs *legs, const struct leg *leg, bool was_missed)
{
	struct aggregate *a = container_of(legs, struct aggregate, legs);

	/* Back, or gone after it was there. */
	if (leg->state == LEG_OPEN ? was_missed : !was_missed)
		tell_changes(a, leg);
	note_news(a);
}

static const struct legs_ops legs_ops = {
	.on_message = legs_on_message,
	.on_change = legs_on_change,
};

/* ---- lists ---- */

static const struct {
	struct slice method;
	unsigned int offer;
} lists[] = {
	[CATALOGUE_TOOLS] = { SLICE("tools/list"), OFFER_TOOLS },
	[CATALOGUE_PROMPTS] = { SLICE("prompts/list"), OFFER_PROMPTS },
	[CATALOGUE_RESOURCES] = { SLICE("resources/list"), OFFER_RESOURCES },
	[CATALOGUE_TEMPLATES] = { SLICE("resources/templates/list"), OFFER_RESOURCES },
	[CATALOGUE_TASKS] = { SLICE("tasks/list"), OFFER_TASKS },
};

static void gather_answer(struct leg_call *call, struct slice response, enum reason reason);
static void gather_on_joining(struct aside *aside);

/* For a leg that was missed before, for any, for one that was too slow the last time. */
static const uint64_t waits[] = { MISSED_MS, PATIENCE_MS - MISSED_MS, SLOW_MS - PATIENCE_MS };

/* What still comes for it is for nobody. */
static void gather_close(struct gather *gather)
{
	LIST_EACH(struct leg_call, call, &gather->aggregate->legs.calls, link)
		if (call->on_answer == gather_answer &&
		    ((struct share *)call->arg)->gather == gather)
			call->on_answer = NULL;
	timer_stop(&gather->patience);
}

/* Forgets all that has come for it. */
static void gather_clear(struct gather *gather)
{
	gather_close(gather);
	catalogue_clear(&gather->catalogue);
	buf_fini(&gather->result);
	for (size_t i = 0; i < gather->aggregate->legs.count; i++) {
		for (size_t p = 0; p < gather->shares[i].page_count; p++)
			msg_unref(&gather->shares[i].pages[p]);
		free(gather->shares[i].pages);
		gather->shares[i] = (struct share){ .gather = gather };
	}
	gather->bytes = gather->waited = 0;
}

static void on_gather_patience(struct timer *timer)
{
	struct gather *gather = container_of(timer, struct gather, patience);

	if (++gather->waited < ARRAY_LEN(waits))
		timer_start(gather->aggregate->upstream.shared->loop, timer, waits[gather->waited]);
	look_again(gather->aggregate);
}

/* By the rules of now. */
static void gather_begin(struct gather *gather)
{
	struct aggregate *a = gather->aggregate;

	gather->configuration = a->upstream.pool->router->configuration;
	gather->is_stale = false;
	timer_start(a->upstream.shared->loop, &gather->patience, waits[0]);
	look_again(a);
}

static struct gather *gather_new(struct aggregate *a, enum catalogue_kind kind)
{
	struct gather *gather =
		mem_zalloc(sizeof(*gather) + a->legs.count * sizeof(gather->shares[0]));

	gather->aggregate = a;
	gather->kind = kind;
	gather->access = access_copy(&a->legs.caller.access);
	list_append(&a->gathers, &gather->link);
	aside_init(&gather->joining, gather_on_joining);
	timer_init(&gather->patience, on_gather_patience);
	gather_clear(gather);
	gather_begin(gather);
	return gather;
}

/*
 * The last fetch of this list for the caller of now, unless a list has changed since; *count_r: of all
 * such fetches. NULL: there is none.
 */
static struct gather *find_gather(const struct aggregate *a, enum catalogue_kind kind,
				  size_t *count_r)
{
	struct gather *found = NULL;

	*count_r = 0;
	LIST_EACH(struct gather, gather, &a->gathers, link) {
		if (gather->kind != kind ||
		    !access_is_same(&gather->access, &a->legs.caller.access))
			continue;
		++*count_r;
		found = gather->is_stale ? NULL : gather;
	}
	return found;
}

/* Requests of one caller share a fetch. False: there are as many as there may be; it waits. */
static bool take_list(struct aggregate *a, enum catalogue_kind kind, struct slice id,
		      struct slice arguments)
{
	size_t count;
	struct gather *gather = find_gather(a, kind, &count);

	if (gather == NULL && count >= GATHERS_MAX)
		return false;
	if (gather == NULL)
		gather = gather_new(a, kind);
	buf_append_slice(&gather->ids, id);
	if (arguments.n > 0)
		buf_append_char(&gather->ids, '\t');
	buf_append_slice(&gather->ids, arguments);
	buf_append_char(&gather->ids, '\n');
	return true;
}

static void gather_free(struct gather *gather)
{
	struct aggregate *a = gather->aggregate;

	gather_clear(gather);
	list_remove(&gather->link);
	access_fini(&gather->access);
	buf_fini(&gather->ids);
	loop_defer_free(a->upstream.shared->loop, gather);
}

static void end_share(struct share *share)
{
	share->state = SHARE_DONE;
	look_again(share->gather->aggregate);
}

/* cursor: JSON text; absent: of the first page. */
static void ask_page(struct share *share, struct leg *leg, struct json cursor)
{
	const struct gather *gather = share->gather;
	at_end(buf_fini) struct buf params = { 0 }, text = { 0 }, error = { 0 };

	share->state = SHARE_ASKED;
	if (cursor.type == JSON_STRING)
		buf_printf(&params, "{\"cursor\":%.*s}", SLICE_ARG(cursor.text));
	write_call(&text, SLICE_LIT("\"list\""), lists[gather->kind].method, buf_slice(&params));
	if (!leg_ask(leg, buf_slice(&text), &gather->access, gather_answer, share, &error)) {
		leg_miss(leg, "a list of it was refused");
		end_share(share);
	}
}

/* Keeps the page. False: there is no room for it. */
static bool keep_page(struct share *share, const struct envelope *env)
{
	struct gather *gather = share->gather;

	gather->bytes += env->text.n;
	if (gather->bytes > gather->aggregate->upstream.server->conf.line_max ||
	    share->page_count >= PAGES_MAX)
		return false;
	share->pages = mem_resize(share->pages, (share->page_count + 1) * sizeof(share->pages[0]));
	share->pages[share->page_count++] = msg_new(env->text);
	return true;
}

/* A page. Its server decides how many there are, and the limit of a response how much is kept. */
static void gather_answer(struct leg_call *call, struct slice response, not_used enum reason reason)
{
	struct share *share = call->arg;
	struct json cursor = { .type = JSON_ABSENT };
	struct envelope env;

	if (response.n == 0 ||
	    scan_envelope(response, &scan_limits_none, SCAN_LENIENT, &env, NULL) < 0 ||
	    env.kind != ENVELOPE_RESULT)
		leg_miss(call->leg, "a list of it could not be had");
	else if (!keep_page(share, &env))
		leg_miss(call->leg, "the lists are longer than limits.response allows");
	else
		cursor = scan_member(env.result.text, SLICE_LIT("nextCursor"));
	if (cursor.type == JSON_STRING && call->leg->state == LEG_OPEN)
		ask_page(share, call->leg, cursor);
	else
		end_share(share);
}

/* All legs have answered, or time is up. */
static void gather_end(struct gather *gather)
{
	for (size_t i = 0; i < gather->aggregate->legs.count; i++) {
		struct leg *leg = &gather->aggregate->legs.items[i];

		if (gather->shares[i].state == SHARE_ASKED)
			leg_miss(leg, "a list of it takes too long");
		else if (gather->shares[i].state == SHARE_DUE)
			leg->is_missed = true;
		/* It stays so until it has answered in the time that others have. */
		if (gather->shares[i].state == SHARE_ASKED || gather->waited < 2)
			leg->is_slow = gather->shares[i].state == SHARE_ASKED;
	}
	gather_close(gather);
}

/* Of what nobody else looks at: it may give way. */
static void join_shares(struct gather *gather)
{
	const struct legs *legs = &gather->aggregate->legs;

	for (size_t i = 0; i < legs->count; i++)
		for (size_t p = 0; p < gather->shares[i].page_count; p++)
			catalogue_add_page(&gather->catalogue, gather->kind, i,
					   legs->items[i].prefix, gather->shares[i].pages[p]->text);
	if (gather->catalogue.doubles > 0)
		legs_tell_doubles(legs, &gather->catalogue, catalogue_member(gather->kind));
	buf_printf(&gather->result, "{\"%.*s\":[", SLICE_ARG(catalogue_member(gather->kind)));
	catalogue_append(&gather->catalogue, gather->kind, &gather->result);
	buf_append_str(&gather->result, "]}");
	if (!legs->overlap)
		catalogue_forget_plain(&gather->catalogue);
	catalogue_trim(&gather->catalogue);
}

static void gather_join(struct gather *gather)
{
	struct aggregate *a = gather->aggregate;
	struct catalogue left, *catalogue = &a->catalogues[gather->kind];

	aside_open();
	join_shares(gather);
	aside_close();
	if (a->is_stopped)
		return;
	catalogue_keep(catalogue, &gather->catalogue, &a->legs.caller.frontend->catalogues, &left);
	catalogue->is_known = !gather->is_stale;
	a->fetched[gather->kind]++;
	note_news(a); /* for what waited for the catalogue */
	aside_open();
	catalogue_clear(&left);
	aside_close();
}

/* line: an id, and behind a tab the arguments of find_tool. */
static void gather_give_one(struct gather *gather, struct slice line)
{
	bool searches = gather->aggregate->upstream.server->conf.searches;
	struct slice id = slice_cut(&line, '\t'), result = buf_slice(&gather->result);
	at_end(buf_fini) struct buf found = { 0 }, text = { 0 };

	if (line.n > 0)
		search_append_found(result, line, &found);
	if (searches && gather->kind == CATALOGUE_TOOLS)
		result = line.n > 0 ? buf_slice(&found) : search_tools;
	write_result(&text, id, result);
	hand_up(gather->aggregate, buf_slice(&text), true, NULL);
}

/* Many may wait for a long list, and more come: that takes several turns. */
static void gather_give(struct gather *gather)
{
	struct aggregate *a = gather->aggregate;

	CHECK(gather->result.len > 0);
	while (gather->ids.len > 0 && !a->is_stopped) {
		struct slice rest = buf_slice(&gather->ids), line = slice_cut(&rest, '\n');
		at_end(buf_fini) struct buf own = { 0 };

		buf_append_slice(&own, line);
		buf_consume(&gather->ids, gather->ids.len - rest.n);
		gather_give_one(gather, buf_slice(&own));
		if (loop_turn_is_long(a->upstream.shared->loop))
			break;
	}
	if (gather->ids.len == 0 && !a->is_stopped) {
		gather_free(gather);
		note_news(a); /* for what waited for its place */
	}
}

/* By other rules than it was fetched by, it is fetched again. */
static bool gather_is_outdated(struct gather *gather)
{
	if (gather->configuration == gather->aggregate->upstream.pool->router->configuration)
		return false;
	gather_clear(gather);
	gather_begin(gather);
	return true;
}

static void gather_on_joining(struct aside *aside)
{
	struct gather *gather = container_of(aside, struct gather, joining);
	struct aggregate *a = gather->aggregate;

	if (gather->result.len == 0)
		gather_join(gather);
	if (!a->is_stopped && !gather_is_outdated(gather))
		gather_give(gather);
	look_again(a);
}

static void gather_go_on(struct gather *gather)
{
	const struct aggregate *a = gather->aggregate;

	if (gather->bytes < ASIDE_BYTES)
		gather_on_joining(&gather->joining);
	else
		aside_start(a->upstream.shared->loop, &gather->joining, legs_owner(&a->legs));
}

/* Whether one has begun, and is not done. Those that wait for their turn are not needed any more. */
static bool is_joining(const struct aggregate *a)
{
	LIST_EACH(struct gather, gather, &a->gathers, link) {
		aside_cancel(&gather->joining);
		if (aside_is_pending(&gather->joining))
			return true;
	}
	return false;
}

static void gather_advance(struct gather *gather)
{
	struct aggregate *a = gather->aggregate;
	bool is_slow = false;
	size_t done = 0;

	CHECK(gather->waited <= ARRAY_LEN(waits));
	if (aside_is_pending(&gather->joining))
		return;
	if (!gather_is_outdated(gather) && gather->result.len > 0) {
		gather_go_on(gather);
		return;
	}
	for (size_t i = 0; i < a->legs.count; i++) {
		struct share *share = &gather->shares[i];
		struct leg *leg = &a->legs.items[i];

		if (share->state == SHARE_DUE)
			leg_need(leg, &gather->access);
		if (share->state == SHARE_DUE && leg->state == LEG_OPEN) {
			if (leg->capabilities.offers & lists[gather->kind].offer)
				ask_page(share, leg, (struct json){ .type = JSON_ABSENT });
			else
				share->state = SHARE_DONE;
		} else if (share->state == SHARE_DUE &&
			   (leg->state == LEG_LOST || (leg->is_missed && gather->waited > 0))) {
			share->state = SHARE_DONE;
		}
		is_slow |= leg->is_slow && share->state == SHARE_ASKED;
		done += share->state == SHARE_DONE;
	}
	if (done == a->legs.count || gather->waited > (is_slow ? 2 : 1)) {
		gather_end(gather);
		gather_go_on(gather);
	}
}

/*
 * Whether the catalogue has this list, or had it once since the message that is being taken began to
 * wait for it: servers may change their lists faster than they can be read. If not, it is fetched.
 */
static bool is_known(struct aggregate *a, enum catalogue_kind kind)
{
	struct inbound *inbound = a->current;
	size_t count;

	CHECK(inbound != NULL && kind < CATALOGUE_KINDS);
	if (a->catalogues[kind].is_known ||
	    (inbound->until[kind] > 0 && a->fetched[kind] >= inbound->until[kind] &&
	     !a->catalogues[kind].is_forgotten))
		return true;
	if (a->fetched[kind] >= inbound->until[kind])
		inbound->until[kind] = a->fetched[kind] + 1;
	if (find_gather(a, kind, &count) == NULL && count < GATHERS_MAX)
		(void)gather_new(a, kind);
	return false;
}

/* ---- which leg ---- */

enum found { FOUND, FOUND_NOTHING, FOUND_LATER };

struct target {
	struct leg *leg;
	struct buf real; /* the name there */
};

/* shown: NUL-terminated */
static enum found find_name(struct aggregate *a, enum catalogue_kind kind, struct slice shown,
			    struct target *target)
{
	const struct catalogue_item *item = NULL;
	struct leg *leg;
	size_t count;

	leg = legs_find_by_prefix(&a->legs, shown, &count);
	if (count > 1 || catalogue_may_be_short(shown)) {
		if (!is_known(a, kind))
			return FOUND_LATER;
		item = catalogue_find(&a->catalogues[kind], shown);
	} else if (a->catalogues[kind].is_known) {
		item = catalogue_find(&a->catalogues[kind], shown);
	}
	if (item != NULL && !item->is_double) {
		target->leg = &a->legs.items[item->leg];
		buf_append_slice(&target->real, item->real);
		return FOUND;
	}
	if (item != NULL || count != 1)
		return FOUND_NOTHING;
	target->leg = leg;
	buf_append_slice(&target->real, slice_of(shown.p + leg->prefix.n, shown.n - leg->prefix.n));
	return FOUND;
}

/* The leg that has listed the resource, or whose template fits; else the only one that has any. */
static enum found find_uri(struct aggregate *a, struct slice uri, struct target *target)
{
	const struct catalogue_item *item;
	bool has_resources = is_known(a, CATALOGUE_RESOURCES);
	bool has_templates = is_known(a, CATALOGUE_TEMPLATES);
	size_t count = 0;

	if (!has_resources || !has_templates)
		return FOUND_LATER;
	item = catalogue_find(&a->catalogues[CATALOGUE_RESOURCES], uri);
	if (item == NULL)
		item = catalogue_find_template(&a->catalogues[CATALOGUE_TEMPLATES], uri);
	if (item != NULL) {
		target->leg = &a->legs.items[item->leg];
		return FOUND;
	}
	for (size_t i = 0; i < a->legs.count; i++) {
		if (a->legs.items[i].state != LEG_OPEN ||
		    !(a->legs.items[i].capabilities.offers & OFFER_RESOURCES))
			continue;
		target->leg = &a->legs.items[i];
		count++;
	}
	return count == 1 ? FOUND : FOUND_NOTHING;
}

/* ---- what the client sends ---- */

/* What the server lacked of the client is told where the client is known. MOD-CAP-01 */
static void client_answer(struct leg_call *call, struct slice response, enum reason reason)
{
	struct aggregate *a = call->arg;
	struct call *own = find_call(a, call);

	if (own != NULL)
		own->missing |= call->call.missing;
	if (response.n > 0)
		hand_up(a, response, call->call.may_pause, call->leg);
	else if (reason != REASON_CANCELLED)
		deliver_reason(a, call->call.id, reason, call->leg->name);
}

/* Passes the request on to the leg, with `span` (unless it is empty) replaced. False: it waits. */
static bool pass(struct aggregate *a, struct leg *leg, const struct envelope *env,
		 struct slice span, struct slice with)
{
	struct splice_edit edit = { .span = span, .with = with };
	const struct access *access = &a->legs.caller.access;
	at_end(buf_fini) struct buf text = { 0 }, error = { 0 };

	leg_need(leg, access);
	if (leg->state == LEG_OPENING)
		return false;
	splice_append(&text, env->text, &edit, span.n > 0, 0);
	if (!leg_ask(leg, buf_slice(&text), access, client_answer, a, &error))
		deliver(a, buf_slice(&error));
	return true;
}

static bool pass_by_name(struct aggregate *a, const struct envelope *env, enum catalogue_kind kind,
			 struct json name)
{
	struct target target = { .leg = NULL };
	at_end(buf_fini) struct buf shown = { 0 }, with = { 0 };
	enum found found = FOUND_NOTHING;
	bool is_done;

	if (scan_decode_string(name, &shown) == 0) {
		buf_terminate(&shown);
		found = find_name(a, kind, buf_slice(&shown), &target);
	}
	is_done = found != FOUND_LATER;
	if (found == FOUND_NOTHING)
		deliver_unknown(a, env);
	if (found == FOUND) {
		write_string(&with, buf_slice(&target.real));
		is_done = pass(a, target.leg, env, name.text, buf_slice(&with));
	}
	buf_fini(&target.real);
	return is_done;
}

/* The call that call_tool stands for. False: it waits. */
static bool pass_wrapped(struct aggregate *a, const struct envelope *env)
{
	at_end(buf_fini) struct buf text = { 0 };
	struct envelope call;

	if (search_unwrap(env, &text) &&
	    scan_envelope(buf_slice(&text), &scan_limits_none, 0, &call, NULL) == 0)
		return pass_by_name(a, &call, CATALOGUE_TOOLS, call.name);
	deliver_error(a, env->id.text, MCP_INVALID_PARAMS,
		      "Invalid params: call_tool needs the name of a tool, and its arguments");
	return true;
}

/* False: it waits. */
static bool take_call(struct aggregate *a, const struct envelope *env)
{
	struct slice name = scan_plain_string(env->name);

	if (!a->upstream.server->conf.searches)
		return pass_by_name(a, env, CATALOGUE_TOOLS, env->name);
	if (slice_is_equal(name, SLICE_LIT(SEARCH_FIND)))
		return take_list(a, CATALOGUE_TOOLS, env->id.text, search_arguments(env));
	if (slice_is_equal(name, SLICE_LIT(SEARCH_CALL)))
		return pass_wrapped(a, env);
	return pass_by_name(a, env, CATALOGUE_TOOLS, env->name);
}

static bool pass_by_uri(struct aggregate *a, const struct envelope *env, struct json uri)
{
	struct target target = { .leg = NULL };
	at_end(buf_fini) struct buf text = { 0 };
	enum found found = FOUND_NOTHING;
	bool is_done = true;

	if (scan_decode_string(uri, &text) == 0)
		found = find_uri(a, buf_slice(&text), &target);
	if (found == FOUND_NOTHING)
		deliver_unknown(a, env);
	else
		is_done = found == FOUND && pass(a, target.leg, env, none, none);
	if (found == FOUND && is_done)
		leg_note_subscription(target.leg, env);
	return is_done;
}

static bool pass_completion(struct aggregate *a, const struct envelope *env)
{
	static const char *const type_way[] = { "ref", "type" };
	static const char *const name_way[] = { "ref", "name" };
	static const char *const uri_way[] = { "ref", "uri" };
	struct slice params = env->params.text;
	struct slice type = scan_plain_string(scan_path(params, type_way, ARRAY_LEN(type_way)));

	if (slice_is_equal(type, SLICE_LIT("ref/prompt")))
		return pass_by_name(a, env, CATALOGUE_PROMPTS,
				    scan_path(params, name_way, ARRAY_LEN(name_way)));
	return pass_by_uri(a, env, scan_path(params, uri_way, ARRAY_LEN(uri_way)));
}

/* The leg whose call has become the task; else the only one with tasks. */
static bool pass_by_task(struct aggregate *a, const struct envelope *env)
{
	struct slice text = env->task_id.text;
	struct leg *found = NULL, *only = NULL;
	size_t count = 0;

	for (size_t i = 0; i < a->legs.count; i++) {
		struct leg *leg = &a->legs.items[i];

		if (text_set_has(&a->tasks[i], text_set_key(text), text))
			found = leg;
		if (leg->state == LEG_OPEN && leg->capabilities.offers & OFFER_TASKS) {
			only = leg;
			count++;
		}
	}
	if (found != NULL || count == 1)
		return pass(a, found != NULL ? found : only, env, none, none);
	deliver_error(a, env->id.text, count == 0 ? MCP_METHOD_NOT_FOUND : MCP_INVALID_PARAMS,
		      count == 0 ? "Method not found: no server of this endpoint offers tasks" :
				   "Invalid params: there is no such task");
	return true;
}

static void set_level(struct aggregate *a, const struct envelope *env)
{
	free(a->legs.level);
	a->legs.level = mem_dup_slice(env->params.text);
	for (size_t i = 0; i < a->legs.count; i++) {
		struct leg *leg = &a->legs.items[i];

		if (leg->state == LEG_OPEN && leg->capabilities.offers & OFFER_LOGGING)
			leg_send(leg, "logging/setLevel", slice_str(a->legs.level));
	}
	deliver_result(a, env->id.text, SLICE_LIT("{}"));
}

/* ---- the handshake ---- */

static void answer_initialize(struct aggregate *a, const struct envelope *env)
{
	at_end(buf_fini) struct buf result = { 0 };

	a->is_shaken = true;
	timer_stop(&a->patience);
	legs_append_result(&a->legs, env->params.text, &result);
	deliver_result(a, env->id.text, buf_slice(&result));
}

static void on_patience(struct timer *timer)
{
	struct aggregate *a = container_of(timer, struct aggregate, patience);

	a->is_late = true;
	note_news(a);
}

/* False: it waits for legs. */
static bool take_initialize(struct aggregate *a, const struct envelope *env)
{
	const struct pool *pool = a->upstream.pool;
	enum reason reason;

	if (a->legs.params == NULL) {
		a->legs.params = msg_new(env->params.text);
		a->legs.client = a->upstream.client;
		legs_take_any_caller(&a->legs, pool);
		timer_start(a->upstream.shared->loop, &a->patience, PATIENCE_MS);
		for (size_t i = 0; i < a->legs.count && legs_have_caller(&a->legs); i++)
			leg_need(&a->legs.items[i], &a->legs.caller.access);
	}
	for (size_t i = 0; i < a->legs.count && legs_have_caller(&a->legs) && !a->is_late; i++)
		if (a->legs.items[i].state == LEG_OPENING)
			return false;
	reason = legs_loss(&a->legs);
	/* A pool that nobody waits in would start another one at once. */
	if (reason == REASON_NONE || (pool_is_shared(pool) && list_is_empty(&pool->joining))) {
		answer_initialize(a, env);
		return true;
	}
	a->upstream.ops->stop(&a->upstream, reason, true);
	upstream_on_lost(&a->upstream, reason);
	return true;
}

static enum catalogue_kind kind_of_list(struct slice method)
{
	enum catalogue_kind kind = 0;

	while (kind < CATALOGUE_KINDS && !slice_is_equal(method, lists[kind].method))
		kind++;
	return kind;
}

/* False: it waits. */
static bool take_request(struct aggregate *a, const struct envelope *env)
{
	enum catalogue_kind list = kind_of_list(env->method);
	enum method_id method = method_find(env->method)->id;
	struct upstream_request *request;

	if (method == METHOD_INITIALIZE)
		return take_initialize(a, env);
	if (method == METHOD_PING) {
		deliver_result(a, env->id.text, SLICE_LIT("{}"));
		return true;
	}
	request = upstream_find_request(&a->upstream, env->id);
	if (request == NULL && method != METHOD_SET_LEVEL && method != METHOD_SUBSCRIBE &&
	    method != METHOD_UNSUBSCRIBE)
		return true; /* nobody waits for it any more */
	if (request != NULL && dispatch_is_of_call(request))
		legs_take_caller(&a->legs, container_of(request, struct call, request));
	if (!legs_have_caller(&a->legs))
		deliver_error(a, env->id.text, MCP_INTERNAL_ERROR, "Nobody has asked for it");
	else if (list < CATALOGUE_KINDS)
		return take_list(a, list, env->id.text, none);
	else if (method == METHOD_TOOLS_CALL)
		return take_call(a, env);
	else if (method == METHOD_PROMPTS_GET)
		return pass_by_name(a, env, CATALOGUE_PROMPTS, env->name);
	else if (method == METHOD_RESOURCES_READ || method == METHOD_SUBSCRIBE ||
		 method == METHOD_UNSUBSCRIBE)
		return pass_by_uri(a, env, env->uri);
	else if (method == METHOD_COMPLETE)
		return pass_completion(a, env);
	else if (method == METHOD_TASKS)
		return pass_by_task(a, env);
	else if (method == METHOD_SET_LEVEL)
		set_level(a, env);
	else if (a->legs.count == 1)
		return pass(a, &a->legs.items[0], env, none, none);
	else
		deliver_error(a, env->id.text, MCP_METHOD_NOT_FOUND, "Method not found");
	return true;
}

/* The client has cancelled a request, and expects no answer; that of a list is for nobody. */
static void take_cancelled(struct aggregate *a, const struct envelope *env)
{
	uint64_t id = value_own_id(scan_member(env->params.text, SLICE_LIT("requestId")));

	LIST_EACH(struct leg_call, call, &a->legs.calls, link) {
		struct json own = { .type = JSON_NUMBER, .text = call->call.id };

		if (call->on_answer != client_answer || value_own_id(own) != id)
			continue;
		if (leg_notify(call->leg, env->text)) /* with the client's reason */
			return;
		call_give_up(&call->call, "the client has cancelled the request");
		call_cancel(&call->call);
		return;
	}
}

/* What the client says about a request of a leg's server, which `name` names, by the id that it has there. */
static void hand_back(struct aggregate *a, const struct envelope *env, struct json name,
		      void (*forward)(struct client *client, const struct envelope *env))
{
	struct splice_edit edit = { .span = name.text };
	const struct leg *leg = leg_find_by_id(&a->legs, name, &edit.with);
	at_end(buf_fini) struct buf text = { 0 };
	struct envelope own;

	if (leg == NULL)
		return;
	splice_append(&text, env->text, &edit, 1, 0);
	if (scan_envelope(buf_slice(&text), &scan_limits_none, 0, &own, NULL) == 0)
		forward(leg->client, &own);
}

/* All others concern each of the servers. */
static void take_notification(struct aggregate *a, const struct envelope *env)
{
	enum method_id method = method_find(env->method)->id;

	if (method == METHOD_CANCELLED || method == METHOD_PROGRESS) {
		if (method == METHOD_CANCELLED) {
			take_cancelled(a, env);
			note_news(a); /* it may wait here, and take the room of others */
		} else {
			hand_back(a, env, env->progress_of, forward_linked_progress);
		}
		return;
	}
	if (operation_of(env) != OPERATION_OTHER)
		return; /* a call without an id, which some servers would execute: at which one? */
	a->legs.is_initialized |= method == METHOD_INITIALIZED;
	for (size_t i = 0; i < a->legs.count && legs_have_caller(&a->legs); i++)
		(void)leg_notify(&a->legs.items[i], env->text);
}

/* False: it waits. */
static bool take(struct aggregate *a, const struct envelope *env)
{
	if (env->kind == ENVELOPE_REQUEST)
		return take_request(a, env);
	if (env->kind == ENVELOPE_NOTIFICATION)
		take_notification(a, env);
	else
		hand_back(a, env, env->id, forward_linked_answer);
	return true;
}

/* ---- the end ---- */

static void inbound_free(struct aggregate *a, struct inbound *inbound)
{
	CHECK(a->inbox_bytes >= inbound->msg->text.n);
	list_remove(&inbound->link);
	a->inbox_bytes -= inbound->msg->text.n;
	msg_unref(&inbound->msg);
	free(inbound);
}

static void finish(struct aggregate *a)
{
	struct loop *loop = a->upstream.shared->loop;

	LIST_DRAIN(struct gather, gather, &a->gathers, link)
		gather_free(gather);
	for (size_t i = 0; i < a->legs.count; i++)
		text_set_fini(&a->tasks[i]);
	legs_fini(&a->legs);
	LIST_DRAIN(struct inbound, inbound, &a->inbox, link)
		inbound_free(a, inbound);
	for (enum catalogue_kind kind = 0; kind < CATALOGUE_KINDS; kind++)
		catalogue_clear(&a->catalogues[kind]);
	timer_stop(&a->patience);
	upstream_on_gone(&a->upstream);
	task_cancel(&a->task);
	a->upstream.server->users--;
	free(a->tasks);
	loop_defer_free(loop, a);
}

/* ---- operations ---- */

/* What a list shows, and so which server a name leads to, follows from the rules that hold now. */
static void follow_rules(struct aggregate *a)
{
	if (a->configuration == a->upstream.pool->router->configuration)
		return;
	a->configuration = a->upstream.pool->router->configuration;
	outdate_all(a);
	a->news++;
	legs_judge(&a->legs);
}

/* In the order in which they came; what waits does not hold up others. Very many take several turns. */
static void take_inbox(struct aggregate *a)
{
	LIST_EACH_SAFE(struct inbound, inbound, &a->inbox, link) {
		if (a->is_stopped)
			break;
		if (inbound->seen == a->news)
			continue;
		inbound->seen = a->news;
		a->current = inbound;
		if (take(a, inbound->msg->env))
			inbound_free(a, inbound);
		if (loop_turn_is_long(a->upstream.shared->loop)) {
			look_again(a);
			break;
		}
	}
	a->current = NULL;
}

static void on_task(struct task *task)
{
	struct aggregate *a = container_of(task, struct aggregate, task);

	if (!a->is_started && !a->is_stopped) {
		a->is_started = true;
		upstream_on_started(&a->upstream);
	}
	if (!a->is_stopped)
		follow_rules(a);
	legs_sweep(&a->legs);
	take_inbox(a);
	LIST_EACH_SAFE(struct gather, gather, &a->gathers, link)
		if (!a->is_stopped)
			gather_advance(gather);
	if (a->is_stopped && !is_joining(a))
		finish(a);
}

static void aggregate_start(struct upstream *upstream, not_used struct slice claims)
{
	/* Each leg has its own. */
	look_again(aggregate_of(upstream));
}

static bool aggregate_has_room(const struct upstream *upstream, size_t size)
{
	const struct aggregate *a = aggregate_of(upstream);

	return a->inbox_bytes == 0 || a->inbox_bytes + size <= upstream->server->conf.queue_max;
}

static void aggregate_write(struct upstream *upstream, struct buf *message)
{
	struct aggregate *a = aggregate_of(upstream);
	struct inbound *inbound;
	struct envelope env;

	if (scan_envelope(buf_slice(message), &scan_limits_none, 0, &env, NULL) < 0)
		return; /* cannot happen: the gateway wrote it */
	inbound = mem_zalloc(sizeof(*inbound));
	inbound->msg = msg_new_scanned(&env);
	a->inbox_bytes += env.text.n;
	list_append(&a->inbox, &inbound->link);
	look_again(a);
}

static void aggregate_note_failure(struct upstream *upstream, const char *error)
{
	server_note_failure(upstream->server, error, "");
}

static void aggregate_stop(struct upstream *upstream, not_used enum reason reason,
			   not_used bool is_at_once)
{
	struct aggregate *a = aggregate_of(upstream);

	a->is_stopped = true;
	legs_silence(&a->legs);
	look_again(a);
}

static void aggregate_use_rules(struct upstream *upstream)
{
	look_again(aggregate_of(upstream));
}

static const struct upstream_ops aggregate_ops = {
	.start = aggregate_start,
	.has_room = aggregate_has_room,
	.write = aggregate_write,
	.note_failure = aggregate_note_failure,
	.stop = aggregate_stop,
	.use_rules = aggregate_use_rules,
};

struct upstream *aggregate_new(struct upstream_shared *shared, struct server *server)
{
	struct aggregate *a = mem_zalloc(sizeof(*a));

	upstream_init(&a->upstream, &aggregate_ops, shared, server);
	a->upstream.is_disposable = true; /* its servers' failures count where they are */
	server->users++;
	list_init(&a->inbox);
	list_init(&a->gathers);
	a->news = 1;
	task_init(&a->task, on_task);
	timer_init(&a->patience, on_patience);
	for (enum catalogue_kind kind = 0; kind < CATALOGUE_KINDS; kind++)
		catalogue_clear(&a->catalogues[kind]);
	legs_init(&a->legs, &legs_ops, server, shared->loop);
	a->tasks = mem_zalloc(a->legs.count * sizeof(*a->tasks));
	for (size_t i = 0; i < a->legs.count; i++)
		text_set_init(&a->tasks[i]);
	return &a->upstream;
}
