/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a call. Nothing is keyed by what the client chose: its id is only given back. A call ends
 * once; whatever the child still sends for it finds no entry and is dropped.
 */
#include "router/call.h"

#include <stdlib.h>

#include "process/server.h"
#include "base/clock.h"
#include "base/mem.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "router/forward.h"
#include "router/upstream.h"
#include "router/pool.h"
#include "router/route.h"
#include "router/sharing.h"

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
	call->state = state;
}

static void call_on_timeout(struct call *call)
{
	struct upstream *upstream = call->upstream;

	counter_add(COUNTER_CALLS_TIMED_OUT);
	LOG(CALL_TIMEOUT, LOG_STR("server", call->route->server->conf.name),
	    LOG_SLICE("method", call->method->name), LOG_INT("child_id", call->upstream_id));
	forward_cancel(call, SLICE_LIT("no answer in time"));
	call_fail(call, REASON_TIMEOUT);
	upstream_probe(upstream);
}

static void call_on_silence(struct timer *timer)
{
	struct call *call = container_of(timer, struct call, silence);

	if (call->state == CALL_WAITING)
		pool_on_wait_over(call);
	else
		call_on_timeout(call);
}

static void call_on_absolute(struct timer *timer)
{
	call_on_timeout(container_of(timer, struct call, absolute));
}

void call_init(struct call *call, const struct call_ops *ops, const struct envelope *env)
{
	struct slice id = env->id.text;
	struct slice token = env->progress_token.text;
	bool has_token =
		env->progress_token.type == JSON_STRING || env->progress_token.type == JSON_NUMBER;
	char *to = call->inlined;

	*call = (struct call){ .ops = ops, .state = CALL_NEW, .method = method_find(env->method) };
	list_init(&call->link);
	list_init(&call->place);
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
}

void call_link(struct call *call, struct route *route)
{
	call_set_state(call, CALL_WAITING);
	call->route = route;
	list_append(&route->calls, &call->link);
	route->call_count++;
	route->router->calls++;
	session_hold(&route->session);
}

void call_wait(struct call *call, uint64_t timeout_ms)
{
	if (timeout_ms > 0)
		timer_start(call->route->router->loop, &call->silence, timeout_ms);
}

void call_recall(struct call *call)
{
	call_set_state(call, CALL_WAITING);
	timer_stop(&call->silence);
	timer_stop(&call->absolute);
	upstream_remove_call(call->upstream, call, true);
	call->upstream = NULL;
	call->is_repeated = true;
}

void call_sent(struct call *call, struct upstream *upstream, uint64_t upstream_id)
{
	const struct server_conf *conf = &call->route->server->conf;

	call_set_state(call, CALL_SENT);
	call->upstream = upstream;
	call->upstream_id = upstream_id;
	call->sent_at_ms = clock_now_ms();
	upstream_add_call(upstream, call);
	counter_add(COUNTER_CALLS);
	if (call->timeout_ms == 0)
		call->timeout_ms = conf->request_timeout_ms;
	timer_start(call->route->router->loop, &call->silence, call->timeout_ms);
	timer_start(call->route->router->loop, &call->absolute, conf->request_timeout_max_ms);
}

void call_renew(struct call *call)
{
	if (call->state == CALL_SENT && call->asked == 0)
		timer_start(call->route->router->loop, &call->silence, call->timeout_ms);
}

void call_note_asked(struct call *call)
{
	call->asked++;
	timer_stop(&call->silence);
}

void call_note_answered(struct call *call)
{
	CHECK(call->asked > 0);
	call->asked--;
	call_renew(call);
}

void call_note_unreachable(struct call *call)
{
	if (call->state == CALL_SENT && call->asked > 0)
		route_hold_server_requests(call->route, call);
}

/* Everything but telling the front. */
static void call_end(struct call *call, bool is_answered)
{
	call_set_state(call, CALL_ENDED);
	timer_stop(&call->silence);
	timer_stop(&call->absolute);
	list_remove(&call->link);
	call->route->call_count--;
	call->route->router->calls--;
	if (call->fairness_key != NULL)
		queue_remove(&call->route->pool->queue, call);
	list_remove(&call->place);
	if (call->upstream != NULL)
		upstream_remove_call(call->upstream, call, is_answered);
	if (call->subscription != NULL)
		sharing_abandon(call);
	route_forget_call(call->route, call);
	session_release(&call->route->session);
	msg_unref(&call->body);
}

/* id and token stay readable for the front while it is told. */
static void call_release(struct call *call, struct loop *loop)
{
	if (call->copied != NULL)
		loop_defer_free(loop, call->copied);
}

void call_refuse(struct call *call, struct loop *loop, enum reason reason)
{
	call_set_state(call, CALL_ENDED);
	call_release(call, loop);
	call->ops->on_failed(call, reason);
}

static void call_note_answer(const struct call *call)
{
	uint64_t now_ms = clock_now_ms();

	if (call->state != CALL_SENT)
		return;
	call->upstream->child.answered++;
	server_note_answered(call->route->server, call->upstream->ready_at_ms);
	latency_histogram_add(&call->route->server->stats.answered, now_ms - call->sent_at_ms,
			      now_ms);
}

void call_respond(struct call *call, const struct slice *parts, size_t count)
{
	call_note_answer(call);
	call_end(call, true);
	call_release(call, call->route->router->loop);
	call->ops->on_response(call, parts, count);
}

void call_fail(struct call *call, enum reason reason)
{
	call->route->server->stats.failed++;
	LOG(CALL_END, LOG_STR("server", call->route->server->conf.name),
	    LOG_SLICE("method", call->method->name), LOG_STR("reason", reason_get(reason)->text));
	call_end(call, false);
	call_release(call, call->route->router->loop);
	call->ops->on_failed(call, reason);
}

void call_cancel(struct call *call)
{
	counter_add(COUNTER_CALLS_CANCELLED);
	call_end(call, false);
	call_release(call, call->route->router->loop);
	call->ops->on_cancelled(call);
}
