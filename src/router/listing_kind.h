/* SPDX-License-Identifier: Apache-2.0 */
/* The four lists of a server: where a result holds their items, and what names an item. */
#ifndef MCPGATED_ROUTER_LISTING_KIND_H
#define MCPGATED_ROUTER_LISTING_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "policy/permissions.h"

struct listing_kind {
	struct slice method;
	struct slice member; /* the member of the result that is the list */
	enum permission_kind kind;
	struct slice name; /* the member of an item that rules refer to */
};

/* NULL: not a list method. */
const struct listing_kind *listing_kind_find(const struct method *method);
/* The kind for these items. */
const struct listing_kind *listing_kind_of(enum permission_kind kind);
/*
 * Finds the items of a result of this kind: a value of any type, or JSON_ABSENT. -1: clients may
 * read other items than these, because the member name is duplicated, contains escapes or differs
 * in case; what is checked must be what clients see.
 */
int listing_kind_find_items(const struct listing_kind *kind, struct slice result,
			    struct json *items_r) must_check;
/*
 * Folding names that are not ASCII is slow: so many bytes of them may a list have. Counts this one,
 * as it is written, in *folded. Returns false if it is too much: what the item is called cannot be
 * known, so it is not shown.
 */
#define LISTING_FOLDED_BYTES_MAX (32 * 1024)
bool listing_kind_may_fold(struct slice written, size_t *folded) must_check;
/* The page that a cursor stands for, as a number; 0: the first page, which has no cursor. */
uint64_t listing_kind_page(struct json cursor);

#endif
