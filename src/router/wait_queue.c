/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariant: count and bytes are those of the waiters in the list, and each points back at the
 * queue.
 */
#include "router/wait_queue.h"

#include <stdlib.h>

#include "base/mem.h"

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

/* ---- fair queue ---- */

/* A ring of callers, each with a wait queue of its own, which exists as long as it has waiters. */

/* What one caller has in the queue. */
struct share {
	struct wait_queue waiters;
	struct list link;
	struct fair_queue *queue;
	const void *fairness_key;
};

void fair_queue_init(struct fair_queue *queue, const struct fair_queue_ops *ops)
{
	*queue = (struct fair_queue){ .ops = ops };
	list_init(&queue->shares);
}

/* One of the caller's waiters has left; its turn is over. */
static void share_on_left(struct wait_queue *waiters, struct waiter *waiter)
{
	struct share *share = container_of(waiters, struct share, waiters);
	struct fair_queue *queue = share->queue;

	CHECK(queue->count > 0 && queue->bytes >= waiter->bytes);
	queue->count--;
	queue->bytes -= waiter->bytes;
	list_remove(&share->link);
	if (wait_queue_is_empty(waiters))
		free(share);
	else
		list_append(&queue->shares, &share->link);
}

static void share_on_timeout(struct wait_queue *waiters, struct waiter *waiter)
{
	struct fair_queue *queue = container_of(waiters, struct share, waiters)->queue;

	queue->ops->on_timeout(queue, waiter);
}

static const struct wait_queue_ops share_ops = {
	.on_timeout = share_on_timeout,
	.on_left = share_on_left,
};

static struct share *share_find(const struct fair_queue *queue, const void *fairness_key)
{
	LIST_EACH(struct share, share, &queue->shares, link)
		if (share->fairness_key == fairness_key)
			return share;
	return NULL;
}

void fair_queue_push(struct fair_queue *queue, struct waiter *waiter, const void *fairness_key,
		     size_t bytes)
{
	struct share *share = share_find(queue, fairness_key);

	if (share == NULL) {
		share = mem_zalloc(sizeof(*share));
		share->queue = queue;
		share->fairness_key = fairness_key;
		wait_queue_init(&share->waiters, &share_ops);
		list_append(&queue->shares, &share->link);
	}
	wait_queue_append(&share->waiters, waiter, bytes);
	queue->count++;
	queue->bytes += bytes;
}

static size_t share_measure(const struct share *share, enum fair_queue_measure measure)
{
	if (share == NULL)
		return 0;
	return measure == FAIR_QUEUE_COUNT ? share->waiters.count : share->waiters.bytes;
}

struct waiter *fair_queue_find_excess(const struct fair_queue *queue, const void *fairness_key,
				      enum fair_queue_measure measure, size_t more)
{
	size_t most = share_measure(share_find(queue, fairness_key), measure) + more;
	const struct share *largest = NULL;

	LIST_EACH(const struct share, share, &queue->shares, link) {
		if (share_measure(share, measure) <= most)
			continue;
		most = share_measure(share, measure);
		largest = share;
	}
	return largest != NULL ? wait_queue_last(&largest->waiters) : NULL;
}

struct waiter *fair_queue_first(const struct fair_queue *queue)
{
	CHECK(queue->count > 0);
	return wait_queue_first(&container_of(queue->shares.next, struct share, link)->waiters);
}

struct waiter *fair_queue_take(struct fair_queue *queue)
{
	struct waiter *waiter = fair_queue_first(queue);

	waiter_leave(waiter);
	return waiter;
}
