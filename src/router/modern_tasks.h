/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What modern clients are told of tasks at modern servers (SEP-2663): created tasks, the answers to
 * tasks/get, tasks/update and tasks/cancel, notifications/tasks; and the taskIds of
 * subscriptions/listen. Each process that works on some of these gets a subscription for the
 * listener, whose id routes notifications. MOD-TASK-01, -02, bridging.md §2.4, §2.5
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "router/convert.h"

struct call;
struct client;
struct router;
struct server;
struct task_listener;
struct upstream;

/* ---- task id (2026-07-28) ---- */

/*
 * Task ids as clients see them: the server's id, sealed for this server and caller together with the
 * process that works on the task. An id of another caller or server, or an invented one, names no
 * task. The same server id always gives the same client id. MOD-TASK-02, bridging.md §1.1 (9), §2.5
 */

struct task_id {
	uint64_t child;    /* the process that works on it; numbers are never reused */
	struct slice own;  /* the server's id, a JSON string, stored in `text` */
	struct slice name; /* the client's id, likewise */
	char text[];
};

/*
 * Decodes a client's form of an id; the caller frees the result. NULL: this gateway has not sealed
 * it for this caller and server; err is only for the log.
 */
struct task_id *task_id_open(const struct client *client, struct json name, struct error *err);
/* Logs that `count` of the client's ids were refused, the last one for the reason in err. */
void task_id_log_refused(const struct client *client, size_t count, const struct error *err);

/* ---- servers and processes ---- */

/*
 * Whether this server knows the task methods of 2026-07-28. Until one of its processes has said so,
 * it may, unless it is legacy.
 */
bool modern_tasks_are_known(const struct router *router, const struct server *server);
/*
 * The process that works on a task of this client, whose token has these claims, in whichever pool
 * of its caller; NULL: it is gone.
 */
struct upstream *modern_tasks_find_upstream(const struct client *client, struct slice claims,
					    const struct task_id *id);
/* Whether that process served the gateway before, and does not serve yet. bridging.md §4.2 */
bool modern_tasks_is_coming(const struct client *client, const struct task_id *id);

/* ---- statements about tasks ---- */

/*
 * Appends the result (JSON text), of this kind, of a call that is about a task or has become one;
 * in the latter case the task counts as in flight from then on. False: it must not be passed on, or
 * not to this client, and nothing was appended.
 */
bool task_result_append(struct buf *out, struct call *call, enum modern_result kind,
			struct slice result);

/* ---- subscriptions/listen ---- */

/* Tasks per listener; further ones are left out of the acknowledgment. */
#define TASK_LISTENER_MAX 64

struct task_listener_ops {
	/* Every process has agreed or refused; or one has sent something before the others have. */
	void (*on_settled)(struct task_listener *listener);
	/* A process that had agreed sends no more: its tasks are over, or have to be polled. */
	void (*on_over)(struct task_listener *listener);
};

/* Zeroed: it listens to nothing. */
struct task_listener {
	const struct task_listener_ops *ops;
	struct call *call;     /* of the listening client */
	struct list listening; /* one entry per process */
	size_t count;          /* of tasks */
	bool is_settled;
};

/* Collects the tasks in the filter of the linked call of a pool member. */
void task_listener_init(struct task_listener *listener, const struct task_listener_ops *ops,
			struct call *call, struct slice filter);
/*
 * Asks their processes. False: there are none. Otherwise a callback follows later, unless
 * task_listener_settle is called.
 */
bool task_listener_begin(struct task_listener *listener);
/* Stops waiting for processes that have not agreed by now. After that, messages may follow. */
void task_listener_settle(struct task_listener *listener);
/*
 * Appends the acknowledged ids, as the client wrote them, separated by commas; nothing if there are
 * none.
 */
void task_listener_append_ids(struct buf *out, const struct task_listener *listener);
/* Tells the processes that nobody listens. No-op for a zeroed listener. */
void task_listener_end(struct task_listener *listener);

/* Handles a server notification. Returns whether it is for a listener. */
bool task_listener_take(struct upstream *upstream, const struct envelope *env);
/* The upstream is closed. */
void task_listener_lose(struct upstream *upstream);
