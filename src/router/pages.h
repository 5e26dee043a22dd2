/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format of list results: the pages in which a list arrives, joined into as few as clients can
 * accept; the cursors that lead from one to the next; what the items are. Knows nothing about who
 * asks. bridging.md §1.8; UTIL-PAGE-01.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/map.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/method.h"
#include "policy/permissions.h"

#define PAGES_BYTES_MAX (16 * 1024 * 1024) /* of a whole list */
#define PAGES_JOINED_BYTES \
	(4 * 1024 * 1024) /* of a joined page, unless the server's own is larger */
#define PAGES_TAKEN_MAX 200
#define PAGES_JOINED_MAX 8    /* follows from the limits above */
#define PAGES_NAMED_MAX 65536 /* items that can be found by name */

/* An item that can be found by name. */
struct named_item {
	struct map_link by_name;
	struct json name;    /* lives as long as the pages */
	struct slice schema; /* inputSchema of a tool, JSON text; lives as long; or empty */
	uint64_t schema_key; /* for schema_cache_get */
};

/* Zeroed, except for `member`, before use. */
struct pages {
	struct slice member; /* the name of the array in the results; borrowed */
	struct buf cursor;   /* the server's, for the next page: a JSON string; empty: first page */
	size_t taken;        /* pages received from the server */
	size_t bytes;        /* kept for them */
	/* before the join: */
	struct buf head; /* the first result, up to the first item */
	struct buf tail; /* the end of the last result, without the final bracket */
	struct buf items[PAGES_JOINED_MAX];
	size_t filling;   /* the index that receives the next items */
	bool is_skipping; /* nothing is kept any more */
	bool was_empty;   /* a cursor was: what had come until then, if it was the end */
	size_t whole_filling, whole_length;
	/* after the join: */
	struct msg **joined; /* scanned; each is a response, complete except for the request's id */
	size_t count;
	uint64_t number; /* if several pages: differs for every list with other items */
	/* after the first lookup: */
	bool is_named;
	struct named_item *named;
	size_t named_count;
	struct map by_name;
};

enum pages_outcome {
	PAGES_MORE,     /* `cursor` is set: request the next page */
	PAGES_COMPLETE, /* the end was reached: join */
	PAGES_UNFIT,    /* too long, endless, or not a list in a known format */
};

/*
 * Adds the server's next page; `result` is JSON text, borrowed. May be called again only after
 * PAGES_MORE.
 */
enum pages_outcome pages_add(struct pages *pages, struct slice result);
/*
 * The server answers the request of the next page with an error. PAGES_COMPLETE: it had meant by an
 * empty cursor that there is none. Else PAGES_UNFIT.
 */
enum pages_outcome pages_end(struct pages *pages);
/*
 * After PAGES_UNFIT: keeps nothing, and goes on to the end of the list. `result` is the page that did
 * not fit. The outcome is that of its cursor, although it may be the one before once more; a list that
 * was skipped is not joined.
 */
enum pages_outcome pages_skip(struct pages *pages, struct slice result);
/* Joins a complete list. If the result is not valid, as its depth exceeds `limits`, it is as if skipped. */
void pages_join(struct pages *pages, const struct scan_limits *limits);
/* Stores an error in place of a list, as the only page. */
int pages_set_error(struct pages *pages, struct slice text, const struct scan_limits *limits)
	must_check;
/* After the join: does at once what takes long at the first pages_find. */
void pages_name_items(struct pages *pages);
/*
 * After the join: the first item whose `name` equals this JSON string in meaning. NULL: there is
 * none, or it comes after the first PAGES_NAMED_MAX items.
 */
struct named_item *pages_find(struct pages *pages, struct json name);
/* Starts over. */
void pages_reset(struct pages *pages);

/* ---- cursor ---- */

/*
 * Pagination cursors as clients see them. A child's cursor names the child, because only that child
 * knows the rest of the list; the cursor of a list that the gateway caches names the list and the
 * page. bridging.md §1.1 (7).
 */

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

/* ---- listing kind ---- */

/* The four lists of a server: where a result holds their items, and what names an item. */

struct listing_kind {
	struct slice method;
	struct slice member; /* the member of the result that is the list */
	enum permission_kind kind;
	struct slice name;  /* the member of an item that rules refer to */
	unsigned int offer; /* by which servers have it */
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
