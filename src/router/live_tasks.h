/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks that a process works on, as far as its modern server has told: while it does, it is not idle, although no request is in
 * flight. What is told of a task that ends it, or nothing for a while, ends that. MOD-TASK-01, bridging.md §2.5
 */
#ifndef MCPGATED_ROUTER_LIVE_TASKS_H
#define MCPGATED_ROUTER_LIVE_TASKS_H

#include <stdbool.h>

#include "base/slice.h"

#define LIVE_TASKS_MAX \
	256 /* of a process; then the one that was told of longest ago is forgotten */
#define LIVE_TASKS_MS (10 * 60 * 1000) /* without a word of a task; or its ttlMs, if that is less */

struct upstream;

/*
 * The server has said this of a task (JSON text): the one that it made, the answer to tasks/get, a notification. False: it is not the
 * description of a task, and nothing is noted. Only of an upstream that serves.
 */
bool live_tasks_note(struct upstream *upstream, struct slice task);
/* Whether it works on any, or somebody listens to that. */
bool live_tasks_has_some(const struct upstream *upstream);
/* It is closed. */
void live_tasks_forget(struct upstream *upstream);

#endif
