/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four lists of a pool's server: tools, prompts, resources, resource templates. The gateway fetches a list as a
 * whole, once for each principal, and answers from that all who ask, until the server says that it has changed. So
 * nobody needs a process for himself to see a list, and a change that a thousand sessions hear of costs the server one
 * fetch. What is too long to be kept is forwarded like any other request. bridging.md §1.8; AUTH-SES-10.
 */
#ifndef MCPGATED_ROUTER_LIST_CACHE_H
#define MCPGATED_ROUTER_LIST_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "jsonrpc/scan.h"
#include "obs/reason.h"

struct call;
struct client;
struct pool;
struct upstream;

#define LIST_CACHE_KINDS 4

/* What a pool has of them. */
struct list_cache {
	struct list all;
	struct map current;                 /* by principal and kind: what who asks now gets */
	uint64_t changes[LIST_CACHE_KINDS]; /* that the server has told of */
};

/* What all pools have together: it is bounded together, too. */
struct list_cache_lru {
	struct list kept; /* the first has not been asked for for longest */
	size_t bytes;
};

void list_cache_init(struct list_cache *lists);
/* Its sessions have ended. */
void list_cache_fini(struct list_cache *lists);
void list_cache_lru_init(struct list_cache_lru *lru);

/*
 * Takes a linked call of a shared pool that may ask for a list: answers it, or lets it wait for the answer. Returns false if it is to
 * be sent to a server: a list that cannot be kept, the server's own cursor, or a request that says more than what is asked for.
 */
bool list_cache_take(struct call *call, const struct envelope *env);
/* What the kept list of tools says of one of them. */
enum listed_tool {
	LISTED_UNKNOWN, /* none is kept: who asks for it has it fetched */
	LISTED_CHANGED, /* the one that is kept is not the server's any more: likewise */
	LISTED_UNKEPT,  /* it cannot be kept */
	LISTED_ABSENT,  /* the tool is not in it, or was not looked for */
	LISTED_TOOL,
};
struct listed_entry {
	struct slice schema;  /* its inputSchema, JSON text, until the loop goes on; or empty */
	uint64_t *schema_key; /* for schema_cache_get; NULL: there is no schema */
	bool is_annotated;    /* there may be annotations (x-mcp-header) in that, and they count */
};

/*
 * Looks up a tool by its name, a JSON string, for a client of a shared pool; if not is_strict, only where there may be annotations.
 * Then a list that is too old to be given to clients will do, too, if nothing is known to have changed. MOD-HDR-07
 */
enum listed_tool list_cache_find_tool(const struct client *client, struct json name, bool is_strict,
				      struct listed_entry *entry_r);
/* The annotations of a tool that was found do not count: `why` is logged. Until the list is another one it is not annotated. MOD-HDR-06 */
void list_cache_note_broken(const struct client *client, struct json name, const char *why);
/* The server's list is another one now; `offer`: of which kind. Also of a pool of one session, which has no cache. */
void list_cache_note_change(struct pool *pool, unsigned int offer);
/* An upstream of the pool is ready: what others that have gone listed is told no more. */
void list_cache_note_ready(struct pool *pool);
/* An upstream is about to be closed: what it has listed is remembered for a while (pool_memory.h). */
void list_cache_note_closed(struct upstream *upstream);

#endif
