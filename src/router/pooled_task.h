/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of 2025-11-25 where the sessions of one principal share processes. Task ids are sealed for
 * the sessions (running_tasks.h) and opened for the servers; a list of tasks continues from one process
 * to the next. UTIL-TASK-02, -03, bridging.md §2.5
 */
#ifndef MCPGATED_ROUTER_POOLED_TASK_H
#define MCPGATED_ROUTER_POOLED_TASK_H

#include <stdbool.h>

#include "base/buf.h"
#include "jsonrpc/scan.h"
#include "router/convert.h"

/* On one page of tasks/list; a longer page is not passed on. */
#define POOLED_TASK_PAGE_MAX 1000

struct call;
struct client;
struct pool;
struct upstream;

/* Whether the server of this process, which serves, may have such tasks. */
bool pooled_task_is_possible(const struct upstream *upstream);

/*
 * As in convert.h, each of these returns `env` itself if nothing changes. This one converts the
 * response to a call, and notes what it says about a task (running_tasks.h). NULL: it must not be
 * passed on.
 */
const struct envelope *pooled_task_response(struct convert *convert, const struct call *call,
					    const struct envelope *env);
/* A request or notification from the server. */
const struct envelope *pooled_task_message(struct convert *convert, const struct upstream *upstream,
					   const struct envelope *env);
/* A session's answer to that process. */
const struct envelope *pooled_task_answer(struct convert *convert, const struct client *client,
					  const struct upstream *upstream,
					  const struct envelope *env);
/* The id of the task that a server message is related to, as the server wrote it; or absent. */
struct json pooled_task_related(const struct envelope *env);

/* The pool's first process, by number, from `child` on that has had tasks; NULL: none. */
struct upstream *pooled_task_next(const struct pool *pool, uint64_t child);

#endif
