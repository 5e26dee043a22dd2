/* SPDX-License-Identifier: Apache-2.0 */
#include "process/era.h"

#include "base/check.h"
#include "base/clock.h"
#include "obs/log.h"
#include "process/server.h"

#define PROBE_AGAIN_MS (24ull * 60 * 60 * 1000)

const char *era_name(enum era era)
{
	static const char *const names[] = { "unknown", "legacy", "modern" };

	CHECK((size_t)era < ARRAY_LEN(names));
	return names[era];
}

enum era era_of(const struct server *server)
{
	return server->conf.era != ERA_UNKNOWN ? server->conf.era : server->verdict.era;
}

bool era_may_probe(const struct server *server)
{
	const struct era_verdict *verdict = &server->verdict;

	if (server->conf.era != ERA_UNKNOWN || verdict->era == ERA_MODERN)
		return false;
	return verdict->probed_at_ms == 0 ||
	       clock_now_ms() - verdict->probed_at_ms >= PROBE_AGAIN_MS;
}

bool era_is_doubtful(const struct server *server)
{
	return server->verdict.handshake == ERA_UNANSWERED;
}

void era_note(struct server *server, enum era era)
{
	if (server->conf.era != ERA_UNKNOWN || server->verdict.era == era)
		return;
	/* What is wrong now may have been so when it was asked. */
	if (era == ERA_UNKNOWN)
		server->verdict = (struct era_verdict){ .era = ERA_UNKNOWN };
	server->verdict.era = era;
	LOG(SERVER_ERA, LOG_STR("server", server->conf.name), LOG_STR("era", era_name(era)));
}

void era_note_probed(struct server *server, enum era era)
{
	server->verdict.probed_at_ms = clock_now_ms();
	era_note(server, era);
}

void era_note_answered(struct server *server)
{
	server->verdict.handshake = ERA_ANSWERED;
	if (era_of(server) == ERA_UNKNOWN)
		era_note(server, ERA_LEGACY);
}

void era_note_unanswered(struct server *server)
{
	if (server->verdict.handshake == ERA_UNTRIED)
		server->verdict.handshake = ERA_UNANSWERED;
}
