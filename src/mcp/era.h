/* SPDX-License-Identifier: Apache-2.0 */
/* The eras of MCP: how the conversation with a server begins. */
#ifndef MCPGATED_MCP_ERA_H
#define MCPGATED_MCP_ERA_H

enum era {
	ERA_UNKNOWN, /* configured as "auto": still to be probed */
	ERA_LEGACY,  /* begins with initialize */
	ERA_MODERN,  /* each request is self-contained: since 2026-07-28 */
};

/* The name in the configuration; "unknown" for what is called "auto" there. */
const char *era_name(enum era era);

#endif
