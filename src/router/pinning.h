/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a server's lists is as it was approved (policy/pins): each list is looked at where it comes from its server, whoever
 * has asked for it, and what waits for the operator is told. With `pin: enforce` it is then neither shown nor called.
 * SEC-65.
 */
#ifndef MCPGATED_ROUTER_PINNING_H
#define MCPGATED_ROUTER_PINNING_H

#include <stdbool.h>

#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "process/server.h"

/*
 * A result of this method as the server wrote it, but for sanitize and redact; of other methods than lists nothing comes.
 * page: as listing_kind_page of the cursor that it was asked for with. What a list has lost is told where it came as one page.
 */
void pinning_look(struct server *server, const struct method *method, struct slice result,
		  uint64_t page);
/* Whether an item of a list may be shown: its name as it is written. */
bool pinning_shows(const struct server *server, enum permission_kind kind, struct json name);
/* What a client's message uses that is withheld, in the words of permissions_find_denied; NULL: nothing. */
const char *pinning_find_withheld(const struct server *server, const struct envelope *env);

#endif
