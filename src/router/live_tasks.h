/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks that a process which is shared works on, of either era, as far as its server has told: meanwhile it is not
 * idle, although no request is in flight. A task counts until the server tells of its end, or tells nothing of it for a
 * while; where its result is to be asked for, until it was. So long its call counts as in flight. MOD-TASK-01, UTIL-TASK-01, bridging.md §2.5
 */
#ifndef MCPGATED_ROUTER_LIVE_TASKS_H
#define MCPGATED_ROUTER_LIVE_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* Of a process; of more, the one that was told of longest ago is forgotten. */
#define LIVE_TASKS_MAX 256
#define LIVE_TASKS_MS \
	(10 * 60 * 1000) /* without a word of a task; or its ttlMs (ttl), if that is less */

struct in_flight;
struct upstream;

/*
 * The server has said this of a task (JSON text): when it made it, in answer to tasks/get, in a notification. False: it
 * does not describe a task, and nothing is noted. Only for an upstream that serves.
 */
bool live_tasks_note(struct upstream *upstream, struct slice task);
/* The call that has become this task counts until the task is forgotten. Takes *in_flight, if the task is known, and sets it to NULL. */
void live_tasks_count(struct upstream *upstream, struct slice id, struct in_flight **in_flight);
/* How long what the server says of a task (JSON text) is good, in ms: its ttlMs (ttl), or LIVE_TASKS_MS. */
uint64_t live_tasks_kept_ms(const struct upstream *upstream, struct slice task);
/*
 * The result of this task, by its id as the server wrote it, has been given; or, with is_error, an error in its place, which
 * is the result of a task that the server has said to be over, and of another one says nothing.
 */
void live_tasks_end(struct upstream *upstream, struct slice id, bool is_error);
/* Whether the process works on this task, or its result was not given yet, as far as is known. */
bool live_tasks_has(const struct upstream *upstream, struct slice id);
/* Whether there has been any task in this process. */
bool live_tasks_had_some(const struct upstream *upstream);
/* Whether it works on any task, or somebody listens to one. */
bool live_tasks_has_some(const struct upstream *upstream);
/* It is closed. */
void live_tasks_forget(struct upstream *upstream);

#endif
