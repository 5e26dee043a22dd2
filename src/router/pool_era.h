/* SPDX-License-Identifier: Apache-2.0 */
/* The era of MCP that the servers of a pool are spoken to in. bridging.md §1.10; BACK-ERA-05 to -07. */
#ifndef MCPGATED_ROUTER_POOL_ERA_H
#define MCPGATED_ROUTER_POOL_ERA_H

#include <stdbool.h>

struct envelope;
struct pool;
struct upstream;
struct upstream_era;

/* Initialises the waiters of the pool, which wait for nothing yet. */
void pool_era_init(struct pool *pool);
/* The era that the next process of the pool is spoken to in. */
const struct upstream_era *pool_era_choose(const struct pool *pool);
/* Whether nothing is to be started before the era of the server has turned out; the pool is woken then. */
bool pool_era_is_awaited(struct pool *pool);
/* An upstream is ready: it has shown the era of its server. Those of the other one get no more requests. */
void pool_era_note_ready(const struct upstream *upstream);
/*
 * A modern client has come to a pool that serves already. If its server may be of the modern era, it is asked beside what the
 * pool does, which becomes a modern one with that.
 */
void pool_era_ask_aside(struct pool *pool);
/*
 * An upstream answered the handshake with an error. Returns whether its server may be of the other era: then another
 * process is to be started, now or once that has turned out.
 */
bool pool_era_reconsider(const struct upstream *upstream, const struct envelope *response);

/* An upstream has failed; if it has never been ready, what was known may be wrong. Who comes next asks anew. */
void pool_era_note_lost(const struct upstream *upstream);

#endif
