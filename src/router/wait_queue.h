/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody waits for, whatever it is: a turn for an upstream, the answer to another's request, a handshake. Whoever
 * waits stands in at most one queue; who owns the queue decides what happens when the wait is too long, and hears of
 * those who leave by themselves.
 */
#ifndef MCPGATED_ROUTER_WAIT_QUEUE_H
#define MCPGATED_ROUTER_WAIT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"

struct wait_queue;
struct waiter;

struct wait_queue_ops {
	/* It has waited for as long as it was to: it is still in the queue. */
	void (*on_timeout)(struct wait_queue *queue, struct waiter *waiter);
	/* It has left by itself; NULL: the owner need not know. */
	void (*on_left)(struct wait_queue *queue, struct waiter *waiter);
};

struct wait_queue {
	const struct wait_queue_ops *ops;
	struct list waiters; /* in the order in which they came */
	size_t count;
	size_t bytes; /* that they keep */
};

/* Embedded in what waits. All zeros to begin with. */
struct waiter {
	struct list link;
	struct wait_queue *queue; /* NULL: it waits for nothing */
	size_t bytes;             /* that it keeps meanwhile */
};

void wait_queue_init(struct wait_queue *queue, const struct wait_queue_ops *ops);
static inline bool wait_queue_is_empty(const struct wait_queue *queue)
{
	return queue->count == 0;
}
void wait_queue_append(struct wait_queue *queue, struct waiter *waiter, size_t bytes);
/* The queue is not empty. */
struct waiter *wait_queue_first(const struct wait_queue *queue);
struct waiter *wait_queue_last(const struct wait_queue *queue);
/* The owner takes it out of its queue. */
void wait_queue_remove(struct waiter *waiter);
/* Moves all of `from` behind those of `to`. */
void wait_queue_move(struct wait_queue *to, struct wait_queue *from);

/* For the one who waits: it has waited too long; it leaves, if it is in a queue. */
void waiter_time_out(struct waiter *waiter);
void waiter_leave(struct waiter *waiter);

#endif
