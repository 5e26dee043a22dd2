/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cursors of pools as clients see them. Those of a child name it, because the rest of a list is known to nobody
 * else; those of lists that the gateway keeps name the list and its page. bridging.md §1.1 (7).
 */
#ifndef MCPGATED_ROUTER_CURSOR_H
#define MCPGATED_ROUTER_CURSOR_H

#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

/* Appends the client's form, a JSON string, of a child's cursor, also a JSON string. */
void cursor_append_sealed(struct buf *out, uint64_t child, struct json cursor);
/*
 * Takes the client's form apart: appends the child's cursor, a JSON string. The child's number is never
 * 0. Returns -1 if it is none that we could have given out.
 */
int cursor_open(struct json sealed, uint64_t *child_r, struct buf *out) must_check;

/* The same for a page of a list that the gateway keeps. */
void cursor_append_page(struct buf *out, uint64_t list, uint64_t page);
int cursor_open_page(struct json sealed, uint64_t *list_r, uint64_t *page_r) must_check;

#endif
