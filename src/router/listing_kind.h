/* SPDX-License-Identifier: Apache-2.0 */
/* The four lists of a server: where their items stand in a result, and what items are named by. */
#ifndef MCPGATED_ROUTER_LISTING_KIND_H
#define MCPGATED_ROUTER_LISTING_KIND_H

#include <stdint.h>

#include "jsonrpc/scan.h"
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
/*
 * The items of a result of this kind, as its member says: of any type, or JSON_ABSENT. -1: clients may read others than
 * these, because the name of that member is there twice, or spelled with escapes or in other letters: what is judged must be
 * what they see.
 */
int listing_kind_find_items(const struct listing_kind *kind, struct slice result,
			    struct json *items_r) must_check;
/* The page of a list that a cursor stands for, as a number; 0: the first, that no cursor is for. */
uint64_t listing_kind_page(struct json cursor);

#endif
