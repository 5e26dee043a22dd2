/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A modern server's statements about tasks, as a modern client gets them: a created task, the
 * answers to tasks/get, tasks/update and tasks/cancel, notifications/tasks. MOD-TASK-01, -02,
 * bridging.md §2.5
 */
#ifndef MCPGATED_ROUTER_TASK_RESULT_H
#define MCPGATED_ROUTER_TASK_RESULT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "router/modern_server.h"

struct call;
struct client;
struct task_id;
struct upstream;

/*
 * Appends the result (JSON text), of this kind, of a call that is about a task or has become one;
 * in the latter case the task counts as in flight from then on. False: it must not be passed on, or
 * not to this client, and nothing was appended.
 */
bool task_result_append(struct buf *out, struct call *call, enum modern_result kind,
			struct slice result);
/* The same for the params of notifications/tasks about this task. */
bool task_result_append_told(struct buf *out, const struct client *client,
			     struct upstream *upstream, const struct task_id *id,
			     struct slice params);

#endif
