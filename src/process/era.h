/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The era of MCP in which a server's processes are addressed: the configured one, else the detected
 * one. Detection is up to higher layers (upstream/era_probe, router/pool). The keeper is told, and
 * remembers it for the next gateway and the next daemon (keeper/era_store). BACK-ERA-06.
 */
#ifndef MCPGATED_PROCESS_ERA_H
#define MCPGATED_PROCESS_ERA_H

#include <stdbool.h>
#include <stdint.h>

#include "mcp/era.h"

struct server;

#define ERA_PROBE_AGAIN_MS (24ull * 60 * 60 * 1000)

/* The outcome of initialize. */
enum era_handshake {
	ERA_UNTRIED,
	ERA_UNANSWERED, /* no answer, an exit or an invalid result; never anything better */
	ERA_ANSWERED,
};

/* What is known about a server whose era is not configured. */
struct era_verdict {
	enum era era;
	enum era_handshake handshake;
	bool is_remembered; /* from before the gateway started; no process has confirmed it since */
	uint64_t probe_again_ms; /* it was probed within the last day: not again before this time */
};

/* The same, as remembered by the keeper. */
struct era_memory {
	enum era era;
	uint64_t probed_at_ms; /* since 1970; 0: never probed */
};

/* How the era of a server is known, in one word for the operator; empty: unknown. */
const char *era_source(const struct server *server);
/* Restores what was known earlier. No-op if its era is configured. */
void era_remember(struct server *server, const struct era_memory *memory);
/* The era for its next process; ERA_UNKNOWN: not known yet. */
enum era era_of(const struct server *server);
/* Whether the era is unknown and the server was not probed within the last day. */
bool era_may_probe(const struct server *server);
/* Whether initialize has failed: the server may be one that does not even reject it. */
bool era_is_doubtful(const struct server *server);
/* Records the outcome of a probe. */
void era_note_probed(struct server *server, enum era era);
/*
 * Records an era that the server has shown unprobed. ERA_UNKNOWN: what was known is wrong. No-op if
 * its era is configured.
 */
void era_note(struct server *server, enum era era);
/* A process has answered initialize. */
void era_note_answered(struct server *server);
/* A process was sent initialize, without success. */
void era_note_unanswered(struct server *server);

#endif
