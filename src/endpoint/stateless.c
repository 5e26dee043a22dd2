/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A post is one call of one client, both of which end with it. It is answered with one JSON body
 * or, once there is something to send before the response, with events, which have no ids because
 * nobody can come back to them. A client that closes the connection cancels the request.
 * FRONT-HTTP-02, CXL-04.
 */
#include "endpoint/stateless.h"

#include <stdlib.h>

#include "base/mem.h"
#include "endpoint/admission.h"
#include "endpoint/answer.h"
#include "endpoint/caller.h"
#include "endpoint/modern.h"
#include "jsonrpc/param_headers.h"
#include "mcp/revision.h"
#include "obs/log.h"
#include "router/client_request.h"
#include "router/forward.h"
#include "router/router.h"
#include "router/call_check.h"

/* T_commit: a call that takes longer gets events, which keep it alive. bridging.md §7 */
#define GRACE_MS (10 * 1000)

enum stateless_state {
	STATELESS_OPEN,     /* nothing was sent */
	STATELESS_EVENTS,   /* the answer is an event stream */
	STATELESS_ANSWERED, /* the whole answer was sent, or nobody is there to get one */
};

/* The events of a post that is answered with them. */
struct events {
	struct stateless_post *post;
	struct stream stream;
	struct store_caller *sharer; /* whose budget the stream uses */
	struct event_writer writer;
};

struct stateless_post {
	struct http_exchange exchange;
	struct caller caller;
	struct modern_head head; /* what the body must agree with; slices into `kept` */
	char *kept;
	struct deny_watcher deny_watcher;
	struct call call;
	enum stateless_state state;
	bool is_running; /* the call is in flight */
	bool is_telling; /* a message of the call is being pushed */
	struct task left;
	bool takes_json;
	bool takes_events;
	bool is_listen;
	struct token_watch *token_watch; /* of a subscription, which may last hours; NULL: none */
	struct timer grace;
	struct events *events; /* in STATELESS_EVENTS and after it; else NULL */
};

/* ---- its life ---- */

#define TO(state) (1u << STATELESS_##state)
static const struct {
	const char *name;
	unsigned int next;
} states[] = {
	[STATELESS_OPEN] = { "open", TO(EVENTS) | TO(ANSWERED) },
	[STATELESS_EVENTS] = { "events", TO(ANSWERED) },
	[STATELESS_ANSWERED] = { "answered", 0 },
};
#undef TO

static void set_state(struct stateless_post *post, enum stateless_state state)
{
	CHECK(states[post->state].next & 1u << state);
	LOG(POST_STATE, LOG_STR("server", post->caller.endpoint->server->conf.name),
	    LOG_STR("from", states[post->state].name), LOG_STR("to", states[state].name));
	post->state = state;
	timer_stop(&post->grace); /* it runs only in STATELESS_OPEN */
}

static struct answer answer_of(const struct stateless_post *post)
{
	return caller_answer(&post->caller, post->exchange.conn);
}

static void check_done(struct stateless_post *post)
{
	struct loop *loop = post->caller.frontend->router->loop;

	if (post->is_running || post->exchange.conn != NULL)
		return;
	CHECK(post->state == STATELESS_ANSWERED);
	deny_list_unwatch(&post->deny_watcher);
	token_watch_end(&post->token_watch);
	task_cancel(&post->left);
	if (post->events != NULL) {
		event_writer_stop(&post->events->writer);
		stream_fini(&post->events->stream);
		store_caller_unref(&post->events->sharer);
		loop_defer_free(loop, post->events);
	}
	free(post->kept);
	caller_fini(&post->caller);
	loop_defer_free(loop, post);
}

/*
 * The stream was read to its end, or its reader was too slow; then the connection is gone, and
 * on_gone was called.
 */
static void on_events_end(struct event_writer *writer, enum reason reason)
{
	struct stateless_post *post = container_of(writer, struct events, writer)->post;

	(void)reason;
	if (post->state == STATELESS_EVENTS)
		set_state(post, STATELESS_ANSWERED);
	check_done(post);
}

/* From here on the answer is an event stream. FRONT-HTTP-12 */
static void commit(struct stateless_post *post)
{
	const struct frontend_conf *conf = &post->caller.frontend->conf;
	struct store *store = &post->caller.frontend->router->sessions.store;
	struct answer answer = answer_of(post);
	struct events *events = mem_alloc(sizeof(*events));
	struct event_source source = { .stream = &events->stream,
				       .after = STREAM_FROM_HERE,
				       .has_no_ids = true,
				       .keepalive_ms = conf->keepalive_ms };
	struct buf fields = { 0 };

	CHECK(post->exchange.conn != NULL && post->events == NULL);
	set_state(post, STATELESS_EVENTS);
	post->events = events;
	events->post = post;
	events->sharer =
		store_get_caller(store, holder_number(post->caller.access.principal,
						      http_conn_client(post->exchange.conn)));
	stream_init(&events->stream, store->loop, &store->conf->stream, &events->sharer->budget);
	stream_keep_nothing(&events->stream);
	event_writer_init(&events->writer);
	events->writer.on_end = on_events_end;
	answer_append_fields(&fields, &answer);
	CHECK(event_writer_start(&events->writer, &post->exchange, &source, buf_slice(&fields)));
	buf_fini(&fields);
}

static void on_grace(struct timer *timer)
{
	commit(container_of(timer, struct stateless_post, grace));
}

/* ---- what its call reports ---- */

static struct stateless_post *post_of(struct call *call)
{
	return container_of(call, struct stateless_post, call);
}

static bool on_message(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg)
{
	struct stateless_post *post = post_of(call);

	if (kind == STREAM_REQUEST) /* modern clients are not sent requests. MOD-MRTR-01 */
		return false;
	if (post->state == STATELESS_OPEN && post->takes_events)
		commit(post);
	if (post->state != STATELESS_EVENTS)
		return false;
	post->is_telling = true;
	stream_push(&post->events->stream, kind, key, msg);
	post->is_telling = false;
	return post->state == STATELESS_EVENTS; /* it may have been too much for the reader */
}

static bool is_reachable(const struct call *call)
{
	return post_of((struct call *)(uintptr_t)call)->exchange.conn != NULL;
}

/* MOD-HDR-04, -06 */
static struct tool_verdict check_tool(struct call *call, const struct envelope *env,
				      struct slice input_schema)
{
	struct tool_verdict verdict = { .broken = param_headers_check(input_schema) };
	struct modern_problem problem;

	if (verdict.broken == NULL &&
	    !modern_check_params(&post_of(call)->head, env, input_schema, &problem)) {
		CHECK(problem.status == 400); /* the status that result_send_error uses */
		verdict.refusal = problem.text;
		verdict.code = problem.code;
	}
	return verdict;
}

/* To be called before anything is written, because that may end the connection. */
static struct stateless_post *begin_end(struct call *call)
{
	struct stateless_post *post = post_of(call);

	CHECK(post->is_running);
	post->is_running = false;
	client_request_close(call->client);
	return post;
}

/* Sends a response in the form that this post has. `status`: of a JSON body. */
static void add_response(struct stateless_post *post, int status, const struct slice *parts,
			 size_t count)
{
	struct answer answer = answer_of(post);

	if (post->state == STATELESS_OPEN && !post->takes_json)
		commit(post);
	if (post->state == STATELESS_EVENTS) {
		struct msg *msg = egress_join(parts, count);

		stream_push(&post->events->stream, STREAM_RESPONSE, 0, msg);
		msg_unref(&msg);
		if (post->state == STATELESS_EVENTS)
			stream_end(&post->events->stream, REASON_DONE);
	} else if (post->state == STATELESS_OPEN) {
		set_state(post, STATELESS_ANSWERED);
		egress_send(&answer, status, parts, count);
	}
}

static void on_response(struct call *call, const struct slice *parts, size_t count)
{
	struct stateless_post *post = begin_end(call);

	add_response(post, call->http_status != 0 ? call->http_status : 200, parts, count);
	check_done(post);
}

static void on_failed(struct call *call, enum reason reason)
{
	struct stateless_post *post = begin_end(call);
	struct answer answer = answer_of(post);
	const char *server = post->caller.endpoint->server->conf.name;
	struct buf text = { 0 };

	/*
	 * 4xx or 5xx says that nothing was executed, so it is not used once the server was sent the
	 * request.
	 */
	if (post->state == STATELESS_OPEN && !call_was_sent(call) &&
	    reason_get(reason)->http_status >= 400) {
		set_state(post, STATELESS_ANSWERED);
		answer.retry_after_s = caller_retry_after_s(&post->caller, false, reason);
		answer_reason(&answer, call->id, reason, server);
	} else {
		answer_append_reason(&text, call->id, reason, server);
		add_response(post, 200, (struct slice[]){ buf_slice(&text) }, 1);
		buf_fini(&text);
	}
	check_done(post);
}

/* The client has left: there is nobody to answer. */
static void on_cancelled(struct call *call)
{
	struct stateless_post *post = begin_end(call);

	CHECK(post->exchange.conn == NULL);
	check_done(post);
}

static void call_show(const struct call *call, struct denial_marks *marks_r)
{
	access_show(&container_of(call, struct stateless_post, call)->caller.access, marks_r);
}

static bool judge(struct call *call, const struct envelope *env, struct call_refusal *refusal_r)
{
	return admission_judge(&post_of(call)->caller, call, env, refusal_r);
}

static const struct caller *who(struct call *call, struct caller *room)
{
	(void)room;
	return &post_of(call)->caller;
}

static const struct call_ops call_ops = {
	.who = who,
	.judge = judge,
	.on_message = on_message,
	.is_reachable = is_reachable,
	.check_tool = check_tool,
	.show = call_show,
	.on_response = on_response,
	.on_failed = on_failed,
	.on_cancelled = on_cancelled,
};

/* ---- its token is denied ---- */

static void on_show(const struct deny_watcher *watcher, struct denial_marks *marks_r)
{
	access_show(&container_of(watcher, struct stateless_post, deny_watcher)->caller.access,
		    marks_r);
}

/* AUTH-SES-07 */
static void on_denied(struct deny_watcher *watcher)
{
	struct stateless_post *post = container_of(watcher, struct stateless_post, deny_watcher);

	if (post->is_running) {
		forward_deny(&post->call);
	} else if (post->state == STATELESS_EVENTS) { /* with unread events */
		event_writer_stop(&post->events->writer);
		http_stream_end(post->exchange.conn);
		set_state(post, STATELESS_ANSWERED);
		check_done(post);
	}
}

static const struct deny_watcher_ops watcher_ops = { .show = on_show, .on_denied = on_denied };

/* A clean end: when it comes back, the client learns that it needs a new token. AUTH-SES-06, -07 */
static void on_token_over(void *owner, enum reason reason)
{
	struct stateless_post *post = owner;

	if (post->is_running)
		call_fail(&post->call, reason);
}

static void on_rights(void *owner, const struct rights *rights)
{
	struct stateless_post *post = owner;

	if (post->is_running)
		post->call.client->rights = *rights;
}

static const struct token_watch_ops watch_ops = {
	.on_over = on_token_over,
	.on_rights = on_rights,
};

/* ---- the request ---- */

static void begin_call(struct stateless_post *post, const struct admission *admission,
		       const struct envelope *env)
{
	const struct caller *caller = admission->caller;
	const struct frontend *frontend = caller->frontend;

	call_init(&post->call, &call_ops, env);
	post->is_running = true;
	if (post->is_listen)
		token_watch_begin(post->token_watch, caller);
	if (!principal_is_anonymous(caller->access.principal))
		deny_list_watch(frontend->authorization.deny_list, &post->deny_watcher);
	client_request_open(frontend->router, caller->endpoint->server, caller->access.principal,
			    admission->peer, &post->call, admission->admitted);
	if (post->state != STATELESS_OPEN || !post->takes_events)
		return;
	if (frontend->conf.response == FRONTEND_RESPONSE_SSE || !post->takes_json)
		commit(post);
	else if (!post->is_listen)
		timer_start(frontend->router->loop, &post->grace, GRACE_MS);
}

static void on_body(struct http_exchange *exchange, struct slice body)
{
	struct stateless_post *post = container_of(exchange, struct stateless_post, exchange);
	struct caller *caller = &post->caller;
	struct answer answer = answer_of(post);
	struct admission admission;

	admission_init(&admission);
	admission.front = FRONT_STATELESS;
	admission.intent = ADMISSION_SEND;
	admission.caller = caller;
	admission.peer = http_conn_client(exchange->conn);
	admission.names_version = true;
	admission.version = post->head.version;
	admission.head = &post->head;
	admission.body = body;
	admission.takes_results = post->takes_json;
	caller_settle(&post->caller, NULL);
	if (!admission_admit(&admission)) {
		set_state(post, STATELESS_ANSWERED);
		refusal_send(&admission.refusal, caller->frontend, caller->endpoint, &answer);
		check_done(post);
	} else if (admission.requests == 0) {
		/* A notification: the core of this revision defines none for us. */
		set_state(post, STATELESS_ANSWERED);
		answer_empty(&answer, 202, slice_of(NULL, 0));
		check_done(post);
	} else {
		begin_call(post, &admission, admitted_next(admission.admitted));
	}
	admission_fini(&admission);
}

static void on_room(struct http_exchange *exchange)
{
	struct stateless_post *post = container_of(exchange, struct stateless_post, exchange);

	if (post->events != NULL)
		event_writer_on_room(&post->events->writer);
}

/* CXL-04 */
static void on_left(struct task *task)
{
	struct stateless_post *post = container_of(task, struct stateless_post, left);

	call_give_up(&post->call, "the client has closed the connection");
	call_cancel(&post->call);
}

static void on_gone(struct http_exchange *exchange, enum reason reason)
{
	struct stateless_post *post = container_of(exchange, struct stateless_post, exchange);

	(void)reason;
	CHECK(exchange->conn == NULL);
	if (post->events != NULL)
		event_writer_stop(&post->events->writer);
	if (post->state != STATELESS_ANSWERED)
		set_state(post, STATELESS_ANSWERED);
	if (!post->is_running)
		check_done(post);
	else if (post->is_telling) /* the code that pushes still uses the call */
		task_schedule(post->caller.frontend->router->loop, &post->left);
	else
		on_left(&post->left);
}

static const struct http_exchange_ops ops = {
	.on_body = on_body,
	.on_room = on_room,
	.on_gone = on_gone,
	.ends_when_left = true,
};

bool stateless_is_named(const struct endpoint_request *request)
{
	return revision_is_modern(request->http->fields[HTTP_MCP_PROTOCOL_VERSION]);
}

struct http_exchange *stateless_post(const struct endpoint_request *request)
{
	struct http_accepted takes = http_request_accepted(request->http);
	/* The body must say the same, or it is refused: FRONT-ERA-04. FRONT-HTTP-04 */
	bool is_listen = slice_is_equal(request->http->fields[HTTP_MCP_METHOD],
					SLICE_LIT("subscriptions/listen"));
	struct stateless_post *post;
	struct modern_head head;

	if (!takes.json && !takes.events)
		return refusal_send_head(
			&request->answer, 406,
			"Not acceptable: take application/json and text/event-stream");
	if (is_listen && !takes.events)
		return refusal_send_head(
			&request->answer, 406,
			"Not acceptable: subscriptions/listen answers with text/event-stream");
	if (request->frontend->conf.response == FRONTEND_RESPONSE_JSON && takes.json && !is_listen)
		takes.events = false;
	post = mem_zalloc(sizeof(*post));
	post->exchange.ops = &ops;
	post->is_listen = is_listen;
	if (is_listen)
		post->token_watch = token_watch_new(request, &watch_ops, post);
	post->takes_json = takes.json;
	post->takes_events = takes.events;
	caller_init(&post->caller, request);
	modern_head_read(request->http, &head);
	post->kept = modern_head_copy(&head, &post->head);
	timer_init(&post->grace, on_grace);
	task_init(&post->left, on_left);
	deny_watcher_init(&post->deny_watcher, &watcher_ops);
	return &post->exchange;
}
