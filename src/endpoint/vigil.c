/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One timer for what comes first, the end of the token or the next question; and a place among those who are told
 * of new entries. The token's text is kept only where there is somebody to show it to, and wiped.
 */
#include "endpoint/vigil.h"

#include <stdlib.h>
#include <string.h>

#include "auth/grant.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "obs/log.h"

/* Until an issuer that did not answer is asked again. */
#define AGAIN_MS (VERIFIER_RETRY_AFTER_S * 1000)

/* Nothing is called any more. */
static void vigil_stop(struct vigil *vigil)
{
	timer_stop(&vigil->timer);
	denials_leave(&vigil->holder);
	verifier_cancel(&vigil->wait);
	if (vigil->token != NULL)
		explicit_bzero(vigil->token, vigil->token_size);
	free(vigil->token);
	vigil->token = NULL;
}

static void vigil_over(struct vigil *vigil, enum reason reason)
{
	LOG(STREAM_OVER, LOG_SLICE("server", vigil->place->server),
	    LOG_STR("reason", reason_get(reason)->text));
	vigil_stop(vigil);
	vigil->on_over(vigil->owner, reason);
}

/* ---- time ---- */

static uint64_t left_of(uint64_t end_ms, uint64_t now_ms)
{
	if (end_ms == UINT64_MAX)
		return UINT64_MAX;
	return end_ms > now_ms ? end_ms - now_ms : 0;
}

static bool is_asking(const struct vigil *vigil)
{
	return vigil->wait.job != NULL;
}

/*
 * Each duration is a queue of the loop for good: there must be few; and none may be long, for the wall clock is set,
 * and goes on while the machine sleeps. UINT64_MAX: nothing will happen.
 */
static uint64_t step_ms(const struct vigil *vigil)
{
	static const uint64_t steps_ms[] = { 60000, 10000, 1000, 100 };
	uint64_t left_ms = left_of(vigil->access.ends_at_ms, clock_wall_ms());
	uint64_t next_ms = is_asking(vigil) ? vigil->trust_until_ms : vigil->ask_at_ms;
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

static void vigil_wait(struct vigil *vigil)
{
	uint64_t ms = step_ms(vigil);

	if (ms != UINT64_MAX)
		timer_start(vigil->loop, &vigil->timer, ms);
}

/* ---- asking ---- */

static void vigil_set_times(struct vigil *vigil)
{
	const struct grant *grant = vigil->access.grant;

	vigil->ask_at_ms = vigil->token != NULL ? grant->ask_again_at_ms : UINT64_MAX;
	vigil->trust_until_ms = vigil->token != NULL ? grant->trust_until_ms : UINT64_MAX;
}

static void vigil_learn(struct vigil *vigil, const struct verdict *verdict, struct grant *grant)
{
	if (grant != NULL) {
		if (!guard_renew(vigil->guard, vigil->place, &vigil->access, grant)) {
			vigil_over(vigil, REASON_REVOKED);
			return;
		}
		vigil_set_times(vigil);
	} else if (verdict_outcome(verdict->kind) != VERDICT_UNAVAILABLE) {
		vigil_over(vigil, REASON_REVOKED);
		return;
	} else {
		vigil->ask_at_ms = clock_now_ms() + AGAIN_MS;
	}
	vigil_wait(vigil);
}

static void vigil_on_verdict(struct verifier_wait *wait, const struct verdict *verdict,
			     struct grant *grant)
{
	vigil_learn(container_of(wait, struct vigil, wait), verdict, grant);
}

static void vigil_ask(struct vigil *vigil)
{
	struct slice token = slice_of(vigil->token, vigil->token_size);
	struct grant *grant = NULL;
	struct verdict verdict;

	if (verifier_check(vigil->guard->conf.verifier, token, vigil->place->accepted,
			   vigil->place->accepted_count, &vigil->wait, &verdict, &grant))
		vigil_learn(vigil, &verdict, grant);
	else
		vigil_wait(vigil);
}

static void vigil_on_timer(struct timer *timer)
{
	struct vigil *vigil = container_of(timer, struct vigil, timer);

	if (left_of(vigil->access.ends_at_ms, clock_wall_ms()) == 0)
		vigil_over(vigil, REASON_EXPIRED);
	else if (left_of(vigil->trust_until_ms, clock_now_ms()) == 0)
		vigil_over(vigil, REASON_UNCONFIRMED);
	else if (!is_asking(vigil) && left_of(vigil->ask_at_ms, clock_now_ms()) == 0)
		vigil_ask(vigil);
	else
		vigil_wait(vigil);
}

/* ---- entries of the denials ---- */

static void vigil_show(const struct denials_holder *holder, struct denial_marks *marks_r)
{
	access_show(&container_of(holder, struct vigil, holder)->access, marks_r);
}

static void vigil_on_denied(struct denials_holder *holder)
{
	vigil_over(container_of(holder, struct vigil, holder), REASON_DENIED);
}

static const struct denials_holder_ops vigil_holder_ops = {
	.show = vigil_show,
	.on_denied = vigil_on_denied,
};

/* ---- the life of a vigil ---- */

struct vigil *vigil_new(const struct streamable_request *request, vigil_over_fn *on_over,
			void *owner)
{
	const struct grant *grant = request->access->grant;
	struct slice token = guard_token(request->http);
	struct vigil *vigil;

	if (principal_is_anonymous(request->access->principal))
		return NULL;
	vigil = mem_alloc(sizeof(*vigil));
	*vigil = (struct vigil){
		.loop = request->gate->router->loop,
		.guard = &request->gate->guard,
		.place = request->place,
		.wait = { .on_done = vigil_on_verdict },
		.owner = owner,
		.on_over = on_over,
	};
	if (grant != NULL && grant->ask_again_at_ms != UINT64_MAX) {
		vigil->token = mem_dup_slice(token);
		vigil->token_size = token.n;
	}
	timer_init(&vigil->timer, vigil_on_timer);
	denials_holder_init(&vigil->holder, &vigil_holder_ops);
	return vigil;
}

void vigil_begin(struct vigil *vigil, const struct access *access)
{
	if (vigil == NULL)
		return;
	vigil->access = access_copy(access);
	denials_join(vigil->guard->denials, &vigil->holder);
	vigil_set_times(vigil);
	vigil_wait(vigil);
}

void vigil_end(struct vigil **vigil)
{
	if (*vigil == NULL)
		return;
	vigil_stop(*vigil);
	access_fini(&(*vigil)->access);
	loop_defer_free((*vigil)->loop, *vigil); /* it may be on the stack */
	*vigil = NULL;
}
