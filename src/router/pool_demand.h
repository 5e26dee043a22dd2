/* SPDX-License-Identifier: Apache-2.0 */
/* How many processes a pool needs, and which of them has room: looks only, and changes nothing. bridging.md §1.4, §1.5. */
#ifndef MCPGATED_ROUTER_POOL_DEMAND_H
#define MCPGATED_ROUTER_POOL_DEMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool;
struct pool_member;
struct upstream;

/* Of a pool that is not shared: its member, which is there; and its upstream, or NULL: none just now. */
struct pool_member *pool_only_member(const struct pool *pool);
struct upstream *pool_own_upstream(const struct pool *pool);

/* How many processes have to be on their way, and how many are kept whatever there is to do. */
size_t pool_upstreams_needed(const struct pool *pool);
size_t pool_least_upstreams(const struct pool *pool);
/* Whether nobody would miss it. */
bool pool_can_spare(const struct upstream *upstream);
/*
 * Whether one without calls that gets no more has nothing left to do: it works on no task, or others wait for its place.
 * bridging.md §2.5
 */
bool pool_is_over(const struct upstream *upstream);
/* Whether it is waited for, and has no process at all or only such as get no more calls. */
bool pool_is_starved(const struct pool *pool);
/* Whether it may work on another call, or list, now; how long its queue is aside. */
bool pool_may_load(const struct upstream *upstream, bool is_list);
/* The upstream with the least to do that has room for a request of `size` bytes; NULL: none has. */
struct upstream *pool_choose(const struct pool *pool, size_t size, bool is_list);
/* The upstream of this process, if it serves; NULL: none of the pool. */
struct upstream *pool_find_upstream(const struct pool *pool, uint64_t child_number);
/* Whether calls or lists wait for an upstream. */
bool pool_is_waited_for(const struct pool *pool);

/* Whose the processes of an upstream are; NULL: everybody's, or nobody's. */
const struct principal *pool_principal_of(const struct upstream *upstream);

#endif
