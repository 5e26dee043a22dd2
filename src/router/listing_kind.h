/* SPDX-License-Identifier: Apache-2.0 */
/* The four lists of a server: where their items stand in a result, and what items are named by. */
#ifndef MCPGATED_ROUTER_LISTING_KIND_H
#define MCPGATED_ROUTER_LISTING_KIND_H

#include "mcp/method.h"
#include "policy/permissions.h"

struct listing_kind {
	struct slice method;
	struct slice member; /* of the result: the list */
	enum permission_kind kind;
	struct slice name; /* the member of an item that rules are about */
};

/* NULL: it is no method of a list. */
const struct listing_kind *listing_kind_find(const struct method *method);
/* That of these items. */
const struct listing_kind *listing_kind_of(enum permission_kind kind);

#endif
