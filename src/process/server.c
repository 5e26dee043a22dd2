/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the number of processes of one server, and of all servers, against their limits, and keeps
 * the statistics that are reported.
 */
#include "process/server.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "obs/log.h"

#define LAST_LINE_BYTES 200
#define FULL_QUIET_MS (60 * 1000)

const struct server_leg *server_leg_find(const struct server_legs *legs, struct slice shown)
{
	const struct server_leg *found = NULL;

	for (size_t i = 0; i < legs->count; i++) {
		if (!slice_has_prefix(shown, legs->items[i].prefix))
			continue;
		if (found != NULL)
			return NULL;
		found = &legs->items[i];
	}
	return found;
}

const char *isolation_name(enum isolation isolation)
{
	static const char *const names[] = {
		[ISOLATION_SESSION] = "session",
		[ISOLATION_PRINCIPAL] = "principal",
		[ISOLATION_SHARED] = "shared",
	};

	CHECK((size_t)isolation < ARRAY_LEN(names));
	return names[isolation];
}

uint64_t server_tool_timeout_ms(const struct server_conf *conf, struct slice tool)
{
	for (size_t i = 0; i < conf->tool_timeouts.count; i++)
		if (slice_is_equal(conf->tool_timeouts.items[i].tool, tool))
			return conf->tool_timeouts.items[i].timeout_ms;
	return 0;
}

void server_init(struct server *server, struct loop *loop, struct spawner *spawner,
		 const struct server_conf *conf)
{
	*server = (struct server){ .conf = *conf, .loop = loop, .spawner = spawner };
	server->stats = mem_zalloc(sizeof(*server->stats));
	server->stats->users = 1;
	backoff_init(&server->backoff, &server->conf);
	list_init(&server->children);
	pins_init(&server->pins);
	stderr_ring_init(&server->stats->stderr_ring);
}

bool server_is_unused(const struct server *server)
{
	return server->users == 0 && server->count == 0 && server->reserved == 0 &&
	       list_is_empty(&server->children);
}

static void fleet_add(const struct server *server, bool is_new)
{
	struct fleet *fleet = server->conf.fleet;

	if (fleet == NULL)
		return;
	CHECK(is_new || fleet->count > 0);
	fleet->count += is_new ? 1u : (size_t)-1;
}

void server_reserve(struct server *server)
{
	server->reserved++;
	fleet_add(server, true);
}

void server_release(struct server *server)
{
	CHECK(server->reserved > 0);
	server->reserved--;
	fleet_add(server, false);
}

void server_count_child(struct server *server, bool is_new)
{
	CHECK(is_new || server->count > 0);
	server->count += is_new ? 1u : (size_t)-1;
	fleet_add(server, is_new);
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

/* The limit that one more process would exceed; NULL: none. */
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

size_t server_share(const struct server *server)
{
	size_t share = server->conf.pool_max * server->conf.share_percent / 100;

	return share > 0 ? share : 1;
}

enum reason server_admit(struct server *server, uint64_t *wait_ms_r)
{
	const char *limit = server_find_limit(server);
	uint64_t now_ms = clock_now_ms();
	uint64_t turn_ms = 0;

	*wait_ms_r = backoff_wait_ms(&server->backoff);
	if (backoff_has_given_up(&server->backoff))
		return REASON_BACKEND_DOWN;
	if (limit == NULL && !backoff_take_turn(&server->backoff, &turn_ms))
		limit = "too many wait for start.rate";
	if (limit == NULL) {
		if (turn_ms > *wait_ms_r)
			*wait_ms_r = turn_ms;
		return REASON_NONE;
	}
	*wait_ms_r = 1000;
	if (now_ms >= server->full_quiet_until_ms) {
		server->full_quiet_until_ms = now_ms + FULL_QUIET_MS;
		LOG_BY(SERVER_FULL, (uintptr_t)server, LOG_STR("server", server->conf.name),
		       LOG_INT("processes", server->count + server->reserved),
		       LOG_STR("reason", limit));
	}
	return REASON_OVER_LIMIT;
}

void server_note_failure(struct server *server, const char *error, const char *exit)
{
	struct server_stats *stats = server->stats;

	stats->failures++;
	stats->failed_at_ms = clock_wall_ms();
	snprintf(stats->failure, sizeof(stats->failure), "%s%s%s", error, exit != NULL ? ": " : "",
		 exit != NULL ? exit : "");
}

/* Nothing in it acts on a terminal. */
static void clean(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = ' ';
}

void server_note_last_line(struct server *server, struct slice line)
{
	const struct slice remote = SLICE_LIT("mcpgated-remote: ");
	char *text = server->stats->failure;
	bool is_remote = slice_has_prefix(line, remote);
	size_t length = is_remote ? 0 : strlen(text);

	CHECK(line.n > 0);
	if (is_remote)
		line = slice_of(line.p + remote.n, line.n - remote.n);
	if (line.n > LAST_LINE_BYTES)
		line.n = LAST_LINE_BYTES;
	snprintf(text + length, sizeof(server->stats->failure) - length, "%s%.*s",
		 length > 0 ? "; its stderr ends with: " : "", SLICE_ARG(line));
	clean(text + length);
}

void server_note_away(struct server *server, struct slice error)
{
	struct server_stats *stats = server->stats;

	CHECK(stats->users > 0);
	stats->failed_at_ms = clock_wall_ms();
	snprintf(stats->failure, sizeof(stats->failure), "%.*s", SLICE_ARG(error));
	clean(stats->failure);
}

bool server_is_failing(const struct server *server)
{
	return server->backoff.failures > 0 || server->away > 0;
}

static void stats_unref(struct server_stats **stats)
{
	CHECK((*stats)->users > 0);
	if (--(*stats)->users == 0) {
		call_stats_fini(&(*stats)->calls);
		stderr_ring_fini(&(*stats)->stderr_ring);
		free(*stats);
	}
	*stats = NULL;
}

void server_note_answer(struct server *server, uint64_t took_ms, uint64_t now_ms)
{
	latency_histogram_add(&server->stats->answered, took_ms, now_ms);
	latency_histogram_add(&server->own.answered, took_ms, now_ms);
}

void server_note_failed_call(struct server *server)
{
	server->stats->failed++;
	server->own.failed++;
}

void server_share_stats(struct server *server, const struct server *other)
{
	other->stats->users++;
	stats_unref(&server->stats);
	server->stats = other->stats;
	server->restarts = other->restarts;
}

void server_fini(struct server *server)
{
	CHECK(server->users == 0);
	pins_fini(&server->pins);
	stats_unref(&server->stats);
}
