/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a failed start the next one waits, twice as long each time, with jitter. The first few
 * callers wait with it; from `give_up_after` failures on they are refused at once until the time of
 * the next try has come, so that nobody waits for a server that is broken.
 */
#include "process/server.h"

#include <stdio.h>

#include "process/child.h"
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

void server_init(struct server *server, struct loop *loop, struct spawner *spawner,
		 const struct server_conf *conf)
{
	*server = (struct server){ .conf = *conf, .loop = loop, .spawner = spawner };
	list_init(&server->children);
	stderr_ring_init(&server->stderr_ring);
}

static void fleet_add(const struct server *server, bool is_new)
{
	struct fleet *fleet = server->conf.fleet;

	if (fleet != NULL)
		fleet->count += is_new ? 1u : (size_t)-1;
}

void server_reserve(struct server *server)
{
	server->reserved++;
	fleet_add(server, true);
}

void server_release(struct server *server)
{
	server->reserved--;
	fleet_add(server, false);
}

void server_count_child(struct server *server, bool is_new)
{
	server->count += is_new ? 1u : (size_t)-1;
	fleet_add(server, is_new);
}

static void server_note_full(struct server *server, const char *limit)
{
	uint64_t now_ms = clock_now_ms();

	if (now_ms < server->full_quiet_until_ms)
		return;
	server->full_quiet_until_ms = now_ms + FULL_QUIET_MS;
	LOG(SERVER_FULL, LOG_STR("server", server->conf.name),
	    LOG_INT("processes", server->count + server->reserved), LOG_STR("reason", limit));
}

bool server_is_fleet_full(const struct server *server)
{
	const struct fleet *fleet = server->conf.fleet;

	return fleet != NULL && fleet->count >= fleet->max;
}

bool server_is_full(const struct server *server)
{
	return server->count + server->reserved >= server->conf.pool_max;
}

/* The limit that another process would break; NULL: none. */
static const char *server_find_limit(const struct server *server)
{
	if (server_is_full(server))
		return "pool.max is reached";
	if (server_is_fleet_full(server))
		return "limits.processes is reached";
	return NULL;
}

bool server_has_room(const struct server *server)
{
	return server_find_limit(server) == NULL;
}

/*
 * Takes a turn at start.rate, with up to a second's worth at once; returns how long to wait for it. If that is longer
 * than a start may take, there is none.
 */
static uint64_t server_take_turn(struct server *server, uint64_t now_ms)
{
	uint64_t at_us = server->next_start_at_us;
	uint64_t wait_ms;

	if (server->conf.start_rate == 0)
		return 0;
	if (at_us + 1000000 < now_ms * 1000)
		at_us = now_ms * 1000 - 1000000;
	wait_ms = at_us > now_ms * 1000 ? (at_us - now_ms * 1000) / 1000 : 0;
	if (wait_ms <= server->conf.start_timeout_ms)
		server->next_start_at_us = at_us + 1000000 / server->conf.start_rate;
	return wait_ms;
}

static uint64_t round_up(uint64_t wait_ms, uint64_t step_ms)
{
	return (wait_ms + step_ms - 1) / step_ms * step_ms;
}

enum reason server_admit(struct server *server, uint64_t *wait_ms_r)
{
	uint64_t now_ms = clock_now_ms();
	uint64_t wait_ms = server->retry_at_ms > now_ms ? server->retry_at_ms - now_ms : 0;
	uint64_t turn_ms;
	const char *limit;

	*wait_ms_r = round_up(wait_ms, WAIT_STEP_MS);
	if (wait_ms > 0 && server->failures >= server->conf.give_up_after)
		return REASON_BACKEND_DOWN;
	limit = server_find_limit(server);
	turn_ms = limit == NULL ? server_take_turn(server, now_ms) : 0;
	if (turn_ms > server->conf.start_timeout_ms)
		limit = "too many wait for start.rate";
	if (limit != NULL) {
		server_note_full(server, limit);
		*wait_ms_r = 1000;
		return REASON_OVER_LIMIT;
	}
	turn_ms = round_up(turn_ms, TURN_STEP_MS);
	if (turn_ms > *wait_ms_r)
		*wait_ms_r = turn_ms;
	return REASON_NONE;
}

static void server_recover(struct server *server)
{
	if (server->failures > 0)
		LOG(SERVER_RECOVERED, LOG_STR("server", server->conf.name));
	server->failures = 0;
	server->retry_at_ms = 0;
}

void server_note_started(struct server *server)
{
	/* A handshake is no recovery from what comes after it. */
	if (clock_now_ms() - server->crashed_at_ms >= YOUNG_MS)
		server->crashes = 0;
	if (server->crashes <= CRASHES_FREE)
		server_recover(server);
}

/* But this is, of one that was started since. */
void server_note_answered(struct server *server, uint64_t ready_at_ms)
{
	if (server->crashes <= CRASHES_FREE || ready_at_ms <= server->crashed_at_ms)
		return;
	server->crashes = 0;
	server_recover(server);
}

void server_note_failed(struct server *server)
{
	uint64_t wait_ms = server->conf.backoff_min_ms;

	counter_add(COUNTER_CHILDREN_FAILED);
	/* What was started beside the one that failed first says nothing new. */
	if (server->retry_at_ms > clock_now_ms())
		return;
	for (unsigned int i = 0; i < server->failures && wait_ms < server->conf.backoff_max_ms; i++)
		wait_ms *= 2;
	if (wait_ms > server->conf.backoff_max_ms)
		wait_ms = server->conf.backoff_max_ms;
	server->failures++;
	/* Between three quarters and all of it: not everybody at once. */
	wait_ms = wait_ms - wait_ms / 4 + random_below(wait_ms / 4 + 1);
	server->retry_at_ms = clock_now_ms() + wait_ms;
	LOG(SERVER_FAILING, LOG_STR("server", server->conf.name),
	    LOG_INT("failures", server->failures), LOG_INT("next_try_ms", wait_ms));
}

void server_note_failure(struct server *server, const char *error, const char *exit)
{
	struct server_stats *stats = &server->stats;

	stats->failures++;
	stats->failed_at_ms = clock_wall_ms();
	snprintf(stats->failure, sizeof(stats->failure), "%s%s%s", error, exit != NULL ? ": " : "",
		 exit != NULL ? exit : "");
}

void server_forget_failures(struct server *server)
{
	server->failures = 0;
	server->crashes = 0;
	server->retry_at_ms = 0;
}

void server_fini(struct server *server)
{
	stderr_ring_fini(&server->stderr_ring);
}

void server_note_crashed(struct server *server, uint64_t ready_at_ms)
{
	uint64_t now_ms = clock_now_ms();

	if (now_ms - ready_at_ms >= YOUNG_MS)
		return;
	if (now_ms - server->crashed_at_ms >= YOUNG_MS)
		server->crashes = 0;
	server->crashed_at_ms = now_ms;
	if (++server->crashes > CRASHES_FREE)
		server_note_failed(server);
}

void server_kill_all(struct server *server)
{
	LIST_FOREACH_SAFE(node, &server->children)
		child_kill(container_of(node, struct child, link), REASON_DRAINING);
}
