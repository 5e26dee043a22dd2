/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a shared pool knows of its server outlives its last process, if that was stopped because
 * nobody needed it: the server's description of itself, and lists (lists). So a client that
 * only looks costs no process. Nobody reports changes meanwhile, so it is valid only for
 * servers.NAME.pool.remember, until a process serves or has failed, the server turns out to be of
 * another era, or the operator orders a restart. bridging.md §1.8
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "io/loop.h"

struct msg;
struct pool;

/* Pools that exist only for their memory; beyond that, the least recently used one is dropped. */
#define POOL_MEMORIES_MAX 256
#define POOL_MEMORIES_BYTES \
	((size_t)16 * 1024 * 1024) /* without lists, which have their own bound */
#define POOL_MEMORIES_EACH 8       /* per caller and server */

/* All such pools of a router. */
struct pool_memories {
	struct list idle; /* least recently used first */
	size_t count;
	size_t count_max;
	size_t bytes;
	size_t bytes_max;
};

/* The memory of one pool. */
struct pool_memory {
	struct list link;  /* of pool_memories, while the pool exists only for it */
	size_t bytes;      /* counted in pool_memories */
	struct timer ends; /* running: the memory is valid */
	uint64_t restarts; /* restarts ordered for its server when it began */
	uint64_t losses;   /* processes of the pool that failed, ever */
	/* The pool's initialize_result as the server wrote it: the rules may change. */
	struct msg *described;
};

void pool_memories_init(struct pool_memories *memories);
void pool_memory_init(struct pool *pool);
void pool_memory_fini(struct pool *pool);

/* The pool's last process has been closed. If it has failed, pool_memory_note_lost follows. */
void pool_memory_begin(struct pool *pool);
/* One of its processes serves, or refuses to: it is the source from now on. */
void pool_memory_end(struct pool *pool);
/* One of its processes has failed: what earlier ones said is no longer valid. */
void pool_memory_note_lost(struct pool *pool);
/* Whether what its last process said may be used as an answer. */
bool pool_memory_holds(const struct pool *pool);

/*
 * One of its processes has described itself in this InitializeResult, and `written` as the server
 * wrote it. Returns false if an earlier one did so alike.
 */
bool pool_memory_describe(struct pool *pool, struct slice result, struct slice written);
/* The server has other rules: applies them to the description. */
void pool_memory_use_rules(struct pool *pool);

/*
 * Nobody uses the pool and it has no process. Whether to keep it; if not, it has dropped what it
 * knew.
 */
bool pool_memory_keep(struct pool *pool);
/* The pool is about to be used. */
void pool_memory_use(struct pool *pool);
