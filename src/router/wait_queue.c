/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariant: count and bytes are those of the waiters in the list, and each points back at the
 * queue.
 */
#include "router/wait_queue.h"

void wait_queue_init(struct wait_queue *queue, const struct wait_queue_ops *ops)
{
	*queue = (struct wait_queue){ .ops = ops };
	list_init(&queue->waiters);
}

void wait_queue_append(struct wait_queue *queue, struct waiter *waiter, size_t bytes)
{
	CHECK(waiter->queue == NULL);
	waiter->queue = queue;
	waiter->bytes = bytes;
	list_append(&queue->waiters, &waiter->link);
	queue->count++;
	queue->bytes += bytes;
}

struct waiter *wait_queue_first(const struct wait_queue *queue)
{
	CHECK(queue->count > 0);
	return container_of(queue->waiters.next, struct waiter, link);
}

struct waiter *wait_queue_last(const struct wait_queue *queue)
{
	CHECK(queue->count > 0);
	return container_of(queue->waiters.prev, struct waiter, link);
}

void wait_queue_remove(struct waiter *waiter)
{
	struct wait_queue *queue = waiter->queue;

	CHECK(queue != NULL && queue->count > 0 && queue->bytes >= waiter->bytes);
	list_remove(&waiter->link);
	queue->count--;
	queue->bytes -= waiter->bytes;
	waiter->queue = NULL;
	CHECK((queue->count == 0) == list_is_empty(&queue->waiters));
}

void wait_queue_move(struct wait_queue *to, struct wait_queue *from)
{
	while (!wait_queue_is_empty(from)) {
		struct waiter *waiter = wait_queue_first(from);

		wait_queue_remove(waiter);
		wait_queue_append(to, waiter, waiter->bytes);
	}
}

void waiter_time_out(struct waiter *waiter)
{
	CHECK(waiter->queue != NULL);
	waiter->queue->ops->on_timeout(waiter->queue, waiter);
}

void waiter_leave(struct waiter *waiter)
{
	struct wait_queue *queue = waiter->queue;

	if (queue == NULL)
		return;
	wait_queue_remove(waiter);
	if (queue->ops->on_left != NULL)
		queue->ops->on_left(queue, waiter);
}
