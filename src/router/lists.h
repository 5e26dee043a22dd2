/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue of a pool: the lists of its server, namely tools, prompts, resources and resource
 * templates. The gateway fetches a whole list once for each principal, until the server reports a
 * change, and answers from it: what it has to know of a tool or prompt itself, and in a shared pool
 * everyone who asks. So nobody needs a process of their own to see a list, and a change that reaches
 * a thousand sessions costs the server one fetch. Lists that are too long to keep are forwarded like
 * any other request. bridging.md §1.8; AUTH-SES-10.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "jsonrpc/scan.h"
#include "policy/permissions.h"
#include "router/call.h"

struct pool;
struct upstream;

/* Of one pool. */
struct lists {
	struct list all;
	struct map current;                 /* by principal and kind: the list to answer from now */
	uint64_t changes[PERMISSION_KINDS]; /* reported by the server */
	uint64_t begun;                     /* processes that became ready */
	uint64_t looked_at
		[PERMISSION_KINDS]; /* count_looks + 1, when a whole list had come; 0: never */
	uint64_t unlisted_until_ms; /* the tools could not be fetched (call_check.c) */
};

/* Shared by all pools: one bound applies to them together. */
struct lists_lru {
	struct list kept; /* least recently requested first */
	size_t bytes;
};

void lists_init(struct lists *lists);
/* Must be called after the pool's sessions have ended. */
void lists_fini(struct lists *lists);
void lists_lru_init(struct lists_lru *lru);

/*
 * Takes a linked call of a shared pool that may ask for a list: answers it, or queues it for the
 * answer. Returns false if it must be sent to a server: a list that cannot be kept, a cursor of the
 * server's own, or a request that says more than what it asks for.
 */
bool lists_take(struct call *call, const struct envelope *env);
/*
 * A linked call that waits for nothing goes on with router->on_list, now or later, when the list of
 * this kind has come, to the end, or cannot be had in time. Fails with REASON_OVER_LIMIT if the calls
 * of its client that wait for lists already keep too much.
 */
void lists_await(struct call *call, const struct envelope *env, enum permission_kind kind);
/* Whether a whole list of this kind has come since a process became ready or reported a change. */
bool lists_were_looked_at(const struct pool *pool, enum permission_kind kind);

/* What the catalogue says of a tool. */
enum listed_tool {
	LISTED_UNKNOWN, /* no list is there: fetch it */
	LISTED_CHANGED, /* the list is out of date: fetch it */
	LISTED_UNKEPT,  /* the list cannot be kept */
	LISTED_ABSENT,  /* the tool is not in the list, or was not looked for */
	LISTED_TOOL,
};
struct listed_entry {
	struct slice schema;  /* its inputSchema, until the loop continues; or empty */
	uint64_t *schema_key; /* for schema_cache_get; NULL: there is no schema */
	bool is_annotated;    /* the schema may have annotations (x-mcp-header), and they apply */
};

/*
 * Looks up a tool by name (a JSON string) for a client. Without is_strict, looks only where there
 * may be annotations, and accepts a list that is too old for clients if no change is known.
 * MOD-HDR-07
 */
enum listed_tool lists_find_tool(const struct client *client, struct json name, bool is_strict,
				 struct listed_entry *entry_r);
/*
 * The annotations of a tool that was found are invalid: logs `why` and treats the tool as not
 * annotated until the list changes. MOD-HDR-06
 */
void lists_note_broken(const struct client *client, struct json name, const char *why);
/* The server's lists of `offer` have changed. */
void lists_note_change(struct pool *pool, unsigned int offer);
/* An upstream of the pool is ready: stops answering from lists of upstreams that are gone. */
void lists_note_ready(struct pool *pool);
/* An upstream is about to be closed: its lists are remembered for a while (pool_memory.h). */
void lists_note_closed(struct upstream *upstream);
