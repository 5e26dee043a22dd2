/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests about a task of the modern era (tasks/get, tasks/update, tasks/cancel): each is for the process that works on
 * that task, in whichever of its caller's pools that is. MOD-TASK-02, bridging.md §1.4, §2.5
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
/* The process that works on a task of this client's, whose token has these claims; NULL: it has gone. */
struct upstream *task_call_find_upstream(const struct client *client, struct slice claims,
					 const struct task_id *id);
/*
 * Whether this server knows the methods of tasks. Until one of its processes has told, it may know them, unless it is of
 * the legacy era.
 */
bool task_call_is_known(const struct router *router, const struct server *server);

#endif
