/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that wait for a child, fairly: whoever has many gets one turn after the other with those who have
 * few. How many there may be, and for how long, is the owner's rule. bridging.md §1.4.
 */
#ifndef MCPGATED_ROUTER_QUEUE_H
#define MCPGATED_ROUTER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"

struct call;

struct queue {
	struct list fairness_keys; /* those with calls; the first is the next to have its turn */
	size_t count;
	size_t bytes; /* of the requests */
};

enum queue_measure { QUEUE_CALLS, QUEUE_BYTES };

void queue_init(struct queue *queue);
static inline bool queue_is_empty(const struct queue *queue)
{
	return queue->count == 0;
}
/* Appends a call with its body; `who` tells those apart who take turns. */
void queue_push(struct queue *queue, struct call *call, const void *who);
/*
 * The newest call of the fairness key that has most, if that is more than `who` has with `more` in addition; else
 * NULL. Where the queue is full, it goes instead of his: nobody keeps the others out.
 */
struct call *queue_find_excess(const struct queue *queue, const void *who,
			       enum queue_measure measure, size_t more);
/* The call whose turn it is. The queue is not empty. */
struct call *queue_first(const struct queue *queue);
/* Takes out a call; its fairness key's turn is over. Nothing if it is in no queue. */
void queue_remove(struct queue *queue, struct call *call);

#endif
