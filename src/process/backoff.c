/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a failed start, the next attempt is delayed, each time twice as long, with jitter. Callers
 * wait for it after the first few failures; from `give_up_after` failures on, they are refused at
 * once until the next attempt is due, so that nobody waits for a broken server. This file starts no
 * processes and counts none: that is server.c.
 */
#include "process/backoff.h"

#include "process/server.h"
#include "base/clock.h"
#include "base/random.h"
#include "obs/counters.h"
#include "obs/log.h"

/*
 * Waits are rounded up to multiples of these, so that the loop's timers have few distinct
 * durations.
 */
#define WAIT_STEP_MS 250
#define TURN_STEP_MS 20
#define YOUNG_MS (60 * 1000)
#define CRASHES_FREE 3 /* number of young processes that may crash without a back-off */

void backoff_init(struct backoff *backoff, const struct server_conf *conf)
{
	CHECK(conf->backoff_min_ms <= conf->backoff_max_ms);
	*backoff = (struct backoff){ .conf = conf };
}

static uint64_t round_up(uint64_t wait_ms, uint64_t step_ms)
{
	return (wait_ms + step_ms - 1) / step_ms * step_ms;
}

uint64_t backoff_wait_ms(const struct backoff *backoff)
{
	uint64_t now_ms = clock_now_ms();

	return backoff->retry_at_ms > now_ms ?
		       round_up(backoff->retry_at_ms - now_ms, WAIT_STEP_MS) :
		       0;
}

bool backoff_has_given_up(const struct backoff *backoff)
{
	return backoff->retry_at_ms > clock_now_ms() &&
	       backoff->failures >= backoff->conf->give_up_after;
}

/* The time until the next turn comes; 0: now. */
static uint64_t turn_wait_ms(const struct backoff *backoff)
{
	uint64_t now_us = clock_now_ms() * 1000, at_us = backoff->next_start_at_us;

	return at_us > now_us ? (at_us - now_us) / 1000 : 0;
}

bool backoff_take_turn(struct backoff *backoff, uint64_t *wait_ms_r)
{
	uint64_t now_us = clock_now_ms() * 1000;
	uint64_t wait_ms = turn_wait_ms(backoff);

	*wait_ms_r = 0;
	if (backoff->conf->start_rate == 0)
		return true;
	if (wait_ms > backoff->conf->start_timeout_ms)
		return false;
	if (backoff->next_start_at_us + 1000000 < now_us)
		backoff->next_start_at_us = now_us - 1000000;
	backoff->next_start_at_us += 1000000 / backoff->conf->start_rate;
	*wait_ms_r = round_up(wait_ms, TURN_STEP_MS);
	return true;
}

void backoff_return_turn(struct backoff *backoff)
{
	if (backoff->conf->start_rate == 0)
		return;
	CHECK(backoff->next_start_at_us >= 1000000 / backoff->conf->start_rate);
	backoff->next_start_at_us -= 1000000 / backoff->conf->start_rate;
}

uint64_t backoff_refuses_for_ms(const struct backoff *backoff)
{
	uint64_t wait_ms = turn_wait_ms(backoff);
	uint64_t longest_ms = backoff->conf->start_timeout_ms;

	return backoff->conf->start_rate > 0 && wait_ms > longest_ms ? wait_ms - longest_ms : 0;
}

static void backoff_recover(struct backoff *backoff)
{
	if (backoff->failures > 0)
		LOG_BY(SERVER_RECOVERED, (uintptr_t)backoff,
		       LOG_STR("server", backoff->conf->name));
	backoff->failures = 0;
	backoff->retry_at_ms = 0;
}

void backoff_note_started(struct backoff *backoff)
{
	if (clock_now_ms() - backoff->crashed_at_ms >= YOUNG_MS)
		backoff->crashes = 0;
	/*
	 * If processes crash after their handshakes, a handshake does not prove that they have
	 * recovered.
	 */
	if (backoff->crashes <= CRASHES_FREE)
		backoff_recover(backoff);
}

void backoff_note_answered(struct backoff *backoff, uint64_t ready_at_ms)
{
	/* An answer does prove it, if the process became ready after the last crash. */
	if (backoff->crashes <= CRASHES_FREE || ready_at_ms <= backoff->crashed_at_ms)
		return;
	backoff->crashes = 0;
	backoff_recover(backoff);
}

void backoff_note_failed(struct backoff *backoff)
{
	uint64_t now_ms = clock_now_ms();
	uint64_t wait_ms = backoff->conf->backoff_min_ms;
	uint64_t max_ms = backoff->conf->backoff_max_ms;

	counter_add(COUNTER_CHILDREN_FAILED);
	/* A start already under way when another one failed counts as the same failure. */
	if (backoff->retry_at_ms > now_ms)
		return;
	for (unsigned int i = 0; i < backoff->failures && wait_ms < max_ms; i++)
		wait_ms *= 2;
	if (wait_ms > max_ms)
		wait_ms = max_ms;
	/* 75% to 100% of the wait, so that servers that failed together do not start together. */
	wait_ms = wait_ms - wait_ms / 4 + random_below(wait_ms / 4 + 1);
	backoff->failures++;
	backoff->retry_at_ms = now_ms + wait_ms;
}

void backoff_note_crashed(struct backoff *backoff, uint64_t ready_at_ms)
{
	uint64_t now_ms = clock_now_ms();

	CHECK(ready_at_ms <= now_ms);
	if (now_ms - ready_at_ms >= YOUNG_MS)
		return;
	if (now_ms - backoff->crashed_at_ms >= YOUNG_MS)
		backoff->crashes = 0;
	backoff->crashed_at_ms = now_ms;
	if (++backoff->crashes > CRASHES_FREE)
		backoff_note_failed(backoff);
}

void backoff_forget_failures(struct backoff *backoff)
{
	backoff->failures = 0;
	backoff->crashes = 0;
	backoff->retry_at_ms = 0;
}
