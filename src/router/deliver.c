/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the child. Everything it writes is untrusted: ids and tokens are looked up among those of its own
 * upstream, and a message reaches that upstream's session or nobody. BACK-SEC-01, bridging.md I1, I2.
 */
#include "router/deliver.h"

#include <stdlib.h>

#include "base/random.h"
#include "base/text.h"
#include "jsonrpc/splice.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/level.h"
#include "mcp/method.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/convert.h"
#include "router/cursor.h"
#include "router/forward.h"
#include "router/list_cache.h"
#include "router/route.h"
#include "router/sharing.h"

#define BATCH_MAX 1024

/* ---- responses ---- */

static void note_stray(struct upstream *upstream, enum counter counter, const struct envelope *env)
{
	counter_add(counter);
	LOG(CHILD_STRAY, LOG_STR("server", upstream->child.server->conf.name),
	    LOG_INT("pid", upstream->child.pid), LOG_SLICE("method", env->method),
	    LOG_SLICE("id", env->id.text));
}

void deliver_note_dropped(struct upstream *upstream, const struct envelope *env)
{
	note_stray(upstream, COUNTER_CHILD_DROPPED, env);
}

/* Many may have been asked for at once: the server is told that this one is off. DEF-11 */
static bool remember_subscription(struct call *call, struct slice uri)
{
	struct text_set *set = &call->route->subscriptions;

	if (text_set_add(set, uri) || text_set_has(set, text_set_key(uri), uri))
		return true;
	forward_subscription(call->upstream, SLICE_LIT("resources/unsubscribe"), uri);
	return false;
}

/* What the server agreed to, the route remembers. Returns false if there is no room for it. */
static bool remember_change(struct call *call)
{
	struct route *route = call->route;
	struct buf room = { 0 };
	bool is_kept = true;
	struct envelope env;
	struct error err;

	if (call->body == NULL || route->pool->is_pool ||
	    scan_envelope(call->body->text, &route->router->limits, 0, &env, &err) < 0)
		return true;
	if (call->method->id == METHOD_SET_LEVEL)
		route->level = level_find(
			scan_plain_string(scan_member(env.params.text, SLICE_LIT("level"))));
	else if (call->method->id == METHOD_SUBSCRIBE && env.uri.type == JSON_STRING)
		is_kept = remember_subscription(call, route_spell_uri(env.uri, &room));
	else if (call->method->id == METHOD_UNSUBSCRIBE && env.uri.type == JSON_STRING)
		text_set_remove(&route->subscriptions, route_spell_uri(env.uri, &room));
	buf_fini(&room);
	return is_kept;
}

/* A list goes on at the same child: its cursor says so. Returns false if the list is at its end. */
static bool seal_cursor(struct call *call, const struct envelope *env)
{
	struct json cursor = scan_member(env->result.text, SLICE_LIT("nextCursor"));
	struct splice_edit edit = { cursor.text, { NULL, 0 } };
	struct buf sealed = { 0 };
	struct buf result = { 0 };
	struct buf text = { 0 };
	struct slice whole;

	if (cursor.type != JSON_STRING)
		return false;
	cursor_append_sealed(&sealed, upstream_child_number(call->upstream), cursor);
	edit.with = buf_slice(&sealed);
	splice_append(&result, env->result.text, &edit, 1, SPLICE_ONE_LINE);
	write_result(&text, call->id, buf_slice(&result));
	whole = buf_slice(&text);
	call_respond(call, &whole, 1);
	buf_fini(&sealed);
	buf_fini(&result);
	buf_fini(&text);
	return true;
}

static void respond(struct call *call, const struct envelope *env)
{
	struct slice text = env->text;
	struct slice id = env->id.text;
	struct buf edited = { 0 };
	struct slice whole;

	if (!env->has_line_break && !env->is_unusual && id.n > 0) {
		const struct slice parts[] = { slice_between(text.p, id.p), call->id,
					       slice_between(id.p + id.n, text.p + text.n) };

		call_respond(call, parts, ARRAY_LEN(parts));
		return;
	}
	/* Written unusually: put it in order. */
	buf_append_str(&edited, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_append_slice(&edited, call->id);
	buf_append_str(&edited, env->kind == ENVELOPE_RESULT ? ",\"result\":" : ",\"error\":");
	splice_append(&edited, env->kind == ENVELOPE_RESULT ? env->result.text : env->error.text,
		      NULL, 0, SPLICE_ONE_LINE);
	buf_append_char(&edited, '}');
	whole = buf_slice(&edited);
	call_respond(call, &whole, 1);
	buf_fini(&edited);
}

void deliver_response(struct call *call, const struct envelope *env)
{
	struct convert convert = { .text = { 0 } };

	if (env->kind == ENVELOPE_RESULT && !remember_change(call)) {
		forward_no_room(call->route, call);
		return;
	}
	if (call->subscription != NULL && !sharing_settle(call, env))
		return;
	env = convert_response(&convert, route_lost(call->route, call->upstream), call->method,
			       env);
	if (env->kind != ENVELOPE_RESULT || !(call->method->flags & METHOD_PAGED) ||
	    !call->route->pool->is_pool || !seal_cursor(call, env))
		respond(call, env);
	convert_fini(&convert);
}

void deliver_stored(struct call *call, const struct revision *revision, const struct envelope *env)
{
	struct convert convert = { .text = { 0 } };
	unsigned int lost = revision_lacks(call->route->revision, revision) & ~REVISION_TASKS;

	respond(call, convert_response(&convert, lost, call->method, env));
	convert_fini(&convert);
}

/* An error without an id belongs to the only call there is, if there is only one. BACK-FRAME-05 */
static struct call *only_call(const struct upstream *upstream)
{
	/* A pool's child may just as well mean one that is long over. */
	if (upstream->calls.count != 1 || upstream->fetch_count > 0 || upstream->route == NULL)
		return NULL;
	return upstream_any_call(upstream);
}

/* Whether it is about our initialize, the only request at that time. */
static bool is_of_handshake(const struct upstream *upstream, struct json id)
{
	struct slice digits = id.type == JSON_STRING ? scan_plain_string(id) : id.text;
	uint64_t upstream_id = 0;

	if (upstream->state != UPSTREAM_HANDSHAKE)
		return false;
	return id.type == JSON_ABSENT ||
	       (text_parse_u64(digits, &upstream_id) == 0 && upstream_id == upstream->handshake_id);
}

static void take_response(struct upstream *upstream, const struct envelope *env)
{
	struct call *call = upstream_find_call(upstream, env->id);

	if (is_of_handshake(upstream, env->id)) {
		if (env->kind == ENVELOPE_RESULT)
			pool_on_ready(upstream, env);
		else
			pool_on_refused(upstream, env);
		return;
	}
	if (call == NULL && env->id.type == JSON_ABSENT)
		call = only_call(upstream);
	if (call != NULL) {
		deliver_response(call, env);
		return;
	}
	if (list_cache_take(upstream, env))
		return;
	note_stray(upstream, COUNTER_CHILD_STRAY_RESPONSES, env);
	upstream_note_stray(upstream, env->id);
}

/* ---- messages for the client ---- */

/* The message as a client gets it: one span replaced, no raw line breaks. */
static struct msg *make_msg(const struct envelope *env, const struct splice_edit *edits,
			    size_t count)
{
	struct buf text = { 0 };
	struct msg *msg;

	splice_append(&text, env->text, edits, count, env->has_line_break ? SPLICE_ONE_LINE : 0);
	msg = msg_new(buf_slice(&text));
	buf_fini(&text);
	return msg;
}

struct msg *deliver_make_msg(const struct envelope *env)
{
	return make_msg(env, NULL, 0);
}

/* Whether a message without reference, of those that this upstream sends, may be about it. */
static bool is_candidate(const struct call *call, const struct upstream *upstream,
			 unsigned int wanted)
{
	return call->state == CALL_SENT && call->upstream == upstream &&
	       (call->method->flags & METHOD_ASKING) == wanted;
}

/*
 * The call that such a message most likely belongs to: the latest, asking ones before others, that takes it. With
 * msg == NULL it need not. NULL: there is none. bridging.md §1.6 (6)
 */
static struct call *find_likely_call(struct upstream *upstream, enum stream_kind kind, uint64_t key,
				     struct msg *msg)
{
	struct route *route = upstream->route;

	for (unsigned int wanted = METHOD_ASKING;; wanted = 0) {
		for (struct list *node = route->calls.prev; node != &route->calls;
		     node = node->prev) {
			struct call *call = container_of(node, struct call, link);

			if (is_candidate(call, upstream, wanted) &&
			    (msg == NULL || call->ops->on_message(call, kind, key, msg)))
				return call;
		}
		if (wanted == 0)
			return NULL;
	}
}

/* ---- requests of the server ---- */

void deliver_server_request(struct server_request *server_request, struct msg *msg)
{
	struct route *route = server_request->route;

	server_request->call = find_likely_call(server_request->upstream, STREAM_REQUEST,
						server_request->downstream_id, msg);
	if (server_request->call != NULL) {
		if (server_request->call->ops->is_reachable(server_request->call))
			timer_stop(&server_request->hold);
		call_note_asked(server_request->call);
		return;
	}
	if (stream_is_full(&route->session.standalone)) {
		forward_error(server_request->upstream, server_request->id, MCP_INTERNAL_ERROR,
			      SLICE_LIT("no client takes the requests that wait already"));
		route_close_server_request(server_request);
		return;
	}
	server_request->is_standalone = true;
	server_request->call = find_likely_call(server_request->upstream, STREAM_REQUEST, 0, NULL);
	if (server_request->call != NULL)
		call_note_asked(
			server_request->call); /* its client is asked all the same. CXL-08 */
	if (stream_has_reader(&route->session.standalone))
		route_offer_server_request(server_request);
	stream_push(&route->session.standalone, STREAM_REQUEST, server_request->downstream_id, msg);
}

/* On the way that the request took; if it is still there, it is taken back instead. CXL-09 */
static void deliver_cancel_of_server_request(struct server_request *server_request, struct msg *msg)
{
	struct stream *standalone = &server_request->route->session.standalone;

	if (server_request->is_standalone && stream_drop(standalone, server_request->downstream_id))
		return;
	if (server_request->is_standalone || server_request->call == NULL ||
	    !server_request->call->ops->on_message(server_request->call, STREAM_REQUEST, 0, msg))
		stream_push(standalone, STREAM_REQUEST, 0, msg);
}

void deliver_server_request_cancelled(struct server_request *server_request)
{
	struct buf text = { 0 };
	struct msg *msg;

	if (server_request->held != NULL)
		return;
	buf_printf(
		&text,
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%llu}}",
		(unsigned long long)server_request->downstream_id);
	msg = msg_new(buf_slice(&text));
	deliver_cancel_of_server_request(server_request, msg);
	msg_unref(&msg);
	buf_fini(&text);
}

static bool is_told(const struct pool *pool, const char *capability, const char *member)
{
	static const char *const start[] = { "params", "capabilities" };
	const char *path[] = { start[0], start[1], capability, member };

	enum json_type type = scan_path(pool->handshake->text, path, member != NULL ? 4 : 3).type;

	return type != JSON_ABSENT && type != JSON_NULL && type != JSON_FALSE;
}

/* The members of a server's request that decide whether it may be asked. */
struct deciding {
	bool has_mode;
	bool has_tools;
	bool is_doubtful; /* one of them may be read otherwise by the client */
};

static int note_deciding(struct slice name, struct json value, void *arg)
{
	struct deciding *deciding = arg;
	bool is_mode = slice_is_equal(name, SLICE_LIT("mode"));
	bool is_tools = slice_is_equal(name, SLICE_LIT("tools"));
	bool is_like = slice_is_equal_nocase(name, SLICE_LIT("mode")) ||
		       slice_is_equal_nocase(name, SLICE_LIT("tools"));

	(void)value;
	deciding->is_doubtful |=
		(is_mode && deciding->has_mode) || (is_tools && deciding->has_tools) ||
		(is_like && !is_mode && !is_tools) || memchr(name.p, '\\', name.n) != NULL;
	deciding->has_mode |= is_mode;
	deciding->has_tools |= is_tools;
	return 0;
}

/* Without a mode, and with one that has no value, it is a form. */
static bool is_form_or_url(struct json mode, bool *is_url_r)
{
	struct slice name = scan_plain_string(mode);

	*is_url_r = slice_is_equal(name, SLICE_LIT("url"));
	return *is_url_r || mode.type == JSON_ABSENT || mode.type == JSON_NULL ||
	       slice_is_equal(name, SLICE_LIT("form"));
}

/* Whether the client can answer in the way that is asked for. UTIL-ROOT-01, -02 */
static bool has_told_mode(const struct pool *pool, const struct method *method,
			  const struct envelope *env)
{
	struct deciding deciding = { .is_doubtful = false };
	bool is_url;

	if (method->id != METHOD_SAMPLING && method->id != METHOD_ELICITATION)
		return true;
	scan_members(env->params.text, note_deciding, &deciding);
	if (deciding.is_doubtful)
		return false;
	if (method->id == METHOD_SAMPLING)
		return !deciding.has_tools || is_told(pool, "sampling", "tools");
	if (!is_form_or_url(scan_member(env->params.text, SLICE_LIT("mode")), &is_url))
		return false;
	if (is_url)
		return is_told(pool, "elicitation", "url");
	return is_told(pool, "elicitation", "form") || !is_told(pool, "elicitation", "url");
}

/* Returns the code of the error that the server gets, or 0: its client shall be asked. */
static int check_server_request(const struct pool *pool, const struct method *method,
				const struct envelope *env)
{
	if (method->capability == NULL || method->id == METHOD_LIST_CHANGED)
		return MCP_METHOD_NOT_FOUND;
	if (!is_told(pool, method->capability, NULL))
		return MCP_METHOD_NOT_FOUND;
	return has_told_mode(pool, method, env) ? 0 : MCP_INVALID_PARAMS;
}

/* The end of one in URL mode is told by a notification that names it. */
static void remember_elicitation(struct route *route, const struct envelope *env)
{
	struct json id = scan_member(env->params.text, SLICE_LIT("elicitationId"));

	if (id.type == JSON_STRING)
		text_set_add(&route->elicitations, id.text);
}

static struct msg *make_server_request_msg(const struct envelope *env,
					   const struct server_request *server_request)
{
	char digits[20];
	struct slice downstream_id =
		slice_of(digits, text_format_u64(server_request->downstream_id, digits));
	struct splice_edit edits[2] = { { env->id.text, downstream_id },
					{ env->progress_token.text, downstream_id } };

	if (server_request->token.n == 0)
		return make_msg(env, edits, 1);
	if (edits[0].span.p > edits[1].span.p) {
		struct splice_edit first = edits[0];

		edits[0] = edits[1];
		edits[1] = first;
	}
	return make_msg(env, edits, 2);
}

static void refuse_more_server_requests(struct upstream *upstream, const struct envelope *env)
{
	forward_error(upstream, env->id.text, MCP_INTERNAL_ERROR,
		      SLICE_LIT("too many requests are unanswered"));
}

/* A request that the client can be asked, in words that it knows. */
static void offer(struct upstream *upstream, const struct method *method,
		  const struct envelope *env)
{
	struct route *route = upstream->route;
	struct server_request *server_request =
		route_open_server_request(route, upstream, env, method);
	struct msg *msg;

	if (server_request == NULL) {
		refuse_more_server_requests(upstream, env);
		return;
	}
	if (method->id == METHOD_ELICITATION)
		remember_elicitation(route, env);
	msg = make_server_request_msg(env, server_request);
	if (route->is_initialized) {
		deliver_server_request(server_request, msg);
	} else if (!route_keep_server_request(server_request, msg)) {
		refuse_more_server_requests(upstream, env);
		route_close_server_request(server_request);
	}
	msg_unref(&msg);
}

static void deliver_request(struct upstream *upstream, const struct envelope *env)
{
	const struct method *method = method_find(env->method);
	struct route *route = upstream->route;
	struct convert convert = { .text = { 0 } };
	const struct envelope *converted;
	int code;

	if (method->id == METHOD_PING) {
		forward_result(upstream, env->id.text, SLICE_LIT("{}"));
		return;
	}
	if (!upstream_is_serving(upstream)) {
		forward_error(upstream, env->id.text, MCP_INVALID_REQUEST,
			      SLICE_LIT("Invalid request: the handshake is not through"));
		return;
	}
	code = check_server_request(upstream->pool, method, env);
	if (code != 0) {
		forward_error(
			upstream, env->id.text, code,
			code == MCP_METHOD_NOT_FOUND ?
				SLICE_LIT(
					"Method not found: the client did not declare this capability") :
				SLICE_LIT("Invalid params: the client did not declare this mode"));
		return;
	}
	if (route == NULL) {
		forward_error(
			upstream, env->id.text, MCP_INVALID_PARAMS,
			SLICE_LIT("Invalid params: it is not related to a request of a client"));
		return;
	}
	converted = convert_server_request(&convert, route_lost(route, upstream), method, env);
	if (converted != NULL)
		offer(upstream, method, converted);
	else
		forward_error(
			upstream, env->id.text, MCP_INVALID_PARAMS,
			SLICE_LIT(
				"Invalid params: the client's revision of MCP cannot express this"));
	convert_fini(&convert);
}

/* ---- notifications of the server ---- */

static bool progress_increases(struct call *call, struct slice params)
{
	struct json value = scan_member(params, SLICE_LIT("progress"));
	char digits[64];
	double progress;

	if (value.type != JSON_NUMBER || value.text.n >= sizeof(digits))
		return false;
	memcpy(digits, value.text.p, value.text.n);
	digits[value.text.n] = '\0';
	progress = strtod(digits, NULL);
	if (!(progress > call->progress))
		return false;
	call->progress = progress;
	return true;
}

/* UTIL-PROG-01 */
static void deliver_progress(struct upstream *upstream, const struct envelope *env)
{
	struct json token = scan_member(env->params.text, SLICE_LIT("progressToken"));
	struct call *call = upstream_find_call(upstream, token);
	struct splice_edit edit = { token.text, { NULL, 0 } };
	struct msg *msg;

	if (call == NULL || call->token.n == 0 || !progress_increases(call, env->params.text)) {
		note_stray(upstream, COUNTER_CHILD_STRAY_PROGRESS, env);
		return;
	}
	call_renew(call);
	edit.with = call->token;
	msg = make_msg(env, &edit, 1);
	call->ops->on_message(call, STREAM_PROGRESS, 0, msg);
	msg_unref(&msg);
}

/* UTIL-LOG-01; bridging.md §1.7: to the only call in flight, else to the session. */
static void deliver_log(struct upstream *upstream, const struct envelope *env)
{
	struct route *route = upstream->route;
	int level =
		level_find(scan_plain_string(scan_member(env->params.text, SLICE_LIT("level"))));
	struct call *call = upstream->lease != NULL ? upstream->lease : only_call(upstream);
	struct msg *msg;

	if (level < route->level)
		return;
	msg = make_msg(env, NULL, 0);
	if (call == NULL || !call->ops->on_message(call, STREAM_LOG, 0, msg))
		stream_push(&route->session.standalone, STREAM_LOG, 0, msg);
	msg_unref(&msg);
}

uint64_t deliver_news_key(struct slice method, struct slice uri)
{
	static uint64_t start;

	if (start == 0)
		random_bytes(&start, sizeof(start));
	return text_hash(text_hash(start, method), uri) | 1ull << 63;
}

/* A notification that we do not know: for the call that has the child for itself, or the session that has it. */
static void deliver_other(struct upstream *upstream, const struct envelope *env)
{
	struct msg *msg = make_msg(env, NULL, 0);

	if (upstream->lease == NULL)
		stream_push(&upstream->route->session.standalone, STREAM_NEWS, 0, msg);
	else if (!upstream->lease->ops->on_message(upstream->lease, STREAM_NEWS, 0, msg))
		deliver_note_dropped(upstream, env);
	msg_unref(&msg);
}

/* Where nobody can be asked, and sessions may be thousands, none of them is looked at. REL-24 */
static bool may_have_asked(const struct upstream *upstream)
{
	return upstream->pool->is_leased || !upstream->pool->is_pool;
}

/* To the client that was given it, once. UTIL-ELIC-01 */
static void deliver_elicitation_end(struct upstream *upstream, const struct envelope *env)
{
	struct json id = scan_member(env->params.text, SLICE_LIT("elicitationId"));
	struct msg *msg;

	LIST_FOREACH(node, &upstream->pool->members) {
		struct route *route = container_of(node, struct route, member);

		if (!(route->revision->features & REVISION_MODES) ||
		    !text_set_remove(&route->elicitations, id.text))
			continue;
		msg = make_msg(env, NULL, 0);
		stream_push(&route->session.standalone, STREAM_NEWS, 0, msg);
		msg_unref(&msg);
		return;
	}
	deliver_note_dropped(upstream, env);
}

static void deliver_cancelled(struct upstream *upstream, const struct envelope *env)
{
	struct json id = scan_member(env->params.text, SLICE_LIT("requestId"));
	struct server_request *server_request =
		route_find_server_request(upstream->route, upstream, id.text);
	char digits[20];
	struct splice_edit edit = { id.text, { digits, 0 } };
	struct msg *msg;

	if (server_request == NULL)
		return;
	edit.with.n = text_format_u64(server_request->downstream_id, digits);
	if (server_request->held == NULL) {
		msg = make_msg(env, &edit, 1);
		deliver_cancel_of_server_request(server_request, msg);
		msg_unref(&msg);
	}
	route_close_server_request(server_request);
}

/* For the only session that the child serves now. */
static void deliver_to_owner(struct upstream *upstream, const struct envelope *env,
			     const struct method *method)
{
	if (method->id == METHOD_MESSAGE)
		deliver_log(upstream, env);
	else if (method->id == METHOD_CANCELLED)
		deliver_cancelled(upstream, env);
	else if (method->id == METHOD_TASK_STATUS &&
		 route_lost(upstream->route, upstream) & REVISION_TASKS)
		deliver_note_dropped(upstream, env);
	else
		deliver_other(upstream, env);
}

static void deliver_notification(struct upstream *upstream, const struct envelope *env)
{
	const struct method *method = method_find(env->method);

	if (method->id == METHOD_PROGRESS)
		deliver_progress(upstream, env);
	else if (method->id == METHOD_LIST_CHANGED || method->id == METHOD_RESOURCE_UPDATED)
		sharing_notify(upstream, env, method);
	else if (method->id == METHOD_ELICITATION_COMPLETE && may_have_asked(upstream))
		deliver_elicitation_end(upstream, env);
	else if (upstream->route != NULL)
		deliver_to_owner(upstream, env, method);
	else
		deliver_note_dropped(upstream, env);
}

/* ---- lines ---- */

static void deliver_message(struct upstream *upstream, const struct envelope *env)
{
	if (env->kind == ENVELOPE_RESULT || env->kind == ENVELOPE_ERROR)
		take_response(upstream, env);
	else if (env->kind == ENVELOPE_REQUEST)
		deliver_request(upstream, env);
	else if (upstream_is_serving(upstream))
		deliver_notification(upstream, env);
	else
		deliver_note_dropped(upstream, env); /* too early */
}

/* A request or notification that was accepted although it is not quite right: as it should be. */
static void deliver_anew(struct upstream *upstream, const struct envelope *env)
{
	struct buf text = { 0 };
	struct envelope anew;
	struct error err;

	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",");
	if (env->kind == ENVELOPE_REQUEST) {
		buf_append_str(&text, "\"id\":");
		buf_append_slice(&text, env->id.text);
		buf_append_char(&text, ',');
	}
	buf_append_str(&text, "\"method\":\"");
	buf_append_slice(&text, env->method);
	buf_append_char(&text, '"');
	if (env->params.type != JSON_ABSENT) {
		buf_append_str(&text, ",\"params\":");
		buf_append_slice(&text, env->params.text);
	}
	buf_append_char(&text, '}');
	if (scan_envelope(buf_slice(&text), &upstream->pool->router->limits, SCAN_LENIENT, &anew,
			  &err) == 0)
		deliver_message(upstream, &anew);
	buf_fini(&text);
}

/*
 * The id of a message that is refused. Behind what is too deep nothing was read, but many servers write the id
 * last; there it is only looked up, for nobody knows whether that is JSON.
 */
static struct json id_of_refused(const struct envelope *env, struct slice text,
				 const struct error *err)
{
	if (env->id.type == JSON_ABSENT && err->kind == ERROR_LIMIT)
		return scan_member(text, SLICE_LIT("id"));
	return env->id;
}

/* About a request that waits, but no response: it will not get a better one. REL-23 */
static void fail_malformed(struct upstream *upstream, struct json id)
{
	struct call *call = upstream_find_call(upstream, id);

	if (id.type == JSON_ABSENT)
		return;
	if (is_of_handshake(upstream, id))
		upstream_refuse(upstream);
	else if (call != NULL)
		call_fail(call, REASON_CHILD_PROTOCOL_ERROR);
	else
		(void)list_cache_refuse(upstream, id);
}

static int deliver_text(struct upstream *upstream, struct slice text, struct error *err)
{
	struct envelope env;

	if (scan_envelope(text, &upstream->pool->router->limits, SCAN_LENIENT, &env, err) == 0) {
		if (env.is_unusual && env.method.n > 0)
			deliver_anew(upstream, &env);
		else
			deliver_message(upstream, &env);
		return 0;
	}
	if (err->kind != ERROR_SYNTAX && scan_member(text, SLICE_LIT("method")).type == JSON_ABSENT)
		fail_malformed(upstream, id_of_refused(&env, text, err));
	return -1;
}

static int deliver_element(struct slice element, void *arg)
{
	struct upstream *upstream = arg;
	struct error err;

	if (upstream->state == UPSTREAM_CLOSED)
		return -1;
	if (deliver_text(upstream, element, &err) < 0)
		child_note_garbage(&upstream->child, element, err.text);
	return 0;
}

/* A banner without a line end may stand before a message. BACK-FRAME-04 */
static bool salvage(struct upstream *upstream, struct slice line)
{
	static const struct slice start = SLICE("{\"jsonrpc\"");
	struct error err;
	const char *at = line.n > 1 ? memmem(line.p + 1, line.n - 1, start.p, start.n) : NULL;

	return at != NULL && deliver_text(upstream, slice_between(at, line.p + line.n), &err) == 0;
}

void deliver_line(struct upstream *upstream, struct slice line)
{
	struct error err = { ERROR_NONE, "" };

	if (line.p[0] == '[') {
		/* Stopped without an error: an element has ended the upstream. */
		if (scan_array(line, BATCH_MAX, deliver_element, upstream, &err) >= 0 ||
		    err.kind == ERROR_NONE)
			return;
	} else if (deliver_text(upstream, line, &err) == 0) {
		return;
	}
	if (err.kind != ERROR_SYNTAX || !salvage(upstream, line))
		child_note_garbage(&upstream->child, line, err.text);
}
