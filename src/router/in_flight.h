/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts a call as in flight for its caller: at its server and at the entry of tools.limits for its
 * tool, where such limits exist. A call that has become a task keeps counting, owned by whoever
 * tracks the task. It counts until the server has answered or its process is gone, although nobody
 * may wait for it any more: the server works on. mcpgated.yaml(5), concurrency
 */
#ifndef MCPGATED_ROUTER_IN_FLIGHT_H
#define MCPGATED_ROUTER_IN_FLIGHT_H

#include <stdint.h>

#include "jsonrpc/scan.h"

struct client;
struct in_flight;
struct upstream;

/*
 * Starts counting the call. NULL: no limit applies to it, or it is of a kind that never counts:
 * change streams and requests about tasks.
 */
struct in_flight *in_flight_new(const struct client *client, const struct envelope *env);
/* Stops counting after this many milliseconds, unless extended by another call. No-op for NULL. */
void in_flight_keep(struct in_flight *in_flight, uint64_t ms);
/*
 * It is at this server, as the request with this id, or as a task (0): no longer than its process
 * it counts. No-op for NULL.
 */
void in_flight_bind(struct in_flight *in_flight, struct upstream *upstream, uint64_t id);
/*
 * Nobody waits for it any more: counts until the request is answered, the process is gone or `ms`
 * have passed. Must be bound, and may have ended. Accepts a pointer to NULL; sets it to NULL.
 */
void in_flight_leave(struct in_flight **in_flight, uint64_t ms);
/* The call has ended: stops counting. Accepts a pointer to NULL; sets it to NULL. */
void in_flight_free(struct in_flight **in_flight);

#endif
