/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One timer for what comes first, the end of the token or the next question; and a place among those who are told
 * of new entries. The token's text is kept only where there is somebody to show it to, and wiped.
 */
#include "endpoint/token_watch.h"

#include <stdlib.h>
#include <string.h>

#include "auth/grant.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "obs/log.h"
#include "router/router.h"

/* Until an issuer that did not answer is asked again. */
#define AGAIN_MS (VERIFIER_RETRY_AFTER_S * 1000)

/* Nothing is called any more. */
static void token_watch_stop(struct token_watch *token_watch)
{
	timer_stop(&token_watch->timer);
	deny_list_unwatch(&token_watch->holder);
	verifier_cancel(&token_watch->wait);
	if (token_watch->token != NULL)
		explicit_bzero(token_watch->token, token_watch->token_size);
	free(token_watch->token);
	token_watch->token = NULL;
}

static void token_watch_over(struct token_watch *token_watch, enum reason reason)
{
	LOG(STREAM_OVER, LOG_SLICE("server", token_watch->place->server),
	    LOG_STR("reason", reason_get(reason)->text));
	token_watch_stop(token_watch);
	token_watch->on_over(token_watch->owner, reason);
}

/* ---- time ---- */

static uint64_t left_of(uint64_t end_ms, uint64_t now_ms)
{
	if (end_ms == UINT64_MAX)
		return UINT64_MAX;
	return end_ms > now_ms ? end_ms - now_ms : 0;
}

static bool is_asking(const struct token_watch *token_watch)
{
	return token_watch->wait.job != NULL;
}

/*
 * Each duration is a queue of the loop for good: there must be few; and none may be long, for the wall clock is set,
 * and goes on while the machine sleeps. UINT64_MAX: nothing will happen.
 */
static uint64_t step_ms(const struct token_watch *token_watch)
{
	static const uint64_t steps_ms[] = { 60000, 10000, 1000, 100 };
	uint64_t left_ms = left_of(token_watch->access.ends_at_ms, clock_wall_ms());
	uint64_t next_ms =
		is_asking(token_watch) ? token_watch->trust_until_ms : token_watch->ask_at_ms;
	size_t i = 0;

	next_ms = left_of(next_ms, clock_now_ms());
	if (next_ms < left_ms)
		left_ms = next_ms;
	if (left_ms == UINT64_MAX)
		return UINT64_MAX;
	while (i < ARRAY_LEN(steps_ms) - 1 && steps_ms[i] > left_ms)
		i++;
	return steps_ms[i];
}

static void token_watch_wait(struct token_watch *token_watch)
{
	uint64_t ms = step_ms(token_watch);

	if (ms != UINT64_MAX)
		timer_start(token_watch->loop, &token_watch->timer, ms);
}

/* ---- asking ---- */

static void token_watch_set_times(struct token_watch *token_watch)
{
	const struct grant *grant = token_watch->access.grant;

	CHECK(token_watch->token == NULL || grant != NULL);
	token_watch->ask_at_ms = token_watch->token != NULL ? grant->ask_again_at_ms : UINT64_MAX;
	token_watch->trust_until_ms =
		token_watch->token != NULL ? grant->trust_until_ms : UINT64_MAX;
}

static void token_watch_learn(struct token_watch *token_watch, const struct verdict *verdict,
			      struct grant *grant)
{
	if (grant != NULL) {
		if (!authorization_renew(token_watch->authorization, token_watch->place,
					 &token_watch->access, grant)) {
			token_watch_over(token_watch, REASON_REVOKED);
			return;
		}
		token_watch_set_times(token_watch);
	} else if (verdict_outcome(verdict->kind) != VERDICT_UNAVAILABLE) {
		token_watch_over(token_watch, REASON_REVOKED);
		return;
	} else {
		token_watch->ask_at_ms = clock_now_ms() + AGAIN_MS;
	}
	token_watch_wait(token_watch);
}

static void token_watch_on_verdict(struct verifier_wait *wait, const struct verdict *verdict,
				   struct grant *grant)
{
	token_watch_learn(container_of(wait, struct token_watch, wait), verdict, grant);
}

static void token_watch_ask(struct token_watch *token_watch)
{
	struct slice token = slice_of(token_watch->token, token_watch->token_size);
	struct grant *grant = NULL;
	struct verdict verdict;

	CHECK(token_watch->token != NULL && !is_asking(token_watch));
	if (verifier_check(token_watch->authorization->conf.verifier, token,
			   token_watch->place->accepted.items, token_watch->place->accepted.count,
			   &token_watch->wait, &verdict, &grant))
		token_watch_learn(token_watch, &verdict, grant);
	else
		token_watch_wait(token_watch);
}

static void token_watch_on_timer(struct timer *timer)
{
	struct token_watch *token_watch = container_of(timer, struct token_watch, timer);

	if (left_of(token_watch->access.ends_at_ms, clock_wall_ms()) == 0)
		token_watch_over(token_watch, REASON_EXPIRED);
	else if (left_of(token_watch->trust_until_ms, clock_now_ms()) == 0)
		token_watch_over(token_watch, REASON_UNCONFIRMED);
	else if (!is_asking(token_watch) && left_of(token_watch->ask_at_ms, clock_now_ms()) == 0)
		token_watch_ask(token_watch);
	else
		token_watch_wait(token_watch);
}

/* ---- entries of the denials ---- */

static void token_watch_show(const struct deny_watcher *holder, struct denial_marks *marks_r)
{
	access_show(&container_of(holder, struct token_watch, holder)->access, marks_r);
}

static void token_watch_on_denied(struct deny_watcher *holder)
{
	token_watch_over(container_of(holder, struct token_watch, holder), REASON_DENIED);
}

static const struct deny_watcher_ops token_watch_watcher_ops = {
	.show = token_watch_show,
	.on_denied = token_watch_on_denied,
};

/* ---- the life of a token watch ---- */

struct token_watch *token_watch_new(const struct endpoint_request *request,
				    token_watch_over_fn *on_over, void *owner)
{
	const struct grant *grant = request->access->grant;
	struct slice token = static_token(request->http);
	struct token_watch *token_watch;

	if (principal_is_anonymous(request->access->principal))
		return NULL;
	token_watch = mem_alloc(sizeof(*token_watch));
	*token_watch = (struct token_watch){
		.loop = request->frontend->router->loop,
		.authorization = &request->frontend->authorization,
		.place = &request->endpoint->place,
		.wait = { .on_done = token_watch_on_verdict },
		.owner = owner,
		.on_over = on_over,
	};
	if (grant != NULL && grant->ask_again_at_ms != UINT64_MAX) {
		token_watch->token = mem_dup_slice(token);
		token_watch->token_size = token.n;
	}
	timer_init(&token_watch->timer, token_watch_on_timer);
	deny_watcher_init(&token_watch->holder, &token_watch_watcher_ops);
	return token_watch;
}

void token_watch_begin(struct token_watch *token_watch, const struct access *access)
{
	if (token_watch == NULL)
		return;
	CHECK(token_watch->access.principal == NULL);
	token_watch->access = access_copy(access);
	deny_list_watch(token_watch->authorization->deny_list, &token_watch->holder);
	token_watch_set_times(token_watch);
	token_watch_wait(token_watch);
}

void token_watch_end(struct token_watch **token_watch)
{
	if (*token_watch == NULL)
		return;
	token_watch_stop(*token_watch);
	access_fini(&(*token_watch)->access);
	loop_defer_free((*token_watch)->loop, *token_watch); /* it may be on the stack */
	*token_watch = NULL;
}
