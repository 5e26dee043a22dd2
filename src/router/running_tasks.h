/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress tokens of a session's calls that have become tasks (2025-11-25): the response, a CreateTaskResult, ends the
 * call, but its token is good until the task is terminal. All else about tasks passes between a session and the server
 * that it has for itself. UTIL-PROG-02, bridging.md §1.1 (4)
 */
#ifndef MCPGATED_ROUTER_RUNNING_TASKS_H
#define MCPGATED_ROUTER_RUNNING_TASKS_H

#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

struct call;
struct client;
struct upstream;

struct running_task {
	struct list link;                   /* of the client's, the oldest first */
	uint64_t child;                     /* that works on it */
	uint64_t token;                     /* as the server knows it: our id of the call */
	double progress;                    /* the last that was forwarded */
	struct slice client_token, task_id; /* JSON text, in what follows */
	char text[];
};

/* The server has answered this call, which is still in flight: it may have become a task, or say that one is terminal. */
void running_tasks_note_response(struct call *call, const struct envelope *env);
/* notifications/tasks/status for this client. */
void running_tasks_note_status(struct client *client, struct slice params);
/* The task for which the server uses this token; NULL: none of the client's. */
struct running_task *running_tasks_find(const struct client *client,
					const struct upstream *upstream, struct json token);
/* The client ends. */
void running_tasks_forget(struct client *client);

#endif
