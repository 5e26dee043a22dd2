/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST and DELETE of one MCP endpoint. A POST stays uncommitted until its response, the first other
 * message for its client, or the end of the grace decides between one JSON body and an event stream.
 *
 * A post outlives its connection while calls of it run: leaving is no cancellation (CXL-01). It is freed
 * when its last call has ended and its connection is done with it.
 *
 * requirements.md §1, §4 to §9; FRONT-SSE-01.
 */
#include "endpoint/streamable.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "endpoint/answer.h"
#include "endpoint/events.h"
#include "endpoint/validation.h"
#include "endpoint/request_context.h"
#include "mcp/error.h"
#include "obs/log.h"
#include "router/forward.h"

struct post_call {
	struct call call;
	struct post *post;
	struct msg *response; /* of a batch that is not committed yet */
};

/* The event stream that a post has become; its client may come back to it (listening.c). */
struct post_events {
	struct stored_stream *stored;
	struct event_writer writer;
	struct post *post;
};

enum post_state {
	POST_OPEN,     /* nothing was sent */
	POST_EVENTS,   /* it is an event stream */
	POST_ANSWERED, /* the whole answer was sent, or nobody is there to get one */
};

struct post {
	struct http_exchange exchange;
	struct request_context context;
	struct deny_watcher holder;
	struct route *route; /* while calls are open */
	enum post_state state;
	enum reason end_reason;
	bool takes_json;
	bool takes_events;
	bool is_batch;
	struct timer grace;
	size_t open_calls;
	struct post_events *events;
	struct post_call *batch; /* its calls */
	size_t batch_count;
	struct post_call single;
};

/* ---- the life of a post ---- */

static void post_check_done(struct post *post)
{
	struct loop *loop = post->context.frontend->router->loop;

	if (post->open_calls > 0 || post->exchange.conn != NULL)
		return;
	timer_stop(&post->grace);
	deny_list_unwatch(&post->holder);
	if (post->events != NULL) {
		event_writer_stop(&post->events->writer);
		if (!stream_is_ended(&post->events->stored->stream))
			stored_stream_finish(post->events->stored, REASON_PEER_CLOSED);
		stored_stream_unref(&post->events->stored);
		loop_defer_free(loop, post->events);
	}
	request_context_fini(&post->context);
	for (size_t i = 0; i < post->batch_count; i++)
		msg_unref(&post->batch[i].response);
	loop_defer_free(loop, post->batch);
	loop_defer_free(loop, post);
}

/* Its client is away, perhaps for good: calls that ask it something do not wait for ever. */
static void post_note_left(struct post *post)
{
	call_note_unreachable(&post->single.call);
	for (size_t i = 0; i < post->batch_count; i++)
		call_note_unreachable(&post->batch[i].call);
	post_check_done(post);
}

static void post_on_events_end(struct event_writer *writer, enum reason reason)
{
	struct post_events *events = container_of(writer, struct post_events, writer);

	if (reason == REASON_CONNECTION_AGE)
		post_note_left(events->post);
	else
		post_check_done(events->post);
}

/* From here on the answer is an event stream. */
static void post_commit(struct post *post)
{
	struct frontend *frontend = post->context.frontend;
	struct replay_store *replay_store = &post->route->session.replay_store;
	struct post_events *events = mem_zalloc(sizeof(*events));
	struct answer answer = request_context_answer(&post->context, post->exchange.conn, NULL);
	struct event_source source;
	struct buf fields = { 0 };

	timer_stop(&post->grace);
	post->state = POST_EVENTS;
	post->events = events;
	events->post = post;
	events->writer.on_end = post_on_events_end;
	events->stored =
		replay_store_open(replay_store, post->is_batch ? (struct slice){ NULL, 0 } :
								 post->single.call.id);
	source = (struct event_source){
		.stream = &events->stored->stream,
		.epoch = replay_store->epoch,
		.number = events->stored->number,
		.after = STREAM_FROM_HERE,
		.is_primed = post->route->revision->has_priming,
		.retry_ms = frontend->conf.retry_ms,
		.keepalive_ms = frontend->conf.keepalive_ms,
		/* FRONT-SSE-06: others are not closed before the response. */
		.max_age_ms = post->route->revision->has_priming ?
				      frontend->conf.max_connection_age_ms :
				      0,
	};
	events->stored->is_known = source.is_primed;
	answer.session = request_context_session(&post->context);
	answer_append_fields(&fields, &answer);
	CHECK(event_writer_start(&events->writer, &post->exchange, &source, buf_slice(&fields)));
	buf_fini(&fields);
	for (size_t i = 0; i < post->batch_count; i++) {
		if (post->batch[i].response != NULL)
			stream_push(&events->stored->stream, STREAM_RESPONSE, 0,
				    post->batch[i].response);
		msg_unref(&post->batch[i].response);
	}
}

static void post_on_grace(struct timer *timer)
{
	post_commit(container_of(timer, struct post, grace));
}

/* The array of what a batch was answered; nothing if its calls were all cancelled, or there were none. */
static void post_answer_batch(struct post *post)
{
	struct answer answer = request_context_answer(&post->context, post->exchange.conn, NULL);
	struct buf text = { 0 };
	struct slice whole;

	post->state = POST_ANSWERED;
	answer.session = request_context_session(&post->context);
	for (size_t i = 0; i < post->batch_count; i++) {
		if (post->batch[i].response == NULL)
			continue;
		buf_append_char(&text, text.len > 0 ? ',' : '[');
		buf_append_slice(&text, post->batch[i].response->text);
	}
	if (text.len > 0)
		buf_append_char(&text, ']');
	whole = buf_slice(&text);
	if (text.len > 0)
		answer_json(&answer, 200, &whole, 1);
	else
		answer_empty(&answer, 202, whole);
	buf_fini(&text);
}

/* One call less. The last one completes the answer. */
static void post_end_call(struct post *post)
{
	if (--post->open_calls == 0 && post->state == POST_EVENTS)
		stored_stream_finish(post->events->stored, post->end_reason);
	else if (post->open_calls == 0 && post->state == POST_OPEN)
		post_answer_batch(post);
	post_check_done(post);
}

static struct msg *join_parts(const struct slice *parts, size_t count)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < count; i++)
		buf_append_slice(&text, parts[i]);
	return msg_new_take(&text);
}

static struct post *post_of(struct call *call)
{
	return container_of(call, struct post_call, call)->post;
}

/* A response, the server's or ours, in the form that this post has. */
static void post_add_response(struct call *call, const struct slice *parts, size_t count)
{
	struct post *post = post_of(call);
	struct answer answer = request_context_answer(&post->context, post->exchange.conn, NULL);

	if (post->state == POST_OPEN && !post->takes_json)
		post_commit(post);
	if (post->state == POST_EVENTS) {
		struct msg *msg = join_parts(parts, count);

		stream_push(&post->events->stored->stream, STREAM_RESPONSE, 0, msg);
		msg_unref(&msg);
	} else if (post->state == POST_OPEN && post->is_batch) {
		container_of(call, struct post_call, call)->response = join_parts(parts, count);
	} else if (post->state == POST_OPEN) {
		post->state = POST_ANSWERED;
		timer_stop(&post->grace);
		answer.session = request_context_session(&post->context);
		answer_json(&answer, 200, parts, count);
	}
}

/* ---- what calls tell ---- */

static bool post_on_message(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg)
{
	struct post *post = post_of(call);

	if (call->method->id == METHOD_INITIALIZE)
		return false;
	if (post->state == POST_OPEN && post->takes_events)
		post_commit(post);
	if (post->state != POST_EVENTS ||
	    (kind == STREAM_REQUEST && stream_is_full(&post->events->stored->stream)))
		return false;
	stream_push(&post->events->stored->stream, kind, key, msg);
	return post->state == POST_EVENTS; /* it may have been too much for its reader */
}

static bool post_is_reachable(const struct call *call)
{
	const struct post *post = post_of((struct call *)(uintptr_t)call);

	return post->exchange.conn != NULL ||
	       (post->events != NULL && stream_has_reader(&post->events->stored->stream));
}

/* The session ends when the token that opened it is denied. AUTH-SES-07 */
static void post_mark_session(const struct post *post, struct session *session)
{
	struct denial_marks marks;

	access_show(&post->context.access, &marks);
	if (marks.issuer.n > 0)
		session_keep_marks(session, &marks);
}

static void post_on_response(struct call *call, const struct slice *parts, size_t count)
{
	struct post *post = post_of(call);
	struct session *session = &call->route->session;

	post->route = call->route;
	if (call->method->id == METHOD_INITIALIZE && session->state == SESSION_LIVE) {
		post_mark_session(post, session);
		post->context.session_length = SESSION_ID_LENGTH;
		memcpy(post->context.session, session->entry.id, SESSION_ID_LENGTH);
		if (post->exchange.conn == NULL)
			session_end(session, REASON_PEER_CLOSED); /* nobody will ever know its id */
		else if (http_conn_may_be_left(post->exchange.conn))
			session_doubt(session);
	}
	post_add_response(call, parts, count);
	post_end_call(post);
}

static void post_on_failed(struct call *call, enum reason reason)
{
	struct post *post = post_of(call);
	struct answer answer = request_context_answer(&post->context, post->exchange.conn, NULL);
	const char *server = post->context.server->conf.name;
	/* 4xx or 5xx says that nothing was executed: not once the server has been sent the request. */
	bool is_unsent = call->upstream == NULL && reason_get(reason)->http_status >= 400;
	struct buf text = { 0 };
	struct slice whole;

	post->route = call->route;
	if (post->state == POST_OPEN && !post->is_batch && is_unsent) {
		post->state = POST_ANSWERED;
		answer_reason(&answer, call->id, reason, server);
	} else {
		answer_append_reason(&text, call->id, reason, server);
		whole = buf_slice(&text);
		post_add_response(call, &whole, 1);
		buf_fini(&text);
	}
	post_end_call(post);
}

/* CXL-02: the stream just ends; who takes JSON only must be told something. */
static void post_on_cancelled(struct call *call)
{
	struct post *post = post_of(call);

	post->end_reason = post->is_batch ? REASON_DONE : REASON_CANCELLED;
	if (post->state == POST_OPEN && post->takes_events && !post->is_batch)
		post_commit(post);
	if (post->state == POST_OPEN && !post->takes_events)
		post_on_failed(call, REASON_CANCELLED);
	else
		post_end_call(post);
}

static const struct call_ops post_call_ops = {
	.on_message = post_on_message,
	.is_reachable = post_is_reachable,
	.on_response = post_on_response,
	.on_failed = post_on_failed,
	.on_cancelled = post_on_cancelled,
};

/* ---- its token is denied ---- */

static void post_show(const struct deny_watcher *holder, struct denial_marks *marks_r)
{
	access_show(&container_of(holder, struct post, holder)->context.access, marks_r);
}

/* What it waits for is not for whoever waits any more: neither the answers, nor the rest of a stream. */
static void post_on_denied(struct deny_watcher *holder)
{
	struct post *post = container_of(holder, struct post, holder);
	bool is_running = post->open_calls > 0;

	post->open_calls += is_running; /* our own, as in post_on_body */
	forward_deny(&post->single.call);
	for (size_t i = 0; i < post->batch_count; i++)
		forward_deny(&post->batch[i].call);
	if (post->state == POST_EVENTS && post->exchange.conn != NULL) {
		event_writer_stop(&post->events->writer);
		http_stream_end(post->exchange.conn);
	}
	if (is_running)
		post_end_call(post);
	else
		post_check_done(post);
}

static const struct deny_watcher_ops post_watcher_ops = {
	.show = post_show,
	.on_denied = post_on_denied,
};

/* ---- bodies ---- */

static void post_refuse(struct post *post, int status, struct slice id, int code, const char *why)
{
	struct answer answer = request_context_answer(&post->context, post->exchange.conn, NULL);

	LOG(REQUEST_REFUSED, LOG_INT("status", status), LOG_STR("reason", why));
	post->state = POST_ANSWERED;
	answer_error(&answer, status, id, code, slice_str(why), (struct slice){ NULL, 0 });
}

/* FRONT-POST-01 */
static void post_accept(struct post *post, const struct route *route)
{
	struct answer answer =
		request_context_answer(&post->context, post->exchange.conn, &route->session);

	post->state = POST_ANSWERED;
	answer_empty(&answer, 202, (struct slice){ NULL, 0 });
}

/* FRONT-INIT-01, -02, -04, -05 */
static void post_initialize(struct post *post, const struct envelope *env)
{
	const char *why = validation_check_initialize(env);

	post->context.session_length = 0;
	if (why != NULL) {
		post_refuse(post, 200, env->id.text, MCP_INVALID_PARAMS, why);
		return;
	}
	post->open_calls++;
	call_init(&post->single.call, &post_call_ops, env);
	access_keep_claims(&post->context.access);
	route_open(post->context.frontend->router, post->context.server,
		   post->context.access.principal, http_conn_client(post->exchange.conn),
		   &post->single.call, env);
}

/* After the calls have been handed on: what comes later than the grace comes as events. */
static void post_start_waiting(struct post *post)
{
	struct frontend *frontend = post->context.frontend;

	if (post->state != POST_OPEN || post->open_calls == 1 || !post->takes_events)
		return;
	if (frontend->conf.response == FRONTEND_RESPONSE_SSE || !post->takes_json)
		post_commit(post);
	else
		timer_start(frontend->router->loop, &post->grace, frontend->conf.grace_ms);
}

static void post_request(struct post *post, struct route *route, const struct envelope *env)
{
	struct answer answer =
		request_context_answer(&post->context, post->exchange.conn, &route->session);

	if (post->context.frontend->router->is_draining) {
		post->state = POST_ANSWERED;
		answer_reason(&answer, env->id.text, REASON_DRAINING,
			      post->context.server->conf.name);
		return;
	}
	post->route = route;
	post->open_calls++;
	call_init(&post->single.call, &post_call_ops, env);
	forward_request(route, &post->single.call, env);
	post_start_waiting(post);
}

static void post_message(struct post *post, struct slice body)
{
	struct envelope env = { .id = { JSON_ABSENT, false, { NULL, 0 } } };
	struct scope_set needed = { { 0 } };
	struct slice id = { NULL, 0 };
	struct error err;
	struct route *route;

	if (scan_envelope(body, &post->context.frontend->router->limits, 0, &env, &err) < 0) {
		post_refuse(post, 400, env.id.text, validation_code(&err), err.text);
		return;
	}
	if (validation_is_initialize(&env)) {
		if (request_context_permit(&post->context, post->exchange.conn, &needed))
			post_initialize(post, &env);
		else
			post->state = POST_ANSWERED;
		return;
	}
	if (env.kind == ENVELOPE_REQUEST)
		id = env.id.text;
	route = request_context_find_route(&post->context, post->exchange.conn, id);
	authorization_add_required(post->context.place, &env, &needed);
	if (!post->takes_json)
		id.n = 0;
	if (route == NULL ||
	    !request_context_permit_call(&post->context, post->exchange.conn, &needed, id)) {
		post->state = POST_ANSWERED;
		return;
	}
	if (env.kind == ENVELOPE_REQUEST) {
		post_request(post, route, &env);
		return;
	}
	if (env.kind == ENVELOPE_NOTIFICATION)
		forward_notification(route, &env);
	else
		forward_answer(route, &env);
	post_accept(post, route);
}

/* ---- batches ---- */

/* Each element is an exchange of its own; they share the response. FRONT-POST-06, bridging.md §2.1 (5) */
static void post_dispatch_batch(struct post *post, struct route *route, const struct batch *batch)
{
	size_t next = 0;

	post->route = route;
	post->is_batch = true;
	post->batch = mem_zalloc((batch->requests + 1) * sizeof(*post->batch));
	post->batch_count = batch->requests;
	post->open_calls += batch->requests;
	for (size_t i = 0; i < batch->count; i++) {
		struct envelope env;

		if (scan_envelope(batch->elements[i], batch->limits, 0, &env, batch->err) < 0)
			continue; /* it was scanned before */
		if (env.kind == ENVELOPE_REQUEST) {
			struct post_call *call = &post->batch[next++];

			call->post = post;
			call_init(&call->call, &post_call_ops, &env);
			forward_request(route, &call->call, &env);
		} else if (env.kind == ENVELOPE_NOTIFICATION) {
			forward_notification(route, &env);
		} else {
			forward_answer(route, &env);
		}
	}
	post_start_waiting(post);
}

static void post_batch(struct post *post, struct slice body)
{
	struct frontend *frontend = post->context.frontend;
	const struct slice none = { NULL, 0 };
	struct error err = { ERROR_NONE, "" };
	struct scope_set needed = { { 0 } };
	struct batch batch;
	struct route *route;

	if (validation_batch(body, &frontend->router->limits, &batch, &err) < 0) {
		post_refuse(post, 400, none, validation_code(&err), err.text);
		return;
	}
	route = request_context_find_route(&post->context, post->exchange.conn, none);
	validation_add_needed(&batch, post->context.place, &needed);
	if (route == NULL ||
	    !request_context_permit(&post->context, post->exchange.conn, &needed)) {
		post->state = POST_ANSWERED;
		return;
	}
	if (!route->revision->has_batches) {
		post_refuse(post, 400, none, MCP_INVALID_REQUEST,
			    "Invalid request: this session's revision has no batches");
		return;
	}
	if (batch.requests == 0 || !frontend->router->is_draining)
		post_dispatch_batch(post, route, &batch);
	else
		post_refuse(post, 503, none, MCP_INTERNAL_ERROR,
			    "The gateway is about to stop; try again later");
}

static void post_on_body(struct http_exchange *exchange, struct slice body)
{
	struct post *post = container_of(exchange, struct post, exchange);

	post->open_calls = 1; /* our own: nothing completes or frees the post while we are here */
	if (!principal_is_anonymous(post->context.access.principal))
		deny_list_watch(post->context.frontend->authorization.deny_list, &post->holder);
	if (scan_type(body) == JSON_ARRAY)
		post_batch(post, body);
	else
		post_message(post, body);
	post_end_call(post);
}

static void post_on_room(struct http_exchange *exchange)
{
	struct post *post = container_of(exchange, struct post, exchange);

	if (post->events != NULL)
		event_writer_on_room(&post->events->writer);
}

static void post_on_gone(struct http_exchange *exchange, enum reason reason)
{
	struct post *post = container_of(exchange, struct post, exchange);

	(void)reason;
	timer_stop(&post->grace);
	if (post->events != NULL)
		event_writer_stop(&post->events->writer);
	/* Who has seen the id of an event can come back for the rest. CXL-01 */
	if (post->events == NULL || !stored_stream_is_known(post->events->stored))
		post->state = POST_ANSWERED;
	post_note_left(post);
}

static const struct http_exchange_ops post_ops = {
	.on_body = post_on_body,
	.on_room = post_on_room,
	.on_gone = post_on_gone,
};

struct http_exchange *streamable_post(const struct streamable_request *request)
{
	const struct http_request *http = request->http;
	bool takes_json = streamable_accepts(http, "application/json");
	bool takes_events = streamable_accepts(http, "text/event-stream");
	struct post *post;

	if (!http_is_media_type(http->fields[HTTP_CONTENT_TYPE], "application/json"))
		return streamable_refuse(
			request, 415,
			"Unsupported media type: the body must be application/json in UTF-8");
	if (http_has(http, HTTP_CONTENT_ENCODING))
		return streamable_refuse(request, 415,
					 "Unsupported media type: the body must not be compressed");
	if (!takes_json && !takes_events)
		return streamable_refuse(
			request, 406,
			"Not acceptable: take application/json and text/event-stream");
	if (request->frontend->conf.response == FRONTEND_RESPONSE_JSON && takes_json)
		takes_events = false;
	post = mem_zalloc(sizeof(*post));
	post->exchange.ops = &post_ops;
	post->takes_json = takes_json;
	post->takes_events = takes_events;
	post->single.post = post;
	request_context_init(&post->context, request);
	timer_init(&post->grace, post_on_grace);
	deny_watcher_init(&post->holder, &post_watcher_ops);
	return &post->exchange;
}

/* ---- DELETE ---- */

/* FRONT-SESS-06, -07 */
struct http_exchange *streamable_delete(const struct streamable_request *request)
{
	struct request_context context = { .frontend = request->frontend };
	struct answer answer;
	struct route *route;

	request_context_init(&context, request);
	route = request_context_find_route(&context, request->conn, (struct slice){ NULL, 0 });
	if (route != NULL) {
		answer = request_context_answer(&context, request->conn, NULL);
		session_end(&route->session, REASON_DELETED);
		answer_empty(&answer, 204, (struct slice){ NULL, 0 });
	}
	request_context_fini(&context);
	return NULL;
}
