/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests for a list can be answered from one that is kept. */
#ifndef MCPGATED_ROUTER_LIST_REQUEST_H
#define MCPGATED_ROUTER_LIST_REQUEST_H

#include <stdbool.h>

#include "jsonrpc/scan.h"

/* Whether it asks for the list from its beginning, in few bytes, and says nothing that the server may want to know. */
bool list_request_is_plain(const struct envelope *env);

#endif
