/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening, keeping and ending the connection of a session with its server.
 *
 * A child that fails takes the calls in flight with it, but not the session: many clients never
 * initialize again. After RESTARTS_MAX restarts within RESTARTS_WINDOW_MS the session ends all the same.
 */
#include "router/route.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "jsonrpc/splice.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "obs/log.h"
#include "router/convert.h"
#include "router/deliver.h"
#include "router/forward.h"
#include "router/lane.h"

#define RESTARTS_MAX 3
#define RESTARTS_WINDOW_MS (5 * 60 * 1000)
#define ASKS_MAX 256
#define HELD_BYTES_MAX (1024 * 1024) /* of requests for a client that is not ready */
#define HOLD_MS (60 * 1000)

struct route *route_of(struct session *session)
{
	return container_of(session, struct route, session);
}

unsigned int route_lost(const struct route *route, const struct lane *lane)
{
	unsigned int lost = 0;

	if (lane == NULL || lane->revision == NULL)
		return 0;
	if (lane->partition != NULL && lane->partition->is_pool)
		lost = lane->revision->features & REVISION_TASKS;
	return lost | revision_lacks(route->revision, lane->revision);
}

/* ---- the end ---- */

static void route_free(struct route *route)
{
	text_set_fini(&route->subscriptions);
	text_set_fini(&route->elicitations);
	map_fini(&route->asks_by_fid);
	loop_defer_free(route->router->loop, route);
}

static void route_fail_calls(struct route *route, enum reason reason)
{
	while (!list_is_empty(&route->calls))
		call_fail(container_of(route->calls.next, struct call, link), reason);
}

static void route_on_session_end(struct session *session, enum reason reason)
{
	struct route *route = route_of(session);

	LOG(SESSION_END, LOG_STR("server", route->backend->conf.name),
	    LOG_STR("reason", reason_get(reason)->text));
	while (!list_is_empty(&route->asks)) {
		struct ask *ask = container_of(route->asks.next, struct ask, link);

		forward_refusal(ask, SLICE_LIT("the session has ended"));
		route_close_ask(ask);
	}
	LIST_FOREACH(node, &route->calls)
		forward_cancel(container_of(node, struct call, link),
			       SLICE_LIT("the session has ended"));
	route_fail_calls(route, reason);
	if (route->partition != NULL)
		partition_leave(route, REASON_SESSION_END);
	route_free(route);
}

static const struct session_ops route_session_ops = { .on_end = route_on_session_end };

/* ---- the beginning ---- */

static bool is_declared(struct slice params, const char *capability, const char *member)
{
	const char *path[] = { "capabilities", capability, member };

	return scan_path(params, path, ARRAY_LEN(path)).type == JSON_TRUE;
}

static struct route *route_new(struct router *router, struct backend *backend,
			       const struct envelope *env)
{
	struct route *route = mem_zalloc(sizeof(*route));
	struct slice params = env->params.text;
	struct json version = scan_member(params, SLICE_LIT("protocolVersion"));
	const struct revision *revision = revision_find(scan_plain_string(version));

	route->router = router;
	route->backend = backend;
	route->revision = revision != NULL ? revision : revision_newest();
	route->level = -1;
	route->tells_roots = is_declared(params, "roots", "listChanged");
	route->last_fid =
		1000000; /* clients that confuse the two id spaces do not collide. bridging.md §1.1 */
	list_init(&route->member);
	list_init(&route->calls);
	list_init(&route->asks);
	text_set_init(&route->subscriptions);
	text_set_init(&route->elicitations);
	return route;
}

void route_open(struct router *router, struct backend *backend, struct principal *principal,
		const struct peer *peer, struct call *call, const struct envelope *env)
{
	struct route *route = route_new(router, backend, env);
	enum reason reason = REASON_NONE;

	if (session_init(&route->session, &router->sessions, principal, &route_session_ops) < 0) {
		call_refuse(call, router->loop, REASON_OVER_LIMIT);
		route_free(route);
		return;
	}
	call_link(call, route);
	route->peer = *peer;
	route->opening = call;
	if (router->is_draining)
		reason = REASON_DRAINING;
	else
		reason = partition_enter(route, env);
	if (reason != REASON_NONE)
		session_end(&route->session, reason);
}

void route_welcome(struct route *route, const struct revision *agreed,
		   const struct envelope *response)
{
	struct call *call = route->opening;
	const struct lane *own = partition_own_lane(route->partition);
	struct buf quoted = { 0 };
	struct buf edited = { 0 };
	struct buf text = { 0 };
	struct convert convert = { .text = { 0 } };
	struct splice_edit edit;
	struct slice whole;
	char client[PEER_TEXT_BYTES];

	response = convert_response(&convert, revision_lacks(route->revision, agreed), call->method,
				    response);
	edit.span = scan_member(response->result.text, SLICE_LIT("protocolVersion")).text;
	buf_printf(&quoted, "\"%.*s\"", SLICE_ARG(route->revision->name));
	edit.with = buf_slice(&quoted);
	splice_append(&edited, response->result.text, &edit, 1, SPLICE_ONE_LINE);
	write_result(&text, call->id, buf_slice(&edited));
	whole = buf_slice(&text);
	session_begin(&route->session);
	peer_format(&route->peer, client);
	LOG(SESSION_START, LOG_STR("server", route->backend->conf.name), LOG_STR("client", client),
	    LOG_SLICE("revision", route->revision->name),
	    LOG_INT("pid", own != NULL ? own->child.pid : 0),
	    LOG_INT("sessions", route->router->sessions.count));
	route->opening = NULL;
	call_respond(call, &whole, 1);
	buf_fini(&quoted);
	buf_fini(&edited);
	buf_fini(&text);
	convert_fini(&convert);
}

void route_refuse(struct route *route, const struct envelope *response)
{
	struct call *call = route->opening;

	route->opening = NULL;
	deliver_response(call, response);
	session_end(&route->session, REASON_HANDSHAKE_REFUSED);
}

static bool route_may_restart(struct route *route)
{
	uint64_t now_ms = clock_now_ms();

	if (route->restarts == 0 || now_ms - route->restarts_since_ms > RESTARTS_WINDOW_MS) {
		route->restarts = 0;
		route->restarts_since_ms = now_ms;
	}
	return ++route->restarts <= RESTARTS_MAX;
}

void route_on_lost(struct route *route, enum reason reason)
{
	bool is_opening = route->opening != NULL;

	while (!list_is_empty(&route->asks)) {
		struct ask *ask = container_of(route->asks.next, struct ask, link);

		deliver_ask_cancelled(ask);
		route_close_ask(ask);
	}
	session_hold(&route->session); /* the fronts that are told may end it */
	route_fail_calls(route, reason);
	session_release(&route->session);
	if (route->session.state == SESSION_ENDED)
		return;
	if (is_opening || (reason != REASON_RESTARTED && !route_may_restart(route)))
		session_end(&route->session, reason);
}

void route_forget_call(struct route *route, struct call *call)
{
	LIST_FOREACH(node, &route->asks) {
		struct ask *ask = container_of(node, struct ask, link);

		if (ask->call != call)
			continue;
		ask->call = NULL; /* its client may have seen it, and may still answer */
		timer_start(route->router->loop, &ask->hold, HOLD_MS);
	}
	if (route->opening == call)
		route->opening = NULL;
}

void route_hold_asks(struct route *route, const struct call *call)
{
	LIST_FOREACH(node, &route->asks) {
		struct ask *ask = container_of(node, struct ask, link);

		if (ask->call == call)
			timer_start(route->router->loop, &ask->hold, HOLD_MS);
	}
}

/* ---- requests of the server ---- */

static bool ask_has_reader(const struct ask *ask)
{
	if (ask->call != NULL)
		return ask->call->ops->is_reachable(ask->call);
	return ask->is_standalone && stream_has_reader(&ask->route->session.standalone);
}

static void ask_on_hold(struct timer *timer)
{
	struct ask *ask = container_of(timer, struct ask, hold);
	struct route *route = ask->route;

	if (!ask->is_offered && ask_has_reader(ask)) {
		ask->is_offered = true; /* people take their time */
		timer_start(route->router->loop, &ask->hold,
			    route->backend->conf.request_timeout_max_ms);
		return;
	}
	deliver_ask_cancelled(ask);
	if (ask->is_offered)
		forward_refusal(ask, SLICE_LIT("the client did not answer in time"));
	else
		forward_error(ask->lane, ask->id, MCP_INTERNAL_ERROR,
			      SLICE_LIT("no client is there to be asked"));
	route_close_ask(ask);
}

struct ask *route_open_ask(struct route *route, struct lane *lane, const struct envelope *env,
			   const struct method *method)
{
	struct slice id = env->id.text;
	struct slice token = env->progress_token.text;
	struct ask *ask;

	if (route->asks_by_fid.count >= ASKS_MAX)
		return NULL;
	ask = mem_alloc(sizeof(*ask) + id.n + token.n);
	*ask = (struct ask){
		.route = route, .lane = lane, .fid = ++route->last_fid, .method = method
	};
	timer_init(&ask->hold, ask_on_hold);
	memcpy(ask->text, id.p, id.n);
	if (token.n > 0)
		memcpy(ask->text + id.n, token.p, token.n);
	ask->id = slice_of(ask->text, id.n);
	ask->token = slice_of(ask->text + id.n, token.n);
	list_append(&route->asks, &ask->link);
	map_insert(&route->asks_by_fid, ask->fid, ask);
	timer_start(route->router->loop, &ask->hold, HOLD_MS);
	return ask;
}

bool route_keep_ask(struct ask *ask, struct msg *msg)
{
	struct route *route = ask->route;

	if (route->held_bytes + msg->text.n > HELD_BYTES_MAX)
		return false;
	route->held_bytes += msg->text.n;
	ask->held = msg_ref(msg);
	return true;
}

/* The request that was kept, or NULL; the caller has the reference. */
static struct msg *ask_take_held(struct ask *ask)
{
	struct msg *msg = ask->held;

	ask->held = NULL;
	if (msg != NULL)
		ask->route->held_bytes -= msg->text.n;
	return msg;
}

void route_close_ask(struct ask *ask)
{
	struct msg *held = ask_take_held(ask);
	struct route *route = ask->route;

	list_remove(&ask->link);
	map_remove(&route->asks_by_fid, ask->fid);
	timer_stop(&ask->hold);
	if (ask->call != NULL)
		call_note_answered(ask->call);
	msg_unref(&held);
	loop_defer_free(route->router->loop, ask);
}

struct ask *route_find_ask_of_server(struct route *route, const struct lane *lane, struct slice id)
{
	LIST_FOREACH(node, &route->asks) {
		struct ask *ask = container_of(node, struct ask, link);

		if (ask->lane == lane && slice_is_equal(ask->id, id))
			return ask;
	}
	return NULL;
}

void route_initialized(struct route *route)
{
	if (route->is_initialized)
		return;
	route->is_initialized = true;
	LIST_FOREACH_SAFE(node, &route->asks) {
		struct ask *ask = container_of(node, struct ask, link);
		struct msg *msg = ask_take_held(ask);

		if (msg != NULL)
			deliver_ask(ask, msg);
		msg_unref(&msg);
	}
}

/* ---- subscriptions ---- */

static bool is_above(struct slice parent, struct slice uri)
{
	if (!slice_has_prefix(uri, parent) || parent.n == 0)
		return false;
	return uri.n == parent.n || parent.p[parent.n - 1] == '/' || uri.p[parent.n] == '/';
}

struct slice route_spell_uri(struct json uri, struct buf *room)
{
	struct buf plain = { 0 };
	struct slice text = SLICE_LIT("");

	if (uri.type == JSON_STRING)
		text = slice_of(uri.text.p + 1, uri.text.n - 2);
	if (text.n > 0 && memchr(text.p, '\\', text.n) != NULL &&
	    scan_decode_string(uri, &plain) == 0) {
		write_string(room, buf_slice(&plain));
		text = slice_of(room->data + 1, room->len - 2);
	}
	buf_fini(&plain);
	return text;
}

bool route_is_subscribed(const struct route *route, struct slice uri)
{
	LIST_FOREACH(node, &route->subscriptions.items) {
		struct text_set_item *item = container_of(node, struct text_set_item, link);

		if (is_above(slice_of(item->text, item->length), uri))
			return true;
	}
	return false;
}
