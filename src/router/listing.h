/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a server's lists a client is shown: what it may use, so that lists and calls agree. product.md §4.
 */
#ifndef MCPGATED_ROUTER_LISTING_H
#define MCPGATED_ROUTER_LISTING_H

#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "router/convert.h"

struct call;

/*
 * A response to this call without the items that its caller may not use, or is not to be shown. As with convert_response, `env` itself
 * if nothing is left out, or the envelope of the changed one, which lives as long as *convert. NULL: clients may read another list
 * in it than the one that was looked at.
 */
const struct envelope *listing_filter(struct convert *convert, const struct call *call,
				      const struct envelope *env);

#endif
