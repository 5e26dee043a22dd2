/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks. Those of 2025-11-25 are between a session and its own process, and pass as they are; those
 * of 2026-07-28 are in shared processes. The response that makes a call a task ends the call, but it
 * counts as in flight until the task is terminal. UTIL-PROG-02, UTIL-TASK-01, MOD-TASK-01, -02,
 * bridging.md §1.1 (4, 9), §2.5
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

struct call;
struct client;
struct in_flight;
struct upstream;

/* ---- tasks of sessions (2025-11-25) ---- */

struct running_task {
	struct list link;            /* of the client's, oldest first */
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
/* The task of this process of a session whose progress has this token; NULL: none. */
struct running_task *running_tasks_find(const struct upstream *upstream, struct json token);
/* The client ends, or leaves its pool. */
void running_tasks_forget(struct client *client);

/* ---- live tasks (2026-07-28) ---- */

/*
 * The tasks that a shared process works on, as far as its server has reported: while there are any,
 * the process is not idle even with no request in flight. A task counts until the server reports its
 * end or says nothing about it for a while. Its call counts as in flight that long. MOD-TASK-01,
 * bridging.md §2.5
 */

/* Per process; beyond that, the task reported least recently is forgotten. */
#define LIVE_TASKS_MAX 256
#define LIVE_TASKS_MS (10 * 60 * 1000) /* unless its ttlMs is less */

/*
 * Notes what the server said about a task (JSON text): on creating it, in answer to tasks/get, or
 * in a notification. False: this does not describe a task, and nothing was noted. Only for an
 * upstream that serves.
 */
bool live_tasks_note(struct upstream *upstream, struct slice task);
/*
 * The call that has become this task counts as in flight until the task is forgotten. If the task
 * is known, takes ownership of *in_flight and sets it to NULL.
 */
void live_tasks_count(struct upstream *upstream, struct slice id, struct in_flight **in_flight);
/* Whether it works on any task, or somebody listens to one. */
bool live_tasks_has_some(const struct upstream *upstream);
/* The upstream is closed. */
void live_tasks_forget(struct upstream *upstream);

/*
 * Of a server's id, as written; a longer one is invalid. Sealed, the id still fits into a header
 * field.
 */
#define TASK_ID_BYTES_MAX 1024
/* Whether a server may have given a task this id. */
bool task_id_is_fit(struct json own);
