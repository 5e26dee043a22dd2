/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the child. Everything it writes is untrusted: ids and tokens are looked up among those of its own
 * lane, and a message reaches that lane's session or nobody. BACK-SEC-01, bridging.md I1, I2.
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
#include "router/listings.h"
#include "router/route.h"
#include "router/sharing.h"

#define BATCH_MAX 1024

/* ---- responses ---- */

static void note_stray(struct lane *lane, enum counter counter, const struct envelope *env)
{
	counter_add(counter);
	LOG(CHILD_STRAY, LOG_STR("server", lane->child.backend->conf.name),
	    LOG_INT("pid", lane->child.pid), LOG_SLICE("method", env->method),
	    LOG_SLICE("id", env->id.text));
}

void deliver_note_dropped(struct lane *lane, const struct envelope *env)
{
	note_stray(lane, COUNTER_CHILD_DROPPED, env);
}

/* Many may have been asked for at once: the server is told that this one is off. DEF-11 */
static bool remember_subscription(struct call *call, struct slice uri)
{
	struct text_set *set = &call->route->subscriptions;

	if (text_set_add(set, uri) || text_set_has(set, text_set_key(uri), uri))
		return true;
	forward_subscription(call->lane, SLICE_LIT("resources/unsubscribe"), uri);
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

	if (call->body == NULL || route->partition->is_pool ||
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
	cursor_append_sealed(&sealed, lane_child_number(call->lane), cursor);
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
	if (call->topic != NULL && !sharing_settle(call, env))
		return;
	env = convert_response(&convert, route_lost(call->route, call->lane), call->method, env);
	if (env->kind != ENVELOPE_RESULT || !(call->method->flags & METHOD_PAGED) ||
	    !call->route->partition->is_pool || !seal_cursor(call, env))
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
static struct call *only_call(const struct lane *lane)
{
	/* A pool's child may just as well mean one that is long over. */
	if (lane->calls.count != 1 || lane->fetch_count > 0 || lane->route == NULL)
		return NULL;
	return lane_any_call(lane);
}

/* Whether it is about our initialize, the only request at that time. */
static bool is_of_handshake(const struct lane *lane, struct json id)
{
	struct slice digits = id.type == JSON_STRING ? scan_plain_string(id) : id.text;
	uint64_t bid = 0;

	if (lane->state != LANE_HANDSHAKE)
		return false;
	return id.type == JSON_ABSENT ||
	       (text_parse_u64(digits, &bid) == 0 && bid == lane->handshake_bid);
}

static void take_response(struct lane *lane, const struct envelope *env)
{
	struct call *call = lane_find_call(lane, env->id);

	if (is_of_handshake(lane, env->id)) {
		if (env->kind == ENVELOPE_RESULT)
			partition_on_ready(lane, env);
		else
			partition_on_refused(lane, env);
		return;
	}
	if (call == NULL && env->id.type == JSON_ABSENT)
		call = only_call(lane);
	if (call != NULL) {
		deliver_response(call, env);
		return;
	}
	if (listings_take(lane, env))
		return;
	note_stray(lane, COUNTER_CHILD_STRAY_RESPONSES, env);
	lane_note_stray(lane, env->id);
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

/* The call that a message without reference most likely belongs to. bridging.md §1.6 (6) */
static bool give_to_some_call(struct lane *lane, enum stream_kind kind, uint64_t key,
			      struct msg *msg, struct call **call_r)
{
	struct route *route = lane->route;

	for (unsigned int wanted = METHOD_ASKING;; wanted = 0) {
		for (struct list *node = route->calls.prev; node != &route->calls;
		     node = node->prev) {
			struct call *call = container_of(node, struct call, link);

			if (call->state != CALL_SENT || call->lane != lane ||
			    (call->method->flags & METHOD_ASKING) != wanted)
				continue;
			if (call->ops->on_message(call, kind, key, msg)) {
				*call_r = call;
				return true;
			}
		}
		if (wanted == 0)
			return false;
	}
}

/* ---- requests of the server ---- */

void deliver_ask(struct ask *ask, struct msg *msg)
{
	struct route *route = ask->route;

	if (give_to_some_call(ask->lane, STREAM_REQUEST, ask->fid, msg, &ask->call)) {
		if (ask->call->ops->is_reachable(ask->call))
			timer_stop(&ask->hold);
		call_note_asked(ask->call);
		return;
	}
	if (stream_is_full(&route->session.standalone)) {
		forward_error(ask->lane, ask->id, MCP_INTERNAL_ERROR,
			      SLICE_LIT("no client takes the requests that wait already"));
		route_close_ask(ask);
		return;
	}
	ask->is_standalone = true;
	stream_push(&route->session.standalone, STREAM_REQUEST, ask->fid, msg);
}

/* On the way that the request took; if it is still there, it is taken back instead. CXL-09 */
static void deliver_cancel_of_ask(struct ask *ask, struct msg *msg)
{
	struct stream *standalone = &ask->route->session.standalone;

	if (ask->is_standalone && stream_drop(standalone, ask->fid))
		return;
	if (ask->call == NULL || !ask->call->ops->on_message(ask->call, STREAM_REQUEST, 0, msg))
		stream_push(standalone, STREAM_REQUEST, 0, msg);
}

void deliver_ask_cancelled(struct ask *ask)
{
	struct buf text = { 0 };
	struct msg *msg;

	if (ask->held != NULL)
		return;
	buf_printf(
		&text,
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":%llu}}",
		(unsigned long long)ask->fid);
	msg = msg_new(buf_slice(&text));
	deliver_cancel_of_ask(ask, msg);
	msg_unref(&msg);
	buf_fini(&text);
}

static bool is_told(const struct partition *partition, const char *capability, const char *member)
{
	static const char *const start[] = { "params", "capabilities" };
	const char *path[] = { start[0], start[1], capability, member };

	enum json_type type =
		scan_path(partition->handshake->text, path, member != NULL ? 4 : 3).type;

	return type != JSON_ABSENT && type != JSON_NULL && type != JSON_FALSE;
}

/* Whether the client can answer in the way that is asked for. UTIL-ROOT-01, -02 */
static int check_mode(const struct partition *partition, const struct method *method,
		      const struct envelope *env)
{
	struct json mode = scan_member(env->params.text, SLICE_LIT("mode"));
	bool is_url = slice_is_equal(scan_plain_string(mode), SLICE_LIT("url"));

	if (method->id == METHOD_SAMPLING && !is_told(partition, "sampling", "tools"))
		return scan_member(env->params.text, SLICE_LIT("tools")).type == JSON_ABSENT ?
			       0 :
			       MCP_INVALID_PARAMS;
	if (method->id != METHOD_ELICITATION)
		return 0;
	if (is_url)
		return is_told(partition, "elicitation", "url") ? 0 : MCP_INVALID_PARAMS;
	if (is_told(partition, "elicitation", "url") && !is_told(partition, "elicitation", "form"))
		return MCP_INVALID_PARAMS;
	return 0;
}

/* Returns the code of the error that the server gets, or 0: its client shall be asked. */
static int check_ask(const struct partition *partition, const struct method *method,
		     const struct envelope *env)
{
	if (method->capability == NULL || method->id == METHOD_LIST_CHANGED)
		return MCP_METHOD_NOT_FOUND;
	if (!is_told(partition, method->capability, NULL))
		return MCP_METHOD_NOT_FOUND;
	return check_mode(partition, method, env);
}

/* The end of one in URL mode is told by a notification that names it. */
static void remember_elicitation(struct route *route, const struct envelope *env)
{
	struct json id = scan_member(env->params.text, SLICE_LIT("elicitationId"));

	if (id.type == JSON_STRING)
		text_set_add(&route->elicitations, id.text);
}

static struct msg *make_ask_msg(const struct envelope *env, const struct ask *ask)
{
	char digits[20];
	struct slice fid = slice_of(digits, text_format_u64(ask->fid, digits));
	struct splice_edit edits[2] = { { env->id.text, fid }, { env->progress_token.text, fid } };

	if (ask->token.n == 0)
		return make_msg(env, edits, 1);
	if (edits[0].span.p > edits[1].span.p) {
		struct splice_edit first = edits[0];

		edits[0] = edits[1];
		edits[1] = first;
	}
	return make_msg(env, edits, 2);
}

static void refuse_more_asks(struct lane *lane, const struct envelope *env)
{
	forward_error(lane, env->id.text, MCP_INTERNAL_ERROR,
		      SLICE_LIT("too many requests are unanswered"));
}

/* A request that the client can be asked, in words that it knows. */
static void offer(struct lane *lane, const struct method *method, const struct envelope *env)
{
	struct route *route = lane->route;
	struct ask *ask = route_open_ask(route, lane, env, method);
	struct msg *msg;

	if (ask == NULL) {
		refuse_more_asks(lane, env);
		return;
	}
	if (method->id == METHOD_ELICITATION)
		remember_elicitation(route, env);
	msg = make_ask_msg(env, ask);
	if (route->is_initialized) {
		deliver_ask(ask, msg);
	} else if (!route_keep_ask(ask, msg)) {
		refuse_more_asks(lane, env);
		route_close_ask(ask);
	}
	msg_unref(&msg);
}

static void deliver_request(struct lane *lane, const struct envelope *env)
{
	const struct method *method = method_find(env->method);
	struct route *route = lane->route;
	struct convert convert = { .text = { 0 } };
	const struct envelope *converted;
	int code;

	if (method->id == METHOD_PING) {
		forward_result(lane, env->id.text, SLICE_LIT("{}"));
		return;
	}
	if (!lane_is_serving(lane)) {
		forward_error(lane, env->id.text, MCP_INVALID_REQUEST,
			      SLICE_LIT("Invalid request: the handshake is not through"));
		return;
	}
	code = check_ask(lane->partition, method, env);
	if (code != 0) {
		forward_error(
			lane, env->id.text, code,
			code == MCP_METHOD_NOT_FOUND ?
				SLICE_LIT(
					"Method not found: the client did not declare this capability") :
				SLICE_LIT("Invalid params: the client did not declare this mode"));
		return;
	}
	if (route == NULL) {
		forward_error(
			lane, env->id.text, MCP_INVALID_PARAMS,
			SLICE_LIT("Invalid params: it is not related to a request of a client"));
		return;
	}
	converted = convert_ask(&convert, route_lost(route, lane), method, env);
	if (converted != NULL)
		offer(lane, method, converted);
	else
		forward_error(
			lane, env->id.text, MCP_INVALID_PARAMS,
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
static void deliver_progress(struct lane *lane, const struct envelope *env)
{
	struct json token = scan_member(env->params.text, SLICE_LIT("progressToken"));
	struct call *call = lane_find_call(lane, token);
	struct splice_edit edit = { token.text, { NULL, 0 } };
	struct msg *msg;

	if (call == NULL || call->token.n == 0 || !progress_increases(call, env->params.text)) {
		note_stray(lane, COUNTER_CHILD_STRAY_PROGRESS, env);
		return;
	}
	call_renew(call);
	edit.with = call->token;
	msg = make_msg(env, &edit, 1);
	call->ops->on_message(call, STREAM_PROGRESS, 0, msg);
	msg_unref(&msg);
}

/* UTIL-LOG-01; bridging.md §1.7: to the only call in flight, else to the session. */
static void deliver_log(struct lane *lane, const struct envelope *env)
{
	struct route *route = lane->route;
	int level =
		level_find(scan_plain_string(scan_member(env->params.text, SLICE_LIT("level"))));
	struct call *call = lane->lease != NULL ? lane->lease : only_call(lane);
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
static void deliver_other(struct lane *lane, const struct envelope *env)
{
	struct msg *msg = make_msg(env, NULL, 0);

	if (lane->lease == NULL)
		stream_push(&lane->route->session.standalone, STREAM_NEWS, 0, msg);
	else if (!lane->lease->ops->on_message(lane->lease, STREAM_NEWS, 0, msg))
		deliver_note_dropped(lane, env);
	msg_unref(&msg);
}

/* To the client that was given it, once. UTIL-ELIC-01 */
static void deliver_elicitation_end(struct lane *lane, const struct envelope *env)
{
	struct json id = scan_member(env->params.text, SLICE_LIT("elicitationId"));
	struct msg *msg;

	LIST_FOREACH(node, &lane->partition->members) {
		struct route *route = container_of(node, struct route, member);

		if (!(route->revision->features & REVISION_MODES) ||
		    !text_set_remove(&route->elicitations, id.text))
			continue;
		msg = make_msg(env, NULL, 0);
		stream_push(&route->session.standalone, STREAM_NEWS, 0, msg);
		msg_unref(&msg);
		return;
	}
	deliver_note_dropped(lane, env);
}

static void deliver_cancelled(struct lane *lane, const struct envelope *env)
{
	struct json id = scan_member(env->params.text, SLICE_LIT("requestId"));
	struct ask *ask = route_find_ask_of_server(lane->route, lane, id.text);
	char digits[20];
	struct splice_edit edit = { id.text, { digits, 0 } };
	struct msg *msg;

	if (ask == NULL)
		return;
	edit.with.n = text_format_u64(ask->fid, digits);
	if (ask->held == NULL) {
		msg = make_msg(env, &edit, 1);
		deliver_cancel_of_ask(ask, msg);
		msg_unref(&msg);
	}
	route_close_ask(ask);
}

/* For the only session that the child serves now. */
static void deliver_to_owner(struct lane *lane, const struct envelope *env,
			     const struct method *method)
{
	if (method->id == METHOD_MESSAGE)
		deliver_log(lane, env);
	else if (method->id == METHOD_CANCELLED)
		deliver_cancelled(lane, env);
	else if (method->id == METHOD_TASK_STATUS && route_lost(lane->route, lane) & REVISION_TASKS)
		deliver_note_dropped(lane, env);
	else
		deliver_other(lane, env);
}

static void deliver_notification(struct lane *lane, const struct envelope *env)
{
	const struct method *method = method_find(env->method);

	if (method->id == METHOD_PROGRESS)
		deliver_progress(lane, env);
	else if (method->id == METHOD_LIST_CHANGED || method->id == METHOD_RESOURCE_UPDATED)
		sharing_notify(lane, env, method);
	else if (method->id == METHOD_ELICITATION_COMPLETE)
		deliver_elicitation_end(lane, env);
	else if (lane->route != NULL)
		deliver_to_owner(lane, env, method);
	else
		deliver_note_dropped(lane, env);
}

/* ---- lines ---- */

static void deliver_message(struct lane *lane, const struct envelope *env)
{
	if (env->kind == ENVELOPE_RESULT || env->kind == ENVELOPE_ERROR)
		take_response(lane, env);
	else if (env->kind == ENVELOPE_REQUEST)
		deliver_request(lane, env);
	else if (lane_is_serving(lane))
		deliver_notification(lane, env);
	else
		deliver_note_dropped(lane, env); /* too early */
}

/* A request or notification that was accepted although it is not quite right: as it should be. */
static void deliver_anew(struct lane *lane, const struct envelope *env)
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
	if (scan_envelope(buf_slice(&text), &lane->partition->router->limits, SCAN_LENIENT, &anew,
			  &err) == 0)
		deliver_message(lane, &anew);
	buf_fini(&text);
}

/* About a request that waits, but no response: it will not get a better one. REL-23 */
static void fail_malformed(struct lane *lane, struct json id)
{
	struct call *call = lane_find_call(lane, id);

	if (is_of_handshake(lane, id))
		lane_refuse(lane);
	else if (call != NULL)
		call_fail(call, REASON_CHILD_PROTOCOL_ERROR);
	else
		(void)listings_refuse(lane, id);
}

static int deliver_text(struct lane *lane, struct slice text, struct error *err)
{
	struct envelope env;

	if (scan_envelope(text, &lane->partition->router->limits, SCAN_LENIENT, &env, err) == 0) {
		if (env.is_unusual && env.method.n > 0)
			deliver_anew(lane, &env);
		else
			deliver_message(lane, &env);
		return 0;
	}
	if (err->kind != ERROR_SYNTAX && env.id.type != JSON_ABSENT &&
	    scan_member(text, SLICE_LIT("method")).type == JSON_ABSENT)
		fail_malformed(lane, env.id);
	return -1;
}

static int deliver_element(struct slice element, void *arg)
{
	struct lane *lane = arg;
	struct error err;

	if (lane->state == LANE_CLOSED)
		return -1;
	if (deliver_text(lane, element, &err) < 0)
		child_note_garbage(&lane->child, element, err.text);
	return 0;
}

/* A banner without a line end may stand before a message. BACK-FRAME-04 */
static bool salvage(struct lane *lane, struct slice line)
{
	static const struct slice start = SLICE("{\"jsonrpc\"");
	struct error err;
	const char *at = line.n > 1 ? memmem(line.p + 1, line.n - 1, start.p, start.n) : NULL;

	return at != NULL && deliver_text(lane, slice_between(at, line.p + line.n), &err) == 0;
}

void deliver_line(struct lane *lane, struct slice line)
{
	struct error err = { ERROR_NONE, "" };

	if (line.p[0] == '[') {
		/* Stopped without an error: an element has ended the lane. */
		if (scan_array(line, BATCH_MAX, deliver_element, lane, &err) >= 0 ||
		    err.kind == ERROR_NONE)
			return;
	} else if (deliver_text(lane, line, &err) == 0) {
		return;
	}
	if (err.kind != ERROR_SYNTAX || !salvage(lane, line))
		child_note_garbage(&lane->child, line, err.text);
}
