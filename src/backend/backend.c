/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a failed start the next one waits, twice as long each time, with jitter. The first few
 * callers wait with it; from `give_up_after` failures on they are refused at once until the time of
 * the next try has come, so that nobody waits for a server that is broken.
 */
#include "backend/backend.h"

#include "backend/child.h"
#include "base/clock.h"
#include "base/random.h"
#include "obs/counters.h"
#include "obs/log.h"

/* Waits are rounded to this, so that the loop's timers have few distinct durations. */
#define WAIT_STEP_MS 250
#define FULL_QUIET_MS (60 * 1000)

void backend_init(struct backend *backend, struct loop *loop, struct spawner *spawner,
		  const struct backend_conf *conf)
{
	backend->conf = *conf;
	backend->loop = loop;
	backend->spawner = spawner;
	list_init(&backend->children);
	backend->count = 0;
	backend->reserved = 0;
	backend->failures = 0;
	backend->retry_at_ms = 0;
	backend->is_short = false;
	backend->full_quiet_until_ms = 0;
}

static void backend_note_full(struct backend *backend)
{
	uint64_t now_ms = clock_now_ms();

	if (now_ms < backend->full_quiet_until_ms)
		return;
	backend->full_quiet_until_ms = now_ms + FULL_QUIET_MS;
	LOG(SERVER_FULL, LOG_STR("server", backend->conf.name),
	    LOG_INT("processes", backend->count + backend->reserved),
	    LOG_STR("reason", "pool.max is reached"));
}

enum reason backend_admit(struct backend *backend, uint64_t *wait_ms_r)
{
	uint64_t now_ms = clock_now_ms();
	uint64_t wait_ms = backend->retry_at_ms > now_ms ? backend->retry_at_ms - now_ms : 0;

	*wait_ms_r = (wait_ms + WAIT_STEP_MS - 1) / WAIT_STEP_MS * WAIT_STEP_MS;
	if (wait_ms > 0 && backend->failures >= backend->conf.give_up_after)
		return REASON_BACKEND_DOWN;
	if (backend->count + backend->reserved >= backend->conf.pool_max) {
		backend_note_full(backend);
		*wait_ms_r = 1000;
		return REASON_OVER_LIMIT;
	}
	return REASON_NONE;
}

void backend_note_started(struct backend *backend)
{
	if (backend->failures > 0)
		LOG(SERVER_RECOVERED, LOG_STR("server", backend->conf.name));
	backend->failures = 0;
	backend->retry_at_ms = 0;
}

void backend_note_failed(struct backend *backend)
{
	uint64_t wait_ms = backend->conf.backoff_min_ms;

	counter_add(COUNTER_CHILDREN_FAILED);
	/* What was started beside the one that failed first says nothing new. */
	if (backend->retry_at_ms > clock_now_ms())
		return;
	for (unsigned int i = 0; i < backend->failures && wait_ms < backend->conf.backoff_max_ms;
	     i++)
		wait_ms *= 2;
	if (wait_ms > backend->conf.backoff_max_ms)
		wait_ms = backend->conf.backoff_max_ms;
	backend->failures++;
	/* Between three quarters and all of it: not everybody at once. */
	wait_ms = wait_ms - wait_ms / 4 + random_below(wait_ms / 4 + 1);
	backend->retry_at_ms = clock_now_ms() + wait_ms;
	LOG(SERVER_FAILING, LOG_STR("server", backend->conf.name),
	    LOG_INT("failures", backend->failures), LOG_INT("next_try_ms", wait_ms));
}

void backend_kill_all(struct backend *backend)
{
	LIST_FOREACH_SAFE(node, &backend->children)
		child_kill(container_of(node, struct child, link), REASON_DRAINING);
}
