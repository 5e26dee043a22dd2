/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a server's lists a client is shown: what it may use, so that lists and calls agree. product.md §4.
 */
#ifndef MCPGATED_ROUTER_LISTING_H
#define MCPGATED_ROUTER_LISTING_H

#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "router/convert.h"

struct server;

/*
 * A response to a request of this method without the items that may not be used. As with convert_response, `env` itself
 * if nothing is left out, or the envelope of the changed one, which lives as long as *convert.
 */
const struct envelope *listing_filter(struct convert *convert, const struct server *server,
				      const struct method *method, const struct envelope *env);

#endif
