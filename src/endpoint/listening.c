/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET on the MCP endpoint: the session's own stream or, with Last-Event-ID, the stream of that
 * event, from the next event on. A stream has one reader: a later one takes over. FRONT-GET-*,
 * FRONT-RES-*.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "endpoint/admission.h"
#include "endpoint/answer.h"
#include "endpoint/events.h"
#include "endpoint/refusal.h"
#include "endpoint/request_context.h"
#include "endpoint/streamable.h"
#include "endpoint/token_watch.h"
#include "http/sse.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "router/client_session.h"
#include "router/router.h"

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

static void listening_on_end(struct event_writer *writer, enum reason reason)
{
	(void)reason;
	listening_end(container_of(writer, struct listening, writer));
}

/* A clean end: when it comes back, the client learns that it needs a new token. AUTH-SES-06, -07 */
static void listening_on_over(void *owner, enum reason reason)
{
	struct listening *get = owner;

	(void)reason;
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
	struct buf error = { 0 };
	struct buf text = { 0 };

	answer_append_expired(&error, id);
	buf_append_slice(&text, sse_fields);
	answer_append_fields(&text, &answer);
	http_stream_begin(conn, buf_slice(&text));
	text.len = 0;
	egress_append_event(&text, event, buf_slice(&error));
	http_stream_write(conn, buf_slice(&text));
	http_stream_end(conn);
	buf_fini(&error);
	buf_fini(&text);
	listening_end(get);
}

static void listening_begin(struct listening *get, struct client *client,
			    struct event_source *source)
{
	struct answer answer = request_context_answer(get->context, get->exchange.conn);
	const struct frontend_conf *conf = &get->frontend->conf;
	struct stream *stream =
		get->stored != NULL ? &get->stored->stream : &client->session->standalone;
	struct buf fields = { 0 };
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
		listening_answer_expired(get, stored_stream_request_id(get->stored),
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
	buf_fini(&fields);
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

static void listening_on_body(struct http_exchange *exchange, struct slice body)
{
	struct listening *get = container_of(exchange, struct listening, exchange);
	struct event_source source = { .after = STREAM_FROM_HERE };
	struct client *client = NULL;
	struct admission admission;

	(void)body;
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

static void listening_on_gone(struct http_exchange *exchange, enum reason reason)
{
	(void)reason;
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
