/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a failed start the next one waits, twice as long each time, with jitter. The first few
 * callers wait with it; from `give_up_after` failures on they are refused at once until the time of
 * the next try has come, so that nobody waits for a server that is broken.
 */
#include "backend/backend.h"

#include <stdio.h>

#include "backend/child.h"
#include "base/clock.h"
#include "base/random.h"
#include "obs/counters.h"
#include "obs/log.h"

/* Waits are rounded to this, so that the loop's timers have few distinct durations. */
#define WAIT_STEP_MS 250
#define TURN_STEP_MS 20
#define YOUNG_MS (60 * 1000)
#define CRASHES_FREE 3 /* they may have had their reasons */
#define FULL_QUIET_MS (60 * 1000)

const char *isolation_name(enum isolation isolation)
{
	static const char *const names[] = {
		[ISOLATION_SESSION] = "session",
		[ISOLATION_PRINCIPAL] = "principal",
		[ISOLATION_SHARED] = "shared",
	};

	return names[isolation];
}

void backend_init(struct backend *backend, struct loop *loop, struct spawner *spawner,
		  const struct backend_conf *conf)
{
	*backend = (struct backend){ .conf = *conf, .loop = loop, .spawner = spawner };
	list_init(&backend->children);
	backlog_init(&backend->backlog);
}

static void fleet_add(const struct backend *backend, bool is_new)
{
	struct fleet *fleet = backend->conf.fleet;

	if (fleet != NULL)
		fleet->count += is_new ? 1u : (size_t)-1;
}

void backend_reserve(struct backend *backend)
{
	backend->reserved++;
	fleet_add(backend, true);
}

void backend_release(struct backend *backend)
{
	backend->reserved--;
	fleet_add(backend, false);
}

void backend_count_child(struct backend *backend, bool is_new)
{
	backend->count += is_new ? 1u : (size_t)-1;
	fleet_add(backend, is_new);
}

static void backend_note_full(struct backend *backend, const char *limit)
{
	uint64_t now_ms = clock_now_ms();

	if (now_ms < backend->full_quiet_until_ms)
		return;
	backend->full_quiet_until_ms = now_ms + FULL_QUIET_MS;
	LOG(SERVER_FULL, LOG_STR("server", backend->conf.name),
	    LOG_INT("processes", backend->count + backend->reserved), LOG_STR("reason", limit));
}

bool backend_is_fleet_full(const struct backend *backend)
{
	const struct fleet *fleet = backend->conf.fleet;

	return fleet != NULL && fleet->count >= fleet->max;
}

bool backend_is_full(const struct backend *backend)
{
	return backend->count + backend->reserved >= backend->conf.pool_max;
}

/* The limit that another process would break; NULL: none. */
static const char *backend_find_limit(const struct backend *backend)
{
	if (backend_is_full(backend))
		return "pool.max is reached";
	if (backend_is_fleet_full(backend))
		return "limits.processes is reached";
	return NULL;
}

bool backend_has_room(const struct backend *backend)
{
	return backend_find_limit(backend) == NULL;
}

/* Takes a turn at start.rate, with up to a second's worth at once; returns how long to wait for it. */
static uint64_t backend_take_turn(struct backend *backend, uint64_t now_ms)
{
	uint64_t at_us = backend->next_start_at_us;

	if (backend->conf.start_rate == 0)
		return 0;
	if (at_us + 1000000 < now_ms * 1000)
		at_us = now_ms * 1000 - 1000000;
	backend->next_start_at_us = at_us + 1000000 / backend->conf.start_rate;
	return at_us > now_ms * 1000 ? (at_us - now_ms * 1000) / 1000 : 0;
}

static uint64_t round_up(uint64_t wait_ms, uint64_t step_ms)
{
	return (wait_ms + step_ms - 1) / step_ms * step_ms;
}

enum reason backend_admit(struct backend *backend, uint64_t *wait_ms_r)
{
	uint64_t now_ms = clock_now_ms();
	uint64_t wait_ms = backend->retry_at_ms > now_ms ? backend->retry_at_ms - now_ms : 0;
	uint64_t turn_ms;
	const char *limit;

	*wait_ms_r = round_up(wait_ms, WAIT_STEP_MS);
	if (wait_ms > 0 && backend->failures >= backend->conf.give_up_after)
		return REASON_BACKEND_DOWN;
	limit = backend_find_limit(backend);
	if (limit != NULL) {
		backend_note_full(backend, limit);
		*wait_ms_r = 1000;
		return REASON_OVER_LIMIT;
	}
	turn_ms = round_up(backend_take_turn(backend, now_ms), TURN_STEP_MS);
	if (turn_ms > *wait_ms_r)
		*wait_ms_r = turn_ms;
	return REASON_NONE;
}

static void backend_recover(struct backend *backend)
{
	if (backend->failures > 0)
		LOG(SERVER_RECOVERED, LOG_STR("server", backend->conf.name));
	backend->failures = 0;
	backend->retry_at_ms = 0;
}

void backend_note_started(struct backend *backend)
{
	/* A handshake is no recovery from what comes after it. */
	if (clock_now_ms() - backend->crashed_at_ms >= YOUNG_MS)
		backend->crashes = 0;
	if (backend->crashes <= CRASHES_FREE)
		backend_recover(backend);
}

/* But this is, of one that was started since. */
void backend_note_answered(struct backend *backend, uint64_t ready_at_ms)
{
	if (backend->crashes <= CRASHES_FREE || ready_at_ms <= backend->crashed_at_ms)
		return;
	backend->crashes = 0;
	backend_recover(backend);
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

void backend_note_failure(struct backend *backend, const char *error, const char *exit)
{
	struct backend_stats *stats = &backend->stats;

	stats->failures++;
	stats->failed_at_ms = clock_wall_ms();
	snprintf(stats->failure, sizeof(stats->failure), "%s%s%s", error, exit != NULL ? ": " : "",
		 exit != NULL ? exit : "");
}

void backend_forget_failures(struct backend *backend)
{
	backend->failures = 0;
	backend->crashes = 0;
	backend->retry_at_ms = 0;
}

void backend_fini(struct backend *backend)
{
	backlog_fini(&backend->backlog);
}

void backend_note_crashed(struct backend *backend, uint64_t ready_at_ms)
{
	uint64_t now_ms = clock_now_ms();

	if (now_ms - ready_at_ms >= YOUNG_MS)
		return;
	if (now_ms - backend->crashed_at_ms >= YOUNG_MS)
		backend->crashes = 0;
	backend->crashed_at_ms = now_ms;
	if (++backend->crashes > CRASHES_FREE)
		backend_note_failed(backend);
}

void backend_kill_all(struct backend *backend)
{
	LIST_FOREACH_SAFE(node, &backend->children)
		child_kill(container_of(node, struct child, link), REASON_DRAINING);
}
