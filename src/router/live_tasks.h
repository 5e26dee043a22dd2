/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks, of either era, that a shared process works on, as far as its server has reported:
 * while there are any, the process is not idle even with no request in flight. A task counts until
 * the server reports its end or says nothing about it for a while; where the result has to be
 * requested, until it was. Its call counts as in flight that long. MOD-TASK-01, UTIL-TASK-01,
 * bridging.md §2.5
 */
#ifndef MCPGATED_ROUTER_LIVE_TASKS_H
#define MCPGATED_ROUTER_LIVE_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* Per process; beyond that, the task reported least recently is forgotten. */
#define LIVE_TASKS_MAX 256
#define LIVE_TASKS_MS (10 * 60 * 1000) /* unless its ttlMs (ttl) is less */

struct in_flight;
struct upstream;

/*
 * Notes what the server said about a task (JSON text): on creating it, in answer to tasks/get, or
 * in a notification. False: this does not describe a task, and nothing was noted. Only for an
 * upstream that serves.
 */
bool live_tasks_note(struct upstream *upstream, struct slice task);
/*
 * The call that has become this task counts as in flight until the task is forgotten. If the task
 * is known, takes ownership of *in_flight and sets it to NULL.
 */
void live_tasks_count(struct upstream *upstream, struct slice id, struct in_flight **in_flight);
/*
 * How long a statement about a task (JSON text) is valid, in ms: its ttlMs (ttl), or LIVE_TASKS_MS.
 */
uint64_t live_tasks_kept_ms(const struct upstream *upstream, struct slice task);
/*
 * The result of this task (id as the server wrote it) has been delivered; or, with is_error, an
 * error instead, which is the result of a task that the server has reported as finished, and says
 * nothing about others.
 */
void live_tasks_end(struct upstream *upstream, struct slice id, bool is_error);
/* Whether the process works on this task or has not delivered its result, as far as is known. */
bool live_tasks_has(const struct upstream *upstream, struct slice id);
/* Whether there has ever been a task in this process. */
bool live_tasks_had_some(const struct upstream *upstream);
/* Whether it works on any task, or somebody listens to one. */
bool live_tasks_has_some(const struct upstream *upstream);
/* The upstream is closed. */
void live_tasks_forget(struct upstream *upstream);

#endif
