/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of sessions that have become tasks (2025-11-25). The response, a CreateTaskResult, ends the
 * call, but until the task is terminal its progress token is valid and it counts as in flight; and
 * what a shared process asks or reports about the task goes to the session that created it.
 * UTIL-PROG-02, UTIL-TASK-03, bridging.md §1.1 (4), §2.5
 */
#ifndef MCPGATED_ROUTER_RUNNING_TASKS_H
#define MCPGATED_ROUTER_RUNNING_TASKS_H

#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

struct call;
struct client;
struct in_flight;
struct upstream;

struct running_task {
	struct list link;            /* of the client's, oldest first */
	struct list of_pool;         /* of its pool's, likewise */
	struct client *client;       /* its creator */
	uint64_t child;              /* the process that works on it */
	uint64_t token;              /* as the server knows it: our id for the call */
	double progress;             /* the last value forwarded */
	struct in_flight *in_flight; /* the limit its call counts towards; NULL: none */
	struct slice client_token,
		task_id; /* JSON text, stored in `text`; the token may be empty */
	char text[];
};

/*
 * The server's response to a call still in flight: it may have become a task, or report one as
 * terminal.
 */
void running_tasks_note_response(struct call *call, const struct envelope *env);
/*
 * A server's statement of a task's state: the result of tasks/get or tasks/cancel, or params of a
 * notification.
 */
void running_tasks_note_status(const struct upstream *upstream, struct slice task);
/* The task of the upstream's pool with this token, or with this id; NULL: none. */
struct running_task *running_tasks_find(const struct upstream *upstream, struct json token);
struct running_task *running_tasks_find_named(const struct upstream *upstream, struct json id);
/* The client ends, or leaves its pool. */
void running_tasks_forget(struct client *client);

#endif
