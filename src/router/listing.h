/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client is shown of a server's lists: what it may use, so that lists and calls agree, and
 * what the operator has approved. mcpgated.yaml(5).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "policy/permissions.h"
#include "process/server.h"
#include "router/call.h"
#include "router/convert.h"

struct call;

/*
 * The response to this call without the items that its caller may not use or see, and with the others as
 * they are shown (policy/shown). As with convert_response, returns `env` itself if nothing differs, or else the envelope of the
 * changed response, which lives as long as *convert. NULL: clients could read a different list in
 * it than the one that was checked.
 */
const struct envelope *listing_filter(struct convert *convert, const struct call *call,
				      const struct envelope *env);

/*
 * Looks at a result of this method as the server wrote it, except for sanitize and redact; ignores methods
 * other than lists. page: listing_kind_page of the cursor of the request; 0: it had none. Each list is
 * looked at as it arrives, whoever requested it:
 * - Tools are counted by name (process/call_stats): those in their server's lists, as far as there is
 *   room.
 * - Which entries of `deny` fit a tool is remembered (deny_watch_next).
 * - Items of which another one has the name (policy/shown) are reported, once for each version of the
 *   rules.
 * - What needs the operator's approval is reported (policy/pins). With `pin: enforce` such items are neither
 *   listed nor callable. Removed items are reported only for a list that came as one page. SEC-65.
 */
void listing_look(struct server *server, const struct method *method, struct slice result,
		  uint64_t page);

/*
 * The next entry of deny from *index on, which goes behind it, that fits no tool of a whole list: perhaps
 * it is misspelt. False: there are no more, or no list has come since the rules changed.
 */
bool deny_watch_next(const struct server *server, size_t *index, struct rule *rule_r) must_check;

/* ---- pinning ---- */

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
