/* SPDX-License-Identifier: Apache-2.0 */
/* What a server answers to initialize: what it can do, and what of that can be shared. bridging.md §1.3, UTIL-LIST-01. */
#ifndef MCPGATED_ROUTER_SERVER_CAPABILITIES_H
#define MCPGATED_ROUTER_SERVER_CAPABILITIES_H

#include <stdbool.h>

#include "base/slice.h"
#include "jsonrpc/msg.h"

struct principal;

struct server_capabilities {
	unsigned int offers; /* enum offer */
	unsigned int tells;  /* enum offer: of the lists whose changes it tells */
};

/* `result` of its answer to initialize, JSON text; of a server of the modern era what stands for that. */
void server_capabilities_read(struct server_capabilities *capabilities, struct slice result,
			      bool is_modern);
/*
 * The response with this result as the members of a pool of this principal get it, or, if it is NULL, of everybody: less
 * the capabilities that they cannot share.
 */
struct msg *server_capabilities_share(struct slice result, const struct principal *principal);

#endif
