/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call counts for among those that its caller has in flight: at its server, and at the entry of tools.limits that is for
 * its tool, where there are such limits. A call that has become a task counts on, in the hands of who knows the task.
 * product.md §4, concurrency
 */
#ifndef MCPGATED_ROUTER_IN_FLIGHT_H
#define MCPGATED_ROUTER_IN_FLIGHT_H

#include <stdint.h>

#include "jsonrpc/scan.h"

struct client;
struct in_flight;

/*
 * It counts from now on. NULL: there is no limit that it counts for, or it never does: streams of changes, and requests about tasks.
 */
struct in_flight *in_flight_new(const struct client *client, const struct envelope *env);
/* It counts no longer than so many milliseconds from now, unless that is said again. Nothing for NULL. */
void in_flight_keep(struct in_flight *in_flight, uint64_t ms);
/* It has ended. Accepts a pointer to NULL; sets it to NULL. */
void in_flight_free(struct in_flight **in_flight);

#endif
