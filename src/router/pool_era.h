/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MCP era in which the gateway talks to a pool's servers. bridging.md §1.10; BACK-ERA-05 to
 * -07.
 */
#ifndef MCPGATED_ROUTER_POOL_ERA_H
#define MCPGATED_ROUTER_POOL_ERA_H

#include <stdbool.h>

struct envelope;
struct pool;
struct upstream;
struct upstream_era;

/* Initializes the pool's era waiters; they wait for nothing yet. */
void pool_era_init(struct pool *pool);
/* The era for the next process of the pool. */
const struct upstream_era *pool_era_choose(const struct pool *pool);
/* Whether nothing may be started before the server's era is known; the pool is then woken. */
bool pool_era_is_awaited(struct pool *pool);
/*
 * An upstream is ready, which shows its server's era. Upstreams of the other era get no more
 * requests.
 */
void pool_era_note_ready(const struct upstream *upstream);
/*
 * A modern client has joined a pool that already serves as legacy. If the server may be modern, it
 * is probed on the side, and on success the pool becomes modern.
 */
void pool_era_ask_aside(struct pool *pool);
/*
 * An upstream answered the handshake with an error. Returns whether its server may be of the other
 * era: then another process must be started, now or once the era is known.
 */
bool pool_era_reconsider(const struct upstream *upstream, const struct envelope *response);

/*
 * An upstream has failed. If it was never ready, the known era may be wrong, and the next client
 * triggers a new probe.
 */
void pool_era_note_lost(const struct upstream *upstream);

#endif
