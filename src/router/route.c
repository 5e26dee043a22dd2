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
#include "router/upstream.h"

#define RESTARTS_MAX 3
#define RESTARTS_WINDOW_MS (5 * 60 * 1000)
#define SERVER_REQUESTS_MAX 256
#define HELD_BYTES_MAX (1024 * 1024) /* of requests for a client that is not ready */
#define HOLD_MS (60 * 1000)

struct route *route_of(struct session *session)
{
	return container_of(session, struct route, session);
}

unsigned int route_lost(const struct route *route, const struct upstream *upstream)
{
	unsigned int lost = 0;

	if (upstream == NULL || upstream->revision == NULL)
		return 0;
	if (upstream->pool != NULL && upstream->pool->is_pool)
		lost = upstream->revision->features & REVISION_TASKS;
	return lost | revision_lacks(route->revision, upstream->revision);
}

/* ---- the end ---- */

static void route_free(struct route *route)
{
	text_set_fini(&route->subscriptions);
	text_set_fini(&route->elicitations);
	map_fini(&route->server_requests_by_id);
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

	LOG(SESSION_END, LOG_STR("server", route->server->conf.name),
	    LOG_STR("reason", reason_get(reason)->text));
	while (!list_is_empty(&route->server_requests)) {
		struct server_request *server_request =
			container_of(route->server_requests.next, struct server_request, link);

		forward_refusal(server_request, SLICE_LIT("the session has ended"));
		route_close_server_request(server_request);
	}
	LIST_FOREACH(node, &route->calls)
		forward_cancel(container_of(node, struct call, link),
			       SLICE_LIT("the session has ended"));
	route_fail_calls(route, reason);
	if (route->pool != NULL)
		pool_leave(route, REASON_SESSION_END);
	route_free(route);
}

static const struct session_ops route_session_ops = { .on_end = route_on_session_end };

/* ---- the beginning ---- */

static bool is_declared(struct slice params, const char *capability, const char *member)
{
	const char *path[] = { "capabilities", capability, member };

	return scan_path(params, path, ARRAY_LEN(path)).type == JSON_TRUE;
}

static struct route *route_new(struct router *router, struct server *server,
			       const struct envelope *env)
{
	struct route *route = mem_zalloc(sizeof(*route));
	struct slice params = env->params.text;
	struct json version = scan_member(params, SLICE_LIT("protocolVersion"));
	const struct revision *revision = revision_find(scan_plain_string(version));

	route->router = router;
	route->server = server;
	route->revision = revision != NULL ? revision : revision_newest();
	route->level = -1;
	route->tells_roots = is_declared(params, "roots", "listChanged");
	route->last_downstream_id =
		1000000; /* clients that confuse the two id spaces do not collide. bridging.md §1.1 */
	list_init(&route->member);
	list_init(&route->calls);
	list_init(&route->server_requests);
	text_set_init(&route->subscriptions);
	text_set_init(&route->elicitations);
	return route;
}

void route_open(struct router *router, struct server *server, struct principal *principal,
		const struct peer *peer, struct call *call, struct admitted *admitted)
{
	const struct envelope *env = admitted_take(admitted, NULL);
	struct route *route = route_new(router, server, env);
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
		reason = pool_enter(route, env);
	if (reason != REASON_NONE)
		session_end(&route->session, reason);
}

void route_send_initialize_result(struct route *route, const struct revision *agreed,
				  const struct envelope *response)
{
	struct call *call = route->opening;
	const struct upstream *own = partition_own_upstream(route->pool);
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
	LOG(SESSION_START, LOG_STR("server", route->server->conf.name), LOG_STR("client", client),
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

	while (!list_is_empty(&route->server_requests)) {
		struct server_request *server_request =
			container_of(route->server_requests.next, struct server_request, link);

		deliver_server_request_cancelled(server_request);
		route_close_server_request(server_request);
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
	LIST_FOREACH(node, &route->server_requests) {
		struct server_request *server_request =
			container_of(node, struct server_request, link);

		if (server_request->call != call)
			continue;
		server_request->call = NULL; /* its client may have seen it, and may still answer */
		timer_start(route->router->loop, &server_request->hold, HOLD_MS);
	}
	if (route->opening == call)
		route->opening = NULL;
}

void route_hold_server_requests(struct route *route, const struct call *call)
{
	LIST_FOREACH(node, &route->server_requests) {
		struct server_request *server_request =
			container_of(node, struct server_request, link);

		if (server_request->call == call)
			timer_start(route->router->loop, &server_request->hold, HOLD_MS);
	}
}

/* ---- requests of the server ---- */

static bool server_request_has_reader(const struct server_request *server_request)
{
	if (server_request->is_standalone)
		return stream_has_reader(&server_request->route->session.standalone);
	return server_request->call != NULL &&
	       server_request->call->ops->is_reachable(server_request->call);
}

void route_offer_server_request(struct server_request *server_request)
{
	server_request->is_offered = true;
	server_request->until_ms =
		clock_now_ms() + server_request->route->server->conf.request_timeout_max_ms;
}

/* People take their time; and a client that polls may be away at the moment of one look, not of two. */
static bool server_request_goes_on(struct server_request *server_request)
{
	bool has_reader = server_request_has_reader(server_request);
	bool is_gone = !has_reader && (!server_request->is_offered || server_request->is_missed);

	if (has_reader && !server_request->is_offered)
		route_offer_server_request(server_request);
	server_request->is_missed = !has_reader;
	return !is_gone && clock_now_ms() < server_request->until_ms;
}

static void server_request_on_hold(struct timer *timer)
{
	struct server_request *server_request = container_of(timer, struct server_request, hold);
	struct route *route = server_request->route;

	if (server_request_goes_on(server_request)) {
		timer_start(route->router->loop, &server_request->hold, HOLD_MS);
		return;
	}
	deliver_server_request_cancelled(server_request);
	if (server_request->is_offered)
		forward_refusal(server_request, SLICE_LIT("the client did not answer in time"));
	else
		forward_error(server_request->upstream, server_request->id, MCP_INTERNAL_ERROR,
			      SLICE_LIT("no client is there to be asked"));
	route_close_server_request(server_request);
}

struct server_request *route_open_server_request(struct route *route, struct upstream *upstream,
						 const struct envelope *env,
						 const struct method *method)
{
	struct slice id = env->id.text;
	struct slice token = env->progress_token.text;
	struct server_request *server_request;

	if (route->server_requests_by_id.count >= SERVER_REQUESTS_MAX)
		return NULL;
	server_request = mem_alloc(sizeof(*server_request) + id.n + token.n);
	*server_request = (struct server_request){ .route = route,
						   .upstream = upstream,
						   .downstream_id = ++route->last_downstream_id,
						   .method = method };
	timer_init(&server_request->hold, server_request_on_hold);
	memcpy(server_request->text, id.p, id.n);
	if (token.n > 0)
		memcpy(server_request->text + id.n, token.p, token.n);
	server_request->id = slice_of(server_request->text, id.n);
	server_request->token = slice_of(server_request->text + id.n, token.n);
	list_append(&route->server_requests, &server_request->link);
	map_insert(&route->server_requests_by_id, server_request->downstream_id, server_request);
	timer_start(route->router->loop, &server_request->hold, HOLD_MS);
	return server_request;
}

bool route_keep_server_request(struct server_request *server_request, struct msg *msg)
{
	struct route *route = server_request->route;

	if (route->held_bytes + msg->text.n > HELD_BYTES_MAX)
		return false;
	route->held_bytes += msg->text.n;
	server_request->held = msg_ref(msg);
	return true;
}

/* The request that was kept, or NULL; the caller has the reference. */
static struct msg *server_request_take_held(struct server_request *server_request)
{
	struct msg *msg = server_request->held;

	server_request->held = NULL;
	if (msg != NULL)
		server_request->route->held_bytes -= msg->text.n;
	return msg;
}

void route_close_server_request(struct server_request *server_request)
{
	struct msg *held = server_request_take_held(server_request);
	struct route *route = server_request->route;

	list_remove(&server_request->link);
	map_remove(&route->server_requests_by_id, server_request->downstream_id);
	timer_stop(&server_request->hold);
	if (server_request->call != NULL)
		call_note_answered(server_request->call);
	msg_unref(&held);
	loop_defer_free(route->router->loop, server_request);
}

struct server_request *route_find_server_request(struct route *route,
						 const struct upstream *upstream, struct slice id)
{
	LIST_FOREACH(node, &route->server_requests) {
		struct server_request *server_request =
			container_of(node, struct server_request, link);

		if (server_request->upstream == upstream && slice_is_equal(server_request->id, id))
			return server_request;
	}
	return NULL;
}

void route_initialized(struct route *route)
{
	if (route->is_initialized)
		return;
	route->is_initialized = true;
	LIST_FOREACH_SAFE(node, &route->server_requests) {
		struct server_request *server_request =
			container_of(node, struct server_request, link);
		struct msg *msg = server_request_take_held(server_request);

		if (msg != NULL)
			deliver_server_request(server_request, msg);
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
