/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests about tasks where processes are shared: each is for the process that works on the task. One of the modern era
 * (tasks/get, tasks/update, tasks/cancel) finds it in whichever of its caller's pools that is, one of a session
 * (2025-11-25: tasks/get, tasks/result, tasks/cancel, tasks/list) in its own. MOD-TASK-02, UTIL-TASK-02, bridging.md §1.4,
 * §2.5
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
 * Makes `member`, whose client sends the linked call, one of the pool that has the task. REASON_DONE: there is no such
 * task, and the call has been answered; else REASON_NONE, or why it fails.
 */
enum reason task_call_join(struct pool_member *member, struct call *call,
			   const struct envelope *env) must_check;
/* The linked call of a session about tasks goes to the process that has them, or is answered. */
void task_call_forward(struct call *call, const struct envelope *env);
/* The process that works on a task of this client's, whose token has these claims; NULL: it has gone. */
struct upstream *task_call_find_upstream(const struct client *client, struct slice claims,
					 const struct task_id *id);
/*
 * Whether this server knows the methods of tasks. Until one of its processes has told, it may know them, unless it is of
 * the legacy era.
 */
bool task_call_is_known(const struct router *router, const struct server *server);

#endif
