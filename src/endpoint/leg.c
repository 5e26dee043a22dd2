/* SPDX-License-Identifier: Apache-2.0 */
/* How a message is admitted for a leg; the life of legs; what comes from them. */
#include "endpoint/leg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/pause.h"
#include "base/text.h"
#include "endpoint/admission.h"
#include "endpoint/answer.h"
#include "endpoint/caller_claims.h"
#include "endpoint/catalogue.h"
#include "endpoint/frontend.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/method.h"
#include "obs/log.h"
#include "router/client_session.h"
#include "router/forward.h"
#include "router/kept_sessions.h"
#include "router/pool.h"
#include "router/router.h"

#define RETRY_MS 10000 /* a lost leg is opened again; twice as long after each time */
#define RETRY_MOST_MS 320000
#define RETRY_LEAST_MS 1000    /* even if a call asks for it */
#define INSTRUCTIONS_MAX 65536 /* bytes */
#define URI_NOT_FOUND (-32002) /* MCP: resource not found */

static const struct slice none = { NULL, 0 };
static const struct slice initialized =
	SLICE("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");

/* ---- admission ---- */

struct entry {
	struct caller caller;
	struct endpoint endpoint;
	struct admission admission;
};

/* Of the leg's session; of one that is to begin, of the server that has its name now. NULL: none. */
static const struct endpoint *leg_find_endpoint(struct leg *leg)
{
	const struct frontend_conf *conf = &leg->legs->caller.frontend->conf;

	if (leg->client == NULL)
		return endpoint_of_server(conf, slice_str(leg->name));
	/* Mostly where it was the last time: an entry stays as long as its server has users. */
	if (leg->place >= conf->endpoint_count ||
	    conf->endpoints[leg->place].server != leg->client->server)
		leg->place = endpoint_place(conf, leg->client->server);
	return leg->place < conf->endpoint_count ? &conf->endpoints[leg->place] : NULL;
}

/*
 * The leg's server with its own rules, and with what a token must be for: that is what the client
 * has signed in for, the endpoint. The access is judged again for this server. False: it is gone.
 */
static bool entry_init(struct entry *entry, struct leg *leg, const struct access *access)
{
	const struct caller *caller = &leg->legs->caller;
	const struct endpoint *own = leg_find_endpoint(leg);
	const struct protected_resource *whole = &caller->endpoint->place;

	admission_init(&entry->admission);
	if (own == NULL)
		return false;
	entry->endpoint = *own;
	entry->endpoint.place.server = whole->server;
	entry->endpoint.place.resource = whole->resource;
	entry->endpoint.place.metadata = whole->metadata;
	entry->endpoint.place.accepted = whole->accepted;
	entry->caller = (struct caller){
		.frontend = caller->frontend,
		.endpoint = &entry->endpoint,
		.access = access_copy(access),
	};
	entry->caller.access.configuration = 0;
	return true;
}

static void entry_fini(struct entry *entry)
{
	admission_fini(&entry->admission);
	access_fini(&entry->caller.access);
}

/* What the caller has shown to the endpoint, its server's token is made for. BACK-URL-10, BACK-URL-11 */
static void share_token(const struct entry *entry, const struct leg *leg)
{
	struct principal *principal = entry->caller.access.principal;
	const struct shown_token *token =
		entry->endpoint.place.keeps_token && !principal_is_anonymous(principal) ?
			principal_token(principal, leg->legs->caller.endpoint->place.server) :
			NULL;

	if (entry->endpoint.place.asserts_caller)
		caller_claims_keep(&entry->caller.frontend->authorization.conf,
				   &entry->caller.access, slice_str(leg->name));
	if (token != NULL)
		principal_keep_token(principal, slice_str(leg->name), buf_slice(&token->token));
}

/* False: it is refused. entry_fini must follow in either case. */
static bool admit(struct entry *entry, const struct leg *leg, struct slice body)
{
	struct admission *admission = &entry->admission;

	admission->front = FRONT_AGGREGATE;
	admission->intent = ADMISSION_SEND;
	admission->caller = &entry->caller;
	admission->peer = &leg->legs->peer;
	admission->session.is_named = admission->session.is_known = leg->client != NULL;
	admission->session.client = leg->client;
	admission->body = body;
	if (!admission_admit(admission))
		return false;
	share_token(entry, leg);
	return true;
}

void legs_append_unknown(struct slice request, struct buf *out)
{
	static const char *const type_way[] = { "params", "ref", "type" };
	struct json type = scan_path(request, type_way, ARRAY_LEN(type_way));
	struct json name = scan_member(request, SLICE_LIT("method"));
	enum method_id method = method_find(scan_plain_string(name))->id;
	int code = MCP_INVALID_PARAMS;
	const char *why;

	if (method == METHOD_TOOLS_CALL) {
		why = "Invalid params: there is no such tool";
	} else if (method == METHOD_PROMPTS_GET ||
		   slice_is_equal(scan_plain_string(type), SLICE_LIT("ref/prompt"))) {
		why = "Invalid params: there is no such prompt";
	} else if (method == METHOD_TASKS) {
		why = "Invalid params: there is no such task";
	} else if (method == METHOD_RESOURCES_READ || method == METHOD_SUBSCRIBE ||
		   method == METHOD_UNSUBSCRIBE || method == METHOD_COMPLETE) {
		code = URI_NOT_FOUND;
		why = "Resource not found";
	} else {
		code = MCP_METHOD_NOT_FOUND;
		why = "Method not found";
	}
	write_error(out, scan_member(request, SLICE_LIT("id")).text, code, slice_str(why), none);
}

/* id: of the refused request, which admission may not have read yet */
static void append_refusal(const struct entry *entry, struct slice id, struct buf *out)
{
	const struct refusal *refusal = &entry->admission.refusal;

	if (refusal->is_in_band && refusal->form != REFUSAL_CHALLENGE)
		refusal_append(refusal, &entry->endpoint, id, out);
	else
		write_error(out, id, refusal->code != 0 ? refusal->code : MCP_INVALID_REQUEST,
			    slice_str(refusal->description), none);
}

/* ---- its state ---- */

struct leg *legs_find_by_prefix(struct legs *legs, struct slice shown, size_t *count_r)
{
	struct leg *found = NULL;

	*count_r = 0;
	for (size_t i = 0; i < legs->count; i++) {
		struct leg *leg = &legs->items[i];

		if (shown.n <= leg->prefix.n || !slice_has_prefix(shown, leg->prefix))
			continue;
		found = leg;
		++*count_r;
	}
	return found;
}

/* It may be used with this access, under the configuration of now. */
static void leg_note_access(struct leg *leg, const struct access *access)
{
	access_fini(&leg->access);
	leg->access = access_copy(access);
}

static void leg_end(struct leg *leg)
{
	struct client *client = leg->client;
	bool goes_on = leg->legs->caller.frontend != NULL &&
		       leg->legs->caller.frontend->router->is_draining;

	stream_detach(&leg->reader);
	access_fini(&leg->access);
	if (client == NULL)
		return;
	leg->client = NULL;
	client->session->owner = NULL;
	session_end(client->session, goes_on ? REASON_DRAINING : REASON_SESSION_END);
}

static void start_retry(struct legs *legs)
{
	if (!timer_is_running(&legs->retry) && !legs->is_ended)
		timer_start(legs->loop, &legs->retry, legs->retry_ms);
}

/* Why it is lost; REASON_NONE: it is not, or only for what its caller is or has, which is no loss. */
static enum reason leg_loss(const struct leg *leg)
{
	bool is_of_caller =
		leg->lost_as == REASON_CLAIM_MISSING || leg->lost_as == REASON_CREDENTIAL_MISSING;

	return leg->state == LEG_LOST && !is_of_caller ? leg->lost_as : REASON_NONE;
}

/* reason: for clients; REASON_NONE: its caller may not use it */
static void leg_lose(struct leg *leg, enum reason reason, const char *why)
{
	struct legs *legs = leg->legs;
	bool was_missed = leg->is_missed;
	bool is_first;

	if (legs->is_ended)
		return;
	is_first = leg->state != LEG_LOST;
	leg->state = LEG_LOST;
	leg->lost_as = reason;
	if (is_first && leg_loss(leg) != REASON_NONE)
		LOG_BY(LEG_LOST, legs_owner(legs), LOG_STR("endpoint", legs->server->conf.name),
		       LOG_STR("server", leg->name), LOG_STR("reason", why));
	leg->lost_at_ms = clock_now_ms();
	leg->is_missed = true;
	if (leg_loss(leg) != REASON_NONE)
		start_retry(legs);
	legs->ops->on_change(legs, leg, was_missed);
}

static void leg_on_session_end(struct session_owner *owner)
{
	struct leg *leg = container_of(owner, struct leg, owner);

	leg->client = NULL;
	if (leg->legs->caller.frontend->router->is_draining)
		leg->state = LEG_CLOSED;
	else
		leg_lose(leg, REASON_BACKEND_DOWN, "its session has ended");
}

static const struct session_owner_ops owner_ops = { .on_end = leg_on_session_end };

/* ---- what comes from it ---- */

/* A request's id towards the client: which leg, and the id there. */
static void append_id(struct buf *out, const struct leg *leg, struct slice id)
{
	at_end(buf_fini) struct buf text = { 0 };

	buf_printf(&text, "%zu:%.*s", leg->index, SLICE_ARG(id));
	write_string(out, buf_slice(&text));
}

struct leg *leg_find_by_id(struct legs *legs, struct json id, struct slice *own_r)
{
	struct slice rest = scan_plain_string(id);
	struct slice number = slice_cut(&rest, ':');
	uint64_t index, own;

	*own_r = rest;
	if (text_parse_u64(number, &index) < 0 || index >= legs->count ||
	    text_parse_u64(rest, &own) < 0 || legs->items[index].state != LEG_OPEN)
		return NULL;
	return &legs->items[index];
}

/* `id` and `token` (or none) name a request of the leg's server: they get the name that append_id makes. */
static void pass_with_id(const struct leg *leg, const struct leg_call *call,
			 const struct envelope *env, struct slice id, struct slice token)
{
	bool is_token_first = token.n > 0 && token.p < id.p;
	struct splice_edit edits[] = { { .span = is_token_first ? token : id },
				       { .span = is_token_first ? id : token } };
	at_end(buf_fini) struct buf text = { 0 }, whole = { 0 };

	append_id(&whole, leg, id);
	edits[0].with = edits[1].with = buf_slice(&whole);
	splice_append(&text, env->text, edits, token.n > 0 ? 2 : 1, 0);
	leg->legs->ops->on_message(leg->legs, call, buf_slice(&text));
}

/* A reload may have taken it from its caller, who then gets nothing more of what it says. */
static bool is_still_allowed(struct leg *leg)
{
	const struct authorization *auth = &leg->legs->caller.frontend->authorization;
	struct refusal refusal;
	struct entry entry;
	bool is_allowed;

	if (leg->client == NULL || leg->access.principal == NULL ||
	    leg->access.configuration == auth->configuration)
		return leg->client != NULL;
	if (!entry_init(&entry, leg, &leg->access))
		return true; /* its server is on its way out */
	is_allowed = authorization_is_current(auth, &entry.endpoint.place, &entry.caller.access,
					      &refusal);
	if (is_allowed)
		leg_note_access(leg, &entry.caller.access);
	access_fini(&entry.caller.access);
	return is_allowed;
}

/* A request or notification of its server. */
static void leg_take(struct leg *leg, const struct leg_call *call, struct slice text)
{
	struct envelope env;
	struct json id;

	if (leg->legs->is_ended || leg->is_forbidden ||
	    scan_envelope(text, &scan_limits_none, SCAN_LENIENT, &env, NULL) < 0)
		return;
	if (!is_still_allowed(leg)) {
		leg->is_forbidden = true; /* it is in the middle of something: legs_sweep */
		leg->legs->ops->on_change(leg->legs, leg, leg->is_missed);
		return;
	}
	id = scan_member(env.params.text, SLICE_LIT("requestId"));
	if (env.kind == ENVELOPE_REQUEST)
		pass_with_id(leg, call, &env, env.id.text, env.progress_token.text);
	else if (id.type != JSON_ABSENT && method_find(env.method)->id == METHOD_CANCELLED)
		pass_with_id(leg, call, &env, id.text, none);
	else
		leg->legs->ops->on_message(leg->legs, call, text);
}

static void reader_on_wake(struct stream_reader *reader)
{
	struct leg *leg = container_of(reader, struct leg, reader);
	uint64_t number;
	struct msg *msg;

	while (reader->stream != NULL && (msg = stream_take(reader, &number)) != NULL) {
		leg_take(leg, NULL, msg->text);
		msg_unref(&msg);
	}
}

static void reader_on_detached(not_used struct stream_reader *reader, not_used enum reason reason)
{
	/* Its session ends, which is told. */
}

static const struct stream_reader_ops reader_ops = {
	.on_wake = reader_on_wake,
	.on_detached = reader_on_detached,
};

/* ---- calls ---- */

static struct leg_call *of_call(struct call *call)
{
	return container_of(call, struct leg_call, call);
}

static bool call_on_message(struct call *call, not_used enum stream_kind kind,
			    not_used uint64_t key, struct msg *msg)
{
	struct leg *leg = of_call(call)->leg;

	reader_on_wake(&leg->reader); /* in the order in which the server wrote it */
	leg_take(leg, of_call(call), msg->text);
	return true;
}

static bool call_judge(struct call *call, const struct envelope *env,
		       struct call_refusal *refusal_r)
{
	struct leg_call *leg_call = of_call(call);
	struct entry entry;
	bool is_admitted;

	if (!entry_init(&entry, leg_call->leg, &leg_call->access)) {
		*refusal_r = (struct call_refusal){ .code = MCP_INVALID_REQUEST,
						    .word = "unknown_server" };
		snprintf(refusal_r->text, sizeof(refusal_r->text), "There is no such server now");
		return false;
	}
	is_admitted = admission_judge(&entry.caller, call, env, refusal_r);
	access_fini(&leg_call->access);
	leg_call->access = entry.caller.access;
	return is_admitted;
}

static void on_opened(struct leg_call *leg_call, struct slice response, enum reason reason);

static void end_call(struct leg_call *leg_call, struct slice response, enum reason reason)
{
	struct legs *legs = leg_call->leg->legs;

	CHECK((response.n > 0) == (reason == REASON_NONE));
	list_remove(&leg_call->link); /* it is over, and what is told of that may give way */
	reader_on_wake(&leg_call->leg->reader); /* in the order in which the server wrote it */
	if (leg_call->on_answer != NULL && !legs->is_ended)
		leg_call->on_answer(leg_call, response, reason);
	else if (leg_call->on_answer == on_opened && response.n > 0)
		session_end(leg_call->call.client->session, REASON_SESSION_END);
	access_fini(&leg_call->access);
	loop_defer_free(legs->loop, leg_call);
}

static void call_on_response(struct call *call, const struct slice *parts, size_t count)
{
	at_end(msg_unref) struct msg *msg = egress_join(parts, count);

	end_call(of_call(call), msg->text, REASON_NONE);
}

static void call_on_failed(struct call *call, enum reason reason)
{
	end_call(of_call(call), none, reason);
}

static void call_on_cancelled(struct call *call)
{
	end_call(of_call(call), none, REASON_CANCELLED);
}

static const struct call_ops call_ops = {
	.on_message = call_on_message,
	.judge = call_judge,
	.on_response = call_on_response,
	.on_failed = call_on_failed,
	.on_cancelled = call_on_cancelled,
};

static struct leg_call *leg_call_new(struct leg *leg, const struct entry *entry,
				     leg_answer_fn *on_answer, void *arg)
{
	struct leg_call *leg_call = mem_zalloc(sizeof(*leg_call));
	const struct envelope *env = admitted_next(entry->admission.admitted);

	CHECK(env != NULL && env->kind == ENVELOPE_REQUEST);
	leg_call->leg = leg;
	leg_call->on_answer = on_answer;
	leg_call->arg = arg;
	leg_call->access = access_copy(&entry->caller.access);
	list_append(&leg->legs->calls, &leg_call->link);
	call_init(&leg_call->call, &call_ops, env);
	return leg_call;
}

/* For the caller of a leg that is not open, or whose server is gone. */
static void append_away(const struct leg *leg, struct slice request, struct slice id,
			struct buf *out)
{
	bool is_of_caller = leg->state == LEG_LOST && leg_loss(leg) == REASON_NONE;

	CHECK(leg->state != LEG_OPENING && id.n > 0);
	if (leg_is_hidden(leg))
		legs_append_unknown(request, out);
	else
		answer_append_reason(out, id, is_of_caller ? leg->lost_as : REASON_BACKEND_DOWN,
				     leg->name);
}

/* From now on it goes on with the client's session in the next gateway, with the process that it has to itself. */
static void leg_keep(struct leg *leg)
{
	const struct legs *legs = leg->legs;
	at_end(buf_fini) struct buf id = { 0 };

	if (leg->client->kept != NULL || legs->client == NULL || legs->client->kept == NULL ||
	    pool_is_shared(leg->client->pool))
		return;
	kept_leg_id(&id, session_id(legs->client->session), slice_str(leg->name));
	leg->client->kept = kept_session_new(leg->client, buf_slice(&id), legs->params->text);
}

bool leg_ask(struct leg *leg, struct slice request, const struct access *access,
	     leg_answer_fn *on_answer, void *arg, struct buf *error_r)
{
	struct slice id = scan_member(request, SLICE_LIT("id")).text;
	struct entry entry;
	bool is_admitted;

	CHECK(id.n > 0 && leg->state != LEG_OPENING &&
	      (leg->state == LEG_OPEN) == (leg->client != NULL));
	if ((leg->state != LEG_OPEN && !leg_is_hidden(leg)) || !entry_init(&entry, leg, access)) {
		append_away(leg, request, id, error_r);
		return false;
	}
	if (leg->client != NULL) {
		leg->client->peer = leg->legs->peer; /* whose calls are counted */
		leg_keep(leg);
	}
	is_admitted = admit(&entry, leg, request);
	if (is_admitted) {
		struct leg_call *leg_call = leg_call_new(leg, &entry, on_answer, arg);

		leg_note_access(leg, &entry.caller.access);
		forward_request(leg->client, &leg_call->call, entry.admission.admitted);
	} else if (leg->client == NULL) {
		append_away(leg, request, id, error_r);
	} else if (!authorization_suffices(&leg->legs->caller.frontend->authorization,
					   &entry.endpoint.place, access)) {
		legs_append_unknown(request, error_r);
	} else {
		append_refusal(&entry, id, error_r);
	}
	entry_fini(&entry);
	return is_admitted;
}

void leg_send(struct leg *leg, const char *method, struct slice params)
{
	at_end(buf_fini) struct buf text = { 0 }, error = { 0 };

	write_call(&text, SLICE_LIT("\"own\""), slice_str(method), params);
	(void)!leg_ask(leg, buf_slice(&text), &leg->legs->caller.access, NULL, NULL, &error);
}

bool leg_notify(struct leg *leg, struct slice notification)
{
	struct entry entry;
	bool is_admitted;

	if (leg->state != LEG_OPEN || !entry_init(&entry, leg, &leg->legs->caller.access))
		return false;
	is_admitted = admit(&entry, leg, notification);
	if (is_admitted && admitted_next(entry.admission.admitted) != NULL)
		forward_notification(leg->client, entry.admission.admitted);
	entry_fini(&entry);
	return is_admitted;
}

/* ---- the beginning ---- */

/* is_new: it has not been told yet that it is initialized */
static void leg_begin(struct leg *leg, struct client *client, bool is_new)
{
	struct legs *legs = leg->legs;
	struct session *session = client->session;
	bool was_missed = leg->is_missed;

	CHECK(leg->state == LEG_OPENING && leg->client == NULL && session->owner == NULL);
	leg->state = LEG_OPEN;
	leg->client = client;
	leg->owner.ops = &owner_ops;
	session->owner = &leg->owner;
	stream_keep_nothing(&session->standalone);
	CHECK(stream_attach(&session->standalone, &leg->reader, &reader_ops, STREAM_FROM_HERE));
	if (legs->is_initialized && is_new)
		(void)leg_notify(leg, initialized);
	if (legs->level != NULL && leg->capabilities.offers & OFFER_LOGGING)
		leg_send(leg, "logging/setLevel", slice_str(legs->level));
	LIST_EACH(const struct text_set_item, item, &leg->subscriptions.items, link) {
		at_end(buf_fini) struct buf params = { 0 };

		buf_printf(&params, "{\"uri\":%.*s}", (int)item->length, item->text);
		leg_send(leg, "resources/subscribe", buf_slice(&params));
	}
	legs->retry_ms = RETRY_MS;
	if (was_missed)
		LOG_BY(LEG_BACK, legs_owner(legs), LOG_STR("endpoint", legs->server->conf.name),
		       LOG_STR("server", leg->name));
	leg->is_missed = false;
	legs->ops->on_change(legs, leg, was_missed);
}

static void leg_describe(struct leg *leg, struct slice result)
{
	struct json instructions = scan_member(result, SLICE_LIT("instructions"));

	server_capabilities_read(&leg->capabilities, result, false);
	leg->instructions.len = 0;
	if (instructions.text.n <= INSTRUCTIONS_MAX)
		(void)!scan_decode_string(instructions, &leg->instructions);
}

static void on_opened(struct leg_call *leg_call, struct slice response, enum reason reason)
{
	struct client *client = leg_call->call.client;
	struct leg *leg = leg_call->leg;
	struct envelope env;

	if (response.n == 0)
		leg_lose(leg, reason, reason_get(reason)->text);
	else if (scan_envelope(response, &scan_limits_none, SCAN_LENIENT, &env, NULL) == 0 &&
		 env.kind == ENVELOPE_RESULT && client->session->state == SESSION_LIVE) {
		leg_describe(leg, env.result.text);
		leg_begin(leg, client, true);
	} else {
		leg_lose(leg, REASON_HANDSHAKE_REFUSED, "it refused initialize");
	}
}

/* It was open in the gateway before: it goes on. False: it was not, or cannot. */
static bool leg_open_again(struct leg *leg, const struct entry *entry)
{
	struct legs *legs = leg->legs;
	at_end(buf_fini) struct buf id = { 0 };
	struct session *session;

	if (legs->client == NULL)
		return false;
	kept_leg_id(&id, session_id(legs->client->session), slice_str(leg->name));
	session = client_session_wake_part(legs->caller.frontend->router, entry->endpoint.server,
					   entry->caller.access.principal, &legs->peer,
					   buf_slice(&id), &leg->capabilities);
	if (session == NULL)
		return false;
	client_session_client(session)->rights = *admitted_rights(entry->admission.admitted);
	leg_begin(leg, client_session_client(session), false);
	return true;
}

static void leg_open(struct leg *leg, const struct access *access)
{
	struct legs *legs = leg->legs;
	struct leg_call *leg_call;
	at_end(buf_fini) struct buf text = { 0 };
	struct entry entry;

	CHECK(leg->client == NULL && legs->params != NULL);
	leg->is_forbidden = false;
	if (!entry_init(&entry, leg, access)) {
		leg_lose(leg, REASON_BACKEND_DOWN, "there is no such server now");
		return;
	}
	write_call(&text, SLICE_LIT("\"leg\""), SLICE_LIT("initialize"), legs->params->text);
	if (!authorization_suffices(&legs->caller.frontend->authorization, &entry.endpoint.place,
				    access)) {
		leg_note_access(leg, access);
		if (!leg_is_hidden(leg))
			leg_lose(leg, REASON_NONE, "its caller may not use it");
	} else if (admit(&entry, leg, buf_slice(&text))) {
		leg->state = LEG_OPENING;
		access_keep_claims(&entry.caller.access);
		leg_note_access(leg, &entry.caller.access);
		if (!leg_open_again(leg, &entry)) {
			leg_call = leg_call_new(leg, &entry, on_opened, NULL);
			client_session_open(legs->caller.frontend->router, entry.endpoint.server,
					    entry.caller.access.principal, &legs->peer,
					    &leg_call->call, entry.admission.admitted, true);
		}
	} else {
		leg_lose(leg, REASON_NONE, "its caller may not use it");
	}
	entry_fini(&entry);
}

void leg_need(struct leg *leg, const struct access *access)
{
	if (leg->legs->client == NULL && leg->state == LEG_OPEN &&
	    leg->client->server->is_retired && list_is_empty(&leg->client->calls)) {
		leg_end(leg);
		leg->state = LEG_CLOSED;
		leg->is_missed = true; /* its lists may be others */
	}
	/* Another token may have what the last one had not. */
	if (leg->state == LEG_CLOSED ||
	    (leg_is_hidden(leg) && !access_is_same(&leg->access, access)) ||
	    (leg->state == LEG_LOST && clock_now_ms() - leg->lost_at_ms >= RETRY_LEAST_MS))
		leg_open(leg, access);
}

static void on_retry(struct timer *timer)
{
	struct legs *legs = container_of(timer, struct legs, retry);

	CHECK(!legs->is_ended);
	if (legs->retry_ms < RETRY_MOST_MS)
		legs->retry_ms *= 2;
	for (size_t i = 0; i < legs->count && !legs->is_ended; i++) {
		struct leg *leg = &legs->items[i];

		if (leg_loss(leg) != REASON_NONE) {
			leg_open(leg, &legs->caller.access);
		} else if (leg->state == LEG_OPEN && leg->is_missed) {
			leg->is_missed = false;
			legs->ops->on_change(legs, leg, true);
		}
	}
}

void leg_miss(struct leg *leg, const char *why)
{
	LOG_BY(LEG_LOST, legs_owner(leg->legs), LOG_STR("endpoint", leg->legs->server->conf.name),
	       LOG_STR("server", leg->name), LOG_STR("reason", why));
	leg->is_missed = true;
	start_retry(leg->legs);
}

/* ---- all of them ---- */

/* False: it is a call of ours, or its client is away. */
static bool take_sender(struct legs *legs, struct call *call)
{
	struct caller room;
	const struct caller *caller = call->ops->who != NULL ? call->ops->who(call, &room) : NULL;

	if (caller == NULL)
		return false;
	access_fini(&legs->caller.access);
	legs->caller = (struct caller){
		.frontend = caller->frontend,
		.endpoint = caller->endpoint,
		.access = access_copy(&caller->access),
	};
	legs->peer = call->client->peer;
	return true;
}

/* Who has sent one of the client's calls. False: all of them are ours. */
static bool take_caller_of(struct legs *legs, const struct client *client)
{
	LIST_EACH(struct call, call, &client->calls, link)
		if (take_sender(legs, call))
			return true;
	return false;
}

void legs_take_caller(struct legs *legs, struct call *call)
{
	if (!take_sender(legs, call))
		(void)take_caller_of(legs, call->client);
}

void legs_take_any_caller(struct legs *legs, const struct pool *pool)
{
	const struct list *const lists[] = { &pool->joining, &pool->members };

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		LIST_EACH(struct pool_member, member, lists[i], link)
			if (take_caller_of(legs, member->client))
				return;
}

void legs_init(struct legs *legs, const struct legs_ops *ops, struct server *server,
	       struct loop *loop)
{
	const struct server_legs *conf = &server->conf.legs;

	CHECK(conf->count > 0);
	legs->ops = ops;
	legs->server = server;
	legs->loop = loop;
	legs->count = conf->count;
	legs->retry_ms = RETRY_MS;
	legs->items = mem_zalloc(conf->count * sizeof(*legs->items));
	list_init(&legs->calls);
	timer_init(&legs->retry, on_retry);
	for (size_t i = 0; i < conf->count; i++) {
		struct slice prefix = conf->items[i].prefix;

		legs->items[i].legs = legs;
		text_set_init(&legs->items[i].subscriptions);
		legs->items[i].index = i;
		legs->items[i].name = mem_dup_slice(conf->items[i].server);
		legs->items[i].prefix = slice_of(mem_dup_slice(prefix), prefix.n);
		for (size_t j = 0; j < i; j++)
			legs->overlap |= slice_has_prefix(prefix, legs->items[j].prefix) ||
					 slice_has_prefix(legs->items[j].prefix, prefix);
	}
}

static void append_capabilities(const struct legs *legs, struct buf *out)
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
		{ OFFER_TASKS, "\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":"
			       "{\"call\":{}}}}" },
	};
	unsigned int offers = 0;
	const char *comma = "";

	/* What is not known may come: a client may never ask for what was not declared. */
	for (size_t i = 0; i < legs->count; i++)
		offers |= legs->items[i].state == LEG_OPEN ? legs->items[i].capabilities.offers :
							     ~(unsigned int)OFFER_TASKS;
	buf_append_char(out, '{');
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!(offers & rows[i].offer))
			continue;
		buf_printf(out, "%s%s", comma, rows[i].text);
		comma = ",";
	}
	buf_append_char(out, '}');
}

static void append_instructions(const struct legs *legs, struct buf *out)
{
	at_end(buf_fini) struct buf text = { 0 };

	for (size_t i = 0; i < legs->count; i++) {
		const struct leg *leg = &legs->items[i];

		if (leg->instructions.len > 0)
			buf_printf(&text, "%s%s (its tools begin with \"%.*s\"):\n%.*s",
				   text.len > 0 ? "\n\n" : "", leg->name, SLICE_ARG(leg->prefix),
				   SLICE_ARG(buf_slice(&leg->instructions)));
	}
	if (text.len > 0) {
		buf_append_str(out, ",\"instructions\":");
		write_string(out, buf_slice(&text));
	}
}

void legs_append_result(struct legs *legs, struct slice params, struct buf *out)
{
	struct json version = scan_member(params, SLICE_LIT("protocolVersion"));

	for (size_t i = 0; i < legs->count; i++)
		legs->items[i].is_missed |= legs->items[i].state != LEG_OPEN;
	buf_printf(out, "{\"protocolVersion\":%.*s,\"capabilities\":", SLICE_ARG(version.text));
	append_capabilities(legs, out);
	buf_append_str(out, ",\"serverInfo\":{\"name\":");
	write_string(out, slice_str(legs->server->conf.name));
	buf_append_str(out, ",\"version\":\"" PACKAGE_VERSION "\"}");
	append_instructions(legs, out);
	buf_append_char(out, '}');
}

void legs_judge(struct legs *legs)
{
	for (size_t i = 0; i < legs->count && !legs->is_ended; i++) {
		struct leg *leg = &legs->items[i];

		if (leg->state == LEG_OPEN && !leg->is_forbidden)
			leg->is_forbidden = !is_still_allowed(leg);
	}
}

void legs_sweep(struct legs *legs)
{
	for (size_t i = 0; i < legs->count && !legs->is_ended; i++) {
		struct leg *leg = &legs->items[i];

		if (!leg->is_forbidden)
			continue;
		leg->is_forbidden = false;
		leg_end(leg);
		leg_lose(leg, REASON_NONE, "its caller may not use it any more");
	}
}

void legs_silence(struct legs *legs)
{
	legs->is_ended = true;
	timer_stop(&legs->retry);
}

void legs_fini(struct legs *legs)
{
	legs_silence(legs);
	for (size_t i = 0; i < legs->count; i++)
		leg_end(&legs->items[i]);
	/* Those that remain are being opened. */
	LIST_DRAIN(struct leg_call, one, &legs->calls, link)
		session_end(one->call.client->session, REASON_SESSION_END);
	for (size_t i = 0; i < legs->count; i++) {
		buf_fini(&legs->items[i].instructions);
		text_set_fini(&legs->items[i].subscriptions);
		free(legs->items[i].name);
		free((char *)(uintptr_t)legs->items[i].prefix.p);
	}
	msg_unref(&legs->params);
	free(legs->level);
	access_fini(&legs->caller.access);
	loop_defer_free(legs->loop, legs->items);
}

enum reason legs_loss(const struct legs *legs)
{
	enum reason reason;

	for (size_t i = 0; i < legs->count; i++)
		if (leg_loss(&legs->items[i]) == REASON_NONE)
			return REASON_NONE;
	reason = legs->items[0].lost_as;
	return reason_get(reason)->http_status == 503 ? reason : REASON_BACKEND_DOWN;
}

void leg_note_subscription(struct leg *leg, const struct envelope *env)
{
	enum method_id method = method_find(env->method)->id;

	if (method == METHOD_SUBSCRIBE)
		(void)text_set_add(&leg->subscriptions, env->uri.text);
	else if (method == METHOD_UNSUBSCRIBE)
		(void)text_set_remove(&leg->subscriptions, env->uri.text);
}

void legs_tell_doubles(const struct legs *legs, const struct catalogue *catalogue,
		       struct slice list)
{
	LIST_EACH(const struct catalogue_item, item, &catalogue->items, link) {
		pause_point();
		if (!item->is_double)
			continue;
		LOG_BY(NAMES_COLLIDE, legs_owner(legs),
		       LOG_STR("endpoint", legs->server->conf.name), LOG_SLICE("list", list),
		       LOG_STR("server", legs->items[item->leg].name),
		       LOG_SLICE("name", item->shown), LOG_INT("items", catalogue->doubles));
		return;
	}
}
