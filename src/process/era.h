/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The era of MCP that the processes of a server are spoken to in: as configured, else as it was found out. How that is
 * found out is known above (upstream/era_probe, router/pool). BACK-ERA-06.
 */
#ifndef MCPGATED_PROCESS_ERA_H
#define MCPGATED_PROCESS_ERA_H

#include <stdbool.h>
#include <stdint.h>

struct server;

enum era {
	ERA_UNKNOWN, /* in the configuration: to be found out */
	ERA_LEGACY,  /* begins with initialize */
	ERA_MODERN,  /* each request stands alone: from 2026-07-28 */
};

/* What has come of initialize. */
enum era_handshake {
	ERA_UNTRIED,
	ERA_UNANSWERED, /* silence, an end, a result that is none; never anything better */
	ERA_ANSWERED,
};

/* What was found out about a server since the start of the gateway. */
struct era_verdict {
	enum era era;
	enum era_handshake handshake;
	uint64_t probed_at_ms; /* when it was asked; 0: never */
};

/* As the configuration calls it; "unknown" of what it calls "auto". */
const char *era_name(enum era era);
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
