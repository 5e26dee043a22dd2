/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a call. Nothing is keyed by what the client chose: its id is only returned to it. A
 * call ends once; whatever the server still sends for it finds no entry and is dropped.
 */
#include "router/call.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "process/child.h"
#include "router/call_record.h"
#include "router/client.h"
#include "router/digest.h"
#include "router/in_flight.h"
#include "router/listing_kind.h"
#include "router/router.h"
#include "trace/span.h"
#include "upstream/send.h"

#define TO(state) (1u << CALL_##state)
static const struct {
	const char *name;
	unsigned int next;
} states[] = {
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
	LIST_FOREACH_SAFE(node, &call->watchers) {
		struct call_watcher *watcher = container_of(node, struct call_watcher, link);

		if (watcher->ops->on_response != NULL &&
		    !watcher->ops->on_response(watcher, call, env))
			return false;
	}
	return true;
}

void call_note_unreachable(struct call *call)
{
	if (call->state != CALL_SENT)
		return;
	LIST_FOREACH_SAFE(node, &call->watchers) {
		struct call_watcher *watcher = container_of(node, struct call_watcher, link);

		if (watcher->ops->on_unreachable != NULL)
			watcher->ops->on_unreachable(watcher);
	}
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
	while (!list_is_empty(&call->watchers)) {
		struct call_watcher *watcher =
			container_of(call->watchers.next, struct call_watcher, link);

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

void call_on_wait_timeout(struct wait_queue *queue, struct waiter *waiter)
{
	(void)queue;
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
