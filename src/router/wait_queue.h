/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of waiters, whatever they wait for: a turn for an upstream, the answer to another's
 * request, a handshake. A waiter is in at most one queue. The owner of the queue decides what
 * happens when a wait times out, and is told of waiters that leave on their own. Below: the queue in
 * which callers take turns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"

struct wait_queue;
struct waiter;

struct wait_queue_ops {
	/* The wait has timed out; the waiter is still in the queue. */
	void (*on_timeout)(struct wait_queue *queue, struct waiter *waiter);
	/* The waiter has left on its own; NULL: the owner need not know. */
	void (*on_left)(struct wait_queue *queue, struct waiter *waiter);
};

struct wait_queue {
	const struct wait_queue_ops *ops;
	struct list waiters; /* in order of arrival */
	size_t count;
	size_t bytes; /* kept by the waiters */
};

/* Embedded in whatever waits. Zeroed before use. */
struct waiter {
	struct list link;
	struct wait_queue *queue; /* NULL: not waiting */
	size_t bytes;             /* kept while it waits */
};

void wait_queue_init(struct wait_queue *queue, const struct wait_queue_ops *ops);
static inline bool wait_queue_is_empty(const struct wait_queue *queue)
{
	return queue->count == 0;
}
void wait_queue_append(struct wait_queue *queue, struct waiter *waiter, size_t bytes);
/* The queue must not be empty. */
struct waiter *wait_queue_first(const struct wait_queue *queue);
struct waiter *wait_queue_last(const struct wait_queue *queue);
/* For the owner: removes the waiter from its queue. */
void wait_queue_remove(struct waiter *waiter);

/* For the waiter's side: times out; leaves. No-ops if it is in no queue. */
void waiter_time_out(struct waiter *waiter);
void waiter_leave(struct waiter *waiter);

/* ---- fair queue ---- */

/*
 * A queue in which callers take turns: a caller with many waiters gets one turn per round, like a
 * caller with few. The owner decides how many may wait, and for how long. bridging.md §1.4.
 */

struct fair_queue;

struct fair_queue_ops {
	/* As in wait_queue_ops. */
	void (*on_timeout)(struct fair_queue *queue, struct waiter *waiter);
};

struct fair_queue {
	const struct fair_queue_ops *ops;
	struct list shares; /* one per waiting caller; the first has the next turn */
	size_t count;
	size_t bytes; /* kept by the waiters */
};

enum fair_queue_measure { FAIR_QUEUE_COUNT, FAIR_QUEUE_BYTES };

void fair_queue_init(struct fair_queue *queue, const struct fair_queue_ops *ops);
static inline bool fair_queue_is_empty(const struct fair_queue *queue)
{
	return queue->count == 0;
}
/* Appends a waiter; callers with different fairness keys take turns. */
void fair_queue_push(struct fair_queue *queue, struct waiter *waiter, const void *fairness_key,
		     size_t bytes);
/*
 * The newest waiter of the caller that has most, if that is more than the caller with this key
 * would have with `more` added; else NULL. When the queue is full, that waiter gives way to the new
 * one, so that no caller shuts out the others.
 */
struct waiter *fair_queue_find_excess(const struct fair_queue *queue, const void *fairness_key,
				      enum fair_queue_measure measure, size_t more);
/* The waiter whose turn it is. The queue must not be empty. */
struct waiter *fair_queue_first(const struct fair_queue *queue);
/* Removes the waiter whose turn it is and ends its caller's turn. */
struct waiter *fair_queue_take(struct fair_queue *queue);
