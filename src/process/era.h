/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The era of MCP in which a server's processes are addressed: the configured one, else the detected
 * one. Detection is up to higher layers (upstream/prestart, router/pool). The next gateway detects
 * it anew. BACK-ERA-06.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mcp/revision.h"

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
	uint64_t probe_again_ms; /* it was probed within the last day: not again before this time */
};

/*
 * The era that is known, for the operator, and how it is, in one word; "" and ERA_UNKNOWN: it is not. A
 * server that has never answered is taken for a legacy one (era_of), but nobody knows.
 */
const char *era_source(const struct server *server);
enum era era_known(const struct server *server);
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
