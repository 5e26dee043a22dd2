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

/* What was found out about a server since the start of the gateway. */
struct era_verdict {
	enum era era;
	uint64_t probed_at_ms; /* when it was asked; 0: never */
};

/* As the configuration calls it; "unknown" of what it calls "auto". */
const char *era_name(enum era era);
/* The era of its next process; ERA_UNKNOWN: nobody knows yet. */
enum era era_of(const struct server *server);
/* Whether that is open, and it was not asked within the last day. */
bool era_may_probe(const struct server *server);
/* It was asked: this came of it. */
void era_note_probed(struct server *server, enum era era);
/* It has shown this without being asked. ERA_UNKNOWN: what was known is wrong. Nothing if it is configured. */
void era_note(struct server *server, enum era era);

#endif
