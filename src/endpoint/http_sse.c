/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three parts: clients and their lives; the GET, whose stream carries everything to them; their
 * POSTs.
 *
 * A client is identified by a random id in the URI that its stream begins with. Until it has
 * initialized there is no session, and messages go straight to its connection; after that,
 * everything, responses included, goes through the session's own stream, in order of arrival. A
 * client without a connection is lost; its session idles like any other that nobody uses, and may
 * be ended to make room.
 */
#include "endpoint/http_sse.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/slice.h"
#include "endpoint/admission.h"
#include "endpoint/answer.h"
#include "endpoint/caller.h"
#include "endpoint/origin.h"
#include "http/reply.h"
#include "io/aside.h"
#include "mcp/revision.h"
#include "obs/log.h"
#include "router/client_session.h"
#include "router/forward.h"
#include "router/router.h"
#include "session/session.h"

/* ---- the stream of a GET ---- */

/*
 * A GET and the event stream that answers it: what is written first, and what it then reads. Whose
 * stream it is, and what becomes of the client when it ends, is decided further below.
 * FRONT-OLD-01, FRONT-RES-07
 */

struct sse_client;

struct sse_get {
	struct http_exchange exchange;
	struct caller caller;
	struct event_writer writer;
	struct token_watch *token_watch;
	struct sse_client *client; /* owner of this stream; NULL: it has not begun */
	/* Agreed on before, or the oldest if none is named; NULL: certainly a new client. */
	const struct revision *revision;
	bool names_revision;
	bool is_resuming;           /* it came with Last-Event-ID */
	char id[SESSION_ID_LENGTH]; /* the client it names; all zeros: not one of ours */
	uint64_t after;             /* and its last event */
};

static bool may_resume(const struct sse_get *get)
{
	return get->caller.frontend->conf.reconnect_ms > 0;
}

/*
 * Begins the stream of the client `own` (an id of SESSION_ID_LENGTH characters) with the event that
 * tells it where to post messages; that event also has an id, for the position `after`.
 * FRONT-OLD-01
 */
static void sse_get_begin(struct sse_get *get, struct slice own, const struct answer *answer,
			  uint64_t after)
{
	const struct frontend_conf *conf = &get->caller.frontend->conf;
	at_end(buf_fini) struct buf uri = { 0 }, event = { 0 }, fields = { 0 };
	char id[EVENT_ID_BYTES];

	answer_append_fields(&fields, answer);
	event_writer_begin(&get->writer, &get->exchange, conf->keepalive_ms, buf_slice(&fields));
	buf_printf(&uri, "%.*s%.*s?sessionId=%.*s",
		   SLICE_ARG(origin_path_of(conf->authorization.public_url)),
		   SLICE_ARG(get->caller.endpoint->message_path), SLICE_ARG(own));
	sse_append_endpoint(&event, buf_slice(&uri),
			    may_resume(get) ? event_id_of_client(own, after, id) :
					      slice_of(NULL, 0),
			    conf->retry_ms);
	http_stream_write(get->exchange.conn, buf_slice(&event));
	token_watch_begin(get->token_watch, &get->caller);
}

/* Reads the stream from after event `after`; if that is not kept, from here, and returns false. */
static bool sse_get_attach(struct sse_get *get, struct slice own, struct stream *stream,
			   uint64_t after)
{
	struct event_source source = {
		.stream = stream,
		.after = after,
		.client = may_resume(get) ? own : slice_of(NULL, 0),
		.has_no_ids = !may_resume(get),
	};

	CHECK(get->client != NULL);
	if (event_writer_attach(&get->writer, &source))
		return true;
	source.after = STREAM_FROM_HERE;
	CHECK(event_writer_attach(&get->writer, &source));
	return false;
}

/*
 * Reports that events after its last one are no longer kept, so that the loss is visible.
 * FRONT-RES-07
 */
static void sse_get_tell_hole(struct sse_get *get, struct slice own)
{
	at_end(buf_fini) struct buf error = { 0 }, event = { 0 };
	char id[EVENT_ID_BYTES];

	answer_append_expired(&error, slice_of(NULL, 0));
	egress_append_event(&event, event_id_of_client(own, get->writer.reader.position, id),
			    buf_slice(&error));
	http_stream_write(get->exchange.conn, buf_slice(&event));
}

/* Frees it at the end of the turn. Output in progress continues, or has ended. */
static void sse_get_end(struct sse_get *get)
{
	event_writer_stop(&get->writer);
	token_watch_end(&get->token_watch);
	caller_fini(&get->caller);
	loop_defer_free(get->caller.frontend->router->loop, get);
}

/* ---- clients ---- */

#define INITIALIZE_MS (60 * 1000)
#define WORD_MS 2000 /* time for a client that claims to have initialized to do so all the same */

enum client_state {
	CLIENT_NEW,  /* its GET is not answered yet */
	CLIENT_OPEN, /* its stream has begun; it has no session */
	CLIENT_LIVE, /* it has a session */
	CLIENT_LOST, /* it has a session, or is about to get one, but no connection */
	CLIENT_GONE, /* it cannot be found any more, and its session is about to end */
};

struct sse_client {
	struct frontend *frontend;
	const struct endpoint *endpoint;
	struct principal *principal; /* a reference */
	struct session_entry entry;  /* its id */
	struct sse_get *get;         /* NULL: lost, or gone */
	struct list link;            /* in sse_newcomers, until it has a session; or in sse_lost */
	struct timer patience;       /* runs while CLIENT_OPEN or CLIENT_LOST */
	enum client_state state;
	struct call *opening;          /* the initialize request in flight */
	bool is_replaying;             /* `opening` is ours: the client gets no response */
	struct client *session_client; /* from initialize's response until the session has ended */
	struct session_owner owner;
	struct task farewell;
};

struct sse_call {
	struct call call;
	struct sse_client *client;
	struct access access; /* the sender's: the same principal, perhaps another token */
	struct deny_watcher deny_watcher;
};

/*
 * A message, or the lack of one for some time, shows that the client has initialized before:
 * resumes it, in its session or a new one. Only for a client that may (see session_named).
 * FRONT-OLD-09
 */
static void sse_client_go_on(struct sse_client *client);

/* ---- the life of a client ---- */

#define TO(state) (1u << CLIENT_##state)
static const struct state_row states[] = {
	[CLIENT_NEW] = { "new", TO(OPEN) },
	[CLIENT_OPEN] = { "open", TO(LIVE) | TO(LOST) | TO(GONE) },
	[CLIENT_LIVE] = { "live", TO(LOST) | TO(GONE) },
	[CLIENT_LOST] = { "lost", TO(OPEN) | TO(LIVE) | TO(GONE) },
	[CLIENT_GONE] = { "gone", 0 },
};
#undef TO

static void client_set_state(struct sse_client *client, enum client_state state)
{
	uint64_t patience_ms =
		state == CLIENT_LOST ? client->frontend->conf.reconnect_ms : INITIALIZE_MS;

	CHECK(states[client->state].next & 1u << state);
	LOG(SSE_CLIENT_STATE, LOG_STR("server", client->endpoint->server->conf.name),
	    LOG_STR("from", states[client->state].name), LOG_STR("to", states[state].name));
	client->state = state;
	list_remove(&client->link);
	timer_stop(&client->patience);
	if (state == CLIENT_OPEN)
		list_append(&client->frontend->sse_newcomers, &client->link);
	if (state == CLIENT_LOST)
		list_append(&client->frontend->sse_lost, &client->link);
	if (state == CLIENT_OPEN || state == CLIENT_LOST)
		timer_start(client->frontend->router->loop, &client->patience, patience_ms);
}

static struct slice client_id(const struct sse_client *client)
{
	return slice_of(client->entry.id, SESSION_ID_LENGTH);
}

static void client_free(struct sse_client *client)
{
	CHECK(client->state == CLIENT_GONE && client->get == NULL);
	CHECK(client->opening == NULL && client->session_client == NULL);
	principal_unref(&client->principal);
	loop_defer_free(client->frontend->router->loop, client);
}

/* Drops the client's GET. Its connection has ended, or still writes what it was given. */
static void client_leave_get(struct sse_client *client)
{
	struct sse_get *get = client->get;

	if (get == NULL)
		return;
	client->get = NULL;
	sse_get_end(get);
}

static void client_on_farewell(struct task *task)
{
	struct sse_client *client = container_of(task, struct sse_client, farewell);

	if (client->opening != NULL)
		session_end(client->opening->client->session, REASON_PEER_CLOSED);
	if (client->session_client != NULL)
		session_end(client->session_client->session, REASON_PEER_CLOSED);
	client_free(client);
}

/*
 * The client's session ends with it, but not at once: the stream may have ended because the last
 * message was too much for it, and the code that pushed that message still uses the session and its
 * calls.
 */
static void client_end(struct sse_client *client)
{
	if (client->state == CLIENT_GONE)
		return;
	client_set_state(client, CLIENT_GONE);
	session_table_remove(&client->frontend->sse_clients, &client->entry);
	client_leave_get(client);
	task_schedule(client->frontend->router->loop, &client->farewell);
}

static void client_on_session_end(struct session_owner *owner)
{
	struct sse_client *client = container_of(owner, struct sse_client, owner);

	CHECK(client->session_client != NULL);
	client->session_client = NULL;
	client_end(client);
}

/* The bytes of all streams of its caller. */
static size_t caller_bytes(const struct sse_client *client)
{
	return client->session_client == NULL ?
		       0 :
		       client->session_client->session->replay_store.caller->budget.bytes;
}

/* The bytes of the messages that wait for the client. */
static size_t client_bytes(const struct sse_client *client)
{
	return client->session_client == NULL ? 0 :
						client->session_client->session->standalone.bytes;
}

/*
 * What waits for lost clients counts towards streams.total_bytes, but single messages must not be
 * dropped: of the caller with the most bytes, the client with the most goes. SEC-16
 */
void http_sse_on_room(struct task *task)
{
	struct frontend *frontend = container_of(task, struct frontend, sse_room);
	const struct stream_budget *budget = &frontend->router->sessions.store.budget;

	for (size_t bytes = budget->bytes; bytes > budget->max_bytes;) {
		struct sse_client *most = NULL;

		LIST_EACH(struct sse_client, client, &frontend->sse_lost, link)
			if (client_bytes(client) > 0 &&
			    (most == NULL || caller_bytes(client) > caller_bytes(most) ||
			     (caller_bytes(client) == caller_bytes(most) &&
			      client_bytes(client) > client_bytes(most))))
				most = client;
		if (most == NULL)
			return;
		bytes -= client_bytes(most);
		client_end(most);
	}
}

/* Whether to wait for a client whose connection ended for this reason. */
static bool may_come_back(const struct sse_client *client, enum reason reason)
{
	const struct client *session_client = client->session_client;

	if (client->frontend->conf.reconnect_ms == 0 || reason == REASON_SLOW_READER ||
	    reason == REASON_DRAINING || reason == REASON_DENIED || reason == REASON_REVOKED)
		return false;
	return client->opening != NULL ||
	       (session_client != NULL && session_client->session->state == SESSION_LIVE);
}

/*
 * Makes the session end when this token is denied: while nobody reads, there is no stream that
 * would end with the token. AUTH-SES-07
 */
static void session_end_with(struct session *session, const struct access *access)
{
	struct denial_marks marks;

	access_show(access, &marks);
	if (marks.issuer.n > 0)
		session_keep_marks(session, &marks);
}

/* The client's connection has ended, or may no longer serve it. FRONT-OLD-04 */
static void client_lose(struct sse_client *client, enum reason reason)
{
	struct client *session_client = client->session_client;

	if (!may_come_back(client, reason)) {
		client_end(client);
		return;
	}
	if (session_client != NULL)
		session_end_with(session_client->session, &client->get->caller.access);
	client_leave_get(client);
	client_set_state(client, CLIENT_LOST);
	if (session_client == NULL)
		return;
	session_release(session_client->session);
	task_schedule(client->frontend->router->loop, &client->frontend->sse_room);
	LIST_EACH_SAFE(struct call, call, &session_client->calls, link)
		call_note_unreachable(call);
}

static void get_on_events_end(struct event_writer *writer, enum reason reason)
{
	struct sse_get *get = container_of(writer, struct sse_get, writer);

	CHECK(get->client != NULL);
	if (get->client->get == get)
		client_lose(get->client, reason);
}

/*
 * Whether the client may have initialized before: it does not say which client it is, and has said
 * nothing else yet. FRONT-OLD-09
 */
static bool is_unnamed(const struct sse_client *client)
{
	return client->state == CLIENT_OPEN && client->get != NULL && client->get->revision != NULL;
}

static void client_close(struct sse_client *client)
{
	if (client->get != NULL)
		http_stream_end(client->get->exchange.conn);
	client_end(client);
}

static void client_on_impatience(struct timer *timer)
{
	struct sse_client *client = container_of(timer, struct sse_client, patience);

	CHECK(client->state == CLIENT_OPEN || client->state == CLIENT_LOST);
	if (client->state != CLIENT_OPEN ||
	    !(client->opening != NULL || (is_unnamed(client) && client->get->names_revision))) {
		client_close(client);
		return;
	}
	timer_start(client->frontend->router->loop, timer, INITIALIZE_MS);
	if (client->opening == NULL)
		sse_client_go_on(client);
}

/* When the client comes back, it learns that it needs a fresh token. AUTH-SES-06, -07 */
static void get_on_over(void *owner, enum reason reason)
{
	struct sse_get *get = owner;

	http_stream_end(get->exchange.conn);
	client_lose(get->client, reason);
}

static void get_on_rights(void *owner, const struct rights *rights)
{
	const struct sse_get *get = owner;

	if (get->client->session_client != NULL)
		get->client->session_client->rights = *rights;
}

static const struct token_watch_ops get_watch_ops = {
	.on_over = get_on_over,
	.on_rights = get_on_rights,
};

void http_sse_drain(struct frontend *frontend)
{
	LIST_EACH_SAFE(struct sse_client, client, &frontend->sse_newcomers, link)
		if (client->opening == NULL)
			client_close(client);
}

/*
 * Of a client without a session: brings it to the endpoint of this server, or (NULL) of the one that
 * accepts new sessions. A reload may have replaced the one that its stream began with.
 */
static void client_settle(struct sse_client *client, const struct server *server)
{
	CHECK(client->session_client == NULL && client->opening == NULL && client->get != NULL);
	caller_settle(&client->get->caller, server);
	token_watch_move(client->get->token_watch, &client->get->caller);
	client->endpoint = client->get->caller.endpoint;
}

/*
 * The client with this id (SESSION_ID_LENGTH characters); NULL: unknown, or of another principal or
 * server. Binds the caller to the client's server, or else to the one that accepts new sessions:
 * caller_settle. FRONT-SESS-05
 */
static struct sse_client *sse_client_find(struct caller *caller, const char *id)
{
	struct session_entry *entry =
		session_table_find(&caller->frontend->sse_clients, slice_of(id, SESSION_ID_LENGTH));
	struct sse_client *client;

	caller_settle(caller, NULL);
	if (entry == NULL)
		return NULL;
	client = container_of(entry, struct sse_client, entry);
	if (!caller_is_at(caller, client->endpoint) ||
	    client->principal != caller->access.principal)
		return NULL;
	if (client->state == CLIENT_OPEN && client->opening == NULL)
		client_settle(client, NULL);
	caller_settle(caller, client->endpoint->server);
	return client;
}

/* ---- messages to the client, each of which may end it ---- */

/* Sends the client a message, joined from the parts. The client may have ended afterwards. */
static void sse_client_tell(struct sse_client *client, const struct slice *parts, size_t count)
{
	struct http_conn *conn = client->get != NULL ? client->get->exchange.conn : NULL;
	at_end(msg_unref) struct msg *msg = egress_join(parts, count);
	struct buf event = { 0 };

	if (client->session_client != NULL) {
		struct stream *stream = &client->session_client->session->standalone;

		stream_push(stream, STREAM_RESPONSE, 0, msg);
		/* Responses are never dropped: there would be nothing to come back to. */
		if (client->state == CLIENT_LOST && stream_is_full(stream))
			client_end(client);
		else if (client->state == CLIENT_LOST)
			task_schedule(client->frontend->router->loop, &client->frontend->sse_room);
	} else if (conn != NULL && http_conn_has_room(conn)) {
		egress_append_event(&event, slice_of(NULL, 0), msg->text);
		http_stream_write(conn, buf_slice(&event));
		buf_fini(&event);
	} else if (conn != NULL) {
		http_conn_end(conn, REASON_SLOW_READER);
	} else {
		client_end(client); /* its initialize failed while it was away */
	}
}

/* ---- what calls report ---- */

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

/* The call is over: it is freed at the end of the turn. Returns its client. */
static struct sse_client *sse_call_end(struct call *call)
{
	struct sse_call *sse_call = container_of(call, struct sse_call, call);
	struct sse_client *client = sse_call->client;

	if (client->opening == call)
		client->opening = NULL;
	deny_list_unwatch(&sse_call->deny_watcher);
	access_fini(&sse_call->access);
	loop_defer_free(client->frontend->router->loop, sse_call);
	return client;
}

static const struct session_owner_ops owner_ops = { .on_end = client_on_session_end };

/* The client's session has begun. */
static void client_adopt(struct sse_client *client, struct client *session_client)
{
	struct session *session = session_client->session;

	CHECK(client->session_client == NULL && client->opening == NULL);
	CHECK(session->principal == client->principal && session->owner == NULL);
	CHECK(session_client->server == client->endpoint->server);
	client->session_client = session_client;
	client->owner.ops = &owner_ops;
	session->owner = &client->owner;
	if (client->frontend->conf.reconnect_ms == 0)
		stream_keep_nothing(&session->standalone);
	if (client->get == NULL) /* lost meanwhile, or gone */
		return;
	client_set_state(client, CLIENT_LIVE);
	session_forget_marks(session);
	session_hold(session);
	CHECK(sse_get_attach(client->get, client_id(client), &session->standalone,
			     STREAM_FROM_HERE));
}

static void sse_call_on_response(struct call *call, const struct slice *parts, size_t count)
{
	const struct sse_call *sse_call = container_of(call, struct sse_call, call);
	bool has_begun = call->method->id == METHOD_INITIALIZE &&
			 call->client->session->state == SESSION_LIVE;
	struct sse_client *client;

	if (has_begun && sse_call->client->state == CLIENT_LOST)
		session_end_with(call->client->session, &sse_call->access);
	client = sse_call_end(call);
	if (has_begun)
		client_adopt(client, call->client);
	if (!client->is_replaying)
		sse_client_tell(client, parts, count);
	else if (client->session_client == NULL)
		client_close(client);
	client->is_replaying = false;
}

static void sse_call_on_failed(struct call *call, enum reason reason)
{
	struct sse_client *client = sse_call_end(call);
	at_end(buf_fini) struct buf text = { 0 };

	if (client->is_replaying) { /* when it comes back, this is tried again */
		client_close(client);
		return;
	}
	answer_append_reason(&text, call->id, reason, client->endpoint->server->conf.name);
	sse_client_tell(client, (struct slice[]){ buf_slice(&text) }, 1);
}

static void sse_call_on_cancelled(struct call *call)
{
	sse_call_end(call);
}

static const struct caller *sse_call_who(struct call *call, struct caller *room)
{
	const struct sse_call *sse_call = container_of(call, struct sse_call, call);

	*room = (struct caller){
		.frontend = sse_call->client->frontend,
		.endpoint = sse_call->client->endpoint,
		.access = sse_call->access,
	};
	return room;
}

static bool sse_call_judge(struct call *call, const struct envelope *env,
			   struct call_refusal *refusal_r)
{
	struct sse_call *sse_call = container_of(call, struct sse_call, call);
	struct caller caller;
	bool is_admitted;

	(void)sse_call_who(call, &caller);
	is_admitted = admission_judge(&caller, call, env, refusal_r);
	sse_call->access = caller.access; /* it may have been replaced */
	return is_admitted;
}

static const struct call_ops sse_call_ops = {
	.who = sse_call_who,
	.judge = sse_call_judge,
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

/* The stream, and calls sent with other tokens, go on. AUTH-SES-07 */
static void sse_call_on_denied(struct deny_watcher *watcher)
{
	forward_deny(&container_of(watcher, struct sse_call, deny_watcher)->call);
}

static const struct deny_watcher_ops sse_call_watcher_ops = {
	.show = sse_call_show,
	.on_denied = sse_call_on_denied,
};

/* Forwards an admitted message. The client may have ended afterwards. */
static void sse_client_forward(struct sse_client *client, const struct admission *admission,
			       const struct envelope *env)
{
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
	CHECK(access->principal == client->principal);
	sse_call = mem_zalloc(sizeof(*sse_call));
	sse_call->client = client;
	sse_call->access = access_copy(access);
	deny_watcher_init(&sse_call->deny_watcher, &sse_call_watcher_ops);
	if (!principal_is_anonymous(access->principal))
		deny_list_watch(client->frontend->authorization.deny_list, &sse_call->deny_watcher);
	call_init(&sse_call->call, &sse_call_ops, env);
	if (!admission->is_initialize) {
		forward_request(admission->client, &sse_call->call, admitted);
		return;
	}
	CHECK(client->opening == NULL && client->state == CLIENT_OPEN);
	client->opening = &sse_call->call;
	client->get->revision = NULL; /* a new client, after all */
	access_keep_claims(&client->get->caller.access);
	client_session_open(client->frontend->router, client->endpoint->server, client->principal,
			    http_conn_client(client->get->exchange.conn), &sse_call->call, admitted,
			    false);
}

/* ---- GET ---- */

static void get_open(struct sse_get *get, const struct answer *answer)
{
	struct sse_client *client = mem_zalloc(sizeof(*client));

	client->frontend = get->caller.frontend;
	client->endpoint = get->caller.endpoint;
	client->principal = principal_ref(get->caller.access.principal);
	client->get = get;
	list_init(&client->link);
	timer_init(&client->patience, client_on_impatience);
	task_init(&client->farewell, client_on_farewell);
	session_table_add(&client->frontend->sse_clients, &client->entry);
	get->client = client;
	client_set_state(client, CLIENT_OPEN);
	if (get->names_revision)
		timer_start(client->frontend->router->loop, &client->patience, WORD_MS);
	sse_get_begin(get, client_id(client), answer, 0);
}

/* The client has come back, whether or not its old connection is known to have ended. */
static void get_resume(struct sse_get *get, struct sse_client *client, const struct answer *answer)
{
	struct sse_get *old = client->get;
	struct client *session_client = client->session_client;
	bool is_whole = true;

	if (old != NULL && old->writer.reader.stream == NULL)
		http_stream_end(old->exchange.conn); /* else its writer ends it when detached */
	client->get = get;
	get->client = client;
	if (client->state == CLIENT_LOST) {
		client_set_state(client, session_client != NULL ? CLIENT_LIVE : CLIENT_OPEN);
		if (session_client != NULL) {
			session_forget_marks(session_client->session);
			session_hold(session_client->session);
		}
	}
	if (session_client != NULL)
		is_whole = sse_get_attach(get, client_id(client),
					  &session_client->session->standalone, get->after);
	if (old != NULL)
		sse_get_end(old);
	sse_get_begin(get, client_id(client), answer,
		      session_client != NULL ? get->writer.reader.position : get->after);
	if (!is_whole)
		sse_get_tell_hole(get, client_id(client));
}

/*
 * Opens a new session with the revision that the client has agreed on. What else it said when it
 * initialized is not known, so the session declares no capabilities.
 */
static void client_replay(struct sse_client *client)
{
	at_end(buf_fini) struct buf body = { 0 };
	struct admission admission = {
		.front = FRONT_HTTP_SSE,
		.intent = ADMISSION_SEND,
		.caller = &client->get->caller,
		.peer = http_conn_client(client->get->exchange.conn),
		.session = { .is_named = true, .is_known = true },
	};

	CHECK(is_unnamed(client) && client->opening == NULL);
	buf_printf(&body,
		   "{\"jsonrpc\":\"2.0\",\"id\":\"mcpgated\",\"method\":\"initialize\",\"params\":{"
		   "\"protocolVersion\":\"%.*s\",\"capabilities\":{},\"clientInfo\":{"
		   "\"name\":\"unknown\",\"version\":\"0\"}}}",
		   SLICE_ARG(client->get->revision->name));
	admission.body = buf_slice(&body);
	client->is_replaying = true;
	if (admission_admit(&admission))
		sse_client_forward(client, &admission, admitted_next(admission.admitted));
	else
		client_close(client);
	admission_fini(&admission);
}

/*
 * The only lost client that this caller has here with this revision. Only for callers with a token:
 * to all others, a lost session belongs to whoever has its id.
 */
static struct sse_client *find_lost(const struct sse_get *get)
{
	const struct caller *caller = &get->caller;
	struct sse_client *found = NULL;

	if (get->revision == NULL || principal_is_anonymous(caller->access.principal))
		return NULL;
	LIST_EACH(struct sse_client, client, &caller->frontend->sse_lost, link) {
		if (!caller_is_at(caller, client->endpoint) || client->session_client == NULL ||
		    client->principal != caller->access.principal ||
		    (get->names_revision && client->session_client->revision != get->revision))
			continue;
		if (found != NULL)
			return NULL;
		found = client;
	}
	return found;
}

/* Whether the client's token suffices at the endpoint of this server, to which it is brought. */
static bool client_may_settle(struct sse_client *client, const struct server *server)
{
	const struct authorization *auth = &client->frontend->authorization;
	struct refusal refusal;

	client_settle(client, server);
	return authorization_is_current(auth, &client->endpoint->place, &client->get->caller.access,
					&refusal);
}

/* Gives the session of a lost client, with its calls, to another client at its endpoint. */
static void client_take(struct sse_client *client, struct sse_client *lost)
{
	struct client *session_client = lost->session_client;

	CHECK(lost->state == CLIENT_LOST && lost->opening == NULL);
	CHECK(session_client != NULL && session_client->session->owner == &lost->owner);
	LIST_EACH(struct call, call, &session_client->calls, link)
		if (call->ops == &sse_call_ops)
			container_of(call, struct sse_call, call)->client = client;
	lost->session_client = NULL;
	session_client->session->owner = NULL;
	client_end(lost);
	client_adopt(client, session_client);
}

static void sse_client_go_on(struct sse_client *client)
{
	struct sse_client *lost = find_lost(client->get);

	if (lost != NULL && client_may_settle(client, lost->endpoint->server)) {
		client_take(client, lost);
	} else {
		client_settle(client, NULL);
		client_replay(client);
	}
}

/* Fills in what admission needs to know of the session. */
static void sse_client_show(const struct sse_client *client, struct admission *admission)
{
	CHECK(client->opening == NULL || client->session_client == NULL);
	admission->session.is_known = true;
	admission->session.is_opening = client->opening != NULL;
	admission->session.is_replaying = client->is_replaying;
	admission->session.is_lost = client->state == CLIENT_LOST;
	admission->session.may_go_on = is_unnamed(client);
	admission->session.says_so = is_unnamed(client) && client->get->names_revision;
	admission->session.client = client->session_client;
}

static void get_on_body(struct http_exchange *exchange, not_used struct slice body)
{
	struct sse_get *get = container_of(exchange, struct sse_get, exchange);
	struct caller *caller = &get->caller;
	struct answer answer = caller_answer(caller, exchange->conn);
	struct sse_client *client = sse_client_find(&get->caller, get->id);
	struct admission admission = {
		.front = FRONT_HTTP_SSE,
		.intent = ADMISSION_LISTEN,
		.caller = caller,
		.peer = http_conn_client(exchange->conn),
		.session = { .is_named = get->is_resuming, .is_known = client != NULL },
		.is_resuming = get->is_resuming,
	};

	if (client != NULL)
		admission.session.client = client->session_client;
	if (!admission_admit(&admission)) {
		refusal_send(&admission.refusal, caller->frontend, caller->endpoint, &answer);
		sse_get_end(get);
	} else if (client != NULL) {
		get_resume(get, client, &answer);
	} else {
		get_open(get, &answer);
	}
	admission_fini(&admission);
}

static void get_on_room(struct http_exchange *exchange)
{
	event_writer_on_room(&container_of(exchange, struct sse_get, exchange)->writer);
}

static void get_on_gone(struct http_exchange *exchange, enum reason reason)
{
	struct sse_get *get = container_of(exchange, struct sse_get, exchange);

	if (get->client != NULL)
		client_lose(get->client, reason);
	else
		sse_get_end(get);
}

static const struct http_exchange_ops get_ops = {
	.on_body = get_on_body,
	.on_room = get_on_room,
	.on_gone = get_on_gone,
};

/*
 * Reads what Last-Event-ID names. After "-0", nothing but the endpoint event was seen: if that
 * client does not exist, it had no session, and this is a new client.
 */
static void get_read_event(struct sse_get *get, struct slice event)
{
	if (event.n == 0)
		return;
	get->is_resuming = true;
	if (event_id_parse_of_client(event, get->id, &get->after) < 0)
		memset(get->id, 0, sizeof(get->id));
	else if (get->after == 0 && sse_client_find(&get->caller, get->id) == NULL)
		get->is_resuming = false;
}

struct http_exchange *http_sse_get(const struct endpoint_request *request)
{
	const struct slice named = request->http->fields[HTTP_MCP_PROTOCOL_VERSION];
	struct sse_get *get;

	if (!http_request_accepts(request->http, "text/event-stream"))
		return refusal_send_head(&request->answer, 406,
					 "Not acceptable: GET answers with text/event-stream");
	get = mem_zalloc(sizeof(*get));
	get->exchange.ops = &get_ops;
	caller_init(&get->caller, request);
	get->token_watch = token_watch_new(request, &get_watch_ops, get);
	event_writer_init(&get->writer);
	get->writer.on_end = get_on_events_end;
	get_read_event(get, request->http->fields[HTTP_LAST_EVENT_ID]);
	get->names_revision = named.n > 0;
	if (!get->is_resuming && request->frontend->conf.reconnect_ms > 0)
		get->revision = revision_find(named.n > 0 ? named : SLICE_LIT("2024-11-05"));
	get->after = get->is_resuming ? get->after : STREAM_FROM_HERE;
	return &get->exchange;
}

/* ---- POST ---- */

/*
 * POSTs of HTTP+SSE. One that is accepted is answered with a status only; responses to its requests
 * go to the client's stream.
 */

struct sse_post {
	struct http_exchange exchange;
	struct caller caller;
	bool names_client;
	bool is_taken;              /* its body is being taken */
	char id[SESSION_ID_LENGTH]; /* all zeros: what was sent cannot be an id */
};

static void post_end(struct sse_post *post)
{
	caller_fini(&post->caller);
	loop_defer_free(post->caller.frontend->router->loop, post);
}

/* Requests are refused on the client's stream. */
static void post_refuse_requests(struct sse_post *post, const struct admission *admission)
{
	for (size_t i = 0; i < admission->count; i++) {
		const struct envelope *env = &admission->messages[i];
		struct sse_client *client = sse_client_find(&post->caller, post->id);
		at_end(buf_fini) struct buf text = { 0 };

		if (client == NULL || env->kind != ENVELOPE_REQUEST)
			continue;
		refusal_append(&admission->refusal, post->caller.endpoint, env->id.text, &text);
		sse_client_tell(client, (struct slice[]){ buf_slice(&text) }, 1);
	}
}

/* False, too, if its client has left meanwhile. */
static bool post_admit(struct sse_post *post, struct admission *admission, struct slice body)
{
	const struct sse_client *client;
	bool is_admitted;

	*admission = (struct admission){
		.front = FRONT_HTTP_SSE,
		.intent = ADMISSION_SEND,
		.caller = &post->caller,
		.peer = http_conn_client(post->exchange.conn),
		.may_pause = true,
		.body = body,
	};
	do {
		admission->session = (struct session_named){ .is_named = post->names_client };
		client = sse_client_find(&post->caller, post->id);
		if (client != NULL)
			sse_client_show(client, admission);
		is_admitted = admission_admit(admission);
	} while (admission->has_paused && post->exchange.conn != NULL);
	return is_admitted;
}

static void sse_post_on_body(struct http_exchange *exchange, struct slice body)
{
	struct sse_post *post = container_of(exchange, struct sse_post, exchange);
	struct caller *caller = &post->caller;
	struct sse_client *client;
	const struct envelope *env;
	uint64_t began_ns = clock_monotonic_ns();
	struct answer answer;
	struct admission admission;
	bool is_admitted;

	post->is_taken = true;
	is_admitted = post_admit(post, &admission, body);
	if (!is_admitted && admission.goes_on) {
		client = sse_client_find(caller, post->id);
		CHECK(client != NULL);
		admission_fini(&admission);
		sse_client_go_on(client); /* that may end it */
		is_admitted = post_admit(post, &admission, body);
	}
	answer = caller_answer(caller, exchange->conn);
	if (exchange->conn == NULL) {
		CHECK(aside_is_here()); /* it has left meanwhile */
	} else if (is_admitted) {
		/* Any of the messages may end the client. */
		while ((env = admitted_next(admission.admitted)) != NULL &&
		       (client = sse_client_find(caller, post->id)) != NULL)
			sse_client_forward(client, &admission, env);
		answer_empty(&answer, 202, slice_of(NULL, 0));
	} else if (admission.refusal.is_in_band) {
		post_refuse_requests(post, &admission);
		answer_empty(&answer, 202, slice_of(NULL, 0));
	} else {
		refusal_send(&admission.refusal, caller->frontend, caller->endpoint, &answer);
	}
	admission_fini(&admission);
	principal_charge(caller->access.principal, began_ns + aside_away_ns());
	post_end(post);
}

static void sse_post_on_gone(struct http_exchange *exchange, not_used enum reason reason)
{
	struct sse_post *post = container_of(exchange, struct sse_post, exchange);

	if (!post->is_taken)
		post_end(post);
}

static uint64_t sse_post_caller(const struct http_exchange *exchange)
{
	return caller_number(&container_of(exchange, const struct sse_post, exchange)->caller,
			     exchange->conn);
}

static const struct http_exchange_ops post_ops = {
	.on_body = sse_post_on_body,
	.caller = sse_post_caller,
	.on_gone = sse_post_on_gone,
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
