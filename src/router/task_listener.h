/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The taskIds of subscriptions/listen at modern servers (SEP-2663). Each process that works on some of them is sent a
 * subscription of its own for this listener, whose id says whose a notification is. MOD-TASK-01, -02, bridging.md §2.4,
 * §2.5
 */
#ifndef MCPGATED_ROUTER_TASK_LISTENER_H
#define MCPGATED_ROUTER_TASK_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

/* Tasks of a listener; further ones are left out of what is acknowledged. */
#define TASK_LISTENER_MAX 64

struct call;
struct task_listener;
struct upstream;

struct task_listener_ops {
	/* Every process has agreed, or has not; or one has said something although others have not. */
	void (*on_settled)(struct task_listener *listener);
	/* A process that had agreed tells no more: its tasks are over, or to be asked about. */
	void (*on_over)(struct task_listener *listener);
};

/* All zeros: it listens to nothing. */
struct task_listener {
	const struct task_listener_ops *ops;
	struct call *call;     /* of the client that listens */
	struct list listening; /* to each process */
	size_t count;          /* of tasks */
	bool is_settled;
};

/* Notes the tasks that the linked call of a member of a pool has in its filter. */
void task_listener_init(struct task_listener *listener, const struct task_listener_ops *ops,
			struct call *call, struct slice filter);
/* Their processes are asked. False: there are none. Else one of the operations follows, later; or task_listener_settle. */
bool task_listener_begin(struct task_listener *listener);
/* Those who have not agreed by now are not waited for. Then messages may follow. */
void task_listener_settle(struct task_listener *listener);
/* Appends the ids that were agreed to, as the client wrote them, with commas between; nothing if there are none. */
void task_listener_append_ids(struct buf *out, const struct task_listener *listener);
/* The processes are told that nobody listens. Also for one that is all zeros. */
void task_listener_end(struct task_listener *listener);

/* A server's notification: whether it is about a listener. */
bool task_listener_take(struct upstream *upstream, const struct envelope *env);
/* The upstream is closed. */
void task_listener_lose(struct upstream *upstream);

#endif
