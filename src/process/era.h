/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The era of MCP that the processes of a server are spoken to in: as configured, else as it was found out. How that is
 * found out is known above (upstream/era_probe, router/pool). The keeper hears of it, and remembers it for the next
 * gateway and the next daemon (keeper/era_store). BACK-ERA-06.
 */
#ifndef MCPGATED_PROCESS_ERA_H
#define MCPGATED_PROCESS_ERA_H

#include <stdbool.h>
#include <stdint.h>

#include "mcp/era.h"

struct server;

#define ERA_PROBE_AGAIN_MS (24ull * 60 * 60 * 1000)

/* What has come of initialize. */
enum era_handshake {
	ERA_UNTRIED,
	ERA_UNANSWERED, /* silence, an end, a result that is none; never anything better */
	ERA_ANSWERED,
};

/* What is known of a server whose era is not configured. */
struct era_verdict {
	enum era era;
	enum era_handshake handshake;
	bool is_remembered; /* from before the start of the gateway; no process of it has shown it since */
	uint64_t probe_again_ms; /* it was asked within the last day: not before then */
};

/* The same as the keeper remembers it. */
struct era_memory {
	enum era era;
	uint64_t probed_at_ms; /* since 1970; 0: it was never asked */
};

/* How the era of a server is known, in a word for the operator; empty: it is not. */
const char *era_source(const struct server *server);
/* What is known of it from before. Nothing if its era is configured. */
void era_remember(struct server *server, const struct era_memory *memory);
/* The era of its next process; ERA_UNKNOWN: nobody knows yet. */
enum era era_of(const struct server *server);
/* Whether that is open, and it was not asked within the last day. */
bool era_may_probe(const struct server *server);
/* Whether initialize has come to nothing: the server may be one that does not even refuse it. */
bool era_is_doubtful(const struct server *server);
/* It was asked: this came of it. */
void era_note_probed(struct server *server, enum era era);
/* It has shown this without being asked. ERA_UNKNOWN: what was known is wrong. Nothing if it is configured. */
void era_note(struct server *server, enum era era);
/* A process has agreed to initialize. */
void era_note_answered(struct server *server);
/* A process was asked to, and came to nothing. */
void era_note_unanswered(struct server *server);

#endif
