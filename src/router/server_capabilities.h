/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's answer to initialize: its capabilities, and those that can be shared. bridging.md
 * §1.3, UTIL-LIST-01.
 */
#ifndef MCPGATED_ROUTER_SERVER_CAPABILITIES_H
#define MCPGATED_ROUTER_SERVER_CAPABILITIES_H

#include <stdbool.h>

#include "base/slice.h"
#include "jsonrpc/msg.h"

struct server_capabilities {
	unsigned int offers; /* enum offer */
	unsigned int tells;  /* enum offer: the lists whose changes it reports */
};

/* `result` of its answer to initialize, JSON text; of a modern server, the equivalent. */
void server_capabilities_read(struct server_capabilities *capabilities, struct slice result,
			      bool is_modern);
/*
 * The response with this result for clients that share processes: without `tasks` of 2025-11-25 and,
 * unless they are of one principal, without `logging`.
 */
struct msg *server_capabilities_share(struct slice result, bool has_logging);

#endif
