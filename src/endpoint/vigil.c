/* SPDX-License-Identifier: Apache-2.0 */
/* One timer, in steps; and a place among those who are told of new entries. */
#include "endpoint/vigil.h"

#include "base/check.h"
#include "obs/log.h"

static void vigil_over(struct vigil *vigil, enum reason reason)
{
	LOG(STREAM_OVER, LOG_SLICE("server", vigil->place->server),
	    LOG_STR("reason", reason_get(reason)->text));
	vigil_end(vigil);
	vigil->on_over(vigil, reason);
}

static void vigil_wait(struct vigil *vigil)
{
	uint64_t step_ms = access_step_ms(vigil->access);

	if (step_ms == 0)
		vigil_over(vigil, REASON_EXPIRED);
	else if (step_ms != UINT64_MAX)
		timer_start(vigil->loop, &vigil->timer, step_ms);
}

static void vigil_on_timer(struct timer *timer)
{
	vigil_wait(container_of(timer, struct vigil, timer));
}

static void vigil_show(const struct denials_holder *holder, struct denial_marks *marks_r)
{
	access_show(container_of(holder, struct vigil, holder)->access, marks_r);
}

static void vigil_on_denied(struct denials_holder *holder)
{
	vigil_over(container_of(holder, struct vigil, holder), REASON_DENIED);
}

static const struct denials_holder_ops vigil_holder_ops = {
	.show = vigil_show,
	.on_denied = vigil_on_denied,
};

void vigil_init(struct vigil *vigil, void (*on_over)(struct vigil *vigil, enum reason reason))
{
	vigil->on_over = on_over;
	timer_init(&vigil->timer, vigil_on_timer);
	denials_holder_init(&vigil->holder, &vigil_holder_ops);
}

void vigil_begin(struct vigil *vigil, struct loop *loop, const struct guard *guard,
		 const struct guard_place *place, struct access *access)
{
	uint64_t step_ms = access_step_ms(access);

	vigil->loop = loop;
	vigil->place = place;
	vigil->access = access;
	if (principal_is_anonymous(access->principal))
		return;
	denials_join(guard->denials, &vigil->holder);
	if (step_ms != UINT64_MAX)
		timer_start(loop, &vigil->timer, step_ms);
}

void vigil_end(struct vigil *vigil)
{
	timer_stop(&vigil->timer);
	denials_leave(&vigil->holder);
}
