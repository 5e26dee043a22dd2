/* SPDX-License-Identifier: Apache-2.0 */
#include "process/era.h"

#include "base/clock.h"
#include "obs/log.h"
#include "process/server.h"

const char *era_source(const struct server *server)
{
	if (server->conf.era != ERA_UNKNOWN)
		return "configured";
	return era_known(server) != ERA_UNKNOWN ? "found" : "";
}

enum era era_known(const struct server *server)
{
	const struct era_verdict *verdict = &server->verdict;

	if (server->conf.era == ERA_UNKNOWN && verdict->era == ERA_LEGACY &&
	    verdict->handshake != ERA_ANSWERED)
		return ERA_UNKNOWN;
	return era_of(server);
}

enum era era_of(const struct server *server)
{
	return server->conf.era != ERA_UNKNOWN ? server->conf.era : server->verdict.era;
}

bool era_may_probe(const struct server *server)
{
	const struct era_verdict *verdict = &server->verdict;

	return server->conf.era == ERA_UNKNOWN && verdict->era != ERA_MODERN &&
	       clock_now_ms() >= verdict->probe_again_ms;
}

bool era_is_doubtful(const struct server *server)
{
	return server->verdict.handshake == ERA_UNANSWERED;
}

void era_note(struct server *server, enum era era)
{
	bool is_first;

	if (server->conf.era != ERA_UNKNOWN || server->verdict.era == era)
		return;
	is_first = server->verdict.era == ERA_UNKNOWN;
	/* If the era is wrong now, the last probe may have been wrong, too. */
	if (era == ERA_UNKNOWN)
		server->verdict = (struct era_verdict){ .era = ERA_UNKNOWN };
	server->verdict.era = era;
	if (is_first)
		return; /* nobody thought of another */
	LOG_BY(SERVER_ERA, (uintptr_t)server, LOG_STR("server", server->conf.name),
	       LOG_STR("era", era_name(era)));
}

void era_note_probed(struct server *server, enum era era)
{
	if (server->conf.era != ERA_UNKNOWN)
		return;
	server->verdict.probe_again_ms = clock_now_ms() + ERA_PROBE_AGAIN_MS;
	era_note(server, era);
}

void era_note_answered(struct server *server)
{
	server->verdict.handshake = ERA_ANSWERED;
	if (era_of(server) != ERA_MODERN)
		era_note(server, ERA_LEGACY);
}

void era_note_unanswered(struct server *server)
{
	if (server->verdict.handshake == ERA_UNTRIED)
		server->verdict.handshake = ERA_UNANSWERED;
}
