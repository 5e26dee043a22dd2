/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue in which callers take turns: whoever has many waiters gets one turn after the other with those who have
 * few. How many there may be, and for how long, is the owner's rule. bridging.md §1.4.
 */
#ifndef MCPGATED_ROUTER_FAIR_QUEUE_H
#define MCPGATED_ROUTER_FAIR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "router/wait_queue.h"

struct fair_queue;

struct fair_queue_ops {
	/* As of a wait_queue. */
	void (*on_timeout)(struct fair_queue *queue, struct waiter *waiter);
};

struct fair_queue {
	const struct fair_queue_ops *ops;
	struct list shares; /* of callers who wait; the first has the next turn */
	size_t count;
	size_t bytes; /* that the waiters keep */
};

enum fair_queue_measure { FAIR_QUEUE_COUNT, FAIR_QUEUE_BYTES };

void fair_queue_init(struct fair_queue *queue, const struct fair_queue_ops *ops);
static inline bool fair_queue_is_empty(const struct fair_queue *queue)
{
	return queue->count == 0;
}
/* Appends; callers of different fairness keys take turns. */
void fair_queue_push(struct fair_queue *queue, struct waiter *waiter, const void *fairness_key,
		     size_t bytes);
/*
 * The newest waiter of the caller who has most, if that is more than the caller of this key has with `more` in addition;
 * else NULL. Where the queue is full, that one goes for the new one: nobody keeps the others out.
 */
struct waiter *fair_queue_find_excess(const struct fair_queue *queue, const void *fairness_key,
				      enum fair_queue_measure measure, size_t more);
/* The one whose turn it is. The queue is not empty. */
struct waiter *fair_queue_first(const struct fair_queue *queue);
/* Takes the one whose turn it is out of the queue; its caller's turn is over. */
struct waiter *fair_queue_take(struct fair_queue *queue);

#endif
