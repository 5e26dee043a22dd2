/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pagination cursors as clients see them. A child's cursor names the child, because only that child
 * knows the rest of the list; the cursor of a list that the gateway caches names the list and the
 * page. bridging.md §1.1 (7).
 */
#ifndef MCPGATED_ROUTER_CURSOR_H
#define MCPGATED_ROUTER_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

/*
 * Appends the client's form of a child's cursor; both are JSON strings. An empty one stays empty: it
 * is a cursor, but many servers mean by it, and many clients read, that there is none.
 */
void cursor_append_sealed(struct buf *out, uint64_t child, struct json cursor);
/*
 * Decodes the client's form and appends the child's cursor, a JSON string. The child number is
 * never 0. Returns -1 if the gateway cannot have issued it.
 */
int cursor_open(struct json sealed, uint64_t *child_r, struct buf *out) must_check;

/* Whether it is the empty cursor, which names no process. */
bool cursor_is_empty(struct json cursor);

/* The same for a page of a list that the gateway caches. */
void cursor_append_page(struct buf *out, uint64_t list, uint64_t page);
int cursor_open_page(struct json sealed, uint64_t *list_r, uint64_t *page_r) must_check;

#endif
