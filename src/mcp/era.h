/* SPDX-License-Identifier: Apache-2.0 */
/* The eras of MCP: how a conversation with a server begins. */
#ifndef MCPGATED_MCP_ERA_H
#define MCPGATED_MCP_ERA_H

enum era {
	ERA_UNKNOWN, /* in the configuration: to be found out */
	ERA_LEGACY,  /* begins with initialize */
	ERA_MODERN,  /* each request stands alone: from 2026-07-28 */
};

/* As the configuration calls it; "unknown" of what it calls "auto". */
const char *era_name(enum era era);

#endif
