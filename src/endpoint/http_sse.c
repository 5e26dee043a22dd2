/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client is known by a random id in the address that its stream begins with. Until it has initialized
 * there is no session: what it is told goes straight to the connection. Then everything goes through the
 * session's own stream, answers included, in the order in which it came. The stream is the session: when
 * one ends, so does the other, and nobody can come back.
 */
#include "endpoint/http_sse.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "endpoint/answer.h"
#include "endpoint/challenge.h"
#include "endpoint/events.h"
#include "endpoint/frontend.h"
#include "endpoint/validation.h"
#include "endpoint/request_context.h"
#include "endpoint/token_watch.h"
#include "http/sse.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "obs/log.h"
#include "router/forward.h"

#define INITIALIZE_MS (60 * 1000)
#define CALLS_MAX 1024 /* in flight: each was answered with 202, no connection bounds them */

struct sse_client {
	struct http_exchange exchange; /* the GET */
	struct frontend *frontend;
	struct server *server;
	const struct protected_resource *place;
	struct access access; /* of whoever opened it */
	char *origin;         /* NULL: none */
	char *message_path;
	char id[SESSION_ID_LENGTH];
	uint64_t key;
	struct event_writer writer;
	struct list link;      /* of the frontend's newcomers, until it has a session */
	struct timer patience; /* likewise */
	struct token_watch *token_watch;
	bool is_open;                    /* its stream has begun */
	bool is_gone;                    /* its stream has ended; its session is about to */
	struct call *opening;            /* the initialize request in flight */
	struct route *route;             /* from its answer on; held */
	char session[SESSION_ID_LENGTH]; /* likewise */
	struct task farewell;
};

struct sse_call {
	struct call call;
	struct sse_client *client;
	struct access
		access; /* of whoever sent it: the same principal, perhaps with another token */
	struct deny_watcher holder;
};

struct sse_post {
	struct http_exchange exchange;
	struct frontend *frontend;
	struct server *server;
	const struct protected_resource *place;
	struct access access; /* of whoever sends it */
	char *origin;         /* NULL: none */
	char id[SESSION_ID_LENGTH];
};

static const struct slice nothing = { NULL, 0 };

static struct answer answer_on(struct http_conn *conn, const char *origin)
{
	struct answer answer = { .conn = conn };

	if (origin != NULL)
		answer.origin = slice_str(origin);
	return answer;
}

/* ---- the life of a client ---- */

static void client_free(struct sse_client *client)
{
	access_fini(&client->access);
	free(client->origin);
	free(client->message_path);
	loop_defer_free(client->frontend->router->loop, client);
}

static void client_on_farewell(struct task *task)
{
	struct sse_client *client = container_of(task, struct sse_client, farewell);
	struct session *session;

	if (client->opening != NULL)
		session_end(&client->opening->route->session, REASON_PEER_CLOSED);
	/* It may have ended by itself meanwhile, and be freed. */
	session = session_find(&client->frontend->router->sessions,
			       slice_of(client->session, SESSION_ID_LENGTH),
			       client->access.principal);
	if (session != NULL)
		session_end(session, REASON_PEER_CLOSED);
	client_free(client);
}

/*
 * Its session ends with it, but not at once: what was told it last may have been too much, and then who told
 * it is still at work on the session and its calls.
 */
static void client_end(struct sse_client *client)
{
	bool has_session = client->opening != NULL ||
			   (client->route != NULL && client->route->session.state == SESSION_LIVE);

	client->is_gone = true;
	map_remove(&client->frontend->sse_clients, client->key);
	list_remove(&client->link);
	timer_stop(&client->patience);
	event_writer_stop(&client->writer);
	token_watch_end(&client->token_watch);
	if (has_session)
		task_schedule(client->frontend->router->loop, &client->farewell);
	else
		client_free(client);
}

static void client_on_events_end(struct event_writer *writer, enum reason reason)
{
	(void)reason;
	client_end(container_of(writer, struct sse_client, writer));
}

static void client_on_impatience(struct timer *timer)
{
	struct sse_client *client = container_of(timer, struct sse_client, patience);

	if (client->opening != NULL) {
		timer_start(client->frontend->router->loop, timer, INITIALIZE_MS);
		return;
	}
	http_stream_end(client->exchange.conn);
	client_end(client);
}

/* The client comes back, and learns then that it needs a fresh token. AUTH-SES-06, -07 */
static void client_on_over(void *owner, enum reason reason)
{
	struct sse_client *client = owner;

	(void)reason;
	http_stream_end(client->exchange.conn);
	client_end(client);
}

void http_sse_drain(struct frontend *frontend)
{
	LIST_FOREACH_SAFE(node, &frontend->sse_newcomers) {
		struct sse_client *client = container_of(node, struct sse_client, link);

		if (client->opening == NULL && client->is_open) {
			http_stream_end(client->exchange.conn);
			client_end(client);
		}
	}
}

/* Another principal's is not there. FRONT-SESS-05 */
static struct sse_client *client_find(const struct frontend *frontend, const struct server *server,
				      const struct principal *principal, const char *id)
{
	struct sse_client *client = map_find(&frontend->sse_clients, session_id_key(id));

	if (client == NULL || client->server != server || client->access.principal != principal ||
	    !text_is_equal_secret(slice_of(client->id, SESSION_ID_LENGTH),
				  slice_of(id, SESSION_ID_LENGTH)))
		return NULL;
	return client;
}

/* ---- messages to the client; none of these may use the client afterwards, it may have ended ---- */

static void client_tell(struct sse_client *client, const struct slice *parts, size_t count)
{
	struct buf message = { 0 };
	struct buf event = { 0 };
	struct msg *msg;

	for (size_t i = 0; i < count; i++)
		buf_append_slice(&message, parts[i]);
	if (client->route != NULL) {
		msg = msg_new_take(&message);
		stream_push(&client->route->session.standalone, STREAM_RESPONSE, 0, msg);
		msg_unref(&msg);
		return;
	}
	sse_append_message(&event, nothing, buf_slice(&message));
	if (client->exchange.conn != NULL && http_conn_has_room(client->exchange.conn))
		http_stream_write(client->exchange.conn, buf_slice(&event));
	else if (client->exchange.conn != NULL)
		http_conn_end(client->exchange.conn, REASON_SLOW_READER);
	buf_fini(&event);
	buf_fini(&message);
}

static void client_tell_error(struct sse_client *client, struct slice id, int code, const char *why)
{
	struct buf text = { 0 };
	struct slice whole;

	write_error(&text, id, code, slice_str(why), nothing);
	whole = buf_slice(&text);
	client_tell(client, &whole, 1);
	buf_fini(&text);
}

static void client_tell_reason(struct sse_client *client, struct slice id, enum reason reason)
{
	struct buf text = { 0 };
	struct slice whole;

	answer_append_reason(&text, id, reason, client->server->conf.name);
	whole = buf_slice(&text);
	client_tell(client, &whole, 1);
	buf_fini(&text);
}

/* ---- what calls tell ---- */

static bool sse_call_on_message(struct call *call, enum stream_kind kind, uint64_t key,
				struct msg *msg)
{
	struct stream *stream = &call->route->session.standalone;

	if (call->method->id == METHOD_INITIALIZE ||
	    (kind == STREAM_REQUEST && stream_is_full(stream)))
		return false;
	stream_push(stream, kind, key, msg);
	return true;
}

static bool sse_call_is_reachable(const struct call *call)
{
	return stream_has_reader(&call->route->session.standalone);
}

/* It is over: its memory goes at the end of the turn. */
static struct sse_client *sse_call_end(struct call *call)
{
	struct sse_call *sse_call = container_of(call, struct sse_call, call);
	struct sse_client *client = sse_call->client;

	if (client->opening == call)
		client->opening = NULL;
	deny_list_unwatch(&sse_call->holder);
	access_fini(&sse_call->access);
	loop_defer_free(client->frontend->router->loop, sse_call);
	return client;
}

/* The session has begun. */
static void client_adopt(struct sse_client *client, struct route *route)
{
	struct session *session = &route->session;
	const struct event_source source = {
		.stream = &session->standalone,
		.after = STREAM_FROM_HERE,
		.has_no_ids = true,
	};

	client->route = route;
	memcpy(client->session, session->entry.id, SESSION_ID_LENGTH);
	session_hold(session);
	if (client->is_gone)
		return;
	list_remove(&client->link);
	timer_stop(&client->patience);
	session->has_one_stream = true;
	stream_keep_nothing(&session->standalone);
	CHECK(event_writer_attach(&client->writer, &source));
}

static void sse_call_on_response(struct call *call, const struct slice *parts, size_t count)
{
	struct sse_client *client = sse_call_end(call);

	if (call->method->id == METHOD_INITIALIZE && call->route->session.state == SESSION_LIVE)
		client_adopt(client, call->route);
	client_tell(client, parts, count);
}

static void sse_call_on_failed(struct call *call, enum reason reason)
{
	client_tell_reason(sse_call_end(call), call->id, reason);
}

static void sse_call_on_cancelled(struct call *call)
{
	sse_call_end(call);
}

static const struct call_ops sse_call_ops = {
	.on_message = sse_call_on_message,
	.is_reachable = sse_call_is_reachable,
	.on_response = sse_call_on_response,
	.on_failed = sse_call_on_failed,
	.on_cancelled = sse_call_on_cancelled,
};

/* ---- messages of the client ---- */

static void sse_call_show(const struct deny_watcher *holder, struct denial_marks *marks_r)
{
	access_show(&container_of(holder, struct sse_call, holder)->access, marks_r);
}

/* The stream, and what was sent with other tokens, go on. AUTH-SES-07 */
static void sse_call_on_denied(struct deny_watcher *holder)
{
	forward_deny(&container_of(holder, struct sse_call, holder)->call);
}

static const struct deny_watcher_ops sse_call_watcher_ops = {
	.show = sse_call_show,
	.on_denied = sse_call_on_denied,
};

static struct call *call_new(struct sse_client *client, const struct access *access,
			     const struct envelope *env)
{
	struct sse_call *sse_call = mem_zalloc(sizeof(*sse_call));

	sse_call->client = client;
	sse_call->access = access_copy(access);
	deny_watcher_init(&sse_call->holder, &sse_call_watcher_ops);
	if (!principal_is_anonymous(access->principal))
		deny_list_watch(client->frontend->authorization.deny_list, &sse_call->holder);
	call_init(&sse_call->call, &sse_call_ops, env);
	return &sse_call->call;
}

static void client_initialize(struct sse_client *client, const struct access *access,
			      const struct envelope *env)
{
	const char *why = validation_check_initialize(env);

	if (client->route != NULL || client->opening != NULL) {
		client_tell_error(client, env->id.text, MCP_INVALID_REQUEST,
				  "Invalid request: initialize was sent before");
	} else if (why != NULL) {
		client_tell_error(client, env->id.text, MCP_INVALID_PARAMS, why);
	} else {
		client->opening = call_new(client, access, env);
		access_keep_claims(&client->access);
		route_open(client->frontend->router, client->server, client->access.principal,
			   http_conn_client(client->exchange.conn), client->opening, env);
	}
}

/* A client that tries the newest revision first learns so that it must initialize. FRONT-OLD-06 */
static bool is_modern(const struct envelope *env)
{
	return scan_member(env->meta.text, SLICE_LIT("io.modelcontextprotocol/protocolVersion"))
		       .type != JSON_ABSENT;
}

static void client_request(struct sse_client *client, const struct access *access,
			   const struct envelope *env)
{
	struct slice id = env->id.text;

	if (is_modern(env))
		client_tell_error(client, id, MCP_METHOD_NOT_FOUND, "Method not found");
	else if (validation_is_initialize(env))
		client_initialize(client, access, env);
	else if (client->route == NULL)
		client_tell_error(client, id, MCP_INVALID_REQUEST,
				  "Invalid request: initialize must come first");
	else if (client->frontend->router->is_draining)
		client_tell_reason(client, id, REASON_DRAINING);
	else if (client->route->call_count >= CALLS_MAX)
		client_tell_reason(client, id, REASON_OVER_LIMIT);
	else
		forward_request(client->route, call_new(client, access, env), env);
}

static void client_take(struct sse_client *client, const struct access *access,
			const struct envelope *env)
{
	if (env->kind == ENVELOPE_REQUEST)
		client_request(client, access, env);
	else if (client->route == NULL)
		return; /* there is nobody yet to hear it */
	else if (env->kind == ENVELOPE_NOTIFICATION)
		forward_notification(client->route, env);
	else
		forward_answer(client->route, env);
}

/* ---- POST ---- */

static void post_end(struct sse_post *post)
{
	access_fini(&post->access);
	free(post->origin);
	loop_defer_free(post->frontend->router->loop, post);
}

static void post_answer(struct sse_post *post, int status, int code, const char *why)
{
	struct answer answer = answer_on(post->exchange.conn, post->origin);

	if (status == 202) {
		answer_empty(&answer, status, nothing);
	} else {
		LOG(REQUEST_REFUSED, LOG_INT("status", status), LOG_STR("reason", why));
		answer_error(&answer, status, nothing, code, slice_str(why), nothing);
	}
	post_end(post);
}

static bool post_permits(struct sse_post *post, const struct scope_set *needed)
{
	struct answer answer = answer_on(post->exchange.conn, post->origin);

	if (challenge_permits(&post->frontend->authorization, post->place, &post->access, needed,
			      &answer))
		return true;
	post_end(post);
	return false;
}

/* FRONT-OLD-05: arrays only where the revision has them. The client may end while one is taken. */
static void post_batch(struct sse_post *post, struct sse_client *client, struct slice body)
{
	const struct scan_limits *limits = &post->frontend->router->limits;
	struct error err = { ERROR_NONE, "" };
	struct scope_set needed = { { 0 } };
	struct envelope env;
	struct batch batch;

	if (validation_batch(body, limits, &batch, &err) < 0) {
		post_answer(post, 400, validation_code(&err), err.text);
		return;
	}
	if (client->route == NULL || !client->route->revision->has_batches) {
		post_answer(post, 400, MCP_INVALID_REQUEST,
			    "Invalid request: this session's revision has no batches");
		return;
	}
	validation_add_needed(&batch, post->place, &needed);
	if (!post_permits(post, &needed))
		return;
	for (size_t i = 0; i < batch.count; i++) {
		client =
			client_find(post->frontend, post->server, post->access.principal, post->id);
		if (client != NULL && scan_envelope(batch.elements[i], limits, 0, &env, &err) == 0)
			client_take(client, &post->access, &env);
	}
	post_answer(post, 202, 0, NULL);
}

static void post_on_body(struct http_exchange *exchange, struct slice body)
{
	struct sse_post *post = container_of(exchange, struct sse_post, exchange);
	struct sse_client *client =
		client_find(post->frontend, post->server, post->access.principal, post->id);
	struct scope_set needed = { { 0 } };
	struct error err = { ERROR_NONE, "" };
	struct envelope env;

	if (client == NULL) {
		post_answer(post, 404, MCP_SESSION_NOT_FOUND, "Session not found");
	} else if (scan_type(body) == JSON_ARRAY) {
		post_batch(post, client, body);
	} else if (scan_envelope(body, &post->frontend->router->limits, 0, &env, &err) < 0) {
		post_answer(post, 400, validation_code(&err), err.text);
	} else {
		authorization_add_required(post->place, &env, &needed);
		if (!post_permits(post, &needed))
			return;
		client_take(client, &post->access, &env);
		post_answer(post, 202, 0, NULL);
	}
}

static void post_on_gone(struct http_exchange *exchange, enum reason reason)
{
	(void)reason;
	post_end(container_of(exchange, struct sse_post, exchange));
}

static void post_on_room(struct http_exchange *exchange)
{
	(void)exchange; /* its answer is one piece */
}

static const struct http_exchange_ops post_ops = {
	.on_body = post_on_body,
	.on_room = post_on_room,
	.on_gone = post_on_gone,
};

/* The value of sessionId in a query; empty if it is missing. */
static struct slice query_session(struct slice query)
{
	while (query.n > 0) {
		struct slice value = slice_cut(&query, '&');
		struct slice name = slice_cut(&value, '=');

		if (slice_is_equal(name, SLICE_LIT("sessionId")))
			return value;
	}
	return nothing;
}

/* FRONT-OLD-03 */
struct http_exchange *http_sse_post(const struct streamable_request *request)
{
	struct answer answer = { .conn = request->conn, .origin = request->origin };
	struct slice id = query_session(request->http->query);
	struct sse_post *post;

	if (!http_is_media_type(request->http->fields[HTTP_CONTENT_TYPE], "application/json"))
		return streamable_refuse(
			request, 415,
			"Unsupported media type: the body must be application/json in UTF-8");
	if (http_has(request->http, HTTP_CONTENT_ENCODING))
		return streamable_refuse(request, 415,
					 "Unsupported media type: the body must not be compressed");
	if (id.n == 0)
		return streamable_refuse(request, 400,
					 "Bad request: the parameter sessionId is missing");
	if (id.n != SESSION_ID_LENGTH || client_find(request->frontend, request->server,
						     request->access->principal, id.p) == NULL) {
		answer_error(&answer, 404, nothing, MCP_SESSION_NOT_FOUND,
			     SLICE_LIT("Session not found"), nothing);
		return NULL;
	}
	post = mem_zalloc(sizeof(*post));
	post->exchange.ops = &post_ops;
	post->frontend = request->frontend;
	post->server = request->server;
	post->place = request->place;
	post->access = access_copy(request->access);
	post->origin = request->origin.n > 0 ? mem_dup_slice(request->origin) : NULL;
	memcpy(post->id, id.p, SESSION_ID_LENGTH);
	return &post->exchange;
}

/* ---- GET ---- */

static void client_on_body(struct http_exchange *exchange, struct slice body)
{
	struct sse_client *client = container_of(exchange, struct sse_client, exchange);
	struct answer answer = answer_on(exchange->conn, client->origin);
	const struct scope_set none = { { 0 } };
	struct buf uri = { 0 };
	struct buf event = { 0 };
	struct buf fields = { 0 };

	(void)body;
	if (client->frontend->router->is_draining) {
		answer_reason(&answer, nothing, REASON_DRAINING, client->server->conf.name);
		client_end(client);
		return;
	}
	if (!challenge_permits(&client->frontend->authorization, client->place, &client->access,
			       &none, &answer)) {
		client_end(client);
		return;
	}
	answer_append_fields(&fields, &answer);
	client->is_open = true;
	event_writer_begin(&client->writer, exchange, client->frontend->conf.keepalive_ms,
			   buf_slice(&fields));
	buf_printf(&uri, "%s?sessionId=%.*s", client->message_path, SESSION_ID_LENGTH, client->id);
	sse_append_endpoint(&event, buf_slice(&uri));
	http_stream_write(exchange->conn, buf_slice(&event));
	timer_start(client->frontend->router->loop, &client->patience, INITIALIZE_MS);
	token_watch_begin(client->token_watch, &client->access);
	buf_fini(&fields);
	buf_fini(&event);
	buf_fini(&uri);
}

static void client_on_room(struct http_exchange *exchange)
{
	event_writer_on_room(&container_of(exchange, struct sse_client, exchange)->writer);
}

/* FRONT-OLD-04 */
static void client_on_gone(struct http_exchange *exchange, enum reason reason)
{
	(void)reason;
	client_end(container_of(exchange, struct sse_client, exchange));
}

static const struct http_exchange_ops client_ops = {
	.on_body = client_on_body,
	.on_room = client_on_room,
	.on_gone = client_on_gone,
};

struct http_exchange *http_sse_get(const struct streamable_request *request,
				   struct slice message_path)
{
	struct sse_client *client;

	if (!streamable_accepts(request->http, "text/event-stream"))
		return streamable_refuse(request, 406,
					 "Not acceptable: GET answers with text/event-stream");
	client = mem_zalloc(sizeof(*client));
	client->exchange.ops = &client_ops;
	client->frontend = request->frontend;
	client->server = request->server;
	client->place = request->place;
	client->access = access_copy(request->access);
	client->token_watch = token_watch_new(request, client_on_over, client);
	client->origin = request->origin.n > 0 ? mem_dup_slice(request->origin) : NULL;
	client->message_path = mem_dup_slice(message_path);
	event_writer_init(&client->writer);
	client->writer.on_end = client_on_events_end;
	timer_init(&client->patience, client_on_impatience);
	task_init(&client->farewell, client_on_farewell);
	do {
		session_id_make(client->id);
		client->key = session_id_key(client->id);
	} while (map_find(&request->frontend->sse_clients, client->key) != NULL);
	map_insert(&request->frontend->sse_clients, client->key, client);
	list_append(&request->frontend->sse_newcomers, &client->link);
	return &client->exchange;
}
