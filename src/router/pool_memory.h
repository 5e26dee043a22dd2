/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a shared pool knows of its server outlives its last process, if that was stopped because nobody needed it: what the
 * server said of itself, and lists (list_cache). So a client that only looks what there is costs no process. Nobody tells of
 * changes meanwhile, so it holds for servers.NAME.pool.remember alone, until a process serves or has failed, the server
 * turns out to be of another era, or the operator orders a restart. bridging.md §1.8
 */
#ifndef MCPGATED_ROUTER_POOL_MEMORY_H
#define MCPGATED_ROUTER_POOL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "io/loop.h"

struct pool;

/* Pools that are there for their memory alone; of more, the one that was not used for longest goes. */
#define POOL_MEMORIES_MAX 256
#define POOL_MEMORIES_BYTES ((size_t)16 * 1024 * 1024) /* lists aside: they have their own bound */
#define POOL_MEMORIES_EACH 8                           /* of one caller at one server */

/* What a router has of them. */
struct pool_memories {
	struct list idle; /* the first was not used for longest */
	size_t count;
	size_t count_max;
	size_t bytes;
	size_t bytes_max;
};

/* What a pool has. */
struct pool_memory {
	struct list link;  /* of pool_memories, while the pool is there for it alone */
	size_t bytes;      /* counted there */
	struct timer ends; /* running: it holds */
	uint64_t restarts; /* that had been ordered for its server when it began */
	uint64_t losses;   /* of processes of the pool, ever */
};

void pool_memories_init(struct pool_memories *memories);
void pool_memory_init(struct pool *pool);
void pool_memory_fini(struct pool *pool);

/* The pool's last process has been closed. If it has failed, pool_memory_note_lost follows. */
void pool_memory_begin(struct pool *pool);
/* A process of it serves, or refuses to: that is the one to ask. */
void pool_memory_end(struct pool *pool);
/* A process of it has failed: what those before have said does not count any more. */
void pool_memory_note_lost(struct pool *pool);
/* Whether what its last process said may be said again. */
bool pool_memory_holds(const struct pool *pool);

/* Nobody uses the pool, and it has no process. Whether it is to stay; else it has forgotten what it knew. */
bool pool_memory_keep(struct pool *pool);
/* It is about to be used. */
void pool_memory_use(struct pool *pool);

#endif
