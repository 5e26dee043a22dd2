/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of sessions that have become tasks (2025-11-25): the response, a CreateTaskResult, ends the call, but its
 * progress token is good, and it counts as in flight, until the task is terminal; and what a process that several sessions share asks or tells of the
 * task is for the session that made it. UTIL-PROG-02, UTIL-TASK-03, bridging.md §1.1 (4), §2.5
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
	struct list link;                   /* of the client's, the oldest first */
	struct list of_pool;                /* of its pool's likewise */
	struct client *client;              /* that made it */
	uint64_t child;                     /* that works on it */
	uint64_t token;                     /* as the server knows it: our id of the call */
	double progress;                    /* the last that was forwarded */
	struct in_flight *in_flight;        /* what its call counts for; NULL: nothing */
	struct slice client_token, task_id; /* JSON text, in what follows; the token may be empty */
	char text[];
};

/* The server has answered this call, which is still in flight: it may have become a task, or say that one is terminal. */
void running_tasks_note_response(struct call *call, const struct envelope *env);
/* What a server says of how a task is: the result of tasks/get and tasks/cancel, the params of a notification. */
void running_tasks_note_status(const struct upstream *upstream, struct slice task);
/* The task for which the server uses this token, and that of this id; NULL: none of its pool's. */
struct running_task *running_tasks_find(const struct upstream *upstream, struct json token);
struct running_task *running_tasks_find_named(const struct upstream *upstream, struct json id);
/* The client ends, or leaves its pool. */
void running_tasks_forget(struct client *client);

#endif
