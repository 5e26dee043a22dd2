/* SPDX-License-Identifier: Apache-2.0 */
/* How many processes a pool needs, and which has room. Only reads state. bridging.md §1.4, §1.5. */
#ifndef MCPGATED_ROUTER_POOL_DEMAND_H
#define MCPGATED_ROUTER_POOL_DEMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool;
struct pool_member;
struct upstream;

/*
 * For a pool that is not shared: its member, which must exist; its upstream, or NULL if it has none
 * now.
 */
struct pool_member *pool_only_member(const struct pool *pool);
struct upstream *pool_own_upstream(const struct pool *pool);

/* How many processes must exist or be starting; and how many are kept even without work. */
size_t pool_upstreams_needed(const struct pool *pool);
size_t pool_least_upstreams(const struct pool *pool);
/* Whether the upstream is not needed. */
bool pool_can_spare(const struct upstream *upstream);
/*
 * Whether an upstream that gets no more calls, and has none, is finished: it works on no task, or
 * others wait for its slot. bridging.md §2.5
 */
bool pool_is_over(const struct upstream *upstream);
/* Whether somebody waits for it while it has no process, or only ones that get no more calls. */
bool pool_is_starved(const struct pool *pool);
/* Whether it may take another call or list now, regardless of the length of its queue. */
bool pool_may_load(const struct upstream *upstream, bool is_list);
/* The least loaded upstream with room for a request of `size` bytes; NULL: none. */
struct upstream *pool_choose(const struct pool *pool, size_t size, bool is_list);
/* The upstream of this process, if it serves; NULL: none in the pool. */
struct upstream *pool_find_upstream(const struct pool *pool, uint64_t child_number);
/* Whether calls or list requests wait for an upstream. */
bool pool_is_waited_for(const struct pool *pool);

/* The principal whose processes the upstream's are; NULL: everybody's, or nobody's. */
const struct principal *pool_principal_of(const struct upstream *upstream);

#endif
