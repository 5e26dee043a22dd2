/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said of tasks of 2025-11-25 where the sessions of one principal share processes. The ids in it are sealed for its
 * sessions (task_id.h), and opened for its servers; a list of tasks goes from one process to the next.
 * UTIL-TASK-02, -03, bridging.md §2.5
 */
#ifndef MCPGATED_ROUTER_POOLED_TASK_H
#define MCPGATED_ROUTER_POOLED_TASK_H

#include <stdbool.h>

#include "base/buf.h"
#include "jsonrpc/scan.h"
#include "router/convert.h"

/* Of one page of tasks/list; a server that writes more of them has no words for a list. */
#define POOLED_TASK_PAGE_MAX 1000

struct call;
struct client;
struct pool;
struct upstream;

/* Whether the server of this process may have such, which serves. */
bool pooled_task_is_possible(const struct upstream *upstream);

/*
 * As in convert.h, each of these returns `env` itself where nothing is to be changed. The server's response to a call that it
 * was sent; what it says of a task is noted (live_tasks.h). NULL: that is nothing that may be said of a task.
 */
const struct envelope *pooled_task_response(struct convert *convert, const struct call *call,
					    const struct envelope *env);
/* What the server asks or tells. */
const struct envelope *pooled_task_message(struct convert *convert, const struct upstream *upstream,
					   const struct envelope *env);
/* What a session answers to that process. */
const struct envelope *pooled_task_answer(struct convert *convert, const struct client *client,
					  const struct upstream *upstream,
					  const struct envelope *env);
/* The id of the task that a message of the server says it is about, as the server wrote it; or absent. */
struct json pooled_task_related(const struct envelope *env);

/* Of the processes that have had tasks, the first one of the pool with this number or a higher one; NULL: none. */
struct upstream *pooled_task_next(const struct pool *pool, uint64_t child);

#endif
