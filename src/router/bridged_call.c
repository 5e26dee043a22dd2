/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two calls: the outer one is the modern client's request, and may be gone at any time; the inner
 * one is ours, and is handled like every call. This file says what the states do to both;
 * parked_call says which state follows which event.
 */
#include "router/bridged_call.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "jsonrpc/write.h"
#include "mcp/revision.h"
#include "obs/counters.h"
#include "router/client.h"
#include "router/convert.h"
#include "router/digest.h"
#include "router/era.h"
#include "router/forward.h"
#include "router/parked_call.h"
#include "router/pool.h"
#include "router/result.h"
#include "router/router.h"
#include "router/seal.h"
#include "router/server_request.h"
#include "router/url_replay.h"
#include "session/principal.h"
#include "trace/span.h"

/* bridging.md §7 */
#define GATHER_MS 20
#define CALL_MAX_MS (60 * 60 * 1000)
#define PER_OWNER 8
#define PER_SERVER 32
#define ROUNDS_MAX 32
#define PROGRESS_MS (20 * 1000)
#define TOLD_MAX 64                 /* messages kept for the client of a parked call */
#define TOLD_BYTES_MAX (32 * 1024u) /* of all of them */

/* A message that the server sent while there was no request of the client to receive it. */
struct told {
	struct list link;
	enum stream_kind kind; /* progress, a log line, another notification */
	struct msg *msg;
};

struct bridged_call {
	struct parked_call parked;
	struct client client;      /* what the server takes for its client */
	struct pool_member member; /* of the same pool as the modern client */
	struct call inner;
	struct call_watcher outer; /* of the modern client's request, while there is one */
	struct timer deadline;
	/* While the call is parked, tells the server that its questions are being worked on. */
	struct timer progress;
	uint64_t waits_told; /* how often the server was told */
	struct list told;    /* the oldest first; for the client's next request */
	size_t told_count;
	size_t told_bytes;
	struct holder *holder;
	uint64_t anonymous_ends; /* of the router, when it began */
	/* While no request of the client is there: of the token of the last one. NULL: none. */
	struct denial_marks *marks;
	struct deny_watcher deny_watcher;
	struct digest digest; /* of the request */
	uint64_t child;       /* the process that has answered */
};

static struct bridged_call *of_parked(struct parked_call *parked)
{
	return container_of(parked, struct bridged_call, parked);
}

static struct bridged_call *of_inner(struct call *inner)
{
	return container_of(inner, struct bridged_call, inner);
}

void bridged_calls_init(struct parked_calls *table)
{
	static const struct parked_calls_conf conf = {
		.gather_ms = GATHER_MS,
		.park_ttl_ms = REQUEST_STATE_TTL_MS,
		.call_max_ms = CALL_MAX_MS,
		.per_owner = PER_OWNER,
		.per_server = PER_SERVER,
		.rounds_max = ROUNDS_MAX,
	};

	parked_calls_init(table, &conf);
}

/* ---- what the server reports ---- */

/* Relays progress, with the token of the request that waits now. */
static void relay_progress(struct call *outer, const struct envelope *env)
{
	struct json token = env->progress_of;
	struct splice_edit edit = { token.text, outer->token };
	at_end(msg_unref) struct msg *msg = NULL;

	if (outer->token.n == 0)
		return;
	msg = client_copy_message(env, &edit, 1);
	(void)outer->ops->on_message(outer, STREAM_PROGRESS, 0, msg);
}

/*
 * Whether the message is for this request. A log line may not be: the request before it may have
 * wanted more. What belongs to a client's subscription stream is not for a legacy server to say.
 * MOD-LOG-01, MOD-SUB-02, FRONT-SSE-08
 */
static bool is_for(const struct call *outer, enum stream_kind kind, const struct envelope *env)
{
	static const char *const subscription[] = { "_meta",
						    "io.modelcontextprotocol/subscriptionId" };

	if (kind == STREAM_LOG && client_named_level(env) < outer->client->level)
		return false;
	return !slice_has_prefix(env->method, SLICE_LIT("notifications/subscriptions/")) &&
	       !slice_is_equal(env->method, SLICE_LIT("notifications/tasks")) &&
	       scan_path(env->params.text, subscription, ARRAY_LEN(subscription)).type ==
		       JSON_ABSENT;
}

static bool relay(struct call *outer, enum stream_kind kind, struct msg *msg)
{
	struct envelope env;

	/* Strictly: what the client takes for a member is what we have judged. */
	if (scan_envelope(msg->text, &outer->client->router->limits, 0, &env, NULL) < 0 ||
	    !is_for(outer, kind, &env))
		return false;
	if (kind != STREAM_PROGRESS)
		return outer->ops->on_message(outer, kind, 0, msg);
	relay_progress(outer, &env);
	return true;
}

static void told_drop_first(struct bridged_call *bridged)
{
	struct told *told = container_of(bridged->told.next, struct told, link);

	list_remove(&told->link);
	bridged->told_count--;
	bridged->told_bytes -= told->msg->text.n;
	msg_unref(&told->msg);
	free(told);
}

/*
 * Keeps a message until the client tries again; if there are too many, the oldest are dropped.
 * bridging.md §2.3.3 (j)
 */
static void keep_told(struct bridged_call *bridged, enum stream_kind kind, struct msg *msg)
{
	struct told *told;

	if (msg->text.n > TOLD_BYTES_MAX) { /* what is kept already stays */
		counter_add(COUNTER_STREAM_DROPPED);
		return;
	}
	told = mem_zalloc(sizeof(*told));
	told->kind = kind;
	told->msg = msg_ref(msg);
	list_append(&bridged->told, &told->link);
	bridged->told_count++;
	bridged->told_bytes += msg->text.n;
	while (bridged->told_count > TOLD_MAX || bridged->told_bytes > TOLD_BYTES_MAX) {
		told_drop_first(bridged);
		counter_add(COUNTER_STREAM_DROPPED);
	}
}

/* To be called before anything else is sent to this request of the client. */
static void tell_kept(struct bridged_call *bridged, struct call *call)
{
	LIST_DRAIN(const struct told, told, &bridged->told, link) {
		(void)relay(call, told->kind, told->msg);
		told_drop_first(bridged);
	}
}

/* ---- whose token is denied while it is parked ---- */

static void forget_token(struct bridged_call *bridged)
{
	deny_list_unwatch(&bridged->deny_watcher);
	free(bridged->marks);
	bridged->marks = NULL;
}

/* Of the request that is about to be answered, which watches it no more. AUTH-SES-07 */
static void watch_token(struct bridged_call *bridged, const struct call *call)
{
	struct denial_marks marks;

	CHECK(call->ops->show != NULL);
	forget_token(bridged);
	call->ops->show(call, &marks);
	if (marks.issuer.n == 0)
		return;
	bridged->marks = denial_marks_copy(&marks);
	deny_list_watch(&bridged->client.router->sessions.deny_list, &bridged->deny_watcher);
}

static void show_marks(const struct deny_watcher *watcher, struct denial_marks *marks_r)
{
	*marks_r = *container_of(watcher, struct bridged_call, deny_watcher)->marks;
}

static void on_denied(struct deny_watcher *watcher)
{
	struct bridged_call *bridged = container_of(watcher, struct bridged_call, deny_watcher);

	parked_call_abandon(&bridged->parked, REASON_DENIED, clock_now_ms());
}

static const struct deny_watcher_ops deny_ops = { .show = show_marks, .on_denied = on_denied };

/* ---- what the states do ---- */

static void stop_watching(struct bridged_call *bridged)
{
	call_unwatch(&bridged->outer);
}

static void start_progress(struct bridged_call *bridged)
{
	if (bridged->client.server->conf.tells_progress)
		timer_start(bridged->client.router->loop, &bridged->progress, PROGRESS_MS);
}

/* Sends progress for the request, if the server wanted any. bridging.md §2.3.3 (i) */
static void tell_progress(struct bridged_call *bridged, const struct parked_request *request)
{
	at_end(buf_fini) struct buf text = { 0 };
	struct envelope env;

	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
			      "\"params\":{\"progressToken\":");
	buf_append_slice(&text, request->id);
	buf_printf(&text, ",\"progress\":%llu}}", (unsigned long long)bridged->waits_told);
	if (scan_envelope(buf_slice(&text), &bridged->client.router->limits, 0, &env, NULL) == 0)
		forward_linked_progress(&bridged->client, &env);
}

static void on_progress(struct timer *timer)
{
	struct bridged_call *bridged = container_of(timer, struct bridged_call, progress);

	if (bridged->parked.state != PARKED_PARKED)
		return;
	bridged->waits_told++;
	LIST_EACH(struct parked_request, request, &bridged->parked.requests, link)
		tell_progress(bridged, request);
	start_progress(bridged);
}

/* Sends the server's requests to the modern client, in the form of its era. MOD-MRTR-01, -02 */
static void on_ask(struct parked_call *parked, struct call *call)
{
	struct bridged_call *bridged = of_parked(parked);
	at_end(buf_fini) struct buf requests = { 0 }, state = { 0 };
	char name[24];

	tell_kept(bridged, call);
	LIST_EACH(const struct parked_request, request, &parked->requests, link)
		era_append_input_request(&requests,
					 slice_of(name, parked_request_key(request, name)),
					 request->msg->text);
	start_progress(bridged);
	watch_token(bridged, call);
	request_state_append_parked(&state, &bridged->client, &bridged->digest, parked->id,
				    parked->round);
	stop_watching(bridged);
	result_send_input_required(call, buf_slice(&requests), buf_slice(&state));
}

static void on_deliver(struct parked_call *parked, struct call *call, struct msg *response)
{
	struct bridged_call *bridged = of_parked(parked);
	struct envelope env;

	tell_kept(bridged, call);
	stop_watching(bridged);
	call->missing = bridged->inner.missing;
	call->preferred_child = bridged->child;
	if (scan_envelope(response->text, &bridged->client.router->limits, SCAN_LENIENT, &env,
			  NULL) < 0)
		call_fail(call, REASON_CHILD_PROTOCOL_ERROR); /* cannot happen: we wrote it */
	else
		result_send_kept(call, bridged->client.revision, &env);
}

static void on_fail(struct parked_call *parked, struct call *call, enum reason reason)
{
	tell_kept(of_parked(parked), call);
	stop_watching(of_parked(parked));
	call_fail(call, reason);
}

/* The answer is forwarded like one of a session. */
static void on_answer(struct parked_call *parked, const struct parked_request *request,
		      struct slice result)
{
	struct bridged_call *bridged = of_parked(parked);
	at_end(buf_fini) struct buf text = { 0 };
	struct envelope env;

	buf_append_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":");
	buf_append_slice(&text, request->id);
	if (result.n > 0) {
		buf_append_str(&text, ",\"result\":");
		buf_append_slice(&text, result);
	} else if (request->method->id == METHOD_ELICITATION) {
		buf_append_str(&text, ",\"result\":{\"action\":\"cancel\"}");
	} else {
		buf_append_str(&text, ",\"error\":{\"code\":-32603,\"message\":"
				      "\"the client has not answered\"}");
	}
	buf_append_char(&text, '}');
	if (scan_envelope(buf_slice(&text), &bridged->client.router->limits, 0, &env, NULL) == 0)
		forward_linked_answer(&bridged->client, &env);
}

static void on_cancel(struct parked_call *parked)
{
	struct call *inner = &of_parked(parked)->inner;

	if (inner->state == CALL_ENDED)
		return;
	call_give_up(inner, "nobody waits for the answer any more");
	call_cancel(inner);
}

/* Nothing is left to do: the inner call has ended. */
static void on_release(struct parked_call *parked)
{
	CHECK(of_parked(parked)->inner.state == CALL_ENDED);
}

static void on_set_deadline(struct parked_call *parked, uint64_t deadline_ms)
{
	struct bridged_call *bridged = of_parked(parked);
	uint64_t now_ms = clock_now_ms();

	timer_stop(&bridged->deadline);
	if (deadline_ms > 0)
		timer_start(bridged->client.router->loop, &bridged->deadline,
			    deadline_ms > now_ms ? deadline_ms - now_ms : 0);
}

static void on_end(struct parked_call *parked)
{
	struct bridged_call *bridged = of_parked(parked);
	struct loop *loop = bridged->client.router->loop;

	CHECK(bridged->inner.state == CALL_ENDED);
	timer_stop(&bridged->deadline);
	timer_stop(&bridged->progress);
	forget_token(bridged);
	server_request_end_all(&bridged->client, "the request that this was asked for is over");
	pool_leave(&bridged->member, REASON_DONE);
	while (!list_is_empty(&bridged->told))
		told_drop_first(bridged);
	client_fini(&bridged->client);
	principal_unref(&bridged->client.principal);
	holder_unref(&bridged->holder);
	loop_defer_free(loop, bridged);
}

static const struct parked_call_ops parked_ops = {
	.ask = on_ask,
	.deliver = on_deliver,
	.fail = on_fail,
	.answer = on_answer,
	.cancel = on_cancel,
	.release = on_release,
	.set_deadline = on_set_deadline,
	.on_end = on_end,
};

/* Why its client could not come back with an answer; REASON_DONE: it could. */
static enum reason find_loss(const struct bridged_call *bridged)
{
	const struct client *client = &bridged->client;
	const struct router *router = client->router;

	if (client->server->is_retired) /* the answer would reach the server that is in use now */
		return REASON_RETIRED;
	if (router->is_draining)
		return REASON_DRAINING;
	if (principal_is_anonymous(client->principal) &&
	    bridged->anonymous_ends != router->anonymous_ends)
		return REASON_DENIED;
	return REASON_DONE;
}

static void on_deadline(struct timer *timer)
{
	struct bridged_call *bridged = container_of(timer, struct bridged_call, deadline);
	enum reason loss = find_loss(bridged);

	if (loss != REASON_DONE) /* as it was about to ask */
		parked_call_abandon(&bridged->parked, loss, clock_now_ms());
	else
		parked_call_on_deadline(&bridged->parked, clock_now_ms());
}

/* ---- what the inner call reports ---- */

/* Takes a request of the server, or the notification that cancels one. */
static bool take_request(struct bridged_call *bridged, struct msg *msg)
{
	uint64_t now_ms = clock_now_ms();
	struct envelope env;

	if (scan_envelope(msg->text, &bridged->client.router->limits, SCAN_LENIENT, &env, NULL) < 0)
		return false;
	if (env.kind == ENVELOPE_REQUEST && find_loss(bridged) != REASON_DONE)
		return false;
	if (env.kind == ENVELOPE_REQUEST)
		return parked_call_on_request(&bridged->parked, method_find(env.method), msg,
					      env.id.text, now_ms);
	parked_call_on_request_cancelled(&bridged->parked,
					 scan_member(env.params.text, SLICE_LIT("requestId")).text,
					 now_ms);
	return true;
}

static bool inner_on_message(struct call *inner, enum stream_kind kind, not_used uint64_t key,
			     struct msg *msg)
{
	struct bridged_call *bridged = of_inner(inner);

	if (kind == STREAM_REQUEST)
		return take_request(bridged, msg);
	if (bridged->parked.call != NULL)
		return relay(bridged->parked.call, kind, msg);
	keep_told(bridged, kind, msg);
	return true;
}

/* While nobody waits for it, it is one of our own. */
static bool inner_judge(struct call *inner, const struct envelope *env,
			struct call_refusal *refusal_r)
{
	struct call *call = of_inner(inner)->parked.call;

	return call == NULL || call->ops->judge(call, env, refusal_r);
}

static void inner_on_response(struct call *inner, const struct slice *parts, size_t count)
{
	struct call *call = of_inner(inner)->parked.call;
	struct buf text = { 0 };
	at_end(msg_unref) struct msg *msg = NULL;

	for (size_t i = 0; i < count; i++)
		buf_append_slice(&text, parts[i]);
	msg = msg_new_take(&text);
	if (call != NULL) {
		call->refused_by = inner->refused_by;
		call->refused_as = inner->refused_as;
	}
	if (call_was_sent(inner)) /* else it was refused */
		of_inner(inner)->child = upstream_child_number(inner->request.upstream);
	parked_call_on_response(&of_inner(inner)->parked, msg, clock_now_ms());
}

static void inner_on_failed(struct call *inner, enum reason reason)
{
	struct parked_call *parked = &of_inner(inner)->parked;

	if (call_was_sent(inner) && reason != REASON_TIMEOUT)
		parked_call_on_exit(parked, reason, clock_now_ms());
	else
		parked_call_abandon(parked, reason, clock_now_ms());
}

static void inner_on_cancelled(struct call *inner)
{
	CHECK(of_inner(inner)->parked.state == PARKED_ENDED); /* we cancelled it */
}

static const struct caller *inner_who(struct call *inner, struct caller *room)
{
	struct call *call = of_inner(inner)->parked.call;

	return call != NULL && call->ops->who != NULL ? call->ops->who(call, room) : NULL;
}

static const struct call_ops inner_ops = {
	.who = inner_who,
	.on_message = inner_on_message,
	.judge = inner_judge,
	.on_response = inner_on_response,
	.on_failed = inner_on_failed,
	.on_cancelled = inner_on_cancelled,
};

/* ---- what the outer call reports ---- */

static void outer_on_end(struct call_watcher *watcher, struct call *call)
{
	struct bridged_call *bridged = container_of(watcher, struct bridged_call, outer);

	if (bridged->parked.call == call && bridged->inner.in_flight == NULL) {
		bridged->inner.in_flight = call->in_flight; /* the server works on */
		call->in_flight = NULL;
	}
	parked_call_on_disconnect(&bridged->parked, call, clock_now_ms());
}

static const struct call_watcher_ops outer_ops = { .on_end = outer_on_end };

/* ---- what the pool reports ---- */

/* There are no other events: the member joins a pool that already knows its server. */
static void member_on_notification(not_used struct pool_member *member, not_used uint64_t key,
				   not_used struct msg *msg)
{
}

static const struct pool_member_ops member_ops = { .on_notification = member_on_notification };

/* ---- requests ---- */

static void begin(struct call *call, const struct envelope *env)
{
	struct client *modern = call->client;
	struct router *router = modern->router;
	size_t pool_max = modern->server->conf.pool_max;
	struct bridged_call *bridged = mem_zalloc(sizeof(*bridged));
	at_end(convert_fini) struct convert convert = { .text = { 0 } };

	client_init(&bridged->client, router, modern->server, &modern->peer, revision_newest());
	bridged->client.principal = principal_ref(modern->principal);
	bridged->client.level = modern->level;
	bridged->anonymous_ends = router->anonymous_ends;
	bridged->client.is_ready_to_be_asked = true;
	bridged->member = (struct pool_member){ .ops = &member_ops, .client = &bridged->client };
	pool_join_as(&bridged->member, modern->pool);
	bridged->holder = holder_get(&router->sessions.holders, &router->parked_calls,
				     modern->principal, &modern->peer);
	bridged->client.holder = bridged->holder;
	bridged->outer.ops = &outer_ops;
	deny_watcher_init(&bridged->deny_watcher, &deny_ops);
	list_init(&bridged->told);
	timer_init(&bridged->deadline, on_deadline);
	timer_init(&bridged->progress, on_progress);
	bridged->digest = *kept_digest_get(call->digest);
	bridged->parked.ops = &parked_ops;
	bridged->parked.server = modern->server;
	bridged->parked.server_max = pool_max > 1 ? pool_max / 2 : 1;
	bridged->parked.owner = bridged->holder;
	bridged->parked.is_of_crowd = bridged->holder->is_crowd;
	parked_call_init(&bridged->parked, &router->parked_calls, call, clock_now_ms());
	call_watch(call, &bridged->outer);
	env = era_request(&convert, env);
	call_init(&bridged->inner, &inner_ops, env);
	bridged->inner.preferred_child = call->preferred_child;
	if (call->span != NULL)
		bridged->inner.span = span_hand_on(call->span);
	call_link(&bridged->inner, &bridged->client);
	bridged->inner.configuration = call->configuration;
	forward_linked(&bridged->inner, env);
}

/* The client tries again. MOD-MRTR-03 to -05 */
static enum parked_retry try_again(struct call *call, const struct seal *seal,
				   struct json responses)
{
	struct router *router = call->client->router;
	struct parked_call *parked = parked_calls_find(&router->parked_calls, seal->call);
	struct bridged_call *bridged;
	int level = call->client->level; /* read first: the retry may end the client */
	enum parked_retry outcome;

	if (seal->kind != SEAL_PARKED || parked == NULL)
		return PARKED_RETRY_STALE;
	bridged = of_parked(parked);
	if (parked->call != NULL) /* another request already waits for it */
		return PARKED_RETRY_STALE;
	/* The server was told other capabilities than this request declares, and asks by those. */
	if (bridged->client.pool != call->client->pool)
		return PARKED_RETRY_STALE;
	call_watch(call, &bridged->outer);
	outcome = parked_call_on_retry(parked, call, seal->round, responses, clock_now_ms());
	if (outcome != PARKED_RETRY_TAKEN) {
		stop_watching(bridged);
		return outcome;
	}
	bridged->client.level = level;
	if (parked->call == call) {
		forget_token(bridged); /* the request watches its own */
		tell_kept(bridged, call);
	}
	return outcome;
}

/*
 * Forwards the retry to a modern server, with the state that the server gave, if it did.
 * BACK-MSG-04, bridging.md §2.4
 */
static void forward_retry(struct call *call, const struct envelope *env, struct json sealed,
			  const struct seal *seal)
{
	struct splice_edit edit = { sealed.text,
				    seal->text.n > 0 ? seal->text : SLICE_LIT("null") };
	at_end(buf_fini) struct buf text = { 0 };
	struct envelope unsealed;

	call->preferred_child = seal->child;
	splice_append(&text, env->text, &edit, 1, 0);
	if (scan_envelope(buf_slice(&text), &call->client->router->limits, 0, &unsealed, NULL) < 0)
		call_fail(call, REASON_PROTOCOL_ERROR); /* cannot happen: it was accepted before */
	else
		forward_linked(call, &unsealed);
}

/*
 * If the server does not offer the method, no process is asked: the call is answered as without a
 * lease. FRONT-ERA-07
 */
static bool is_bridged(const struct call *call)
{
	const struct pool *pool = call->client->pool;

	return pool_is_leased(pool) && !(call->method->needs & ~pool->capabilities.offers);
}

/* Handles the call as if it had come for the first time. */
static void run(struct call *call, const struct envelope *env)
{
	if (is_bridged(call))
		begin(call, env);
	else
		forward_linked(call, env);
}

static void take_retry(struct call *call, const struct envelope *env, struct json sealed)
{
	struct json responses = env->input_responses;
	enum parked_retry outcome = PARKED_RETRY_STALE;
	at_end(buf_fini) struct buf plain = { 0 };
	struct seal seal;

	if (request_state_open(call->client, kept_digest_get(call->digest), sealed, &plain, &seal) <
	    0)
		result_send_invalid_state(call);
	else if (seal.kind == SEAL_WRAPPED && pool_is_modern(call->client->pool))
		forward_retry(call, env, sealed, &seal);
	else if (seal.kind == SEAL_REPLAY && !pool_is_modern(call->client->pool))
		url_replay_take(call, env, &seal, run);
	else if ((outcome = try_again(call, &seal, responses)) == PARKED_RETRY_STALE)
		result_send_invalid_state(call);
	else if (outcome == PARKED_RETRY_MALFORMED)
		result_send_malformed_answer(call);
}

bool bridged_call_take(struct call *call, const struct envelope *env)
{
	const struct pool *pool = call->client->pool;
	struct json sealed = env->request_state;

	CHECK(call->client->revision->is_modern && call->state == CALL_WAITING);
	if (!(call->method->flags & METHOD_ASKING))
		return false;
	if (sealed.type != JSON_ABSENT || pool_is_modern(pool) || pool_is_leased(pool) ||
	    call->client->can_open_urls)
		call_keep_digest(call, env);
	if (sealed.type != JSON_ABSENT)
		take_retry(call, env, sealed);
	else if (is_bridged(call))
		begin(call, env);
	else
		return false;
	return true;
}

/* ---- the end of all ---- */

void bridged_calls_abandon(struct router *router, enum reason reason)
{
	LIST_DRAIN(struct parked_call, call, &router->parked_calls.kept, kept)
		parked_call_abandon(call, reason, clock_now_ms());
}

static struct parked_call *find_kept(const struct router *router, const struct server *server)
{
	LIST_EACH(struct parked_call, parked, &router->parked_calls.kept, kept)
		if (server != NULL ? parked->server == server :
				     principal_is_anonymous(of_parked(parked)->client.principal))
			return parked;
	return NULL;
}

void bridged_calls_abandon_some(struct router *router, const struct server *server,
				enum reason reason)
{
	struct parked_call *parked;

	CHECK(server == NULL || server->is_retired);
	while ((parked = find_kept(router, server)) != NULL) /* one may take others along */
		parked_call_abandon(parked, reason, clock_now_ms());
}
