/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares a server's lists with what was approved (policy/pins). Each list is checked as it
 * arrives from the server, whoever requested it, and what needs the operator's approval is
 * reported. With `pin: enforce` such items are neither listed nor callable. SEC-65.
 */
#ifndef MCPGATED_ROUTER_PINNING_H
#define MCPGATED_ROUTER_PINNING_H

#include <stdbool.h>

#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "process/server.h"
#include "router/call.h"
#include "router/convert.h"

/*
 * Checks a result of this method as the server wrote it, except for sanitize and redact; ignores
 * methods other than lists. page: listing_kind_page of the cursor of the request. Removed items are
 * reported only for a list that came as one page.
 */
void pinning_look(struct server *server, const struct method *method, struct slice result,
		  uint64_t page);
/*
 * Checks what a process of the server says of itself, its response to initialize: the instructions,
 * and what serverInfo has besides name and version. Returns it without what is withheld: `response`
 * itself, or an envelope that lives as long as *convert.
 */
const struct envelope *pinning_take_server(struct convert *convert, struct server *server,
					   const struct envelope *response);
/* Whether an item of a list may be shown; `name` as written. */
bool pinning_shows(const struct server *server, enum permission_kind kind, struct json name);
/*
 * The withheld item that a client's message uses, in the form of permissions_find_denied; NULL:
 * none.
 */
const char *pinning_find_withheld(const struct server *server, const struct envelope *env);

#endif
