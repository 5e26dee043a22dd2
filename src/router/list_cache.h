/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four lists of a pool's server: tools, prompts, resources, resource templates. The gateway
 * fetches a whole list once for each principal and answers everyone from it, until the server
 * reports a change. So nobody needs a process of their own to see a list, and a change that reaches
 * a thousand sessions costs the server one fetch. Lists that are too long to keep are forwarded
 * like any other request. bridging.md §1.8; AUTH-SES-10.
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

/* The lists of a pool. */
struct list_cache {
	struct list all;
	struct map current;                 /* by principal and kind: the list to answer from now */
	uint64_t changes[LIST_CACHE_KINDS]; /* reported by the server */
};

/* Shared by all pools: one bound applies to them together. */
struct list_cache_lru {
	struct list kept; /* least recently requested first */
	size_t bytes;
};

void list_cache_init(struct list_cache *lists);
/* Must be called after the pool's sessions have ended. */
void list_cache_fini(struct list_cache *lists);
void list_cache_lru_init(struct list_cache_lru *lru);

/*
 * Takes a linked call of a shared pool that may ask for a list: answers it, or queues it for the
 * answer. Returns false if it must be sent to a server: a list that cannot be kept, a cursor of the
 * server's own, or a request that says more than what it asks for.
 */
bool list_cache_take(struct call *call, const struct envelope *env);
/* What the cached tool list says of a tool. */
enum listed_tool {
	LISTED_UNKNOWN, /* no list is cached: fetch it */
	LISTED_CHANGED, /* the cached list is out of date: fetch it */
	LISTED_UNKEPT,  /* the list cannot be cached */
	LISTED_ABSENT,  /* the tool is not in the list, or was not looked for */
	LISTED_TOOL,
};
struct listed_entry {
	struct slice schema;  /* its inputSchema, until the loop continues; or empty */
	uint64_t *schema_key; /* for schema_cache_get; NULL: there is no schema */
	bool is_annotated;    /* the schema may have annotations (x-mcp-header), and they apply */
};

/*
 * Looks up a tool by name (a JSON string) for a client of a shared pool. Without is_strict, looks
 * only where there may be annotations, and accepts a list that is too old for clients if no change
 * is known. MOD-HDR-07
 */
enum listed_tool list_cache_find_tool(const struct client *client, struct json name, bool is_strict,
				      struct listed_entry *entry_r);
/*
 * The annotations of a tool that was found are invalid: logs `why` and treats the tool as not
 * annotated until the list changes. MOD-HDR-06
 */
void list_cache_note_broken(const struct client *client, struct json name, const char *why);
/*
 * The server's list of kind `offer` has changed. Also allowed for a pool of one session, which has
 * no cache.
 */
void list_cache_note_change(struct pool *pool, unsigned int offer);
/* An upstream of the pool is ready: stops answering from lists of upstreams that are gone. */
void list_cache_note_ready(struct pool *pool);
/* An upstream is about to be closed: its lists are remembered for a while (pool_memory.h). */
void list_cache_note_closed(struct upstream *upstream);

/* ---- list request ---- */

/* Which list requests can be answered from the cache. */

#endif
