/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the event loop's current iteration. */
#include "base/clock.h"

#include <stdbool.h>
#include <time.h>

#include "base/check.h"

static uint64_t now_ms;
static uint64_t ahead_ms, wall_ahead_ms;
static bool is_frozen;

static uint64_t clock_read_ns(clockid_t id)
{
	struct timespec t;

	CHECK(clock_gettime(id, &t) == 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t clock_read_ms(clockid_t id)
{
	return clock_read_ns(id) / 1000000;
}

uint64_t clock_now_ms(void)
{
	if (now_ms == 0)
		clock_update();
	return now_ms;
}

void clock_update(void)
{
	if (!is_frozen)
		now_ms = clock_read_ms(CLOCK_MONOTONIC) + ahead_ms;
}

uint64_t clock_wall_ms(void)
{
	return clock_read_ms(CLOCK_REALTIME) + wall_ahead_ms;
}

uint64_t clock_wall_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

uint64_t clock_monotonic_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

uint64_t clock_wall_now_ms(void)
{
	static uint64_t wall_ms, read_at_ms;

	if (wall_ms == 0 || read_at_ms != clock_now_ms()) {
		wall_ms = clock_wall_ms();
		read_at_ms = clock_now_ms();
	}
	return wall_ms;
}

void clock_freeze(uint64_t at_ms)
{
	is_frozen = true;
	now_ms = at_ms;
}

void clock_advance(uint64_t ms)
{
	now_ms = clock_now_ms() + ms;
	ahead_ms += ms;
}

void clock_step_wall(uint64_t ms)
{
	wall_ahead_ms += ms;
}
