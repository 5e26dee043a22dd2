/* SPDX-License-Identifier: Apache-2.0 */
/* What a server has said that it can do. bridging.md §1.3, UTIL-LIST-01. */
#ifndef MCPGATED_ROUTER_SERVER_CAPABILITIES_H
#define MCPGATED_ROUTER_SERVER_CAPABILITIES_H

#include "base/slice.h"

struct server_capabilities {
	unsigned int offers; /* enum offer */
	unsigned int tells;  /* enum offer: of the lists whose changes it tells */
};

/* `result` of its answer to initialize, JSON text. */
void server_capabilities_read(struct server_capabilities *server_capabilities, struct slice result);

#endif
