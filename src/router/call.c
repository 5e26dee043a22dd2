/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a call, its records and its spans. Nothing is keyed by what the client chose: its id is
 * only returned to it. A call ends once; whatever the server still sends for it finds no entry and
 * is dropped.
 */
#include "router/call.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "io/loop.h"
#include "io/peer.h"
#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "mcp/revision.h"
#include "mcp/trace_context.h"
#include "obs/audit.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "obs/reason.h"
#include "policy/permissions.h"
#include "process/child.h"
#include "router/audit_call.h"
#include "router/client.h"
#include "router/digest.h"
#include "router/pages.h"
#include "router/router.h"
#include "session/principal.h"
#include "session/session.h"
#include "trace/span.h"
#include "upstream/send.h"
#include "upstream/upstream.h"

/* ---- spans ---- */

#define CODE_BYTES 24

/* ---- the beginning ---- */

static struct slice meta_text(const struct envelope *env, struct slice name)
{
	return env->has_more_meta ? scan_plain_string(scan_member(env->meta.text, name)) :
				    slice_of(NULL, 0);
}

static struct span *call_begin(struct exporter *exporter, const struct envelope *env)
{
	struct slice state = meta_text(env, SLICE_LIT("tracestate"));
	struct trace_parent parent;

	if (!trace_parent_read(meta_text(env, SLICE_LIT("traceparent")), &parent))
		return span_new(exporter, NULL, slice_of(NULL, 0));
	return span_new(exporter, &parent, trace_state_is_valid(state) ? state : slice_of(NULL, 0));
}

/*
 * Says what the call is about. The name of an unknown method may be any text: the span is not named
 * after it.
 */
static void say_target(struct span *span, const struct method *method, const struct envelope *env)
{
	struct slice name = { NULL, 0 }, uri = { NULL, 0 };
	at_end(buf_fini) struct buf room = { 0 }, room_of_uri = { 0 };
	bool is_tool = method->id == METHOD_TOOLS_CALL;

	if (is_tool || method->id == METHOD_PROMPTS_GET)
		(void)!scan_read_string(env->name, &room, &name);
	(void)!scan_read_string(env->uri, &room_of_uri, &uri);
	span_set_name(span, method->name.n > 0 ? method->name : SLICE_LIT("other"), name);
	span_say(span, SPAN_BOTH, "mcp.method.name", env->method);
	span_say(span, SPAN_BOTH, is_tool ? "gen_ai.tool.name" : "gen_ai.prompt.name", name);
	if (is_tool)
		span_say(span, SPAN_BOTH, "gen_ai.operation.name", SLICE_LIT("execute_tool"));
	span_say(span, SPAN_BOTH, "mcp.resource.uri", uri);
}

/*
 * Says who the client is. Only the part of the session's id that is in the log, as the id is a
 * secret. SEC-04
 */
static void say_client(struct span *span, const struct client *client, const struct envelope *env,
		       const struct audit_origin *origin)
{
	const struct session *session = client->session;
	bool is_text = env->id.type == JSON_STRING && !env->id.has_escape;
	bool has_address = origin->peer->family != 0;
	char address[PEER_TEXT_BYTES];

	peer_format(origin->peer, address);
	span_say(span, SPAN_GATEWAY, "jsonrpc.request.id",
		 is_text ? scan_plain_string(env->id) : env->id.text);
	span_say(span, SPAN_GATEWAY, "mcp.protocol.version", client->revision->name);
	if (session != NULL)
		span_say(span, SPAN_GATEWAY, "mcp.session.id", session_shown_id(session));
	if (has_address)
		span_say(span, SPAN_GATEWAY, "client.address", slice_str(address));
	span_say(span, SPAN_GATEWAY, "network.transport",
		 has_address ? SLICE_LIT("tcp") : SLICE_LIT("unix"));
	span_say(span, SPAN_GATEWAY, "network.protocol.name", SLICE_LIT("http"));
	span_say(span, SPAN_GATEWAY, "mcpgated.front", slice_str(origin->front));
	span_say(span, SPAN_GATEWAY, "mcpgated.era",
		 client->revision->is_modern ? SLICE_LIT("modern") : SLICE_LIT("legacy"));
}

/* Begins the spans of a call, which has none yet, if it is to be traced. */
static void call_span_begin(struct call *call, const struct client *client,
			    const struct envelope *env, const struct audit_origin *origin)
{
	struct span *span = call_begin(client->router->exporter, env);

	CHECK(call->span == NULL);
	if (span == NULL)
		return;
	call->span = span;
	memcpy(call->trace_id, span_trace_id(span).p, TRACE_ID_DIGITS);
	say_target(span, call->method, env);
	span_say(span, SPAN_BOTH, "mcpgated.server", slice_str(client->server->conf.name));
	say_client(span, client, env, origin);
	span_say(span, SPAN_PROCESS, "network.transport", SLICE_LIT("pipe"));
}

/* ---- on its way ---- */

const struct envelope *call_span_mark(const struct call *call, const struct envelope *env,
				      struct call_traced *traced)
{
	char parent[TRACE_PARENT_DIGITS + 1];

	traced->text = (struct buf){ .data = NULL }; /* only this: most calls have no span */
	if (call->span == NULL)
		return env;
	span_format_parent(call->span, parent);
	if (!trace_message_set_parent(&traced->text, env, parent) ||
	    scan_envelope(buf_slice(&traced->text), &call->client->router->limits, 0, &traced->env,
			  NULL) < 0)
		return env;
	return &traced->env;
}

void call_traced_fini(struct call_traced *traced)
{
	buf_fini(&traced->text);
}

/* ---- the end of its spans ---- */

/* The code of the error response, as text; empty if there is none. */
static struct slice read_code(const struct slice *parts, size_t count, char text[CODE_BYTES])
{
	at_end(buf_fini) struct buf answer = { 0 };
	struct json code;
	long long number;
	int n = 0;

	for (size_t i = 0; i < count; i++)
		buf_append_slice(&answer, parts[i]);
	code = scan_member(scan_member(buf_slice(&answer), SLICE_LIT("error")).text,
			   SLICE_LIT("code"));
	if (value_read_integer(code, &number) == 0)
		n = snprintf(text, CODE_BYTES, "%lld", number);
	return slice_of(text, (size_t)n);
}

/* The call, which has spans, has ended; parameters as for call_record_end. */
static void call_span_end(struct call *call, enum call_status status, enum reason reason,
			  const struct slice *parts, size_t count)
{
	const struct upstream *upstream = call->request.upstream;
	const char *why = call->refused_by != RULE_NONE ? call->refused_as :
			  reason != REASON_NONE         ? reason_get(reason)->text :
							  NULL;
	struct slice error = { NULL, 0 };
	char code[CODE_BYTES];

	CHECK(call->span != NULL && status < CALL_STATUSES);
	if (status == CALL_TOOL_ERROR) {
		error = SLICE_LIT("tool_error");
	} else if (status == CALL_ERROR) {
		error = read_code(parts, count, code);
		span_say(call->span, SPAN_BOTH, "rpc.response.status_code", error);
		if (error.n == 0)
			error = SLICE_LIT("_OTHER");
	} else if (status == CALL_FAILED) {
		error = slice_str(reason_get(reason)->text);
	}
	span_say(call->span, SPAN_GATEWAY, "mcpgated.status", slice_str(call_status_name(status)));
	if (why != NULL)
		span_say(call->span, SPAN_GATEWAY, "mcpgated.reason", slice_str(why));
	if (upstream != NULL && upstream->revision != NULL)
		span_say(call->span, SPAN_PROCESS, "mcp.protocol.version",
			 upstream->revision->name);
	span_end(&call->span, error);
}

/* ---- records ---- */

/* Returns NULL if there are no records of what is allowed. */
static struct audit_call *begin_record(const struct client *client,
				       const struct principal *principal,
				       const struct envelope *env,
				       const struct audit_origin *origin)
{
	struct audit *audit = client->router->audit;

	/* A call to an endpoint over several servers is recorded as one to the server that gets it. */
	if (audit == NULL || audit->conf.is_refused_only ||
	    server_is_endpoint(&client->server->conf))
		return NULL;
	return audit_call_new(audit, &(struct audit_request){
					     .origin = *origin,
					     .server = client->server->conf.name,
					     .principal = principal,
					     .session = client->session,
					     .revision = client->revision,
					     .env = env,
					     .bytes = env->text.n,
				     });
}

/* A tool is counted by its decoded name, however that is spelled. */
static struct call_series *get_series(struct server *server, const struct method *method,
				      const struct envelope *env)
{
	at_end(buf_fini) struct buf room = { 0 };
	struct slice name;

	(void)!scan_read_string(env->name, &room, &name);
	return call_stats_get(&server->stats->calls, method, name);
}

bool call_record(struct call *call, const struct client *client, const struct principal *principal,
		 const struct envelope *env, const struct audit_origin *origin)
{
	struct slice trace_id = audit_call_trace(env);

	CHECK(trace_id.n <= TRACE_ID_DIGITS);
	if (trace_id.n > 0)
		memcpy(call->trace_id, trace_id.p, trace_id.n);
	call->began_at_ms = clock_now_ms();
	call->series = get_series(client->server, call->method, env);
	if (call->method->id != METHOD_PING) {
		if (client->router->exporter != NULL)
			call_span_begin(call, client, env, origin);
		call->audit_call = begin_record(client, principal, env, origin);
	}
	return call->audit_call == NULL || audit_call_may_begin(call->audit_call);
}

bool call_record_notification(const struct client *client, const struct envelope *env,
			      const struct audit_origin *origin)
{
	struct audit_call *record = operation_of(env) != OPERATION_OTHER ?
					    begin_record(client, client->principal, env, origin) :
					    NULL;
	bool may_begin = record == NULL || audit_call_may_begin(record);

	if (record != NULL)
		audit_call_end(&record, client, "allowed",
			       may_begin ? "notification" : reason_get(REASON_UNRECORDED)->text,
			       NULL, 0);
	return may_begin;
}

/* The audit's words: a failure that a tool reports itself is no failure of the call. */
static const char *const verdicts[] = {
	[CALL_OK] = "allowed",    [CALL_TOOL_ERROR] = "allowed",  [CALL_ERROR] = "failed",
	[CALL_FAILED] = "failed", [CALL_CANCELLED] = "cancelled",
};

/*
 * The call has ended, with an answer in these parts or with none. reason: for CALL_FAILED and
 * CALL_CANCELLED.
 */
static void call_record_end(struct call *call, enum call_status status, enum reason reason,
			    const struct slice *parts, size_t count)
{
	const struct rule rule = { .key = call->refused_by };
	const char *verdict = call->refused_as != NULL ? "refused" : verdicts[status];
	const char *why = call->refused_as;
	size_t bytes = 0;
	uint64_t now_ms = clock_now_ms();

	if (call->client != NULL && (status == CALL_ERROR || status == CALL_TOOL_ERROR))
		call->client->server->own.errors++;
	if (call->series != NULL)
		call_series_end(call->series, status, reason, now_ms - call->began_at_ms, now_ms);
	call->series = NULL;
	if (call->span != NULL)
		call_span_end(call, status, reason, parts, count);
	if (call->audit_call == NULL)
		return;
	if (why == NULL && status == CALL_ERROR)
		why = "error_answer";
	else if (why == NULL && reason != REASON_NONE)
		why = reason_get(reason)->text;
	for (size_t i = 0; i < count; i++)
		bytes += parts[i].n;
	audit_call_end(&call->audit_call, call->client, verdict, why,
		       call->refused_as != NULL && rule.key != RULE_NONE ? &rule : NULL, bytes);
}

/* ---- the call ---- */

#define TO(state) (1u << CALL_##state)
static const struct state_row states[] = {
	[CALL_NEW] = { "new", TO(WAITING) | TO(ENDED) },
	[CALL_WAITING] = { "waiting", TO(SENT) | TO(ENDED) },
	[CALL_SENT] = { "sent", TO(WAITING) | TO(ENDED) },
	[CALL_ENDED] = { "ended", 0 },
};
#undef TO

static void call_set_state(struct call *call, enum call_state state)
{
	CHECK(states[call->state].next & 1u << state);
	LOG(CALL_STATE, LOG_SLICE("method", call->method->name),
	    LOG_STR("from", states[call->state].name), LOG_STR("to", states[state].name));
	call->state = state;
}

static struct loop *loop_of(const struct call *call)
{
	return call->client->router->loop;
}

/* ---- deadlines ---- */

static void call_on_timeout(struct call *call)
{
	struct upstream *upstream = call->request.upstream;

	CHECK(call->state == CALL_SENT);
	counter_add(COUNTER_CALLS_TIMED_OUT);
	LOG_BY(CALL_TIMEOUT, (uintptr_t)call->client->server,
	       LOG_STR("server", call->client->server->conf.name),
	       LOG_SLICE("method", call->method->name), LOG_INT("child_id", call->request.id),
	       LOG_STR("trace_id", call->trace_id));
	call_give_up(call, "no answer in time");
	call_fail(call, REASON_TIMEOUT);
	upstream_probe(upstream);
}

static void call_on_silence(struct timer *timer)
{
	struct call *call = container_of(timer, struct call, silence);

	if (call->state == CALL_WAITING)
		waiter_time_out(&call->waiter);
	else
		call_on_timeout(call);
}

static void call_on_absolute(struct timer *timer)
{
	call_on_timeout(container_of(timer, struct call, absolute));
}

/* ---- the life ---- */

void call_init(struct call *call, const struct call_ops *ops, const struct envelope *env)
{
	struct slice id = env->id.text;
	struct slice token = env->progress_token.text;
	bool has_token =
		env->progress_token.type == JSON_STRING || env->progress_token.type == JSON_NUMBER;
	char *to = call->inlined;

	CHECK(env->kind == ENVELOPE_REQUEST);
	*call = (struct call){ .ops = ops,
			       .state = CALL_NEW,
			       .method = method_find(env->method),
			       .trace_id = "-",
			       .batch = 1 };
	list_init(&call->link);
	list_init(&call->watchers);
	timer_init(&call->silence, call_on_silence);
	timer_init(&call->absolute, call_on_absolute);
	if (!has_token)
		token.n = 0;
	if (id.n + token.n > sizeof(call->inlined))
		to = call->copied = mem_alloc(id.n + token.n);
	memcpy(to, id.p, id.n);
	call->id = slice_of(to, id.n);
	if (token.n > 0)
		memcpy(to + id.n, token.p, token.n);
	call->token = slice_of(to + id.n, token.n);
	call->progress = -__builtin_inf();
	call->page = listing_kind_page(env->cursor);
}

void call_keep_digest(struct call *call, const struct envelope *env)
{
	CHECK(call->digest == NULL);
	call->digest = kept_digest_new(env);
}

void call_link(struct call *call, struct client *client)
{
	call_set_state(call, CALL_WAITING);
	call->client = client;
	call->configuration = client->router->configuration;
	client_add_call(client, call);
}

bool call_is_stale(const struct call *call)
{
	return call->configuration != call->client->router->configuration;
}

void call_wait(struct call *call, uint64_t timeout_ms)
{
	CHECK(call->state == CALL_WAITING && call->waiter.queue != NULL);
	if (timeout_ms > 0)
		timer_start(loop_of(call), &call->silence, timeout_ms);
}

void call_stop_wait(struct call *call)
{
	CHECK(call->state == CALL_WAITING);
	timer_stop(&call->silence);
	wait_queue_remove(&call->waiter);
}

void call_recall(struct call *call)
{
	CHECK(!call->is_repeated && call->body != NULL);
	call_set_state(call, CALL_WAITING);
	timer_stop(&call->silence);
	timer_stop(&call->absolute);
	upstream_end_request(&call->request, true);
	call->request.upstream = NULL;
	call->is_repeated = true;
}

void call_sent(struct call *call, struct upstream *upstream, uint64_t id)
{
	const struct server_conf *conf = &call->client->server->conf;

	CHECK(call->waiter.queue == NULL);
	call_set_state(call, CALL_SENT);
	call->sent_at_ms = clock_now_ms();
	upstream_add_request(upstream, &call->request, id);
	counter_add(COUNTER_CALLS);
	if (call->span != NULL)
		span_note_sent(call->span);
	if (call->series != NULL && !call->is_repeated)
		latency_histogram_add(&call->client->server->stats->calls.waited,
				      call->sent_at_ms - call->began_at_ms, call->sent_at_ms);
	if (call->timeout_ms == 0)
		call->timeout_ms = conf->request_timeout_ms;
	timer_start(loop_of(call), &call->silence, call->timeout_ms);
	timer_start(loop_of(call), &call->absolute, conf->request_timeout_max_ms);
}

bool call_was_sent(const struct call *call)
{
	return call->request.upstream != NULL;
}

void call_note_heard(struct call *call)
{
	uint64_t now_ms = clock_now_ms();

	if (call->state != CALL_SENT || call->was_heard_of || call->series == NULL)
		return;
	call->was_heard_of = true;
	latency_histogram_add(&call->client->server->stats->calls.first_message,
			      now_ms - call->sent_at_ms, now_ms);
}

void call_renew(struct call *call)
{
	if (call->state == CALL_SENT && call->asked == 0)
		timer_start(loop_of(call), &call->silence, call->timeout_ms);
}

void call_note_asked(struct call *call)
{
	CHECK(call->state == CALL_SENT);
	call_note_heard(call);
	call->asked++;
	timer_stop(&call->silence);
}

void call_note_answered(struct call *call)
{
	CHECK(call->asked > 0);
	call->asked--;
	call_renew(call);
}

/* ---- watchers ---- */

void call_watch(struct call *call, struct call_watcher *watcher)
{
	CHECK(call->state != CALL_ENDED);
	list_append(&call->watchers, &watcher->link);
}

void call_unwatch(struct call_watcher *watcher)
{
	list_remove(&watcher->link);
}

bool call_tell_response(struct call *call, const struct envelope *env)
{
	LIST_EACH_SAFE(struct call_watcher, watcher, &call->watchers, link)
		if (watcher->ops->on_response != NULL &&
		    !watcher->ops->on_response(watcher, call, env))
			return false;
	return true;
}

void call_note_unreachable(struct call *call)
{
	if (call->state != CALL_SENT)
		return;
	LIST_EACH_SAFE(struct call_watcher, watcher, &call->watchers, link)
		if (watcher->ops->on_unreachable != NULL)
			watcher->ops->on_unreachable(watcher);
}

/* ---- the end ---- */

void call_give_up(struct call *call, const char *why)
{
	const struct upstream *upstream = call->request.upstream;

	if (call->state == CALL_SENT && upstream->state != UPSTREAM_CLOSED &&
	    call->method->id != METHOD_INITIALIZE)
		send_given_up(call->request.upstream, call->request.id, why);
}

/* Everything but telling the front that the call has ended. */
static void call_end(struct call *call, bool is_answered)
{
	bool was_sent = call->state == CALL_SENT;

	call_set_state(call, CALL_ENDED);
	timer_stop(&call->silence);
	timer_stop(&call->absolute);
	waiter_leave(&call->waiter);
	if (was_sent && !is_answered) {
		in_flight_bind(call->in_flight, call->request.upstream, call->request.id);
		in_flight_leave(&call->in_flight, call->client->server->conf.request_timeout_ms);
	}
	if (was_sent)
		upstream_end_request(&call->request, is_answered);
	LIST_DRAIN(struct call_watcher, watcher, &call->watchers, link) {
		call_unwatch(watcher);
		watcher->ops->on_end(watcher, call);
	}
	client_remove_call(call->client, call);
	msg_unref(&call->body);
	kept_digest_free(&call->digest);
	free(call->task);
	call->task = NULL;
}

/* id and token stay readable while the front is told. */
static void call_release(struct call *call, struct loop *loop)
{
	if (call->copied != NULL)
		loop_defer_free(loop, call->copied);
}

void call_refuse(struct call *call, struct loop *loop, enum reason reason)
{
	call_set_state(call, CALL_ENDED);
	call_record_end(call, CALL_FAILED, reason, NULL, 0);
	call_release(call, loop);
	call->ops->on_failed(call, reason);
}

void call_respond(struct call *call, const struct slice *parts, size_t count)
{
	struct upstream *upstream = call->request.upstream;
	uint64_t now_ms = clock_now_ms();

	if (call->state == CALL_SENT) {
		if (upstream->child != NULL)
			upstream->child->answered++;
		backoff_note_answered(&upstream->server->backoff, upstream->ready_at_ms);
		server_note_answer(upstream->server, now_ms - call->sent_at_ms, now_ms);
	}
	call_record_end(call,
			call->is_error      ? CALL_ERROR :
			call->is_tool_error ? CALL_TOOL_ERROR :
					      CALL_OK,
			REASON_NONE, parts, count);
	call_end(call, true);
	call_release(call, loop_of(call));
	call->ops->on_response(call, parts, count);
}

void call_fail(struct call *call, enum reason reason)
{
	server_note_failed_call(call->client->server);
	LOG(CALL_END, LOG_STR("server", call->client->server->conf.name),
	    LOG_SLICE("method", call->method->name), LOG_STR("reason", reason_get(reason)->text),
	    LOG_STR("trace_id", call->trace_id));
	call_record_end(call, CALL_FAILED, reason, NULL, 0);
	call_end(call, false);
	call_release(call, loop_of(call));
	call->ops->on_failed(call, reason);
}

void call_on_wait_timeout(not_used struct wait_queue *queue, struct waiter *waiter)
{
	call_fail(call_of_waiter(waiter), REASON_TIMEOUT);
}

void call_cancel(struct call *call)
{
	counter_add(COUNTER_CALLS_CANCELLED);
	call_record_end(call, CALL_CANCELLED, REASON_CANCELLED, NULL, 0);
	call_end(call, false);
	call_release(call, loop_of(call));
	call->ops->on_cancelled(call);
}
