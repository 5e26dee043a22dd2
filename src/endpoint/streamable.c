/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the head of a request says; GET, whose stream is the session's own or that of an event;
 * POST; DELETE.
 *
 * A POST is answered with nothing, one JSON body, or events. It stays open until its response, the
 * first other message for its client, or the end of the grace period decides.
 *
 * In a session, a post outlives its connection while its calls are in flight: disconnecting does not
 * cancel them (CXL-01), and its client may come back for the rest of the events. Without a session
 * (2026-07-28) it is one call of one client, both of which end with it: its events have no ids, and a
 * client that closes the connection cancels the request (CXL-04). A post is freed when its last call
 * has ended and its connection is done with it.
 *
 * requirements.md §1, §4 to §9; FRONT-SSE-01, FRONT-HTTP-02.
 */
#include "endpoint/streamable.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/cluster.h"
#include "endpoint/admission.h"
#include "endpoint/answer.h"
#include "endpoint/caller.h"
#include "endpoint/modern.h"
#include "http/reply.h"
#include "io/aside.h"
#include "jsonrpc/param_headers.h"
#include "jsonrpc/write.h"
#include "mcp/revision.h"
#include "obs/log.h"
#include "router/call_check.h"
#include "router/client_request.h"
#include "router/client_session.h"
#include "router/forward.h"
#include "router/router.h"
#include "session/principal.h"

/* ---- what the head says ---- */

/* What the header of a request to the MCP endpoint says, kept until the body has arrived. */

/*
 * Copies what is needed from a head. A session's id is no credential: the session must belong to
 * the caller.
 */

#define VERSION_BYTES 32

struct request_context {
	struct caller caller;
	bool is_stateless; /* a POST without a session: revision 2026-07-28 */
	bool has_session;
	bool has_version;
	bool has_event;
	uint16_t lost_before;         /* as in endpoint_request */
	unsigned char session_length; /* 0: what was sent cannot be an id */
	unsigned char version_length;
	char session[SESSION_ID_LENGTH];
	char version[VERSION_BYTES];
	/* Slices into head_copy, if the version that it names is not a legacy one. */
	struct modern_head head;
	char *head_copy;
};

/* Returns its length; 0: there is no such field, or it is too long to be one of ours. */
static unsigned char keep_field(struct slice field, char *place, size_t max)
{
	CHECK(max <= UCHAR_MAX);
	if (field.n == 0 || field.n > max)
		return 0;
	memcpy(place, field.p, field.n);
	return (unsigned char)field.n;
}

static void request_context_init(struct request_context *context,
				 const struct endpoint_request *request)
{
	const struct http_request *http = request->http;
	struct slice version = http->fields[HTTP_MCP_PROTOCOL_VERSION];

	caller_init(&context->caller, request);
	context->is_stateless = http->method == HTTP_POST && streamable_is_stateless(request);
	context->has_session = !context->is_stateless && http_has(http, HTTP_MCP_SESSION_ID);
	context->has_version = http_has(http, HTTP_MCP_PROTOCOL_VERSION);
	context->has_event = http_has(http, HTTP_LAST_EVENT_ID);
	context->lost_before = request->lost_before;
	if (version.n > VERSION_BYTES)
		version.n = VERSION_BYTES;
	context->version_length = keep_field(version, context->version, VERSION_BYTES);
	if (context->has_session)
		context->session_length = keep_field(http->fields[HTTP_MCP_SESSION_ID],
						     context->session, SESSION_ID_LENGTH);
	context->head = (struct modern_head){ .version = version };
	context->head_copy = NULL;
	if (context->has_version && revision_find(version) == NULL) {
		struct modern_head head;

		modern_head_read(http, &head);
		context->head_copy = modern_head_copy(&head, &context->head);
	} else {
		context->head.version = slice_of(context->version, context->version_length);
	}
}

static void request_context_fini(struct request_context *context)
{
	caller_fini(&context->caller);
	free(context->head_copy);
}

/* For answers on `conn` in the named session, whose id is then among the header fields. */
static struct answer request_context_answer(const struct request_context *context,
					    struct http_conn *conn)
{
	struct answer answer = caller_answer(&context->caller, conn);

	answer.session = slice_of(context->session, context->session_length);
	return answer;
}

/*
 * The named session counts as known only if it is the caller's, at this endpoint. FRONT-SESS-04, -05, AUTH-SES-01, -02,
 * -03
 */
static void request_context_find_session(struct request_context *context,
					 struct session_named *named_r)
{
	struct caller *caller = &context->caller;
	const struct cluster *cluster = caller->frontend->conf.cluster;
	struct session *session = NULL;

	*named_r = (struct session_named){
		.is_named = context->has_session,
		.id = slice_of(context->session, context->session_length),
	};
	if (context->has_session)
		session = session_find(&caller->frontend->router->sessions, named_r->id,
				       caller->access.principal);
	if (session != NULL)
		client_session_warm(session);
	caller_settle(&context->caller,
		      session != NULL ? client_session_client(session)->server : NULL);
	if (session != NULL && client_session_client(session)->server == caller->endpoint->server) {
		CHECK(session->state == SESSION_LIVE);
		named_r->is_known = true;
		named_r->client = client_session_client(session);
	} else if (cluster != NULL && context->has_session) {
		named_r->is_taken = cluster_has_lost(cluster, named_r->id, context->lost_before);
	}
}

/* Prepares the admission of what came on `conn` with this header; borrowed from the context. */
static void request_context_admission(struct request_context *context, const struct http_conn *conn,
				      enum admission_intent intent, struct admission *admission_r)
{
	struct caller *caller = &context->caller;

	admission_init(admission_r);
	admission_r->front = context->is_stateless ? FRONT_STATELESS : FRONT_STREAMABLE;
	admission_r->intent = intent;
	admission_r->caller = caller;
	admission_r->peer = http_conn_client(conn);
	admission_r->is_resuming = context->has_event;
	admission_r->names_version = context->has_version;
	admission_r->version = slice_of(context->version, context->version_length);
	admission_r->head = &context->head;
	request_context_find_session(context, &admission_r->session);
}

/* Answers with the refusal. */
static void request_context_refuse(const struct request_context *context, struct http_conn *conn,
				   const struct refusal *refusal)
{
	struct answer answer = caller_answer(&context->caller, conn);

	refusal_send(refusal, context->caller.frontend, context->caller.endpoint, &answer);
}

/* ---- GET ---- */

/*
 * GET on the MCP endpoint: the session's own stream or, with Last-Event-ID, the stream of that
 * event, from the next event on. A stream has one reader: a later one takes over. FRONT-GET-*,
 * FRONT-RES-*.
 */

struct listening {
	struct http_exchange exchange;
	struct frontend *frontend;
	struct request_context *context; /* NULL: the stream has begun */
	char *event;                     /* Last-Event-ID; empty: too long for one of ours */
	struct session *session;         /* held while its own stream is open; else NULL */
	struct stored_stream *stored;    /* or the response stream that is resumed */
	struct event_writer writer;
	struct token_watch *token_watch;
};

/* A stream that has begun no longer needs what the head said, and may be idle for hours. */
static void drop_context(struct listening *get)
{
	if (get->context != NULL)
		request_context_fini(get->context);
	free(get->context);
	free(get->event);
	get->context = NULL;
	get->event = NULL;
}

static void listening_end(struct listening *get)
{
	CHECK(get->session == NULL || get->stored == NULL);
	event_writer_stop(&get->writer);
	token_watch_end(&get->token_watch);
	if (get->session != NULL)
		session_release(get->session);
	stored_stream_unref(&get->stored);
	drop_context(get);
	loop_defer_free(get->frontend->router->loop, get);
}

static void listening_on_end(struct event_writer *writer, not_used enum reason reason)
{
	listening_end(container_of(writer, struct listening, writer));
}

/* A clean end: when it comes back, the client learns that it needs a new token. AUTH-SES-06, -07 */
static void listening_on_over(void *owner, not_used enum reason reason)
{
	struct listening *get = owner;

	http_stream_end(get->exchange.conn);
	listening_end(get);
}

static void listening_on_rights(void *owner, const struct rights *rights)
{
	const struct listening *get = owner;

	if (get->session != NULL)
		client_session_client(get->session)->rights = *rights;
}

static const struct token_watch_ops listening_watch_ops = {
	.on_over = listening_on_over,
	.on_rights = listening_on_rights,
};

static void listening_refuse_event(struct listening *get)
{
	struct answer answer = caller_answer(&get->context->caller, get->exchange.conn);

	refusal_send_head(&answer, 400, "Bad request: this Last-Event-ID was never sent");
	listening_end(get);
}

/*
 * The events after that one are gone for good: the request `id` gets an error as its response.
 * `event`: the id of the error's event, with which the client comes back. FRONT-RES-07
 */
static void listening_answer_expired(struct listening *get, struct slice id, struct slice event)
{
	struct http_conn *conn = get->exchange.conn;
	struct answer answer = request_context_answer(get->context, conn);
	at_end(buf_fini) struct buf error = { 0 }, text = { 0 };

	answer_append_expired(&error, id);
	buf_append_slice(&text, sse_fields);
	answer_append_fields(&text, &answer);
	http_stream_begin(conn, buf_slice(&text));
	text.len = 0;
	egress_append_event(&text, event, buf_slice(&error));
	http_stream_write(conn, buf_slice(&text));
	http_stream_end(conn);
	listening_end(get);
}

static void listening_begin(struct listening *get, struct client *client,
			    struct event_source *source)
{
	struct answer answer = request_context_answer(get->context, get->exchange.conn);
	const struct frontend_conf *conf = &get->frontend->conf;
	struct stream *stream =
		get->stored != NULL ? &get->stored->stream : &client->session->standalone;
	at_end(buf_fini) struct buf fields = { 0 };
	char id[EVENT_ID_BYTES];

	CHECK((get->session != NULL) != (get->stored != NULL));
	answer_append_fields(&fields, &answer);
	source->stream = stream;
	source->epoch = client->session->replay_store.epoch;
	source->is_primed = client->revision->has_priming;
	source->retry_ms = conf->retry_ms;
	source->keepalive_ms = conf->keepalive_ms;
	source->max_age_ms = conf->max_connection_age_ms;
	source->is_known = source->after != STREAM_FROM_HERE;
	get->writer.on_end = listening_on_end;
	if (conf->cluster != NULL && client->session->is_continued && source->is_known)
		stream_skip_to(stream, source->after);
	if (source->after != STREAM_FROM_HERE && source->after > stream->taken) {
		listening_refuse_event(get);
	} else if (get->stored != NULL &&
		   (stream_is_drained(stream, source->after) ||
		    (stream_is_ended(stream) && stream->end_reason == REASON_CANCELLED))) {
		/* Everything was seen already, or nothing more is wanted. FRONT-RES-10 */
		answer_empty(&answer, 204, slice_of(NULL, 0));
		listening_end(get);
	} else if (event_writer_start(&get->writer, &get->exchange, source, buf_slice(&fields))) {
		token_watch_begin(get->token_watch, &get->context->caller);
		drop_context(get);
	} else if (get->stored != NULL) {
		listening_answer_expired(get,
					 slice_of(get->stored->request_id,
						  get->stored->request_id_length),
					 slice_of(NULL, 0));
	} else {
		/*
		 * There is always more to come, which a client that keeps the old id would never
		 * get.
		 */
		listening_answer_expired(get, slice_of(NULL, 0),
					 event_id_format(source->epoch, source->number,
							 stream->taken, id));
	}
}

static void listening_begin_standalone(struct listening *get, struct client *client,
				       struct event_source *source)
{
	CHECK(get->session == NULL);
	get->session = client->session;
	session_hold(get->session);
	listening_begin(get, client, source);
}

/*
 * An event of an earlier gateway, whose streams are gone. What came on the session's own stream
 * meanwhile came to nobody; an answer is lost. bridging.md §4.1
 */
static void listening_resume_earlier(struct listening *get, struct client *client, uint64_t number)
{
	struct event_source source = { .after = STREAM_FROM_HERE };

	if (number == 0)
		listening_begin_standalone(get, client, &source);
	else
		listening_answer_expired(get, slice_of(NULL, 0), slice_of(NULL, 0));
}

static void listening_resume(struct listening *get, struct client *client)
{
	struct event_source source = { .after = 0 };
	struct replay_store *store = &client->session->replay_store;
	bool is_event = event_id_parse(slice_str(get->event), &source) == 0;

	if (is_event && source.epoch != store->epoch && client->session->is_continued) {
		listening_resume_earlier(get, client, source.number);
		return;
	}
	if (!is_event || source.epoch != store->epoch || source.number > store->last_number) {
		listening_refuse_event(get);
		return;
	}
	if (source.number == 0) {
		listening_begin_standalone(get, client, &source);
		return;
	}
	get->stored = replay_store_find(store, source.number);
	if (get->stored != NULL)
		listening_begin(get, client, &source);
	else
		listening_answer_expired(get, replay_store_find_expired(store, source.number),
					 slice_of(NULL, 0));
}

static void listening_on_body(struct http_exchange *exchange, not_used struct slice body)
{
	struct listening *get = container_of(exchange, struct listening, exchange);
	struct event_source source = { .after = STREAM_FROM_HERE };
	struct client *client = NULL;
	struct admission admission;

	request_context_admission(get->context, exchange->conn, ADMISSION_LISTEN, &admission);
	if (admission_admit(&admission))
		client = admission.client;
	else
		request_context_refuse(get->context, exchange->conn, &admission.refusal);
	admission_fini(&admission);
	if (client == NULL) {
		listening_end(get);
	} else if (get->context->has_event) {
		listening_resume(get, client);
	} else {
		listening_begin_standalone(get, client, &source);
	}
}

static void listening_on_room(struct http_exchange *exchange)
{
	event_writer_on_room(&container_of(exchange, struct listening, exchange)->writer);
}

static void listening_on_gone(struct http_exchange *exchange, not_used enum reason reason)
{
	listening_end(container_of(exchange, struct listening, exchange));
}

static const struct http_exchange_ops listening_ops = {
	.on_body = listening_on_body,
	.on_room = listening_on_room,
	.on_gone = listening_on_gone,
};

struct http_exchange *streamable_get(const struct endpoint_request *request)
{
	struct slice event = request->http->fields[HTTP_LAST_EVENT_ID];
	struct listening *get;

	if (!http_request_accepts(request->http, "text/event-stream"))
		return refusal_send_head(&request->answer, 406,
					 "Not acceptable: GET answers with text/event-stream");
	get = mem_zalloc(sizeof(*get));
	get->exchange.ops = &listening_ops;
	event_writer_init(&get->writer);
	get->token_watch = token_watch_new(request, &listening_watch_ops, get);
	get->frontend = request->frontend;
	get->context = mem_zalloc(sizeof(*get->context));
	request_context_init(get->context, request);
	get->event = mem_dup_slice(event.n <= EVENT_ID_BYTES ? event : slice_of("", 0));
	return &get->exchange;
}

/* ---- POST ---- */

struct post_call {
	struct call call;
	struct post *post;
	struct msg *response; /* of a batch that is not committed yet */
};

/* T_commit: a call that takes longer gets events, which keep it alive. bridging.md §7 */
#define STATELESS_GRACE_MS (10 * 1000)

/* The event stream of a post; in a session, its client may come back to it. */
struct post_events {
	struct stored_stream *stored;
	struct event_writer writer;
	struct task left; /* stateless: cancels the call */
	struct post *post;
};

enum post_state {
	POST_OPEN,     /* nothing was sent */
	POST_EVENTS,   /* the answer is an event stream */
	POST_ANSWERED, /* the whole answer was sent, or nobody is there to get one */
};

struct post {
	struct http_exchange exchange;
	struct request_context context;
	struct deny_watcher deny_watcher;
	struct client *client; /* while calls are open */
	enum post_state state;
	enum reason end_reason;
	bool takes_json;
	bool takes_events;
	bool is_batch;
	bool is_listen;                  /* subscriptions/listen, which may last hours */
	bool is_telling;                 /* a message of a call is being pushed */
	bool is_running;                 /* stateless: its call is in flight */
	struct token_watch *token_watch; /* with is_listen; else NULL */
	struct timer grace;
	struct post_call *calls; /* of its requests: `single`, or allocated */
	unsigned int call_count;
	unsigned int open_calls;
	struct post_events *events;
	struct post_call single;
};
_Static_assert(sizeof(struct post) <= MEM_CACHED_MAX, "one is allocated for each call");

/* ---- the life of a post ---- */

#define TO(state) (1u << POST_##state)
static const struct state_row states[] = {
	[POST_OPEN] = { "open", TO(EVENTS) | TO(ANSWERED) },
	[POST_EVENTS] = { "events", TO(ANSWERED) },
	[POST_ANSWERED] = { "answered", 0 },
};
#undef TO

static void post_set_state(struct post *post, enum post_state state)
{
	CHECK(states[post->state].next & 1u << state);
	LOG(POST_STATE, LOG_STR("server", post->context.caller.endpoint->server->conf.name),
	    LOG_STR("from", states[post->state].name), LOG_STR("to", states[state].name));
	post->state = state;
	timer_stop(&post->grace); /* it runs only in POST_OPEN */
}

static void post_check_done(struct post *post)
{
	struct loop *loop = post->context.caller.frontend->router->loop;

	if (post->open_calls > 0 || post->exchange.conn != NULL)
		return;
	CHECK(post->state != POST_OPEN);
	CHECK(post->state != POST_EVENTS || post->events != NULL);
	deny_list_unwatch(&post->deny_watcher);
	token_watch_end(&post->token_watch);
	if (post->events != NULL) {
		event_writer_stop(&post->events->writer);
		task_cancel(&post->events->left);
		if (!stream_is_ended(&post->events->stored->stream))
			stored_stream_finish(post->events->stored, REASON_PEER_CLOSED);
		stored_stream_unref(&post->events->stored);
		loop_defer_free(loop, post->events);
	}
	request_context_fini(&post->context);
	for (size_t i = 0; i < post->call_count; i++)
		msg_unref(&post->calls[i].response);
	if (post->calls != &post->single)
		loop_defer_free(loop, post->calls);
	loop_defer_free(loop, post);
}

/* The client is away, maybe for good: calls whose servers ask it something may not wait forever. */
static void post_note_left(struct post *post)
{
	for (size_t i = 0; i < post->call_count; i++)
		call_note_unreachable(&post->calls[i].call);
	post_check_done(post);
}

static void post_on_events_end(struct event_writer *writer, enum reason reason)
{
	struct post_events *events = container_of(writer, struct post_events, writer);

	CHECK(events->post->events == events);
	if (reason == REASON_CONNECTION_AGE)
		post_note_left(events->post);
	else
		post_check_done(events->post);
}

/*
 * The head of the answer to initialize is sent while the server is still being started, and
 * contains the id. FRONT-INIT-05
 */
static void post_promise_session(struct post *post)
{
	struct slice id = session_promise_id(post->client->session);

	CHECK(id.n == SESSION_ID_LENGTH);
	memcpy(post->context.session, id.p, id.n);
	post->context.session_length = SESSION_ID_LENGTH;
}

/* The stream of a session, whose client may come back to it. */
static struct stored_stream *post_open_kept(struct post *post, struct event_source *source)
{
	const struct frontend_conf *conf = &post->context.caller.frontend->conf;
	struct replay_store *replay_store = &post->client->session->replay_store;
	bool is_new = post->client->session->state == SESSION_NEW;
	struct slice id = post->is_batch ? slice_of(NULL, 0) : post->single.call.id;
	bool is_primed = post->client->revision->has_priming && !is_new;
	struct stored_stream *stored = replay_store_open(replay_store, id, is_primed);

	if (is_new)
		post_promise_session(post);
	source->epoch = replay_store->epoch;
	source->number = stored->number;
	source->is_primed = is_primed;
	source->retry_ms = conf->retry_ms;
	if (source->is_primed) /* FRONT-SSE-06: others are not closed before the response. */
		source->max_age_ms = conf->max_connection_age_ms;
	return stored;
}

/* CXL-04 */
static void post_cancel(struct post *post)
{
	call_give_up(&post->single.call, "the client has closed the connection");
	call_cancel(&post->single.call);
}

static void post_on_left(struct task *task)
{
	post_cancel(container_of(task, struct post_events, left)->post);
}

/* From here on the answer is an event stream. FRONT-HTTP-12 */
static void post_commit(struct post *post)
{
	const struct caller *caller = &post->context.caller;
	struct http_conn *conn = post->exchange.conn;
	struct event_source source = {
		.after = STREAM_FROM_HERE,
		.keepalive_ms = caller->frontend->conf.keepalive_ms,
	};
	struct post_events *events = mem_zalloc(sizeof(*events));
	at_end(buf_fini) struct buf fields = { 0 };
	struct answer answer;

	CHECK(conn != NULL && post->events == NULL);
	CHECK(post->context.is_stateless || post->client != NULL);
	if (post->context.is_stateless)
		events->stored = stored_stream_new(&caller->frontend->router->sessions.store,
						   holder_number(caller->access.principal,
								 http_conn_client(conn)));
	else
		events->stored = post_open_kept(post, &source);
	source.has_no_ids = post->context.is_stateless;
	source.stream = &events->stored->stream;
	post_set_state(post, POST_EVENTS);
	post->events = events;
	events->post = post;
	events->writer.on_end = post_on_events_end;
	task_init(&events->left, post_on_left);
	answer = request_context_answer(&post->context, conn);
	answer_append_fields(&fields, &answer);
	CHECK(event_writer_start(&events->writer, &post->exchange, &source, buf_slice(&fields)));
	for (size_t i = 0; i < post->call_count; i++) {
		if (post->calls[i].response != NULL)
			stream_push(source.stream, STREAM_RESPONSE, 0, post->calls[i].response);
		msg_unref(&post->calls[i].response);
	}
}

static void post_on_grace(struct timer *timer)
{
	post_commit(container_of(timer, struct post, grace));
}

/*
 * Sends the responses to a batch as an array; nothing if its calls were all cancelled, or there
 * were none. FRONT-POST-01
 */
static void post_answer_batch(struct post *post)
{
	struct answer answer = request_context_answer(&post->context, post->exchange.conn);
	at_end(buf_fini) struct buf array = { 0 };

	post_set_state(post, POST_ANSWERED);
	for (size_t i = 0; i < post->call_count; i++)
		if (post->calls[i].response != NULL)
			egress_append_element(&array, post->calls[i].response->text);
	if (array.len > 0)
		egress_send_array(&answer, &array);
	else
		answer_empty(&answer, 202, slice_of(NULL, 0));
}

/* A call has ended. The last one completes the answer. */
static void post_end_call(struct post *post)
{
	CHECK(post->open_calls > 0);
	if (--post->open_calls == 0 && post->state == POST_EVENTS)
		stored_stream_finish(post->events->stored, post->end_reason);
	else if (post->open_calls == 0 && post->state == POST_OPEN)
		post_answer_batch(post);
	post_check_done(post);
}

static struct post *post_of(struct call *call)
{
	return container_of(call, struct post_call, call)->post;
}

/*
 * To be called before anything is written, because that may end the connection: without a session,
 * the client ends with its call.
 */
static struct post *post_begin_end(struct call *call)
{
	struct post *post = post_of(call);

	if (!post->context.is_stateless) {
		post->client = call->client;
		return post;
	}
	CHECK(post->is_running);
	post->is_running = false;
	client_request_close(call->client);
	return post;
}

/* Adds a response, the server's or ours, in the form that this post has. `status`: of a JSON body. */
static void post_add_response(struct call *call, int status, const struct slice *parts,
			      size_t count)
{
	struct post *post = post_of(call);
	struct answer answer = request_context_answer(&post->context, post->exchange.conn);

	if (post->state == POST_OPEN && !post->takes_json)
		post_commit(post);
	if (post->state == POST_EVENTS) {
		at_end(msg_unref) struct msg *msg = egress_join(parts, count);

		stream_push(&post->events->stored->stream, STREAM_RESPONSE, 0, msg);
	} else if (post->state == POST_OPEN && post->is_batch) {
		container_of(call, struct post_call, call)->response = egress_join(parts, count);
	} else if (post->state == POST_OPEN) {
		post_set_state(post, POST_ANSWERED);
		egress_send(&answer, status, parts, count);
	}
}

/* ---- what calls report ---- */

static bool post_on_message(struct call *call, enum stream_kind kind, uint64_t key, struct msg *msg)
{
	struct post *post = post_of(call);

	/* Modern clients are not sent requests. MOD-MRTR-01 */
	if (call->method->id == METHOD_INITIALIZE ||
	    (kind == STREAM_REQUEST && post->context.is_stateless))
		return false;
	if (post->state == POST_OPEN && post->takes_events)
		post_commit(post);
	if (post->state != POST_EVENTS ||
	    (kind == STREAM_REQUEST && stream_is_full(&post->events->stored->stream)))
		return false;
	post->is_telling = true;
	stream_push(&post->events->stored->stream, kind, key, msg);
	post->is_telling = false;
	return post->state == POST_EVENTS; /* the message may have been too much for its reader */
}

static bool post_is_reachable(const struct call *call)
{
	const struct post *post = post_of((struct call *)(uintptr_t)call);

	return post->exchange.conn != NULL ||
	       (post->events != NULL && stream_has_reader(&post->events->stored->stream));
}

/* FRONT-INIT-05 */
static void post_note_session(struct post *post, struct session *session)
{
	struct denial_marks marks;

	access_show(&post->context.caller.access, &marks);
	if (marks.issuer.n > 0) /* if it is denied, the session ends. AUTH-SES-07 */
		session_keep_marks(session, &marks);
	if (!post->context.caller.frontend->conf.is_operators)
		client_session_keep(session);
	post->context.session_length = SESSION_ID_LENGTH;
	memcpy(post->context.session, session->entry.id, SESSION_ID_LENGTH);
	if (post->exchange.conn == NULL)
		session_end(session, REASON_PEER_CLOSED); /* nobody will ever know its id */
	else if (http_conn_may_be_left(post->exchange.conn))
		session_doubt(session);
}

static void post_on_response(struct call *call, const struct slice *parts, size_t count)
{
	bool is_stateless = post_of(call)->context.is_stateless;
	int status = is_stateless && call->http_status != 0 ? call->http_status : 200;
	struct post *post = post_begin_end(call);

	if (call->method->id == METHOD_INITIALIZE && !is_stateless &&
	    post->client->session->state == SESSION_LIVE)
		post_note_session(post, post->client->session);
	post_add_response(call, status, parts, count);
	post_end_call(post);
}

static void post_on_failed(struct call *call, enum reason reason)
{
	struct post *post = post_begin_end(call);
	struct answer answer = caller_answer(&post->context.caller, post->exchange.conn);
	const char *server = post->context.caller.endpoint->server->conf.name;
	/*
	 * 4xx or 5xx says that nothing was executed, so it is not used once the server was sent the
	 * request.
	 */
	bool is_unsent = !call_was_sent(call) && reason_get(reason)->http_status >= 400;
	at_end(buf_fini) struct buf text = { 0 };

	if (post->state == POST_OPEN && !post->is_batch && is_unsent) {
		post_set_state(post, POST_ANSWERED);
		answer.retry_after_s =
			caller_retry_after_s(&post->context.caller,
					     call->method->id == METHOD_INITIALIZE, reason);
		answer_reason(&answer, call->id, reason, server);
	} else {
		answer_append_reason(&text, call->id, reason, server);
		post_add_response(call, 200, (struct slice[]){ buf_slice(&text) }, 1);
	}
	post_end_call(post);
}

/*
 * CXL-02: the stream just ends; a client that takes only JSON must get an answer. Without a session,
 * it is the client that has left: there is nobody to answer.
 */
static void post_on_cancelled(struct call *call)
{
	struct post *post = post_of(call);

	post->end_reason = post->is_batch ? REASON_DONE : REASON_CANCELLED;
	if (post->context.is_stateless) {
		(void)post_begin_end(call);
		CHECK(post->exchange.conn == NULL);
	} else if (post->state == POST_OPEN && post->takes_events && !post->is_batch) {
		post_commit(post);
	}
	if (post->state == POST_OPEN && !post->takes_events)
		post_on_failed(call, REASON_CANCELLED);
	else
		post_end_call(post);
}

static bool post_judge(struct call *call, const struct envelope *env,
		       struct call_refusal *refusal_r)
{
	return admission_judge(&post_of(call)->context.caller, call, env, refusal_r);
}

static const struct caller *post_who(struct call *call, not_used struct caller *room)
{
	return &post_of(call)->context.caller;
}

/* MOD-HDR-04, -06 */
static struct tool_verdict post_check_tool(struct call *call, const struct envelope *env,
					   struct slice input_schema)
{
	struct tool_verdict verdict = { .broken = param_headers_check(input_schema) };
	struct modern_problem problem;

	if (verdict.broken == NULL &&
	    !modern_check_params(&post_of(call)->context.head, env, input_schema, &problem)) {
		CHECK(problem.status == 400); /* the status that result_send_error uses */
		verdict.refusal = problem.text;
		verdict.code = problem.code;
	}
	return verdict;
}

static void post_show_call(const struct call *call, struct denial_marks *marks_r)
{
	access_show(&post_of((struct call *)(uintptr_t)call)->context.caller.access, marks_r);
}

#define POST_CALL_OPS                                                        \
	.who = post_who, .judge = post_judge, .on_message = post_on_message, \
	.is_reachable = post_is_reachable, .on_response = post_on_response,  \
	.on_failed = post_on_failed, .on_cancelled = post_on_cancelled
static const struct call_ops post_call_ops = { POST_CALL_OPS };
static const struct call_ops post_stateless_call_ops = {
	POST_CALL_OPS,
	.check_tool = post_check_tool,
	.show = post_show_call,
};

/* ---- its token is denied ---- */

static void post_show(const struct deny_watcher *watcher, struct denial_marks *marks_r)
{
	access_show(&container_of(watcher, struct post, deny_watcher)->context.caller.access,
		    marks_r);
}

/* The client may no longer get what it waits for: neither responses nor the rest of a stream. */
static void post_on_denied(struct deny_watcher *watcher)
{
	struct post *post = container_of(watcher, struct post, deny_watcher);
	bool is_running = post->open_calls > 0;

	post->open_calls += is_running; /* our own, as in post_on_body */
	for (size_t i = 0; i < post->call_count && is_running; i++)
		forward_deny(&post->calls[i].call);
	/* Without a session, the error of its call is the last that it gets. */
	if (post->state == POST_EVENTS && post->exchange.conn != NULL &&
	    !(post->context.is_stateless && is_running)) {
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

/* A clean end: when it comes back, the client learns that it needs a new token. AUTH-SES-06, -07 */
static void post_on_token_over(void *owner, enum reason reason)
{
	struct post *post = owner;

	if (post->is_running)
		call_fail(&post->single.call, reason);
}

static void post_on_rights(void *owner, const struct rights *rights)
{
	struct post *post = owner;

	if (post->is_running)
		post->single.call.client->rights = *rights;
}

static const struct token_watch_ops post_watch_ops = {
	.on_over = post_on_token_over,
	.on_rights = post_on_rights,
};

/* ---- bodies ---- */

/* FRONT-INIT-04, -05 */
static void post_initialize(struct post *post, const struct admission *admission)
{
	const struct caller *caller = admission->caller;

	post->context.session_length = 0;
	access_keep_claims(&caller->access);
	client_session_open(caller->frontend->router, caller->endpoint->server,
			    caller->access.principal, admission->peer, &post->calls[0].call,
			    admission->admitted, false);
	if (post->open_calls > 1)
		post->client = post->calls[0].call.client;
}

/* A call without a session. */
static void post_request(struct post *post, const struct admission *admission)
{
	const struct caller *caller = admission->caller;

	post->is_running = true;
	client_request_open(caller->frontend->router, caller->endpoint->server,
			    caller->access.principal, admission->peer, &post->single.call,
			    admission->admitted);
}

/* The answer becomes events now, or when its grace is over. */
static void post_start_grace(struct post *post, bool is_initialize)
{
	const struct frontend *frontend = post->context.caller.frontend;
	uint64_t grace_ms = is_initialize              ? frontend->conf.keepalive_ms :
			    post->context.is_stateless ? STATELESS_GRACE_MS :
							 frontend->conf.grace_ms;

	if (post->state != POST_OPEN || post->open_calls == 1 || !post->takes_events)
		return;
	/* Until initialize is answered, a failed start is reported by the status. */
	if (!is_initialize &&
	    (frontend->conf.response == FRONTEND_RESPONSE_SSE || !post->takes_json))
		post_commit(post);
	else if (!post->is_listen)
		timer_start(frontend->router->loop, &post->grace, grace_ms);
}

/*
 * Each message is handled on its own; those of a batch share the answer. FRONT-POST-06, bridging.md
 * §2.1 (5)
 */
static void post_forward(struct post *post, const struct admission *admission)
{
	bool is_stateless = post->context.is_stateless;
	struct admitted *admitted = admission->admitted;
	struct client *client = admission->client;
	const struct envelope *env;
	struct post_call *next;

	CHECK(post->calls == NULL && post->state == POST_OPEN);
	post->client = client;
	post->is_batch = admission->is_batch;
	post->calls = &post->single;
	if (post->is_batch)
		post->calls = mem_zalloc((admission->requests + 1) * sizeof(*post->calls));
	post->call_count = (unsigned int)admission->requests;
	post->open_calls += post->call_count;
	for (size_t i = 0; i < post->call_count; i++)
		post->calls[i].post = post;
	CHECK(post->open_calls == post->call_count + 1);
	next = post->calls;
	while ((env = admitted_next(admitted)) != NULL) {
		if (env->kind == ENVELOPE_NOTIFICATION) {
			forward_notification(client, admitted);
		} else if (env->kind != ENVELOPE_REQUEST) {
			forward_answer(client, admitted);
		} else {
			call_init(&next->call,
				  is_stateless ? &post_stateless_call_ops : &post_call_ops, env);
			if (is_stateless)
				post_request(post, admission);
			else if (admission->is_initialize)
				post_initialize(post, admission);
			else
				forward_request(client, &next->call, admitted);
			next++;
		}
	}
	CHECK(next == post->calls + post->call_count);
	post_start_grace(post, admission->is_initialize);
}

static void streamable_post_on_body(struct http_exchange *exchange, struct slice body)
{
	struct post *post = container_of(exchange, struct post, exchange);
	const struct caller *caller = &post->context.caller;
	uint64_t began_ns = clock_monotonic_ns();
	struct admission admission;
	struct answer answer;
	bool is_admitted;

	request_context_admission(&post->context, exchange->conn, ADMISSION_SEND, &admission);
	post->open_calls = 1; /* our own: nothing completes or frees the post while we are here */
	admission.body = body;
	admission.takes_results = post->takes_json;
	admission.may_pause = true;
	is_admitted = admission_admit(&admission);
	while (admission.has_paused && exchange->conn != NULL) {
		request_context_find_session(&post->context, &admission.session);
		is_admitted = admission_admit(&admission);
	}
	answer = caller_answer(caller, exchange->conn);
	if (exchange->conn == NULL) {
		CHECK(post->state == POST_ANSWERED); /* it has left meanwhile */
	} else if (is_admitted && admission.has_no_effect) {
		post_set_state(post, POST_ANSWERED);
		answer_empty(&answer, 202, slice_of(NULL, 0));
	} else if (admission.admitted != NULL) {
		/* In this order: a denied subscription ends without a word. AUTH-SES-07 */
		token_watch_begin(post->token_watch, caller);
		if (!principal_is_anonymous(caller->access.principal))
			deny_list_watch(caller->frontend->authorization.deny_list,
					&post->deny_watcher);
		post_forward(post, &admission);
	} else {
		post_set_state(post, POST_ANSWERED);
		request_context_refuse(&post->context, exchange->conn, &admission.refusal);
	}
	admission_fini(&admission);
	principal_charge(caller->access.principal, began_ns + aside_away_ns());
	post_end_call(post);
}

static void post_on_room(struct http_exchange *exchange)
{
	struct post *post = container_of(exchange, struct post, exchange);

	if (post->events != NULL)
		event_writer_on_room(&post->events->writer);
}

static void streamable_post_on_gone(struct http_exchange *exchange, not_used enum reason reason)
{
	struct post *post = container_of(exchange, struct post, exchange);

	CHECK(exchange->conn == NULL);
	if (post->events != NULL)
		event_writer_stop(&post->events->writer);
	/* A client that has seen the id of an event can come back for the rest. CXL-01 */
	if (post->events == NULL || !stored_stream_is_known(post->events->stored))
		post_set_state(post, POST_ANSWERED);
	if (!post->is_running)
		post_note_left(post);
	else if (post->is_telling) /* the code that pushes still uses the call */
		task_schedule(post->context.caller.frontend->router->loop, &post->events->left);
	else
		post_cancel(post);
}

static uint64_t post_caller(const struct http_exchange *exchange)
{
	return caller_number(&container_of(exchange, const struct post, exchange)->context.caller,
			     exchange->conn);
}

static const struct http_exchange_ops post_ops = {
	.on_body = streamable_post_on_body,
	.caller = post_caller,
	.on_room = post_on_room,
	.on_gone = streamable_post_on_gone,
};

static const struct http_exchange_ops post_stateless_ops = {
	.on_body = streamable_post_on_body,
	.caller = post_caller,
	.on_room = post_on_room,
	.on_gone = streamable_post_on_gone,
	.ends_when_left = true,
};

bool streamable_is_stateless(const struct endpoint_request *request)
{
	return revision_is_modern(request->http->fields[HTTP_MCP_PROTOCOL_VERSION]);
}

struct http_exchange *streamable_post(const struct endpoint_request *request)
{
	struct http_accepted takes = http_request_accepted(request->http);
	bool is_stateless = streamable_is_stateless(request);
	/* The body must say the same, or it is refused: FRONT-ERA-04. FRONT-HTTP-04 */
	bool is_listen = is_stateless && slice_is_equal(request->http->fields[HTTP_MCP_METHOD],
							SLICE_LIT("subscriptions/listen"));
	struct post *post;

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
	post->exchange.ops = is_stateless ? &post_stateless_ops : &post_ops;
	post->takes_json = takes.json;
	post->takes_events = takes.events;
	post->is_listen = is_listen;
	if (is_listen)
		post->token_watch = token_watch_new(request, &post_watch_ops, post);
	request_context_init(&post->context, request);
	timer_init(&post->grace, post_on_grace);
	deny_watcher_init(&post->deny_watcher, &post_watcher_ops);
	return &post->exchange;
}

/* ---- DELETE ---- */

/* FRONT-SESS-06, -07 */
struct http_exchange *streamable_delete(const struct endpoint_request *request)
{
	struct http_conn *conn = request->answer.conn;
	struct request_context context = { .has_session = false };
	struct admission admission;

	request_context_init(&context, request);
	request_context_admission(&context, conn, ADMISSION_END, &admission);
	if (admission_admit(&admission)) {
		CHECK(admission.client != NULL);
		session_end(admission.client->session, REASON_DELETED);
		answer_empty(&request->answer, 204, slice_of(NULL, 0));
	} else {
		request_context_refuse(&context, conn, &admission.refusal);
	}
	admission_fini(&admission);
	request_context_fini(&context);
	return NULL;
}
