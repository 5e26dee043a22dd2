/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests about tasks where processes are shared: each goes to the process that works on the task.
 * A modern one (tasks/get, tasks/update, tasks/cancel) finds it in any of its caller's pools, one
 * of a session (2025-11-25: tasks/get, tasks/result, tasks/cancel, tasks/list) in its own.
 * MOD-TASK-02, UTIL-TASK-02, bridging.md §1.4, §2.5
 */
#ifndef MCPGATED_ROUTER_TASK_CALL_H
#define MCPGATED_ROUTER_TASK_CALL_H

#include <stdbool.h>

#include "jsonrpc/scan.h"
#include "obs/reason.h"
#include "router/pool.h"

struct call;
struct client;
struct router;
struct server;
struct task_id;

/*
 * Adds `member`, whose client sends the linked call, to the pool that has the task. REASON_DONE: no
 * such task, and the call has been answered; else REASON_NONE, or why the call fails.
 */
enum reason task_call_join(struct pool_member *member, struct call *call,
			   const struct envelope *env) must_check;
/* Sends a session's linked call about tasks to the process that has them, or answers it. */
void task_call_forward(struct call *call, const struct envelope *env);
/*
 * The process that works on a task of this client, whose token has these claims; NULL: it is gone.
 */
struct upstream *task_call_find_upstream(const struct client *client, struct slice claims,
					 const struct task_id *id);
/*
 * Whether this server knows the task methods. Until one of its processes has said so, it may,
 * unless it is legacy.
 */
bool task_call_is_known(const struct router *router, const struct server *server);

#endif
