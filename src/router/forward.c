/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Towards the child: the bytes of the client, with our ids in place of its own. Lines are put together
 * in the router's scratch buffer and copied into the child's queue, large ones are moved there.
 */
#include "router/forward.h"

#include "base/text.h"
#include "jsonrpc/splice.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/level.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "router/convert.h"
#include "router/cursor.h"
#include "router/list_cache.h"
#include "router/sharing.h"

#define EDITS_MAX 4
#define MOVE_BYTES (16 * 1024)
#define KEPT_BYTES_MAX (16 * 1024) /* of a request that may be needed again. DEF-11 */

struct edits {
	struct splice_edit items[EDITS_MAX];
	size_t count;
};

/* Keeps them in the order of their places. */
static void edits_add(struct edits *edits, struct slice span, struct slice with)
{
	size_t at = edits->count++;

	CHECK(at < EDITS_MAX);
	for (; at > 0 && edits->items[at - 1].span.p > span.p; at--)
		edits->items[at] = edits->items[at - 1];
	edits->items[at] = (struct splice_edit){ span, with };
}

static unsigned int line_flags(const struct envelope *env)
{
	return (env->has_line_break ? SPLICE_ONE_LINE : 0u) |
	       (env->has_separator ? SPLICE_ESCAPE_SEPARATORS : 0u);
}

/* Sends what is in `line`, and the line end. */
static void send_line(struct upstream *upstream, struct buf *line)
{
	buf_append_char(line, '\n');
	if (line->len < MOVE_BYTES)
		child_write(&upstream->child, buf_slice(line));
	else
		child_write_take(&upstream->child, line);
	line->len = 0;
}

static void send_edited(struct upstream *upstream, const struct envelope *env,
			const struct edits *edits)
{
	struct buf *line = &upstream->pool->router->scratch;

	line->len = 0;
	splice_append(line, env->text, edits->items, edits->count, line_flags(env));
	send_line(upstream, line);
}

/* ---- _meta ---- */

struct meta_rebuild {
	struct buf out;
	struct slice token; /* what progressToken becomes; empty: as it is */
};

/*
 * What only the modern era may say. Older servers have been seen to fall silent when they find it; the
 * members of trace context and of vendors stay. BACK-MSG-06.
 */
static bool meta_is_modern(struct slice name)
{
	static const struct slice names[] = {
		SLICE("io.modelcontextprotocol/protocolVersion"),
		SLICE("io.modelcontextprotocol/clientCapabilities"),
		SLICE("io.modelcontextprotocol/clientInfo"),
		SLICE("io.modelcontextprotocol/logLevel"),
		SLICE("io.modelcontextprotocol/subscriptionId"),
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (slice_is_equal(names[i], name))
			return true;
	}
	return false;
}

static int meta_add_member(struct slice name, struct json value, void *arg)
{
	struct meta_rebuild *rebuild = arg;
	bool is_token = rebuild->token.n > 0 && slice_is_equal(name, SLICE_LIT("progressToken"));

	if (meta_is_modern(name))
		return 0;
	buf_append_char(&rebuild->out, rebuild->out.len > 0 ? ',' : '{');
	buf_append_char(&rebuild->out, '"');
	buf_append_slice(&rebuild->out, name);
	buf_append_str(&rebuild->out, "\":");
	buf_append_slice(&rebuild->out, is_token ? rebuild->token : value.text);
	return 0;
}

/* Adds the edits of params._meta. `rebuilt` keeps their text until the line is put together. */
static void edits_add_meta(struct edits *edits, const struct envelope *env, struct slice token,
			   struct buf *rebuilt)
{
	static const struct slice prefix = SLICE("io.modelcontextprotocol/");
	struct meta_rebuild rebuild = { .token = token };

	if (env->meta.type != JSON_OBJECT)
		return;
	if (memmem(env->meta.text.p, env->meta.text.n, prefix.p, prefix.n) == NULL) {
		if (token.n > 0)
			edits_add(edits, env->progress_token.text, token);
		return;
	}
	scan_members(env->meta.text, meta_add_member, &rebuild);
	buf_append_str(&rebuild.out, rebuild.out.len > 0 ? "}" : "{}");
	*rebuilt = rebuild.out;
	edits_add(edits, env->meta.text, buf_slice(rebuilt));
}

/* ---- requests ---- */

/* What the session or the pool has to know of, once the server has agreed. */
static bool is_remembered(const struct method *method)
{
	return method->id == METHOD_SET_LEVEL || method->id == METHOD_SUBSCRIBE ||
	       method->id == METHOD_UNSUBSCRIBE;
}

/*
 * The request is needed again once the server has agreed, for what the route has to remember; and in a pool to
 * ask another child.
 */
static bool keeps_body(const struct call *call, size_t size)
{
	return is_remembered(call->method) ||
	       (size <= KEPT_BYTES_MAX && call->method->flags & METHOD_SAFE &&
		call->route->pool->is_pool);
}

/* Returns its id. */
static uint64_t send_own_request(struct upstream *upstream, struct slice method,
				 struct slice params)
{
	struct buf *line = &upstream->pool->router->scratch;
	uint64_t upstream_id = upstream_next_id(upstream);
	char digits[20];

	line->len = 0;
	write_call(line, slice_of(digits, text_format_u64(upstream_id, digits)), method, params);
	send_line(upstream, line);
	return upstream_id;
}

/*
 * There is no way to take a level back. Who never asked for one gets what the server sends of its own accord: until
 * it was told something else, whatever that is; then everything.
 */
static void tell_level(struct upstream *upstream, int level)
{
	struct buf params = { 0 };

	if (level < 0 && upstream->level >= 0)
		level = LEVEL_LEAST;
	if (level < 0 || level == upstream->level)
		return;
	upstream->level = level;
	buf_printf(&params, "{\"level\":\"%.*s\"}", SLICE_ARG(level_name(level)));
	send_own_request(upstream, SLICE_LIT("logging/setLevel"), buf_slice(&params));
	buf_fini(&params);
}

/* A cursor becomes again what the child gave out. Returns whether there is one. bridging.md §1.1 (7) */
static bool edits_add_cursor(struct edits *edits, const struct envelope *env, struct buf *inside)
{
	struct json cursor = scan_member(env->params.text, SLICE_LIT("cursor"));
	uint64_t child;

	if (cursor.type == JSON_ABSENT || cursor_open(cursor, &child, inside) < 0)
		return false;
	edits_add(edits, cursor.text, buf_slice(inside));
	return true;
}

void forward_call(struct upstream *upstream, struct call *call, const struct envelope *env)
{
	unsigned int differing = route_lost(call->route, upstream) |
				 revision_lacks(upstream->revision, call->route->revision);
	struct edits edits = { .count = 0 };
	struct convert convert = { .text = { 0 } };
	struct buf rebuilt = { 0 };
	struct buf cursor = { 0 };
	bool has_cursor = false;
	char digits[20];
	uint64_t upstream_id;
	struct slice id;

	if (!child_has_room(&upstream->child, env->text.n)) {
		call_fail(call, REASON_OVER_LIMIT);
		return;
	}
	env = convert_request(&convert, differing, call->method, env);
	if (upstream->pool->is_leased)
		tell_level(upstream, call->route->level);
	upstream_id = upstream_next_id(upstream);
	id = slice_of(digits, text_format_u64(upstream_id, digits));
	edits_add(&edits, env->id.text, id);
	edits_add_meta(&edits, env, call->token.n > 0 ? id : (struct slice){ NULL, 0 }, &rebuilt);
	if (upstream->pool->is_pool && call->method->flags & METHOD_PAGED)
		has_cursor = edits_add_cursor(&edits, env, &cursor);
	send_edited(upstream, env, &edits);
	buf_fini(&rebuilt);
	buf_fini(&cursor);
	/* No other child knows the cursor. */
	if (call->body == NULL && keeps_body(call, env->text.n) && !has_cursor)
		call->body = msg_new(env->text);
	if (call->method->id == METHOD_TOOLS_CALL &&
	    upstream->child.server->conf.tool_timeout_ms != NULL)
		call->timeout_ms =
			upstream->child.server->conf.tool_timeout_ms(&upstream->child.server->conf,
								     scan_plain_string(env->name));
	convert_fini(&convert);
	call_sent(call, upstream, upstream_id);
}

void forward_waiting(struct upstream *upstream, struct call *call)
{
	struct envelope env;
	struct error err;
	struct msg *body = msg_ref(call->body);

	if (!keeps_body(call, body->text.n))
		msg_unref(&call->body);
	if (scan_envelope(body->text, &upstream->pool->router->limits, 0, &env, &err) < 0)
		call_fail(call, REASON_PROTOCOL_ERROR); /* it was accepted before: cannot be */
	else
		forward_call(upstream, call, &env);
	msg_unref(&body);
}

static void respond_ourselves(struct route *route, struct call *call, struct buf *text)
{
	struct slice whole = buf_slice(text);

	if (call->state == CALL_NEW)
		call_link(call, route);
	call_respond(call, &whole, 1);
	buf_fini(text);
}

void forward_own_result(struct route *route, struct call *call, struct slice result)
{
	struct buf text = { 0 };

	write_result(&text, call->id, result);
	respond_ourselves(route, call, &text);
}

void forward_own_error(struct route *route, struct call *call, int code, struct slice message)
{
	struct buf text = { 0 };

	write_error(&text, call->id, code, message, (struct slice){ NULL, 0 });
	respond_ourselves(route, call, &text);
}

void forward_no_room(struct route *route, struct call *call)
{
	forward_own_error(route, call, MCP_INTERNAL_ERROR,
			  SLICE_LIT("The session has too many subscriptions"));
}

/* What cannot be remembered must not seem to be subscribed to. DEF-11 */
static bool refuse_subscription(struct route *route, struct call *call, const struct envelope *env)
{
	if (call->method->id != METHOD_SUBSCRIBE)
		return false;
	if (env->uri.text.n > TEXT_SET_BYTES_MAX)
		forward_own_error(route, call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: the uri is longer than 8 KiB"));
	else if (!text_set_has_room(&route->subscriptions, env->uri.text.n))
		forward_no_room(route, call);
	else
		return false;
	return true;
}

static bool answer_for_pool(struct route *route, struct call *call, const struct envelope *env)
{
	return sharing_answer(route, call, env) ||
	       (call->state == CALL_NEW && list_cache_answer(route, call, env));
}

/* Requests that the gateway answers itself. Returns whether it did. */
static bool answer_locally(struct route *route, struct call *call, const struct envelope *env)
{
	const struct pool *pool = route->pool;

	if (call->method->id == METHOD_PING) {
		forward_own_result(route, call, SLICE_LIT("{}"));
		return true;
	}
	if (is_remembered(call->method) && env->text.n > KEPT_BYTES_MAX) {
		forward_own_error(route, call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: the request is longer than 16 KiB"));
		return true;
	}
	if (call->method->id == METHOD_TASKS && (route->revision->features & REVISION_TASKS) == 0) {
		forward_own_error(route, call, MCP_METHOD_NOT_FOUND,
				  SLICE_LIT(
					  "Method not found: there are no tasks in this revision"));
		return true;
	}
	if (call->method->id != METHOD_SET_LEVEL)
		return refuse_subscription(route, call, env) ||
		       (pool->is_pool && answer_for_pool(route, call, env));
	if (pool->is_known && !(pool->server_capabilities.offers & OFFER_LOGGING)) {
		forward_own_error(route, call, MCP_METHOD_NOT_FOUND,
				  SLICE_LIT("Method not found: the server does not offer logging"));
		return true;
	}
	if (level_find(scan_plain_string(scan_member(env->params.text, SLICE_LIT("level")))) < 0) {
		forward_own_error(route, call, MCP_INVALID_PARAMS,
				  SLICE_LIT("Invalid params: unknown log level"));
		return true;
	}
	return pool->is_pool && sharing_answer(route, call, env);
}

void forward_linked(struct route *route, struct call *call, const struct envelope *env)
{
	if (call->method->id != METHOD_PING)
		route_initialized(route);
	if (answer_locally(route, call, env))
		return;
	if (call->state == CALL_NEW)
		call_link(call, route);
	pool_dispatch(route->pool, call, env);
}

void forward_request(struct route *route, struct call *call, struct admitted *admitted)
{
	CHECK(call->state == CALL_NEW);
	forward_linked(route, call, admitted_take(admitted, route));
}

/* ---- notifications ---- */

static void send_cancelled(struct upstream *upstream, uint64_t upstream_id, struct slice reason)
{
	struct buf *line = &upstream->pool->router->scratch;

	line->len = 0;
	buf_append_str(
		line,
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":");
	buf_append_u64(line, upstream_id);
	if (reason.n > 0) {
		buf_append_str(line, ",\"reason\":");
		buf_append_slice(line, reason);
	}
	buf_append_str(line, "}}");
	send_line(upstream, line);
}

void forward_give_up(struct upstream *upstream, uint64_t upstream_id, struct slice why)
{
	struct buf reason = { 0 };

	write_string(&reason, why);
	send_cancelled(upstream, upstream_id, buf_slice(&reason));
	buf_fini(&reason);
}

void forward_cancel(struct call *call, struct slice why)
{
	if (call->state == CALL_SENT && call->upstream->pool != NULL &&
	    call->method->id != METHOD_INITIALIZE)
		forward_give_up(call->upstream, call->upstream_id, why);
}

void forward_deny(struct call *call)
{
	if (call->state != CALL_WAITING && call->state != CALL_SENT)
		return;
	if (call->method->id == METHOD_INITIALIZE) {
		session_end(&call->route->session, REASON_DENIED);
		return;
	}
	forward_cancel(call, SLICE_LIT("the token has been revoked"));
	call_fail(call, REASON_DENIED);
}

/* All calls of the session with that id: its type counts as well. bridging.md §1.1 (6) */
static void cancel_calls(struct route *route, const struct envelope *env)
{
	struct json id = scan_member(env->params.text, SLICE_LIT("requestId"));
	struct json reason = scan_member(env->params.text, SLICE_LIT("reason"));
	struct buf text = { 0 };
	bool is_found = false;

	if (reason.type == JSON_STRING)
		splice_append(&text, reason.text, NULL, 0, SPLICE_ESCAPE_SEPARATORS);
	LIST_FOREACH_SAFE(node, &route->calls) {
		struct call *call = container_of(node, struct call, link);

		if (!slice_is_equal(call->id, id.text) || call->method->id == METHOD_INITIALIZE)
			continue;
		is_found = true;
		if (call->state == CALL_SENT)
			send_cancelled(call->upstream, call->upstream_id, buf_slice(&text));
		call_cancel(call);
	}
	if (!is_found)
		counter_add(COUNTER_CLIENT_STRAY_CANCELS);
	buf_fini(&text);
}

/* Progress of the client on something that the server asked it. bridging.md §1.1 (5) */
static void forward_progress(struct route *route, const struct envelope *env)
{
	struct json token = scan_member(env->params.text, SLICE_LIT("progressToken"));
	struct edits edits = { .count = 0 };
	struct server_request *server_request = NULL;
	uint64_t downstream_id;

	if (token.type == JSON_NUMBER && text_parse_u64(token.text, &downstream_id) == 0)
		server_request = map_find(&route->server_requests_by_id, downstream_id);
	if (server_request == NULL || server_request->token.n == 0 ||
	    !child_has_room(&server_request->upstream->child, env->text.n))
		return;
	edits_add(&edits, token.text, server_request->token);
	send_edited(server_request->upstream, env, &edits);
}

void forward_notification(struct route *route, struct admitted *admitted)
{
	const struct envelope *env = admitted_take(admitted, route);
	const struct method *method = method_find(env->method);
	struct upstream *own = partition_own_upstream(route->pool);
	struct edits edits = { .count = 0 };
	struct buf rebuilt = { 0 };

	if (method->id == METHOD_INITIALIZED) {
		route_initialized(route);
		return;
	}
	if (method->id == METHOD_CANCELLED) {
		cancel_calls(route, env);
		return;
	}
	if (method->id == METHOD_PROGRESS) {
		forward_progress(route, env);
		return;
	}
	/* What only one of many says is nothing for all. A child that is being started learns nothing from
	   news about the past. */
	if (own == NULL || !upstream_is_serving(own))
		return;
	if (method->id == METHOD_ROOTS_CHANGED && !route->tells_roots)
		return;
	if (!child_has_room(&own->child, env->text.n))
		return;
	edits_add_meta(&edits, env, (struct slice){ NULL, 0 }, &rebuilt);
	send_edited(own, env, &edits);
	buf_fini(&rebuilt);
}

/* ---- answers ---- */

void forward_answer(struct route *route, struct admitted *admitted)
{
	const struct envelope *env = admitted_take(admitted, route);
	struct edits edits = { .count = 0 };
	struct convert convert = { .text = { 0 } };
	struct server_request *server_request = NULL;
	uint64_t downstream_id;

	if (env->id.type == JSON_NUMBER && text_parse_u64(env->id.text, &downstream_id) == 0)
		server_request = map_find(&route->server_requests_by_id, downstream_id);
	if (server_request == NULL || server_request->held != NULL) {
		counter_add(COUNTER_CLIENT_STRAY_RESPONSES);
		return;
	}
	env = convert_answer(&convert,
			     revision_lacks(server_request->upstream->revision, route->revision),
			     server_request->method, env);
	edits_add(&edits, env->id.text, server_request->id);
	send_edited(server_request->upstream, env, &edits);
	convert_fini(&convert);
	route_close_server_request(server_request);
}

void forward_result(struct upstream *upstream, struct slice id, struct slice result)
{
	struct buf *line = &upstream->pool->router->scratch;

	line->len = 0;
	write_result(line, id, result);
	send_line(upstream, line);
}

void forward_error(struct upstream *upstream, struct slice id, int code, struct slice message)
{
	struct buf *line = &upstream->pool->router->scratch;

	line->len = 0;
	write_error(line, id, code, message, (struct slice){ NULL, 0 });
	send_line(upstream, line);
}

void forward_refusal(const struct server_request *server_request, struct slice why)
{
	if (server_request->method->id == METHOD_ELICITATION)
		forward_result(server_request->upstream, server_request->id,
			       SLICE_LIT("{\"action\":\"cancel\"}"));
	else
		forward_error(server_request->upstream, server_request->id, MCP_INTERNAL_ERROR,
			      why);
}

/* ---- the handshake ---- */

void forward_handshake(struct upstream *upstream)
{
	const struct pool *pool = upstream->pool;
	struct edits edits = { .count = 0 };
	struct buf rebuilt = { 0 };
	struct buf version = { 0 };
	struct envelope env;
	struct error err;
	char digits[20];

	if (scan_envelope(pool->handshake->text, &pool->router->limits, 0, &env, &err) < 0) {
		upstream_refuse(upstream); /* it was accepted before: cannot be */
		return;
	}
	upstream->handshake_id = upstream_next_id(upstream);
	buf_printf(&version, "\"%.*s\"", SLICE_ARG(pool->revision->name));
	edits_add(&edits, env.id.text,
		  slice_of(digits, text_format_u64(upstream->handshake_id, digits)));
	edits_add(&edits, scan_member(env.params.text, SLICE_LIT("protocolVersion")).text,
		  buf_slice(&version));
	edits_add_meta(&edits, &env, (struct slice){ NULL, 0 }, &rebuilt);
	send_edited(upstream, &env, &edits);
	buf_fini(&version);
	buf_fini(&rebuilt);
}

void forward_subscription(struct upstream *upstream, struct slice method, struct slice uri)
{
	struct buf params = { 0 };

	buf_append_str(&params, "{\"uri\":\"");
	splice_append(&params, uri, NULL, 0, SPLICE_ESCAPE_SEPARATORS);
	buf_append_str(&params, "\"}");
	send_own_request(upstream, method, buf_slice(&params));
	buf_fini(&params);
}

uint64_t forward_list(struct upstream *upstream, struct slice method, struct slice cursor)
{
	struct buf params = { 0 };
	uint64_t upstream_id;

	if (cursor.n > 0) {
		buf_append_str(&params, "{\"cursor\":");
		splice_append(&params, cursor, NULL, 0, SPLICE_ESCAPE_SEPARATORS);
		buf_append_char(&params, '}');
	}
	upstream_id = send_own_request(upstream, method, buf_slice(&params));
	buf_fini(&params);
	return upstream_id;
}

void forward_replay(struct upstream *upstream)
{
	const struct route *route = upstream->route;

	tell_level(upstream, route->level);
	LIST_FOREACH(node, &route->subscriptions.items) {
		struct text_set_item *item = container_of(node, struct text_set_item, link);

		forward_subscription(upstream, SLICE_LIT("resources/subscribe"),
				     slice_of(item->text, item->length));
	}
}

void forward_initialized(struct upstream *upstream)
{
	struct buf *line = &upstream->pool->router->scratch;

	line->len = 0;
	write_call(line, (struct slice){ NULL, 0 }, SLICE_LIT("notifications/initialized"),
		   (struct slice){ NULL, 0 });
	send_line(upstream, line);
}

void forward_ping(struct upstream *upstream, uint64_t upstream_id)
{
	struct buf *line = &upstream->pool->router->scratch;
	char digits[20];

	line->len = 0;
	write_call(line, slice_of(digits, text_format_u64(upstream_id, digits)), SLICE_LIT("ping"),
		   (struct slice){ NULL, 0 });
	send_line(upstream, line);
}
