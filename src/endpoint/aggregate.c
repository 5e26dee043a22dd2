/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gateway sends waits in `inbox` and is taken at the end of the turn: never does a leg
 * answer while its question is still being asked. A message that must wait (for a leg, or a list)
 * stays there and is looked at again when something has changed. A list is gathered from all legs;
 * a leg that does not answer in time is left out, and when it is back, the client is told that the
 * lists have changed.
 *
 * A leg:	closed -> opening -> open -> lost -> opening …
 */
#include "endpoint/aggregate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "endpoint/admission.h"
#include "endpoint/answer.h"
#include "endpoint/caller.h"
#include "endpoint/catalogue.h"
#include "endpoint/frontend.h"
#include "endpoint/refusal.h"
#include "io/loop.h"
#include "jsonrpc/msg.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/splice.h"
#include "jsonrpc/value.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/client_session.h"
#include "router/dispatch.h"
#include "router/forward.h"
#include "router/judgement.h"
#include "router/pool.h"
#include "router/router.h"
#include "router/server_capabilities.h"
#include "session/session.h"
#include "upstream/upstream.h"
#include "upstream/upstream_ops.h"

#define PATIENCE_MS 10000      /* how long a handshake or a list waits for a leg */
#define RETRY_MS 10000         /* a lost leg is opened again */
#define RETRY_LEAST_MS 1000    /* even if a call asks for it */
#define PAGES_MAX 1000         /* of one list of one leg */
#define INSTRUCTIONS_MAX 65536 /* bytes, of one leg */
#define URI_NOT_FOUND (-32002) /* MCP: resource not found */
#define HASH_TAIL 9            /* of a shortened name: catalogue_show_name */

static const struct slice none = { NULL, 0 };

enum leg_state { LEG_CLOSED, LEG_OPENING, LEG_OPEN, LEG_LOST };

/* One of the servers. */
struct leg {
	struct aggregate *aggregate;
	size_t index;
	char *name; /* of its server */
	struct slice prefix;
	enum leg_state state;
	struct client *client;       /* its session's, while it is open */
	struct session_owner owner;  /* of that session */
	struct stream_reader reader; /* of what belongs to no call */
	struct server_capabilities capabilities;
	struct buf instructions;
	uint64_t lost_at_ms;
	enum reason lost_as; /* REASON_NONE: its caller may not use it */
	bool is_missed;      /* the client was shown something without it */
};

enum purpose {
	FOR_OPENING, /* a leg's initialize */
	FOR_CLIENT,  /* passed on: the answer is the client's */
	FOR_LIST,    /* a page for gather */
	FOR_NOBODY,  /* our own, whose answer is not needed */
};

/* A request to a leg's server; in the aggregate's `calls`. */
struct leg_call {
	struct call call;
	struct list link;
	struct leg *leg;
	enum purpose purpose;
	struct gather *gather; /* FOR_LIST; NULL: it did not wait */
	struct access access;  /* the sender's */
};

enum share_state { SHARE_DUE, SHARE_ASKED, SHARE_DONE };

/* What one leg has of a list. */
struct share {
	enum share_state state;
	struct msg **pages;
	size_t page_count;
};

/* A list that is being fetched from all legs. */
struct gather {
	struct list link;
	struct aggregate *aggregate;
	enum catalogue_kind kind;
	char *id; /* of the request that it answers; NULL: it is for the catalogue alone */
	struct access access;
	struct timer patience;
	bool is_late;
	size_t bytes;
	struct share shares[];
};

/* A message of the gateway. */
struct inbound {
	struct list link;
	struct msg *msg;
};

struct aggregate {
	struct upstream upstream;
	struct caller caller; /* who has sent the last request; access.principal NULL: nobody yet */
	struct peer peer;
	struct leg *legs;
	size_t leg_count;
	bool overlaps; /* a prefix begins with another one: names alone do not tell the leg */
	struct list inbox, calls, gathers;
	size_t inbox_bytes;
	struct catalogue catalogues[CATALOGUE_KINDS];
	bool is_known[CATALOGUE_KINDS];
	struct task task;
	struct timer patience; /* of the handshake */
	struct timer retry;
	struct msg *params; /* of initialize */
	char *level;        /* params of logging/setLevel; NULL: not set */
	bool is_started, is_late, is_shaken, is_initialized, is_stopped;
};

static struct aggregate *aggregate_of(const struct upstream *upstream)
{
	return container_of(upstream, struct aggregate, upstream);
}

static void look_again(struct aggregate *a)
{
	task_schedule(a->upstream.shared->loop, &a->task);
}

/* ---- to the client ---- */

static void deliver(struct aggregate *a, struct slice text)
{
	struct envelope env;
	struct error err;

	if (a->upstream.state == UPSTREAM_CLOSED)
		return;
	upstream_on_sign_of_life(&a->upstream);
	if (scan_envelope(text, &scan_limits_none, SCAN_LENIENT, &env, &err) == 0)
		upstream_on_message(&a->upstream, &env);
}

static void deliver_error(struct aggregate *a, struct slice id, int code, const char *message)
{
	struct buf text = { 0 };

	write_error(&text, id, code, slice_str(message), none);
	deliver(a, buf_slice(&text));
	buf_fini(&text);
}

static void deliver_result(struct aggregate *a, struct slice id, struct slice result)
{
	struct buf text = { 0 };

	write_result(&text, id, result);
	deliver(a, buf_slice(&text));
	buf_fini(&text);
}

static void deliver_reason(struct aggregate *a, struct slice id, enum reason reason,
			   const char *server)
{
	struct buf text = { 0 };

	answer_append_reason(&text, id, reason, server);
	deliver(a, buf_slice(&text));
	buf_fini(&text);
}

/* The lists that the leg has part in may have changed. */
static void tell_changes(struct aggregate *a, const struct leg *leg)
{
	static const struct {
		unsigned int offer;
		const char *method;
	} lists[] = {
		{ OFFER_TOOLS, "notifications/tools/list_changed" },
		{ OFFER_PROMPTS, "notifications/prompts/list_changed" },
		{ OFFER_RESOURCES, "notifications/resources/list_changed" },
	};

	memset(a->is_known, 0, sizeof(a->is_known));
	for (size_t i = 0; i < ARRAY_LEN(lists) && a->is_shaken; i++) {
		struct buf text = { 0 };

		if (!(leg->capabilities.offers & lists[i].offer))
			continue;
		write_call(&text, none, slice_str(lists[i].method), none);
		deliver(a, buf_slice(&text));
		buf_fini(&text);
	}
}

/* ---- to a leg's server ---- */

/* What admission needs to judge a message for a leg. */
struct entry {
	struct caller caller;
	struct endpoint endpoint;
	struct admission admission;
};

/* Of the leg's session; of one that is to begin, of the server that has its name now. NULL: none. */
static const struct endpoint *find_endpoint(const struct leg *leg)
{
	const struct frontend_conf *conf = &leg->aggregate->caller.frontend->conf;

	for (size_t i = 0; i < conf->endpoint_count; i++) {
		const struct endpoint *endpoint = &conf->endpoints[i];
		const struct server *server = endpoint->server;

		if (server != NULL &&
		    (leg->client != NULL ? server == leg->client->server :
					   !server->is_retired && server->conf.legs.count == 0 &&
						   strcmp(server->conf.name, leg->name) == 0))
			return endpoint;
	}
	return NULL;
}

/*
 * The leg's server with its own rules, and with what a token must be for: that is what the client
 * has signed in for, the whole endpoint. The access is judged again for this server.
 */
static bool entry_init(struct entry *entry, const struct leg *leg, const struct access *access)
{
	const struct aggregate *a = leg->aggregate;
	const struct endpoint *own = find_endpoint(leg);
	const struct protected_resource *whole = &a->caller.endpoint->place;

	if (own == NULL)
		return false;
	entry->endpoint = *own;
	entry->endpoint.place.server = whole->server;
	entry->endpoint.place.resource = whole->resource;
	entry->endpoint.place.metadata = whole->metadata;
	entry->endpoint.place.accepted = whole->accepted;
	entry->caller = (struct caller){
		.frontend = a->caller.frontend,
		.endpoint = &entry->endpoint,
		.access = access_copy(access),
	};
	entry->caller.access.configuration = 0;
	return true;
}

static void entry_fini(struct entry *entry, struct leg_call *lc)
{
	admission_fini(&entry->admission);
	if (lc != NULL) {
		access_fini(&lc->access);
		lc->access = access_copy(&entry->caller.access);
	}
	access_fini(&entry->caller.access);
}

/* False: it is refused, and entry_fini must follow all the same. */
static bool admit(struct entry *entry, const struct leg *leg, struct slice body)
{
	struct admission *admission = &entry->admission;

	admission_init(admission);
	admission->front = FRONT_AGGREGATE;
	admission->intent = ADMISSION_SEND;
	admission->caller = &entry->caller;
	admission->peer = &leg->aggregate->peer;
	admission->session.is_named = admission->session.is_known = leg->client != NULL;
	admission->session.client = leg->client;
	admission->body = body;
	return admission_admit(admission);
}

static void deliver_refusal(struct aggregate *a, struct slice id, const struct entry *entry)
{
	const struct refusal *refusal = &entry->admission.refusal;
	struct buf text = { 0 };

	if (refusal->is_in_band && refusal->form != REFUSAL_CHALLENGE)
		refusal_append(refusal, &entry->endpoint, id, &text);
	else
		write_error(&text, id, refusal->code != 0 ? refusal->code : MCP_INVALID_REQUEST,
			    slice_str(refusal->description), none);
	deliver(a, buf_slice(&text));
	buf_fini(&text);
}

/* ---- legs ---- */

/* reason: for clients; REASON_NONE: its caller may not use it, and what was lost is not theirs. */
static void leg_lose(struct leg *leg, enum reason reason, const char *why)
{
	struct aggregate *a = leg->aggregate;

	if (a->is_stopped)
		return;
	if (leg->state != LEG_LOST && reason != REASON_NONE)
		LOG_BY(LEG_LOST, (uintptr_t)a->upstream.server,
		       LOG_STR("endpoint", a->upstream.server->conf.name),
		       LOG_STR("server", leg->name), LOG_STR("reason", why));
	leg->state = LEG_LOST;
	leg->lost_as = reason;
	leg->lost_at_ms = clock_now_ms();
	leg->is_missed = true;
	if (reason != REASON_NONE && !timer_is_running(&a->retry))
		timer_start(a->upstream.shared->loop, &a->retry, RETRY_MS);
	look_again(a);
}

static void leg_on_session_end(struct session_owner *owner)
{
	struct leg *leg = container_of(owner, struct leg, owner);

	leg->client = NULL;
	if (leg->aggregate->caller.frontend->router->is_draining) {
		leg->state = LEG_CLOSED;
		return;
	}
	tell_changes(leg->aggregate, leg);
	leg_lose(leg, REASON_BACKEND_DOWN, "its session has ended");
}

static const struct session_owner_ops leg_owner_ops = { .on_end = leg_on_session_end };

static struct leg_call *leg_call_new(struct leg *leg, enum purpose purpose,
				     const struct access *access)
{
	struct leg_call *lc = mem_zalloc(sizeof(*lc));

	lc->leg = leg;
	lc->purpose = purpose;
	lc->access = access_copy(access);
	list_append(&leg->aggregate->calls, &lc->link);
	return lc;
}

static void leg_call_free(struct leg_call *lc)
{
	list_remove(&lc->link);
	access_fini(&lc->access);
	loop_defer_free(lc->leg->aggregate->upstream.shared->loop, lc);
}

static const struct call_ops leg_call_ops;

/*
 * Sends a request to the leg, which is open. False: it was refused, with the text in `entry`, whose
 * end is the caller's; or (entry->caller.frontend NULL) its server is gone.
 */
static bool leg_ask(struct leg *leg, struct slice text, enum purpose purpose, struct gather *gather,
		    const struct access *access, struct entry *entry)
{
	struct leg_call *lc;
	const struct envelope *env;

	CHECK(leg->state == LEG_OPEN && leg->client != NULL);
	entry->caller.frontend = NULL;
	if (!entry_init(entry, leg, access))
		return false;
	if (!admit(entry, leg, text))
		return false;
	lc = leg_call_new(leg, purpose, access);
	lc->gather = gather;
	env = admitted_next(entry->admission.admitted);
	CHECK(env != NULL && env->kind == ENVELOPE_REQUEST);
	call_init(&lc->call, &leg_call_ops, env);
	forward_request(leg->client, &lc->call, entry->admission.admitted);
	return true;
}

/* A request of our own, whose answer is not needed. */
static void leg_send(struct leg *leg, const char *method, struct slice params)
{
	struct buf text = { 0 };
	struct entry entry;

	write_call(&text, SLICE_LIT("\"own\""), slice_str(method), params);
	(void)leg_ask(leg, buf_slice(&text), FOR_NOBODY, NULL, &leg->aggregate->caller.access,
		      &entry);
	if (entry.caller.frontend != NULL)
		entry_fini(&entry, NULL);
	buf_fini(&text);
}

/* False: it was not let through. */
static bool leg_notify(struct leg *leg, struct slice text)
{
	struct entry entry;
	bool is_admitted;

	if (leg->state != LEG_OPEN || !entry_init(&entry, leg, &leg->aggregate->caller.access))
		return false;
	is_admitted = admit(&entry, leg, text);
	if (is_admitted && admitted_next(entry.admission.admitted) != NULL)
		forward_notification(leg->client, entry.admission.admitted);
	entry_fini(&entry, NULL);
	return is_admitted;
}

/* On behalf of whoever has this access. leg_call_ops has what follows. */
static void leg_open(struct leg *leg, const struct access *access)
{
	struct aggregate *a = leg->aggregate;
	const struct envelope *env;
	struct leg_call *lc;
	struct buf text = { 0 };
	struct entry entry;

	CHECK(leg->state == LEG_CLOSED || leg->state == LEG_LOST);
	CHECK(leg->client == NULL && a->params != NULL);
	if (!entry_init(&entry, leg, access)) {
		leg_lose(leg, REASON_BACKEND_DOWN, "there is no such server now");
		return;
	}
	write_call(&text, SLICE_LIT("\"leg\""), SLICE_LIT("initialize"), a->params->text);
	if (admit(&entry, leg, buf_slice(&text))) {
		leg->state = LEG_OPENING;
		access_keep_claims(&entry.caller.access);
		lc = leg_call_new(leg, FOR_OPENING, access);
		env = admitted_next(entry.admission.admitted);
		call_init(&lc->call, &leg_call_ops, env);
		client_session_open(a->caller.frontend->router,
				    (struct server *)(uintptr_t)entry.endpoint.server,
				    entry.caller.access.principal, &a->peer, &lc->call,
				    entry.admission.admitted, true);
	} else {
		leg_lose(leg, REASON_NONE, "its caller may not use it");
	}
	entry_fini(&entry, NULL);
	buf_fini(&text);
}

static void leg_need(struct leg *leg, const struct access *access)
{
	if (leg->state == LEG_CLOSED ||
	    (leg->state == LEG_LOST && clock_now_ms() - leg->lost_at_ms >= RETRY_LEAST_MS))
		leg_open(leg, access);
}

static void on_retry(struct timer *timer)
{
	struct aggregate *a = container_of(timer, struct aggregate, retry);

	CHECK(!a->is_stopped);
	for (size_t i = 0; i < a->leg_count; i++)
		if (a->legs[i].state == LEG_LOST && a->legs[i].lost_as != REASON_NONE)
			leg_open(&a->legs[i], &a->caller.access);
}

/* ---- what comes from a leg ---- */

/* A request's id towards the client: which leg, and the id there. */
static void append_id(struct buf *out, const struct leg *leg, struct slice id)
{
	struct buf text = { 0 };

	buf_printf(&text, "%zu:%.*s", leg->index, SLICE_ARG(id));
	write_string(out, buf_slice(&text));
	buf_fini(&text);
}

/* Spans that name a request of the leg's server get the name that append_id makes of `id`. */
static void deliver_with_id(const struct leg *leg, const struct envelope *env, struct slice id,
			    struct slice token)
{
	struct splice_edit edits[] = { { .span = id }, { .span = token } };
	struct buf text = { 0 }, whole = { 0 };
	struct splice_edit swapped;

	append_id(&whole, leg, id);
	edits[0].with = edits[1].with = buf_slice(&whole);
	if (token.n > 0 && token.p < id.p) {
		swapped = edits[0];
		edits[0] = edits[1];
		edits[1] = swapped;
	}
	splice_append(&text, env->text, edits, token.n > 0 ? 2 : 1, 0);
	deliver(leg->aggregate, buf_slice(&text));
	buf_fini(&text);
	buf_fini(&whole);
}

/*
 * The leg and the id there that such a name stands for. NULL: it is none, or its leg is closed.
 */
static struct leg *find_by_id(struct aggregate *a, struct json name, struct slice *id_r)
{
	struct slice rest = scan_plain_string(name);
	struct slice number = slice_cut(&rest, ':');
	uint64_t index, id;

	*id_r = rest;
	if (text_parse_u64(number, &index) < 0 || index >= a->leg_count ||
	    text_parse_u64(rest, &id) < 0 || a->legs[index].state != LEG_OPEN)
		return NULL;
	return &a->legs[index];
}

static void note_list_change(struct aggregate *a, struct slice capability)
{
	if (slice_is_equal(capability, SLICE_LIT("tools"))) {
		a->is_known[CATALOGUE_TOOLS] = false;
	} else if (slice_is_equal(capability, SLICE_LIT("prompts"))) {
		a->is_known[CATALOGUE_PROMPTS] = false;
	} else {
		a->is_known[CATALOGUE_RESOURCES] = false;
		a->is_known[CATALOGUE_TEMPLATES] = false;
	}
}

/* A request or notification of its server. */
static void leg_take(struct leg *leg, struct slice text)
{
	const struct method *method;
	struct envelope env;
	struct error err;
	struct json id;

	if (scan_envelope(text, &scan_limits_none, SCAN_LENIENT, &env, &err) < 0)
		return; /* cannot happen: it was written for a client */
	method = method_find(env.method);
	if (method->id == METHOD_LIST_CHANGED)
		note_list_change(leg->aggregate, slice_str(method->capability));
	id = scan_member(env.params.text, SLICE_LIT("requestId"));
	if (env.kind == ENVELOPE_REQUEST)
		deliver_with_id(leg, &env, env.id.text, env.progress_token.text);
	else if (method->id == METHOD_CANCELLED && id.type != JSON_ABSENT)
		deliver_with_id(leg, &env, id.text, none);
	else
		deliver(leg->aggregate, text);
}

static void reader_on_wake(struct stream_reader *reader)
{
	struct leg *leg = container_of(reader, struct leg, reader);
	uint64_t number;
	struct msg *msg;

	while (reader->stream != NULL && (msg = stream_take(reader, &number)) != NULL) {
		leg_take(leg, msg->text);
		msg_unref(&msg);
	}
}

static void reader_on_detached(struct stream_reader *reader, enum reason reason)
{
	(void)reader; /* its session ends, which is told */
	(void)reason;
}

static const struct stream_reader_ops reader_ops = {
	.on_wake = reader_on_wake,
	.on_detached = reader_on_detached,
};

static void leg_begin(struct leg *leg, struct client *client, const struct envelope *env)
{
	struct aggregate *a = leg->aggregate;
	struct session *session = client->session;
	struct json instructions = scan_member(env->result.text, SLICE_LIT("instructions"));

	leg->state = LEG_OPEN;
	leg->client = client;
	leg->owner.ops = &leg_owner_ops;
	session->owner = &leg->owner;
	stream_keep_nothing(&session->standalone);
	CHECK(stream_attach(&session->standalone, &leg->reader, &reader_ops, STREAM_FROM_HERE));
	server_capabilities_read(&leg->capabilities, env->result.text, false);
	leg->instructions.len = 0;
	if (instructions.text.n <= INSTRUCTIONS_MAX)
		(void)!scan_decode_string(instructions, &leg->instructions);
	if (a->is_initialized)
		(void)leg_notify(
			leg,
			SLICE_LIT(
				"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"));
	if (a->level != NULL && leg->capabilities.offers & OFFER_LOGGING)
		leg_send(leg, "logging/setLevel", slice_str(a->level));
	if (leg->is_missed) {
		LOG_BY(LEG_BACK, (uintptr_t)a->upstream.server,
		       LOG_STR("endpoint", a->upstream.server->conf.name),
		       LOG_STR("server", leg->name));
		leg->is_missed = false;
		tell_changes(a, leg);
	}
	look_again(a);
}

static void on_opened(struct leg_call *lc, const struct envelope *env)
{
	struct client *client = lc->call.client;

	if (env->kind == ENVELOPE_RESULT && client->session->state == SESSION_LIVE)
		leg_begin(lc->leg, client, env);
	else
		leg_lose(lc->leg, REASON_HANDSHAKE_REFUSED, "it refused initialize");
}

static void gather_take(struct leg_call *lc, const struct envelope *env);
static void gather_end_share(struct gather *gather, const struct leg *leg);

static bool leg_call_on_message(struct call *call, enum stream_kind kind, uint64_t key,
				struct msg *msg)
{
	struct leg *leg = container_of(call, struct leg_call, call)->leg;

	(void)kind;
	(void)key;
	reader_on_wake(&leg->reader);
	leg_take(leg, msg->text);
	return true;
}

static bool leg_call_is_reachable(const struct call *call)
{
	(void)call; /* the endpoint's own session decides that */
	return true;
}

static bool leg_call_judge(struct call *call, const struct envelope *env,
			   struct call_refusal *refusal_r)
{
	struct leg_call *lc = container_of(call, struct leg_call, call);
	struct entry entry;
	bool is_admitted;

	if (!entry_init(&entry, lc->leg, &lc->access)) {
		*refusal_r = (struct call_refusal){ .code = MCP_INVALID_REQUEST,
						    .word = "unknown_server" };
		snprintf(refusal_r->text, sizeof(refusal_r->text), "There is no such server now");
		return false;
	}
	is_admitted = admission_judge(&entry.caller, call, env, refusal_r);
	access_fini(&lc->access);
	lc->access = entry.caller.access;
	return is_admitted;
}

/* What the server lacked of the client is told where the client is known. MOD-CAP-01 */
static void deliver_answer(const struct leg_call *lc, struct slice text)
{
	struct aggregate *a = lc->leg->aggregate;
	struct json id = { .type = JSON_NUMBER, .text = lc->call.id };
	struct upstream_request *request = upstream_find_request(&a->upstream, id);

	if (request != NULL && dispatch_is_of_call(request))
		container_of(request, struct call, request)->missing |= lc->call.missing;
	deliver(a, text);
}

static void leg_call_on_response(struct call *call, const struct slice *parts, size_t count)
{
	struct leg_call *lc = container_of(call, struct leg_call, call);
	struct msg *msg = egress_join(parts, count);
	struct envelope env;
	struct error err;

	reader_on_wake(&lc->leg->reader); /* in the order in which the server wrote it */
	if (lc->purpose == FOR_CLIENT)
		deliver_answer(lc, msg->text);
	else if (scan_envelope(msg->text, &scan_limits_none, SCAN_LENIENT, &env, &err) < 0)
		CHECK(false); /* cannot happen: it was written for a client */
	else if (lc->purpose == FOR_OPENING)
		on_opened(lc, &env);
	else if (lc->purpose == FOR_LIST)
		gather_take(lc, &env);
	leg_call_free(lc);
	msg_unref(&msg);
}

static void leg_call_on_failed(struct call *call, enum reason reason)
{
	struct leg_call *lc = container_of(call, struct leg_call, call);

	if (lc->purpose == FOR_CLIENT) {
		deliver_reason(lc->leg->aggregate, call->id, reason, lc->leg->name);
	} else if (lc->purpose == FOR_OPENING) {
		leg_lose(lc->leg, reason, reason_get(reason)->text);
	} else if (lc->gather != NULL) {
		lc->leg->is_missed = true;
		gather_end_share(lc->gather, lc->leg);
	}
	leg_call_free(lc);
}

static void leg_call_on_cancelled(struct call *call)
{
	struct leg_call *lc = container_of(call, struct leg_call, call);

	if (lc->gather != NULL)
		gather_end_share(lc->gather, lc->leg);
	leg_call_free(lc);
}

static const struct call_ops leg_call_ops = {
	.on_message = leg_call_on_message,
	.is_reachable = leg_call_is_reachable,
	.judge = leg_call_judge,
	.on_response = leg_call_on_response,
	.on_failed = leg_call_on_failed,
	.on_cancelled = leg_call_on_cancelled,
};

/* ---- lists ---- */

static const struct {
	struct slice method;
	unsigned int offer;
} lists[] = {
	[CATALOGUE_TOOLS] = { SLICE("tools/list"), OFFER_TOOLS },
	[CATALOGUE_PROMPTS] = { SLICE("prompts/list"), OFFER_PROMPTS },
	[CATALOGUE_RESOURCES] = { SLICE("resources/list"), OFFER_RESOURCES },
	[CATALOGUE_TEMPLATES] = { SLICE("resources/templates/list"), OFFER_RESOURCES },
};

static void on_gather_patience(struct timer *timer)
{
	struct gather *gather = container_of(timer, struct gather, patience);

	gather->is_late = true;
	look_again(gather->aggregate);
}

/* `id` empty: for the catalogue alone. */
static void gather_new(struct aggregate *a, enum catalogue_kind kind, struct slice id)
{
	struct gather *gather =
		mem_zalloc(sizeof(*gather) + a->leg_count * sizeof(gather->shares[0]));

	gather->aggregate = a;
	gather->kind = kind;
	gather->id = id.n > 0 ? mem_dup_slice(id) : NULL;
	gather->access = access_copy(&a->caller.access);
	list_append(&a->gathers, &gather->link);
	timer_init(&gather->patience, on_gather_patience);
	timer_start(a->upstream.shared->loop, &gather->patience, PATIENCE_MS);
	look_again(a);
}

static void gather_free(struct gather *gather)
{
	LIST_FOREACH(node, &gather->aggregate->calls) {
		struct leg_call *lc = container_of(node, struct leg_call, link);

		if (lc->gather == gather)
			lc->gather = NULL;
	}
	for (size_t i = 0; i < gather->aggregate->leg_count; i++) {
		for (size_t p = 0; p < gather->shares[i].page_count; p++)
			msg_unref(&gather->shares[i].pages[p]);
		free(gather->shares[i].pages);
	}
	list_remove(&gather->link);
	timer_stop(&gather->patience);
	access_fini(&gather->access);
	free(gather->id);
	loop_defer_free(gather->aggregate->upstream.shared->loop, gather);
}

static void gather_end_share(struct gather *gather, const struct leg *leg)
{
	gather->shares[leg->index].state = SHARE_DONE;
	look_again(gather->aggregate);
}

/* cursor: JSON text; absent: of the first page. */
static void gather_ask(struct gather *gather, struct leg *leg, struct json cursor)
{
	struct buf params = { 0 }, text = { 0 };
	struct entry entry;

	gather->shares[leg->index].state = SHARE_ASKED;
	if (cursor.type == JSON_STRING)
		buf_printf(&params, "{\"cursor\":%.*s}", SLICE_ARG(cursor.text));
	write_call(&text, SLICE_LIT("\"list\""), lists[gather->kind].method, buf_slice(&params));
	if (!leg_ask(leg, buf_slice(&text), FOR_LIST, gather, &gather->access, &entry))
		gather_end_share(gather, leg);
	if (entry.caller.frontend != NULL)
		entry_fini(&entry, NULL);
	buf_fini(&params);
	buf_fini(&text);
}

/* A page. Its server decides how many there are, and the limit of a response how much is kept. */
static void gather_take(struct leg_call *lc, const struct envelope *env)
{
	struct gather *gather = lc->gather;
	struct json cursor;
	struct share *share;

	if (gather == NULL)
		return;
	share = &gather->shares[lc->leg->index];
	cursor = scan_member(env->result.text, SLICE_LIT("nextCursor"));
	gather->bytes += env->text.n;
	if (env->kind == ENVELOPE_RESULT &&
	    gather->bytes <= gather->aggregate->upstream.server->conf.line_max) {
		share->pages =
			mem_resize(share->pages, (share->page_count + 1) * sizeof(share->pages[0]));
		share->pages[share->page_count++] = msg_new(env->text);
		if (cursor.type == JSON_STRING && lc->leg->state == LEG_OPEN &&
		    share->page_count < PAGES_MAX) {
			gather_ask(gather, lc->leg, cursor);
			return;
		}
	}
	gather_end_share(gather, lc->leg);
}

struct adding {
	struct catalogue *catalogue;
	enum catalogue_kind kind;
	const struct leg *leg;
};

static int add_item(struct slice element, void *arg)
{
	const struct adding *adding = arg;

	if (scan_type(element) == JSON_OBJECT)
		catalogue_add(adding->catalogue, adding->kind, adding->leg->index,
			      adding->leg->prefix, element);
	return 0;
}

static void add_pages(struct gather *gather, const struct leg *leg)
{
	const struct share *share = &gather->shares[leg->index];
	struct adding adding = { &gather->aggregate->catalogues[gather->kind], gather->kind, leg };
	struct error err;

	for (size_t i = 0; i < share->page_count; i++) {
		struct json result = scan_member(share->pages[i]->text, SLICE_LIT("result"));
		struct json items = scan_member(result.text, catalogue_member(gather->kind));

		if (items.type == JSON_ARRAY)
			(void)!scan_array(items.text, SIZE_MAX, add_item, &adding, &err);
	}
}

static void tell_doubles(const struct aggregate *a, enum catalogue_kind kind)
{
	const struct catalogue *catalogue = &a->catalogues[kind];

	LIST_FOREACH(node, &catalogue->items) {
		const struct catalogue_item *item = container_of(node, struct catalogue_item, link);

		if (!item->is_double)
			continue;
		LOG_BY(NAMES_COLLIDE, (uintptr_t)a->upstream.server,
		       LOG_STR("endpoint", a->upstream.server->conf.name),
		       LOG_SLICE("list", catalogue_member(kind)),
		       LOG_STR("server", a->legs[item->leg].name), LOG_SLICE("name", item->shown),
		       LOG_INT("items", catalogue->doubles));
		return;
	}
}

/* All legs have answered, or time is up. */
static void gather_finish(struct gather *gather)
{
	struct aggregate *a = gather->aggregate;
	struct catalogue *catalogue = &a->catalogues[gather->kind];
	struct buf result = { 0 };

	catalogue_clear(catalogue);
	for (size_t i = 0; i < a->leg_count; i++) {
		if (gather->shares[i].state != SHARE_DONE)
			a->legs[i].is_missed = true;
		add_pages(gather, &a->legs[i]);
	}
	tell_doubles(a, gather->kind);
	buf_printf(&result, "{\"%.*s\":[", SLICE_ARG(catalogue_member(gather->kind)));
	catalogue_append(catalogue, gather->kind, &result);
	buf_append_str(&result, "]}");
	if (!a->overlaps)
		catalogue_forget_plain(catalogue);
	a->is_known[gather->kind] = true;
	if (gather->id != NULL)
		deliver_result(a, slice_str(gather->id), buf_slice(&result));
	buf_fini(&result);
	gather_free(gather);
	look_again(a); /* what waited for the catalogue */
}

static void gather_advance(struct gather *gather)
{
	struct aggregate *a = gather->aggregate;
	size_t done = 0;

	for (size_t i = 0; i < a->leg_count; i++) {
		struct share *share = &gather->shares[i];
		struct leg *leg = &a->legs[i];

		if (share->state == SHARE_DUE)
			leg_need(leg, &gather->access);
		if (share->state == SHARE_DUE && leg->state == LEG_OPEN) {
			if (leg->capabilities.offers & lists[gather->kind].offer)
				gather_ask(gather, leg, (struct json){ .type = JSON_ABSENT });
			else
				share->state = SHARE_DONE;
		} else if (share->state == SHARE_DUE && leg->state == LEG_LOST) {
			share->state = SHARE_DONE;
		}
		done += share->state == SHARE_DONE;
	}
	if (done == a->leg_count || gather->is_late)
		gather_finish(gather);
}

/* Whether the catalogue has this list; if not, it is being fetched. */
static bool is_known(struct aggregate *a, enum catalogue_kind kind)
{
	if (a->is_known[kind])
		return true;
	LIST_FOREACH(node, &a->gathers)
		if (container_of(node, struct gather, link)->kind == kind)
			return false;
	gather_new(a, kind, none);
	return false;
}

/* ---- which leg ---- */

enum found { FOUND, FOUND_NOTHING, FOUND_LATER };

struct target {
	struct leg *leg;
	struct buf real; /* the name there */
};

static struct leg *find_by_prefix(struct aggregate *a, struct slice shown, size_t *count_r)
{
	struct leg *found = NULL;

	*count_r = 0;
	for (size_t i = 0; i < a->leg_count; i++) {
		struct leg *leg = &a->legs[i];

		if (shown.n <= leg->prefix.n || !slice_has_prefix(shown, leg->prefix))
			continue;
		found = leg;
		++*count_r;
	}
	return found;
}

/* Whether it may be a name that was shortened, which only the list can tell. */
static bool may_be_short(struct slice shown)
{
	return shown.n > HASH_TAIL && shown.p[shown.n - HASH_TAIL] == '_' &&
	       strspn(shown.p + shown.n - HASH_TAIL + 1, "0123456789abcdef") >= HASH_TAIL - 1;
}

/* shown: NUL-terminated */
static enum found find_name(struct aggregate *a, enum catalogue_kind kind, struct slice shown,
			    struct target *target)
{
	const struct catalogue_item *item = NULL;
	struct leg *leg;
	size_t count;

	leg = find_by_prefix(a, shown, &count);
	if (count > 1 || may_be_short(shown)) {
		if (!is_known(a, kind))
			return FOUND_LATER;
		item = catalogue_find(&a->catalogues[kind], shown);
	} else if (a->is_known[kind]) {
		item = catalogue_find(&a->catalogues[kind], shown);
	}
	if (item != NULL && !item->is_double) {
		target->leg = &a->legs[item->leg];
		buf_append_slice(&target->real, item->real);
		return FOUND;
	}
	if (item != NULL || count != 1)
		return FOUND_NOTHING;
	target->leg = leg;
	buf_append_slice(&target->real, slice_of(shown.p + leg->prefix.n, shown.n - leg->prefix.n));
	return FOUND;
}

/* The leg that has listed the resource, or whose template fits; else the only one that has any. */
static enum found find_uri(struct aggregate *a, struct slice uri, struct target *target)
{
	const struct catalogue_item *item;
	bool has_resources = is_known(a, CATALOGUE_RESOURCES);
	bool has_templates = is_known(a, CATALOGUE_TEMPLATES);
	size_t count = 0;

	if (!has_resources || !has_templates)
		return FOUND_LATER;
	item = catalogue_find(&a->catalogues[CATALOGUE_RESOURCES], uri);
	if (item == NULL)
		item = catalogue_find_template(&a->catalogues[CATALOGUE_TEMPLATES], uri);
	if (item != NULL) {
		target->leg = &a->legs[item->leg];
		return FOUND;
	}
	for (size_t i = 0; i < a->leg_count; i++) {
		if (a->legs[i].state != LEG_OPEN ||
		    !(a->legs[i].capabilities.offers & OFFER_RESOURCES))
			continue;
		target->leg = &a->legs[i];
		count++;
	}
	return count == 1 ? FOUND : FOUND_NOTHING;
}

/* ---- what the client sends ---- */

/* Passes the request on to the leg, with `span` (unless it is empty) replaced. False: it waits. */
static bool pass(struct aggregate *a, struct leg *leg, const struct envelope *env,
		 struct slice span, struct slice with)
{
	struct splice_edit edit = { .span = span, .with = with };
	struct buf text = { 0 };
	struct entry entry;

	leg_need(leg, &a->caller.access);
	if (leg->state == LEG_OPENING)
		return false;
	if (leg->state != LEG_OPEN) {
		deliver_reason(a, env->id.text, REASON_BACKEND_DOWN, leg->name);
		return true;
	}
	splice_append(&text, env->text, &edit, span.n > 0, 0);
	if (!leg_ask(leg, buf_slice(&text), FOR_CLIENT, NULL, &a->caller.access, &entry)) {
		if (entry.caller.frontend != NULL)
			deliver_refusal(a, env->id.text, &entry);
		else
			deliver_reason(a, env->id.text, REASON_BACKEND_DOWN, leg->name);
	}
	if (entry.caller.frontend != NULL)
		entry_fini(&entry, NULL);
	buf_fini(&text);
	return true;
}

static bool pass_by_name(struct aggregate *a, const struct envelope *env, enum catalogue_kind kind,
			 struct json name)
{
	struct target target = { .leg = NULL };
	struct buf shown = { 0 }, with = { 0 };
	enum found found = FOUND_NOTHING;
	bool is_done = true;

	if (scan_decode_string(name, &shown) == 0) {
		buf_terminate(&shown);
		found = find_name(a, kind, buf_slice(&shown), &target);
	}
	if (found == FOUND_NOTHING) {
		deliver_error(a, env->id.text, MCP_INVALID_PARAMS,
			      kind == CATALOGUE_TOOLS ? "Invalid params: there is no such tool" :
							"Invalid params: there is no such prompt");
	} else if (found == FOUND_LATER) {
		is_done = false;
	} else {
		write_string(&with, buf_slice(&target.real));
		is_done = pass(a, target.leg, env, name.text, buf_slice(&with));
	}
	buf_fini(&target.real);
	buf_fini(&shown);
	buf_fini(&with);
	return is_done;
}

static bool pass_by_uri(struct aggregate *a, const struct envelope *env, struct json uri)
{
	struct target target = { .leg = NULL };
	struct buf text = { 0 };
	enum found found = FOUND_NOTHING;
	bool is_done = true;

	if (scan_decode_string(uri, &text) == 0)
		found = find_uri(a, buf_slice(&text), &target);
	if (found == FOUND_NOTHING)
		deliver_error(a, env->id.text, URI_NOT_FOUND, "Resource not found");
	else
		is_done = found == FOUND && pass(a, target.leg, env, none, none);
	buf_fini(&text);
	return is_done;
}

static bool pass_completion(struct aggregate *a, const struct envelope *env)
{
	static const char *const type_way[] = { "ref", "type" };
	static const char *const name_way[] = { "ref", "name" };
	static const char *const uri_way[] = { "ref", "uri" };
	struct slice params = env->params.text;
	struct slice type = scan_plain_string(scan_path(params, type_way, ARRAY_LEN(type_way)));

	if (slice_is_equal(type, SLICE_LIT("ref/prompt")))
		return pass_by_name(a, env, CATALOGUE_PROMPTS,
				    scan_path(params, name_way, ARRAY_LEN(name_way)));
	return pass_by_uri(a, env, scan_path(params, uri_way, ARRAY_LEN(uri_way)));
}

static void set_level(struct aggregate *a, const struct envelope *env)
{
	free(a->level);
	a->level = mem_dup_slice(env->params.text);
	for (size_t i = 0; i < a->leg_count; i++)
		if (a->legs[i].state == LEG_OPEN && a->legs[i].capabilities.offers & OFFER_LOGGING)
			leg_send(&a->legs[i], "logging/setLevel", slice_str(a->level));
	deliver_result(a, env->id.text, SLICE_LIT("{}"));
}

/* ---- the handshake ---- */

static void append_capabilities(const struct aggregate *a, struct buf *out)
{
	static const struct {
		unsigned int offer;
		const char *text;
	} rows[] = {
		{ OFFER_TOOLS, "\"tools\":{\"listChanged\":true}" },
		{ OFFER_PROMPTS, "\"prompts\":{\"listChanged\":true}" },
		{ OFFER_RESOURCES, "\"resources\":{\"listChanged\":true,\"subscribe\":true}" },
		{ OFFER_COMPLETIONS, "\"completions\":{}" },
		{ OFFER_LOGGING, "\"logging\":{}" },
	};
	unsigned int offers = 0;
	const char *comma = "";

	/* What is not known may come: a client may never ask for what was not declared. */
	for (size_t i = 0; i < a->leg_count; i++)
		offers |=
			a->legs[i].state == LEG_OPEN ? a->legs[i].capabilities.offers : UINT32_MAX;
	buf_append_char(out, '{');
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!(offers & rows[i].offer))
			continue;
		buf_printf(out, "%s%s", comma, rows[i].text);
		comma = ",";
	}
	buf_append_char(out, '}');
}

static void append_instructions(const struct aggregate *a, struct buf *out)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < a->leg_count; i++) {
		const struct leg *leg = &a->legs[i];

		if (leg->instructions.len > 0)
			buf_printf(&text, "%s%s (its tools begin with \"%.*s\"):\n%.*s",
				   text.len > 0 ? "\n\n" : "", leg->name, SLICE_ARG(leg->prefix),
				   SLICE_ARG(buf_slice(&leg->instructions)));
	}
	if (text.len > 0) {
		buf_append_str(out, ",\"instructions\":");
		write_string(out, buf_slice(&text));
	}
	buf_fini(&text);
}

static void answer_initialize(struct aggregate *a, const struct envelope *env)
{
	struct json version = scan_member(env->params.text, SLICE_LIT("protocolVersion"));
	struct buf result = { 0 };

	a->is_shaken = true;
	timer_stop(&a->patience);
	for (size_t i = 0; i < a->leg_count; i++)
		a->legs[i].is_missed |= a->legs[i].state != LEG_OPEN;
	buf_printf(&result, "{\"protocolVersion\":%.*s,\"capabilities\":", SLICE_ARG(version.text));
	append_capabilities(a, &result);
	buf_append_str(&result, ",\"serverInfo\":{\"name\":");
	write_string(&result, slice_str(a->upstream.server->conf.name));
	buf_append_str(&result, ",\"version\":\"" PACKAGE_VERSION "\"}");
	append_instructions(a, &result);
	buf_append_char(&result, '}');
	deliver_result(a, env->id.text, buf_slice(&result));
	buf_fini(&result);
}

static void on_patience(struct timer *timer)
{
	struct aggregate *a = container_of(timer, struct aggregate, patience);

	a->is_late = true;
	look_again(a);
}

/* False: it is nobody's. */
static bool take_caller(struct aggregate *a, struct call *call)
{
	struct caller room;
	const struct caller *caller = call->ops->who != NULL ? call->ops->who(call, &room) : NULL;

	if (caller == NULL)
		return false;
	access_fini(&a->caller.access);
	a->caller = (struct caller){
		.frontend = caller->frontend,
		.endpoint = caller->endpoint,
		.access = access_copy(&caller->access),
	};
	a->peer = call->client->peer;
	return true;
}

/* Anybody who waits for this upstream: all have the same rights. */
static bool take_any_caller(struct aggregate *a, const struct list *members)
{
	LIST_FOREACH(node, members) {
		const struct client *client = container_of(node, struct pool_member, link)->client;

		LIST_FOREACH(link, &client->calls)
			if (take_caller(a, container_of(link, struct call, link)))
				return true;
	}
	return false;
}

static bool has_caller(const struct aggregate *a)
{
	return a->caller.access.principal != NULL;
}

/* Why none of the servers is there; REASON_NONE: some is, or may be. */
static enum reason find_loss(const struct aggregate *a)
{
	for (size_t i = 0; i < a->leg_count; i++)
		if (a->legs[i].state != LEG_LOST || a->legs[i].lost_as == REASON_NONE)
			return REASON_NONE;
	return a->legs[0].lost_as;
}

/* False: it waits for legs. */
static bool take_initialize(struct aggregate *a, const struct envelope *env)
{
	const struct pool *pool = a->upstream.pool;
	bool is_first = a->params == NULL;
	enum reason reason;

	if (is_first) {
		a->params = msg_new(env->params.text);
		(void)(take_any_caller(a, &pool->joining) || take_any_caller(a, &pool->members));
		timer_start(a->upstream.shared->loop, &a->patience, PATIENCE_MS);
	}
	for (size_t i = 0; i < a->leg_count && has_caller(a); i++) {
		if (is_first)
			leg_open(&a->legs[i], &a->caller.access);
	}
	for (size_t i = 0; i < a->leg_count && has_caller(a) && !a->is_late; i++)
		if (a->legs[i].state == LEG_OPENING)
			return false;
	reason = find_loss(a);
	if (reason == REASON_NONE) {
		answer_initialize(a, env);
		return true;
	}
	a->is_stopped = true;
	look_again(a);
	upstream_on_lost(&a->upstream, reason);
	return true;
}

static enum catalogue_kind kind_of_list(struct slice method)
{
	enum catalogue_kind kind = 0;

	while (kind < CATALOGUE_KINDS && !slice_is_equal(method, lists[kind].method))
		kind++;
	return kind;
}

/* False: it waits. */
static bool take_request(struct aggregate *a, const struct envelope *env)
{
	enum catalogue_kind list = kind_of_list(env->method);
	enum method_id method = method_find(env->method)->id;
	struct upstream_request *request;

	if (method == METHOD_INITIALIZE)
		return take_initialize(a, env);
	if (method == METHOD_PING) {
		deliver_result(a, env->id.text, SLICE_LIT("{}"));
		return true;
	}
	request = upstream_find_request(&a->upstream, env->id);
	if (request == NULL && method != METHOD_SET_LEVEL && method != METHOD_UNSUBSCRIBE)
		return true; /* nobody waits for it any more */
	if (request != NULL && dispatch_is_of_call(request))
		(void)take_caller(a, container_of(request, struct call, request));
	if (!has_caller(a))
		deliver_error(a, env->id.text, MCP_INTERNAL_ERROR, "Nobody has asked for it");
	else if (list < CATALOGUE_KINDS)
		gather_new(a, list, env->id.text);
	else if (method == METHOD_TOOLS_CALL)
		return pass_by_name(a, env, CATALOGUE_TOOLS, env->name);
	else if (method == METHOD_PROMPTS_GET)
		return pass_by_name(a, env, CATALOGUE_PROMPTS, env->name);
	else if (method == METHOD_RESOURCES_READ || method == METHOD_SUBSCRIBE ||
		 method == METHOD_UNSUBSCRIBE)
		return pass_by_uri(a, env, env->uri);
	else if (method == METHOD_COMPLETE)
		return pass_completion(a, env);
	else if (method == METHOD_SET_LEVEL)
		set_level(a, env);
	else
		deliver_error(
			a, env->id.text, MCP_METHOD_NOT_FOUND,
			"Method not found: an endpoint over several servers does not have it");
	return true;
}

/* The client has cancelled a request, and expects no answer. */
static void take_cancelled(struct aggregate *a, const struct envelope *env)
{
	uint64_t id = value_own_id(scan_member(env->params.text, SLICE_LIT("requestId")));

	LIST_FOREACH_SAFE(node, &a->gathers) {
		struct gather *gather = container_of(node, struct gather, link);
		struct json own = { .type = JSON_NUMBER };

		own.text = gather->id != NULL ? slice_str(gather->id) : none;
		if (gather->id != NULL && value_own_id(own) == id)
			gather_free(gather);
	}
	LIST_FOREACH(node, &a->calls) {
		struct leg_call *lc = container_of(node, struct leg_call, link);
		struct json own = { .type = JSON_NUMBER, .text = lc->call.id };

		if (lc->purpose != FOR_CLIENT || value_own_id(own) != id)
			continue;
		if (leg_notify(lc->leg, env->text)) /* with the client's reason */
			return;
		call_give_up(&lc->call, "the client has cancelled the request");
		call_cancel(&lc->call);
		return;
	}
}

/* The client's progress with what a leg's server has asked. */
static void take_progress(struct aggregate *a, const struct envelope *env)
{
	struct splice_edit edit = { .span = env->progress_of.text };
	const struct leg *leg = find_by_id(a, env->progress_of, &edit.with);
	struct buf text = { 0 };
	struct envelope own;
	struct error err;

	if (leg == NULL)
		return;
	splice_append(&text, env->text, &edit, 1, 0);
	if (scan_envelope(buf_slice(&text), &scan_limits_none, 0, &own, &err) == 0)
		forward_linked_progress(leg->client, &own);
	buf_fini(&text);
}

/* All others concern each of the servers. */
static void take_notification(struct aggregate *a, const struct envelope *env)
{
	enum method_id method = method_find(env->method)->id;

	if (method == METHOD_CANCELLED || method == METHOD_PROGRESS) {
		if (method == METHOD_CANCELLED)
			take_cancelled(a, env);
		else
			take_progress(a, env);
		return;
	}
	a->is_initialized |= method == METHOD_INITIALIZED;
	for (size_t i = 0; i < a->leg_count && has_caller(a); i++)
		(void)leg_notify(&a->legs[i], env->text);
}

/* The client's answer to a question of a leg's server: append_id. */
static void take_answer(struct aggregate *a, const struct envelope *env)
{
	struct splice_edit edit = { .span = env->id.text };
	const struct leg *leg = find_by_id(a, env->id, &edit.with);
	struct buf text = { 0 };
	struct envelope own;
	struct error err;

	if (leg == NULL)
		return;
	splice_append(&text, env->text, &edit, 1, 0);
	if (scan_envelope(buf_slice(&text), &scan_limits_none, 0, &own, &err) == 0)
		forward_linked_answer(leg->client, &own);
	buf_fini(&text);
}

/* False: it waits. */
static bool take(struct aggregate *a, struct slice text)
{
	struct envelope env;
	struct error err;

	if (scan_envelope(text, &scan_limits_none, 0, &env, &err) < 0)
		return true; /* cannot happen: the gateway wrote it */
	if (env.kind == ENVELOPE_REQUEST)
		return take_request(a, &env);
	if (env.kind == ENVELOPE_NOTIFICATION)
		take_notification(a, &env);
	else
		take_answer(a, &env);
	return true;
}

/* ---- the end ---- */

static void inbound_free(struct aggregate *a, struct inbound *inbound)
{
	list_remove(&inbound->link);
	a->inbox_bytes -= inbound->msg->text.n;
	msg_unref(&inbound->msg);
	free(inbound);
}

static void leg_fini(struct leg *leg)
{
	struct client *client = leg->client;

	stream_detach(&leg->reader);
	if (client != NULL) {
		leg->client = NULL;
		client->session->owner = NULL;
		session_end(client->session, REASON_SESSION_END);
	}
	buf_fini(&leg->instructions);
	free(leg->name);
	free((char *)(uintptr_t)leg->prefix.p);
}

/* Of legs that are open their sessions end, and with them their calls; of others their opening. */
static void finish(struct aggregate *a)
{
	struct loop *loop = a->upstream.shared->loop;

	while (!list_is_empty(&a->gathers))
		gather_free(container_of(a->gathers.next, struct gather, link));
	for (size_t i = 0; i < a->leg_count; i++)
		leg_fini(&a->legs[i]);
	while (!list_is_empty(&a->calls)) {
		struct leg_call *lc = container_of(a->calls.next, struct leg_call, link);

		session_end(lc->call.client->session, REASON_SESSION_END);
	}
	while (!list_is_empty(&a->inbox))
		inbound_free(a, container_of(a->inbox.next, struct inbound, link));
	for (enum catalogue_kind kind = 0; kind < CATALOGUE_KINDS; kind++)
		catalogue_clear(&a->catalogues[kind]);
	timer_stop(&a->patience);
	timer_stop(&a->retry);
	msg_unref(&a->params);
	free(a->level);
	access_fini(&a->caller.access);
	upstream_on_gone(&a->upstream);
	task_cancel(&a->task);
	a->upstream.server->users--;
	loop_defer_free(loop, a->legs);
	loop_defer_free(loop, a);
}

/* ---- operations ---- */

static void on_task(struct task *task)
{
	struct aggregate *a = container_of(task, struct aggregate, task);

	if (!a->is_started && !a->is_stopped) {
		a->is_started = true;
		upstream_on_started(&a->upstream);
	}
	LIST_FOREACH_SAFE(node, &a->inbox) {
		struct inbound *inbound = container_of(node, struct inbound, link);

		if (!a->is_stopped && take(a, inbound->msg->text))
			inbound_free(a, inbound);
	}
	LIST_FOREACH_SAFE(node, &a->gathers)
		if (!a->is_stopped)
			gather_advance(container_of(node, struct gather, link));
	if (a->is_stopped)
		finish(a);
}

static void aggregate_start(struct upstream *upstream, struct slice claims)
{
	(void)claims; /* each leg has its own */
	look_again(aggregate_of(upstream));
}

static bool aggregate_has_room(const struct upstream *upstream, size_t size)
{
	const struct aggregate *a = aggregate_of(upstream);

	return a->inbox_bytes == 0 || a->inbox_bytes + size <= upstream->server->conf.queue_max;
}

static void aggregate_write(struct upstream *upstream, struct buf *message)
{
	struct aggregate *a = aggregate_of(upstream);
	struct inbound *inbound = mem_zalloc(sizeof(*inbound));

	CHECK(message->len > 0);
	inbound->msg = msg_new(buf_slice(message));
	a->inbox_bytes += message->len;
	list_append(&a->inbox, &inbound->link);
	look_again(a);
}

static void aggregate_note_failure(struct upstream *upstream, const char *error)
{
	server_note_failure(upstream->server, error, "");
}

static void aggregate_stop(struct upstream *upstream, enum reason reason, bool is_at_once)
{
	(void)reason;
	(void)is_at_once;
	aggregate_of(upstream)->is_stopped = true;
	look_again(aggregate_of(upstream));
}

static const struct upstream_ops aggregate_ops = {
	.start = aggregate_start,
	.has_room = aggregate_has_room,
	.write = aggregate_write,
	.note_failure = aggregate_note_failure,
	.stop = aggregate_stop,
};

static void leg_init(struct aggregate *a, size_t i)
{
	const struct server_leg *conf = &a->upstream.server->conf.legs.items[i];
	struct leg *leg = &a->legs[i];

	leg->aggregate = a;
	leg->index = i;
	leg->name = mem_dup_slice(conf->server);
	leg->prefix = slice_of(mem_dup_slice(conf->prefix), conf->prefix.n);
	for (size_t j = 0; j < i; j++)
		a->overlaps |= slice_has_prefix(leg->prefix, a->legs[j].prefix) ||
			       slice_has_prefix(a->legs[j].prefix, leg->prefix);
}

struct upstream *aggregate_new(struct upstream_shared *shared, struct server *server)
{
	struct aggregate *a = mem_zalloc(sizeof(*a));

	CHECK(server->conf.legs.count > 0);
	upstream_init(&a->upstream, &aggregate_ops, shared, server);
	a->upstream.is_disposable = true; /* its servers' failures count where they are */
	server->users++;
	list_init(&a->inbox);
	list_init(&a->calls);
	list_init(&a->gathers);
	task_init(&a->task, on_task);
	timer_init(&a->patience, on_patience);
	timer_init(&a->retry, on_retry);
	for (enum catalogue_kind kind = 0; kind < CATALOGUE_KINDS; kind++)
		catalogue_clear(&a->catalogues[kind]);
	a->leg_count = server->conf.legs.count;
	a->legs = mem_zalloc(a->leg_count * sizeof(*a->legs));
	for (size_t i = 0; i < a->leg_count; i++)
		leg_init(a, i);
	return &a->upstream;
}
