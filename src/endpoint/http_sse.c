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
#include "endpoint/admission.h"
#include "endpoint/answer.h"
#include "endpoint/caller.h"
#include "endpoint/egress.h"
#include "endpoint/events.h"
#include "endpoint/refusal.h"
#include "endpoint/token_watch.h"
#include "http/sse.h"
#include "obs/log.h"
#include "router/client_session.h"
#include "router/forward.h"
#include "router/router.h"

#define INITIALIZE_MS (60 * 1000)

enum client_state {
	CLIENT_NEW,  /* its GET is not answered yet */
	CLIENT_OPEN, /* its stream has begun; it has no session */
	CLIENT_LIVE, /* it has one */
	CLIENT_GONE, /* its stream has ended, and its session is about to */
};

struct sse_client {
	struct http_exchange exchange; /* the GET */
	struct caller caller;
	struct session_entry entry; /* its id */
	struct event_writer writer;
	struct list link;      /* of the frontend's newcomers, until it has a session */
	struct timer patience; /* likewise */
	struct token_watch *token_watch;
	enum client_state state;
	struct call *opening;            /* the initialize request in flight */
	struct client *session_client;   /* from its answer on; held */
	char session[SESSION_ID_LENGTH]; /* likewise */
	struct task farewell;
};

struct sse_call {
	struct call call;
	struct sse_client *client;
	struct access access; /* the sender's: the same principal, perhaps another token */
	struct deny_watcher deny_watcher;
};

struct sse_post {
	struct http_exchange exchange;
	struct caller caller;
	bool names_client;
	char id[SESSION_ID_LENGTH]; /* all zeros: what was sent can be none */
};

/* ---- the life of a client ---- */

#define TO(state) (1u << CLIENT_##state)
static const struct {
	const char *name;
	unsigned int next;
} states[] = {
	[CLIENT_NEW] = { "new", TO(OPEN) | TO(GONE) },
	[CLIENT_OPEN] = { "open", TO(LIVE) | TO(GONE) },
	[CLIENT_LIVE] = { "live", TO(GONE) },
	[CLIENT_GONE] = { "gone", 0 },
};
#undef TO

static void client_set_state(struct sse_client *client, enum client_state state)
{
	CHECK(states[client->state].next & 1u << state);
	LOG(SSE_CLIENT_STATE, LOG_STR("server", client->caller.endpoint->server->conf.name),
	    LOG_STR("from", states[client->state].name), LOG_STR("to", states[state].name));
	client->state = state;
	if (state == CLIENT_OPEN) {
		timer_start(client->caller.frontend->router->loop, &client->patience,
			    INITIALIZE_MS);
	} else {
		list_remove(&client->link);
		timer_stop(&client->patience);
	}
}

static void client_free(struct sse_client *client)
{
	CHECK(client->state == CLIENT_GONE && list_is_empty(&client->link));
	CHECK(client->token_watch == NULL && client->writer.reader.stream == NULL);
	caller_fini(&client->caller);
	loop_defer_free(client->caller.frontend->router->loop, client);
}

static void client_on_farewell(struct task *task)
{
	struct sse_client *client = container_of(task, struct sse_client, farewell);
	struct session *session;

	if (client->opening != NULL)
		session_end(client->opening->client->session, REASON_PEER_CLOSED);
	/* It may have ended by itself meanwhile, and be freed. */
	session = session_find(&client->caller.frontend->router->sessions,
			       slice_of(client->session, SESSION_ID_LENGTH),
			       client->caller.access.principal);
	if (session != NULL)
		session_end(session, REASON_PEER_CLOSED);
	client_free(client);
}

/*
 * Its session ends with it, but not at once: the stream may have ended because the last message was too much for it,
 * and whoever pushed that message still uses the session and its calls.
 */
static void client_end(struct sse_client *client)
{
	bool has_session =
		client->opening != NULL || (client->session_client != NULL &&
					    client->session_client->session->state == SESSION_LIVE);

	client_set_state(client, CLIENT_GONE);
	session_table_remove(&client->caller.frontend->sse_clients, &client->entry);
	event_writer_stop(&client->writer);
	token_watch_end(&client->token_watch);
	if (has_session)
		task_schedule(client->caller.frontend->router->loop, &client->farewell);
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

	CHECK(client->state == CLIENT_OPEN);
	if (client->opening != NULL) {
		timer_start(client->caller.frontend->router->loop, timer, INITIALIZE_MS);
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

		if (client->opening == NULL && client->state == CLIENT_OPEN) {
			http_stream_end(client->exchange.conn);
			client_end(client);
		}
	}
}

/* The client that a POST names; another principal's or another server's is not there. FRONT-SESS-05 */
static struct sse_client *client_find(const struct sse_post *post)
{
	const struct caller *caller = &post->caller;
	struct session_entry *entry = session_table_find(&caller->frontend->sse_clients,
							 slice_of(post->id, SESSION_ID_LENGTH));
	struct sse_client *client;

	if (entry == NULL)
		return NULL;
	client = container_of(entry, struct sse_client, entry);
	if (client->caller.endpoint != caller->endpoint ||
	    client->caller.access.principal != caller->access.principal)
		return NULL;
	return client;
}

/* ---- messages to the client; none of these may use the client afterwards, it may have ended ---- */

static void client_tell(struct sse_client *client, const struct slice *parts, size_t count)
{
	struct http_conn *conn = client->exchange.conn;
	struct msg *msg = egress_join(parts, count);
	struct buf event = { 0 };

	if (client->session_client != NULL) {
		stream_push(&client->session_client->session->standalone, STREAM_RESPONSE, 0, msg);
	} else if (conn != NULL && http_conn_has_room(conn)) {
		egress_append_event(&event, slice_of(NULL, 0), msg->text);
		http_stream_write(conn, buf_slice(&event));
		buf_fini(&event);
	} else if (conn != NULL) {
		http_conn_end(conn, REASON_SLOW_READER);
	}
	msg_unref(&msg);
}

/* ---- what calls tell ---- */

static bool sse_call_on_message(struct call *call, enum stream_kind kind, uint64_t key,
				struct msg *msg)
{
	struct stream *stream = &call->client->session->standalone;

	if (call->method->id == METHOD_INITIALIZE ||
	    (kind == STREAM_REQUEST && stream_is_full(stream)))
		return false;
	stream_push(stream, kind, key, msg);
	return true;
}

static bool sse_call_is_reachable(const struct call *call)
{
	return stream_has_reader(&call->client->session->standalone);
}

/* It is over: its memory goes at the end of the turn. */
static struct sse_client *sse_call_end(struct call *call)
{
	struct sse_call *sse_call = container_of(call, struct sse_call, call);
	struct sse_client *client = sse_call->client;

	if (client->opening == call)
		client->opening = NULL;
	deny_list_unwatch(&sse_call->deny_watcher);
	access_fini(&sse_call->access);
	loop_defer_free(client->caller.frontend->router->loop, sse_call);
	return client;
}

/* The session has begun. */
static void client_adopt(struct sse_client *client, struct client *session_client)
{
	struct session *session = session_client->session;
	const struct event_source source = {
		.stream = &session->standalone,
		.after = STREAM_FROM_HERE,
		.has_no_ids = true,
	};

	CHECK(client->session_client == NULL && client->opening == NULL);
	CHECK(session->principal == client->caller.access.principal);
	client->session_client = session_client;
	memcpy(client->session, session->entry.id, SESSION_ID_LENGTH);
	session_hold(session);
	if (client->state == CLIENT_GONE)
		return;
	client_set_state(client, CLIENT_LIVE);
	session->has_one_stream = true;
	stream_keep_nothing(&session->standalone);
	CHECK(event_writer_attach(&client->writer, &source));
}

static void sse_call_on_response(struct call *call, const struct slice *parts, size_t count)
{
	struct sse_client *client = sse_call_end(call);

	if (call->method->id == METHOD_INITIALIZE && call->client->session->state == SESSION_LIVE)
		client_adopt(client, call->client);
	client_tell(client, parts, count);
}

static void sse_call_on_failed(struct call *call, enum reason reason)
{
	struct sse_client *client = sse_call_end(call);
	struct buf text = { 0 };

	answer_append_reason(&text, call->id, reason, client->caller.endpoint->server->conf.name);
	client_tell(client, (struct slice[]){ buf_slice(&text) }, 1);
	buf_fini(&text);
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

static void sse_call_show(const struct deny_watcher *watcher, struct denial_marks *marks_r)
{
	access_show(&container_of(watcher, struct sse_call, deny_watcher)->access, marks_r);
}

/* The stream, and what was sent with other tokens, go on. AUTH-SES-07 */
static void sse_call_on_denied(struct deny_watcher *watcher)
{
	forward_deny(&container_of(watcher, struct sse_call, deny_watcher)->call);
}

static const struct deny_watcher_ops sse_call_watcher_ops = {
	.show = sse_call_show,
	.on_denied = sse_call_on_denied,
};

static void client_forward(struct sse_client *client, const struct admission *admission,
			   const struct envelope *env)
{
	const struct caller *caller = &client->caller;
	const struct access *access = &admission->caller->access;
	struct admitted *admitted = admission->admitted;
	struct sse_call *sse_call;

	if (env->kind == ENVELOPE_NOTIFICATION) {
		forward_notification(admission->client, admitted);
		return;
	}
	if (env->kind != ENVELOPE_REQUEST) {
		forward_answer(admission->client, admitted);
		return;
	}
	CHECK(access->principal == caller->access.principal);
	sse_call = mem_zalloc(sizeof(*sse_call));
	sse_call->client = client;
	sse_call->access = access_copy(access);
	deny_watcher_init(&sse_call->deny_watcher, &sse_call_watcher_ops);
	if (!principal_is_anonymous(access->principal))
		deny_list_watch(caller->frontend->authorization.deny_list, &sse_call->deny_watcher);
	call_init(&sse_call->call, &sse_call_ops, env);
	if (!admission->is_initialize) {
		forward_request(admission->client, &sse_call->call, admitted);
		return;
	}
	CHECK(client->opening == NULL && client->state == CLIENT_OPEN);
	client->opening = &sse_call->call;
	access_keep_claims(&caller->access);
	client_session_open(caller->frontend->router, caller->endpoint->server,
			    caller->access.principal, http_conn_client(client->exchange.conn),
			    &sse_call->call, admitted);
}

/* ---- POST ---- */

static void post_end(struct sse_post *post)
{
	caller_fini(&post->caller);
	loop_defer_free(post->caller.frontend->router->loop, post);
}

/* Whoever sent requests hears on his stream what became of them. */
static void post_refuse_requests(const struct sse_post *post, const struct admission *admission)
{
	for (size_t i = 0; i < admission->count; i++) {
		const struct envelope *env = &admission->messages[i];
		struct sse_client *client = client_find(post);
		struct buf text = { 0 };

		if (client == NULL || env->kind != ENVELOPE_REQUEST)
			continue;
		refusal_append(&admission->refusal, post->caller.endpoint, env->id.text, &text);
		client_tell(client, (struct slice[]){ buf_slice(&text) }, 1);
		buf_fini(&text);
	}
}

static void post_on_body(struct http_exchange *exchange, struct slice body)
{
	struct sse_post *post = container_of(exchange, struct sse_post, exchange);
	const struct caller *caller = &post->caller;
	struct answer answer = caller_answer(caller, exchange->conn);
	struct sse_client *client = client_find(post);
	struct admission admission = {
		.front = FRONT_HTTP_SSE,
		.intent = ADMISSION_SEND,
		.caller = caller,
		.peer = http_conn_client(exchange->conn),
		.session = { .is_named = post->names_client, .is_known = client != NULL },
		.body = body,
	};
	const struct envelope *env;

	if (client != NULL) {
		admission.session.is_opening = client->opening != NULL;
		admission.session.client = client->session_client;
	}
	if (admission_admit(&admission)) {
		/* The client may end with any of the messages. */
		while ((env = admitted_next(admission.admitted)) != NULL &&
		       (client = client_find(post)) != NULL)
			client_forward(client, &admission, env);
		answer_empty(&answer, 202, slice_of(NULL, 0));
	} else if (admission.refusal.is_in_band) {
		post_refuse_requests(post, &admission);
		answer_empty(&answer, 202, slice_of(NULL, 0));
	} else {
		refusal_send(&admission.refusal, caller->frontend, caller->endpoint, &answer);
	}
	admission_fini(&admission);
	post_end(post);
}

static void post_on_gone(struct http_exchange *exchange, enum reason reason)
{
	(void)reason;
	post_end(container_of(exchange, struct sse_post, exchange));
}

static const struct http_exchange_ops post_ops = {
	.on_body = post_on_body,
	.on_room = answer_ignore_room,
	.on_gone = post_on_gone,
};

struct http_exchange *http_sse_post(const struct endpoint_request *request)
{
	struct sse_post *post = mem_zalloc(sizeof(*post));
	struct slice id = { NULL, 0 };

	post->exchange.ops = &post_ops;
	caller_init(&post->caller, request);
	/* FRONT-OLD-03 */
	post->names_client =
		http_query_find(request->http->query, SLICE_LIT("sessionId"), &id) && id.n > 0;
	if (id.n == SESSION_ID_LENGTH)
		memcpy(post->id, id.p, SESSION_ID_LENGTH);
	return &post->exchange;
}

/* ---- GET ---- */

/* FRONT-OLD-01 */
static void client_open(struct sse_client *client, const struct answer *answer)
{
	const struct frontend *frontend = client->caller.frontend;
	struct buf uri = { 0 };
	struct buf event = { 0 };
	struct buf fields = { 0 };

	CHECK(client->opening == NULL && client->session_client == NULL);
	answer_append_fields(&fields, answer);
	client_set_state(client, CLIENT_OPEN);
	event_writer_begin(&client->writer, &client->exchange, frontend->conf.keepalive_ms,
			   buf_slice(&fields));
	buf_printf(&uri, "%.*s?sessionId=%.*s", SLICE_ARG(client->caller.endpoint->message_path),
		   SESSION_ID_LENGTH, client->entry.id);
	sse_append_endpoint(&event, buf_slice(&uri));
	http_stream_write(client->exchange.conn, buf_slice(&event));
	token_watch_begin(client->token_watch, &client->caller.access);
	buf_fini(&fields);
	buf_fini(&event);
	buf_fini(&uri);
}

static void client_on_body(struct http_exchange *exchange, struct slice body)
{
	struct sse_client *client = container_of(exchange, struct sse_client, exchange);
	const struct caller *caller = &client->caller;
	struct answer answer = caller_answer(caller, exchange->conn);
	struct admission admission = {
		.front = FRONT_HTTP_SSE,
		.intent = ADMISSION_LISTEN,
		.caller = caller,
		.peer = http_conn_client(exchange->conn),
	};

	(void)body;
	if (admission_admit(&admission)) {
		client_open(client, &answer);
	} else {
		refusal_send(&admission.refusal, caller->frontend, caller->endpoint, &answer);
		client_end(client);
	}
	admission_fini(&admission);
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

struct http_exchange *http_sse_get(const struct endpoint_request *request)
{
	struct sse_client *client;

	if (!http_request_accepts(request->http, "text/event-stream"))
		return refusal_send_head(&request->answer, 406,
					 "Not acceptable: GET answers with text/event-stream");
	client = mem_zalloc(sizeof(*client));
	client->exchange.ops = &client_ops;
	caller_init(&client->caller, request);
	client->token_watch = token_watch_new(request, client_on_over, client);
	event_writer_init(&client->writer);
	client->writer.on_end = client_on_events_end;
	timer_init(&client->patience, client_on_impatience);
	task_init(&client->farewell, client_on_farewell);
	session_table_add(&request->frontend->sse_clients, &client->entry);
	list_append(&request->frontend->sse_newcomers, &client->link);
	return &client->exchange;
}
