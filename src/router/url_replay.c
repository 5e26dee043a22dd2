/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing is kept between the two requests but what is pending at the server (url_pending):
 * everything else is in the seal. So a state that is presented twice makes the request twice, as a
 * client can do without a state.
 */
#include "router/url_replay.h"

#include "base/mem.h"
#include "mcp/error.h"
#include "router/call.h"
#include "router/client.h"
#include "router/pool.h"
#include "router/result.h"
#include "router/router.h"
#include "router/seal.h"
#include "router/url_pending.h"

#define COMPLETION_MS (20 * 1000) /* bridging.md §2.3.7 */

struct url_replay {
	struct call *call;
	struct call_watcher watcher;
	struct wait_queue waiting; /* the call */
	struct url_waiter waiter;
	struct task step;
	struct buf wanted;
	url_replay_fn *run;
};

static void url_replay_free(struct url_replay *replay)
{
	url_waiter_leave(&replay->waiter);
	task_cancel(&replay->step);
	buf_fini(&replay->wanted);
	loop_defer_free(replay->call->client->router->loop, replay);
}

static void go_on(struct url_replay *replay)
{
	struct call *call = replay->call;
	at_end(msg_unref) struct msg *body = call->body;
	url_replay_fn *run = replay->run;

	call_stop_wait(call);
	call_unwatch(&replay->watcher);
	url_replay_free(replay);
	call->body = NULL;
	run(call, body->env);
}

/* ---- what ends the wait ---- */

static void on_step(struct task *task)
{
	go_on(container_of(task, struct url_replay, step));
}

/* Continues later in the turn: the caller of this is still at work. */
static void on_over(struct url_waiter *waiter)
{
	struct url_replay *replay = container_of(waiter, struct url_replay, waiter);

	task_schedule(replay->call->client->router->loop, &replay->step);
}

static void on_timeout(struct wait_queue *queue, not_used struct waiter *waiter)
{
	go_on(container_of(queue, struct url_replay, waiting));
}

static void on_call_end(struct call_watcher *watcher, not_used struct call *call)
{
	url_replay_free(container_of(watcher, struct url_replay, watcher));
}

static const struct wait_queue_ops waiting_ops = { .on_timeout = on_timeout };
static const struct call_watcher_ops watcher_ops = { .on_end = on_call_end };

/* ---- the beginning ---- */

/* Returns whether the call waits until this process reports that the URLs are complete. */
static bool await(struct call *call, const struct envelope *env, const struct seal *seal,
		  url_replay_fn *run)
{
	struct url_replay *replay = mem_zalloc(sizeof(*replay));

	replay->call = call;
	replay->run = run;
	list_init(&replay->watcher.link);
	list_init(&replay->waiter.link);
	task_init(&replay->step, on_step);
	buf_append_slice(&replay->wanted, seal->text);
	replay->waiter.on_over = on_over;
	replay->waiter.child = seal->child;
	replay->waiter.wanted = buf_slice(&replay->wanted);
	if (!url_pending_wait(&call->client->pool->urls, &replay->waiter)) {
		url_replay_free(replay);
		return false;
	}
	replay->watcher.ops = &watcher_ops;
	call_watch(call, &replay->watcher);
	wait_queue_init(&replay->waiting, &waiting_ops);
	call->body = msg_new_scanned(env);
	wait_queue_append(&replay->waiting, &call->waiter, env->text.n);
	call_wait(call, COMPLETION_MS);
	return true;
}

/*
 * The call runs at the process that asked, which may remember it, if it is still there.
 */
static void replay_accepted(struct call *call, const struct envelope *env, const struct seal *seal,
			    url_replay_fn *run)
{
	call->preferred_child = seal->child;
	if (call->preferred_child == 0 || !await(call, env, seal, run))
		run(call, env);
}

static void answer_declined(struct call *call)
{
	if (call->method->id == METHOD_TOOLS_CALL)
		result_send_own(
			call,
			SLICE_LIT("{\"content\":[{\"type\":\"text\",\"text\":\"The URL that the "
				  "server wants to be opened was declined\"}],"
				  "\"isError\":true}"));
	else
		result_send_error(
			call, MCP_INTERNAL_ERROR,
			SLICE_LIT("The URL that the server wants to be opened was declined"));
}

void url_replay_take(struct call *call, const struct envelope *env, const struct seal *seal,
		     url_replay_fn *run)
{
	at_end(buf_fini) struct buf left = { 0 };

	CHECK(call->digest != NULL && seal->kind == SEAL_REPLAY);
	switch (url_elicitation_read_answers(seal->text, env->input_responses, &left)) {
	case URL_ANSWERS_ACCEPTED:
		replay_accepted(call, env, seal, run);
		break;
	case URL_ANSWERS_PARTIAL:
		result_send_url_elicitations(call, seal->child, buf_slice(&left));
		break;
	case URL_ANSWERS_DECLINED:
		answer_declined(call);
		break;
	case URL_ANSWERS_MALFORMED:
		result_send_malformed_answer(call);
		break;
	}
}
