/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subscription cannot be changed, only replaced. Once the server has acknowledged another one,
 * the previous one is given up, and what still comes by it is dropped; so nothing is missed and
 * nothing comes twice. At most one is on its way: what changes meanwhile is for the next one.
 *
 * A subscription is a request without an end. It is not work: it keeps no process from being idle.
 */
#include "router/listen.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "router/pool.h"
#include "router/subscriptions.h"
#include "router/text_set.h"
#include "upstream/send.h"

#define AGREE_MS 10000
#define ASKED_MAX 64 /* requests to subscribe that one subscription answers */
#define WAITING_BYTES_MAX SUBSCRIPTIONS_BYTES_MAX
#define ROOM_MS 1000 /* until sending to a process that does not read is tried again */

/* A request to subscribe that waits for the server's acknowledgement. */
struct listen_waiter {
	struct list link;
	uint64_t id;
	bool is_asked;  /* the subscription on its way has its URI */
	bool is_agreed; /* and the server has acknowledged that */
	uint64_t key;   /* of its URI */
	size_t length;
	char uri[];
};

/* A subscription at the server. */
struct listening {
	struct upstream_request request;
	struct buf filter; /* what was asked for: JSON text */
};

struct listen {
	struct upstream *upstream;
	struct listening *current; /* acknowledged by the server; or NULL */
	struct listening *opening; /* on its way; or NULL */
	struct list waiters;       /* those with is_asked come first */
	size_t waiting_bytes;
	struct task update;
	struct timer deadline; /* of the one on its way; or until there is room for one */
	bool is_outdated;      /* something has changed since `opening` was sent */
};

/* ---- responses to requests to subscribe ---- */

/* Returns NULL if the client has cancelled the request. */
static struct upstream_request *listen_find_request(const struct upstream *upstream, uint64_t id)
{
	char digits[20];
	struct slice number = slice_of(digits, text_format_u64(id, digits));
	struct json written = { JSON_NUMBER, false, number };

	return upstream_find_request(upstream, written);
}

static void respond(struct upstream *upstream, uint64_t id, const char *problem)
{
	at_end(buf_fini) struct buf text = { 0 };
	char digits[20];
	struct slice number = slice_of(digits, text_format_u64(id, digits));
	struct upstream_request *request = listen_find_request(upstream, id);
	struct envelope env;

	if (request == NULL)
		return;
	if (problem == NULL)
		write_result(&text, number, SLICE_LIT("{}"));
	else
		write_error(&text, number, MCP_INVALID_PARAMS, slice_str(problem),
			    (struct slice){ NULL, 0 });
	if (scan_envelope(buf_slice(&text), &upstream->shared->limits, SCAN_LENIENT, &env, NULL) <
	    0)
		request->ops->on_malformed(
			request, REASON_CHILD_PROTOCOL_ERROR); /* cannot happen: we wrote it */
	else
		request->ops->on_response(request, &env);
}

static size_t waiter_bytes(const struct listen_waiter *waiter)
{
	return sizeof(*waiter) + waiter->length;
}

static void waiter_free(struct listen *listen, struct listen_waiter *waiter)
{
	listen->waiting_bytes -= waiter_bytes(waiter);
	list_remove(&waiter->link);
	free(waiter);
}

/* Clients may cancel faster than the server acknowledges. */
static void drop_cancelled(struct listen *listen)
{
	LIST_EACH_SAFE(struct listen_waiter, waiter, &listen->waiters, link)
		if (!waiter->is_asked && listen_find_request(listen->upstream, waiter->id) == NULL)
			waiter_free(listen, waiter);
}

/* `arg`: the list of waiters. */
static int listen_note_agreed(struct slice element, void *arg)
{
	struct list *waiters = arg;
	at_end(buf_fini) struct buf room = { 0 };
	struct slice uri = text_set_spell(scan_value(element), &room);
	uint64_t key = text_set_key(uri);

	LIST_EACH(struct listen_waiter, waiter, waiters, link) {
		if (!waiter->is_asked)
			break;
		if (waiter->key == key &&
		    slice_is_equal(slice_of(waiter->uri, waiter->length), uri))
			waiter->is_agreed = true;
	}
	return 0;
}

/* Responds to the waiters whose URIs were requested. A response may end anything. */
static void respond_to_waiters(struct listen *listen, const char *problem)
{
	struct upstream *upstream = listen->upstream;
	struct list asked;

	list_init(&asked);
	LIST_EACH_SAFE(struct listen_waiter, waiter, &listen->waiters, link)
		if (waiter->is_asked)
			list_move(&asked, &waiter->link);
	LIST_DRAIN(struct listen_waiter, waiter, &asked, link) {
		uint64_t id = waiter->id;
		bool is_agreed = waiter->is_agreed;

		waiter_free(listen, waiter);
		if (upstream->listen == listen)
			respond(upstream, id, is_agreed ? NULL : problem);
	}
}

/* ---- the subscription at the server ---- */

static void close_listening(struct listen *listen, struct listening **listening)
{
	struct listening *closed = *listening;

	if (closed == NULL)
		return;
	*listening = NULL;
	upstream_end_request(&closed->request, true);
	buf_fini(&closed->filter);
	loop_defer_free(listen->upstream->shared->loop, closed);
}

/* Tells the server that the subscription is no longer needed. */
static void listen_give_up(struct listen *listen, struct listening **listening, const char *why)
{
	if (*listening != NULL)
		send_given_up(listen->upstream, (*listening)->request.id, why);
	close_listening(listen, listening);
}

static void next_update(struct listen *listen)
{
	bool is_needed = listen->is_outdated;

	timer_stop(&listen->deadline);
	listen->is_outdated = false;
	if (is_needed)
		listen_note_change(listen->upstream);
}

/* The server does not accept the new subscription. The previous one stays. */
static void fail_opening(struct listen *listen)
{
	close_listening(listen, &listen->opening);
	next_update(listen);
	respond_to_waiters(listen, "Invalid params: the server does not tell of changes");
}

static struct listen *listen_of(const struct upstream_request *request)
{
	return request->upstream->listen;
}

/* A subscription has ended, or will not begin: nothing more comes by it. */
static void listen_on_over(struct listen *listen, const struct upstream_request *request)
{
	if (listen->current != NULL && request == &listen->current->request)
		close_listening(listen, &listen->current);
	else
		fail_opening(listen);
}

static void listen_on_response(struct upstream_request *request,
			       not_used const struct envelope *env)
{
	listen_on_over(listen_of(request), request);
}

static void listen_on_malformed(struct upstream_request *request, not_used enum reason reason)
{
	listen_on_over(listen_of(request), request);
}

static const struct upstream_request_ops request_ops = {
	.on_response = listen_on_response,
	.on_malformed = listen_on_malformed,
};

/* ---- what is subscribed to ---- */

static void append_uri(struct buf *out, struct slice uri)
{
	write_comma(out);
	buf_append_char(out, '"');
	splice_append(out, uri, NULL, 0, SPLICE_ESCAPE_SEPARATORS);
	buf_append_char(out, '"');
}

static void append_pool_uris(struct buf *out, const struct pool *pool)
{
	LIST_EACH(const struct subscription, subscription, &pool->subscriptions.all, link)
		if (subscription->first == NULL)
			append_uri(out, slice_of(subscription->uri, subscription->length));
}

static void append_filter(struct buf *out, struct listen *listen)
{
	const struct pool *pool = listen->upstream->pool;
	size_t asked = 0;
	size_t begin;

	buf_append_char(out, '{');
	for (size_t i = 0; i < METHOD_CHANGES; i++) {
		if (pool->capabilities.tells & method_changes[i].offer)
			write_member(out, slice_str(method_changes[i].wanted), SLICE_LIT("true"));
	}
	begin = out->len;
	write_member(out, SLICE_LIT("resourceSubscriptions"), SLICE_LIT("["));
	if (pool->capabilities.offers & OFFER_SUBSCRIBE)
		append_pool_uris(out, pool);
	LIST_EACH(struct listen_waiter, waiter, &listen->waiters, link) {
		listen->is_outdated = asked == ASKED_MAX;
		if (listen->is_outdated)
			break;
		append_uri(out, slice_of(waiter->uri, waiter->length));
		waiter->is_asked = true;
		asked++;
	}
	if (out->data[out->len - 1] == '[')
		out->len = begin;
	else
		buf_append_char(out, ']');
	buf_append_char(out, '}');
}

/* Takes ownership of the filter. */
static void open_listening(struct listen *listen, struct buf *filter)
{
	struct upstream *upstream = listen->upstream;
	struct listening *opening = mem_zalloc(sizeof(*opening));
	uint64_t id = upstream_next_id(upstream);
	at_end(buf_fini) struct buf params = { 0 };

	CHECK(listen->opening == NULL);
	buf_append_str(&params, "{\"notifications\":");
	buf_append_slice(&params, buf_slice(filter));
	buf_append_char(&params, '}');
	send_request(upstream, id, SLICE_LIT("subscriptions/listen"), buf_slice(&params));
	opening->filter = *filter;
	opening->request.ops = &request_ops;
	opening->request.is_lasting = true;
	listen->opening = opening;
	upstream_add_request(upstream, &opening->request, id);
	timer_start(upstream->shared->loop, &listen->deadline, AGREE_MS);
}

/* Whether nobody waits for an acknowledgement, and the current subscription has the same filter. */
static bool is_current(const struct listen *listen, const struct buf *filter)
{
	return listen->current != NULL && list_is_empty(&listen->waiters) &&
	       slice_is_equal(buf_slice(filter), buf_slice(&listen->current->filter));
}

static void on_update(struct task *task)
{
	struct listen *listen = container_of(task, struct listen, update);
	struct buf filter = { 0 };

	if (listen->opening != NULL) {
		listen->is_outdated = true;
		return;
	}
	drop_cancelled(listen);
	append_filter(&filter, listen);
	if (!upstream_has_room(listen->upstream, filter.len)) {
		timer_start(listen->upstream->shared->loop, &listen->deadline, ROOM_MS);
	} else if (filter.len <= 2) {
		listen_give_up(listen, &listen->current, "nobody listens any more");
	} else if (!is_current(listen, &filter)) {
		open_listening(listen, &filter);
		return;
	}
	buf_fini(&filter);
}

static void listen_on_deadline(struct timer *timer)
{
	struct listen *listen = container_of(timer, struct listen, deadline);

	if (listen->opening == NULL) {
		listen_note_change(listen->upstream);
		return;
	}
	listen_give_up(listen, &listen->opening, "it was not acknowledged in time");
	fail_opening(listen);
}

/* ---- the life ---- */

void listen_begin(struct upstream *upstream)
{
	struct listen *listen;

	if (!upstream_is_modern(upstream))
		return;
	CHECK(upstream->listen == NULL);
	listen = mem_zalloc(sizeof(*listen));
	listen->upstream = upstream;
	list_init(&listen->waiters);
	task_init(&listen->update, on_update);
	timer_init(&listen->deadline, listen_on_deadline);
	upstream->listen = listen;
	listen_note_change(upstream);
}

void listen_end(struct upstream *upstream)
{
	struct listen *listen = upstream->listen;

	if (listen == NULL)
		return;
	upstream->listen = NULL;
	task_cancel(&listen->update);
	timer_stop(&listen->deadline);
	close_listening(listen, &listen->current);
	close_listening(listen, &listen->opening);
	LIST_DRAIN(struct listen_waiter, waiter, &listen->waiters, link)
		waiter_free(listen, waiter);
	loop_defer_free(upstream->shared->loop, listen);
}

void listen_hand_over(struct upstream *upstream)
{
	static const char *const why = "another gateway listens from now on";

	if (upstream->listen == NULL)
		return;
	listen_give_up(upstream->listen, &upstream->listen->current, why);
	listen_give_up(upstream->listen, &upstream->listen->opening, why);
}

void listen_note_change(struct upstream *upstream)
{
	if (upstream->listen != NULL)
		task_schedule(upstream->shared->loop, &upstream->listen->update);
}

void listen_subscribe(struct upstream *upstream, uint64_t id, struct slice uri)
{
	struct listen *listen = upstream->listen;
	struct listen_waiter *waiter;

	CHECK(listen != NULL);
	if (!(upstream->pool->capabilities.offers & OFFER_SUBSCRIBE) || uri.n == 0) {
		respond(upstream, id, "Invalid params: the server has no subscriptions");
		return;
	}
	if (listen->waiting_bytes + uri.n > WAITING_BYTES_MAX)
		drop_cancelled(listen);
	if (listen->waiting_bytes + uri.n > WAITING_BYTES_MAX) {
		respond(upstream, id, "Invalid params: the server has too many subscriptions");
		return;
	}
	waiter = mem_alloc(sizeof(*waiter) + uri.n);
	*waiter = (struct listen_waiter){ .id = id, .key = text_set_key(uri), .length = uri.n };
	memcpy(waiter->uri, uri.p, uri.n);
	list_init(&waiter->link);
	list_append(&listen->waiters, &waiter->link);
	listen->waiting_bytes += waiter_bytes(waiter);
	listen_note_change(upstream);
}

/* ---- notifications ---- */

static struct upstream_request *listen_find_named(const struct upstream *upstream,
						  const struct envelope *env)
{
	static const char *const path[] = { "_meta", MODERN_META "subscriptionId" };

	return upstream_find_request(upstream, scan_path(env->params.text, path, ARRAY_LEN(path)));
}

bool listen_covers(const struct upstream *upstream, const struct envelope *env)
{
	const struct listen *listen = upstream->listen;

	return listen != NULL && listen->current != NULL &&
	       listen_find_named(upstream, env) == &listen->current->request;
}

static void listen_take_acknowledged(struct listen *listen, const struct envelope *env)
{
	static const char *const path[] = { "notifications", "resourceSubscriptions" };
	struct json uris = scan_path(env->params.text, path, ARRAY_LEN(path));
	struct upstream *upstream = listen->upstream;

	if (listen->opening == NULL ||
	    listen_find_named(upstream, env) != &listen->opening->request) {
		upstream_note_stray(upstream, COUNTER_CHILD_DROPPED, env);
		return;
	}
	listen_give_up(listen, &listen->current, "another one has taken its place");
	listen->current = listen->opening;
	listen->opening = NULL;
	(void)!scan_array(uris.text, SUBSCRIPTIONS_MAX, listen_note_agreed, &listen->waiters, NULL);
	next_update(listen);
	respond_to_waiters(listen, "Invalid params: the server does not know this resource");
}

bool listen_take_notification(struct upstream *upstream, const struct envelope *env)
{
	struct listen *listen = upstream->listen;
	struct upstream_request *request;

	if (listen == NULL)
		return false;
	if (slice_is_equal(env->method, SLICE_LIT("notifications/subscriptions/acknowledged"))) {
		listen_take_acknowledged(listen, env);
		return true;
	}
	if (!slice_is_equal(env->method, SLICE_LIT("notifications/cancelled")))
		return false;
	request = upstream_find_request(upstream,
					scan_member(env->params.text, SLICE_LIT("requestId")));
	if (request == NULL || request->ops != &request_ops)
		return false;
	listen_on_over(listen, request);
	return true;
}
