/* SPDX-License-Identifier: Apache-2.0 */
/* Which list requests can be answered from the cache. */
#ifndef MCPGATED_ROUTER_LIST_REQUEST_H
#define MCPGATED_ROUTER_LIST_REQUEST_H

#include <stdbool.h>

#include "jsonrpc/scan.h"

/*
 * Whether it asks for the start of a list, in few bytes, with nothing in it that the server may
 * want to know.
 */
bool list_request_is_plain(const struct envelope *env);

#endif
