/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's list: the pages in which it comes, joined into as few as clients can be given. Knows the form of list
 * results, and nothing of who asks. bridging.md §1.8; UTIL-PAGE-01.
 */
#ifndef MCPGATED_ROUTER_PAGES_H
#define MCPGATED_ROUTER_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/map.h"
#include "base/slice.h"
#include "jsonrpc/msg.h"
#include "jsonrpc/scan.h"

#define PAGES_BYTES_MAX (16 * 1024 * 1024) /* of a whole list */
#define PAGES_JOINED_BYTES \
	(4 * 1024 * 1024) /* of a page of ours, unless the server's own is larger */
#define PAGES_TAKEN_MAX 200
#define PAGES_JOINED_MAX 8    /* what comes of the numbers above */
#define PAGES_NAMED_MAX 65536 /* items that can be found by their names */

/* One response, complete but for the id of the request. */
struct page {
	struct msg *msg;
	struct envelope env; /* slices into msg */
};

/* One that can be found. */
struct named_item {
	struct map_link by_name;
	struct json name;    /* as long as the pages are */
	struct slice schema; /* the inputSchema of a tool, JSON text, likewise; or empty */
	uint64_t schema_key; /* for schema_cache_get */
};

/* All zeros but `member` to begin with. */
struct pages {
	struct slice member; /* the name of the array in the results; borrowed */
	struct buf cursor; /* the server's, of the next page: a JSON string; empty: the first one */
	size_t taken;      /* the server's pages so far */
	size_t bytes;      /* that are kept for them */
	/* until they are joined: */
	struct buf head; /* of each result, up to the first item */
	struct buf tail; /* and from the end of the last one, without the last bracket */
	struct buf items[PAGES_JOINED_MAX];
	size_t filling; /* which of them takes the next items */
	/* afterwards: */
	struct page *joined;
	size_t count;
	uint64_t number; /* of several: of a list with other items it is another one */
	/* once one was looked for: */
	bool is_named;
	struct named_item *named;
	size_t named_count;
	struct map by_name;
};

enum pages_outcome {
	PAGES_MORE,     /* `cursor` says where the list goes on */
	PAGES_COMPLETE, /* it is at its end: to be joined */
	PAGES_UNFIT,    /* too long, without an end, or no list that we know */
};

/* Takes the server's next page; `result` is JSON text, borrowed. Not after another outcome than PAGES_MORE. */
enum pages_outcome pages_add(struct pages *pages, struct slice result);
/* Joins a complete list. Returns -1 if nothing valid comes of it: the depth passes `limits`. */
int pages_join(struct pages *pages, const struct scan_limits *limits) must_check;
/* An error in place of a list: the only page. */
int pages_set_error(struct pages *pages, struct slice text, const struct scan_limits *limits)
	must_check;
/*
 * After the join: the first item whose `name` means the same as this JSON string; NULL: none, or it stands behind
 * PAGES_NAMED_MAX others.
 */
struct named_item *pages_find(struct pages *pages, struct json name);
/* Begins anew. */
void pages_reset(struct pages *pages);

#endif
