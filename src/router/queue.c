/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of fairness keys, each with its own calls in the order in which they came. */
#include "router/queue.h"

#include <stdlib.h>

#include "base/mem.h"
#include "router/call.h"

struct fairness_key {
	struct list link;
	struct list calls;
	size_t count;
	size_t bytes; /* of the requests */
	const void *who;
};

void queue_init(struct queue *queue)
{
	list_init(&queue->fairness_keys);
	queue->count = 0;
	queue->bytes = 0;
}

static struct fairness_key *fairness_key_find(const struct queue *queue, const void *who)
{
	LIST_FOREACH(node, &queue->fairness_keys) {
		struct fairness_key *fairness_key = container_of(node, struct fairness_key, link);

		if (fairness_key->who == who)
			return fairness_key;
	}
	return NULL;
}

static struct fairness_key *fairness_key_get(struct queue *queue, const void *who)
{
	struct fairness_key *fairness_key = fairness_key_find(queue, who);

	if (fairness_key != NULL)
		return fairness_key;
	fairness_key = mem_zalloc(sizeof(*fairness_key));
	fairness_key->who = who;
	list_init(&fairness_key->calls);
	list_append(&queue->fairness_keys, &fairness_key->link);
	return fairness_key;
}

void queue_push(struct queue *queue, struct call *call, const void *who)
{
	struct fairness_key *fairness_key = fairness_key_get(queue, who);

	call->fairness_key = fairness_key;
	list_append(&fairness_key->calls, &call->place);
	fairness_key->count++;
	fairness_key->bytes += call->body->text.n;
	queue->count++;
	queue->bytes += call->body->text.n;
}

static size_t fairness_key_weight(const struct fairness_key *fairness_key,
				  enum queue_measure measure)
{
	if (fairness_key == NULL)
		return 0;
	return measure == QUEUE_CALLS ? fairness_key->count : fairness_key->bytes;
}

struct call *queue_find_excess(const struct queue *queue, const void *who,
			       enum queue_measure measure, size_t more)
{
	size_t most = fairness_key_weight(fairness_key_find(queue, who), measure) + more;
	const struct fairness_key *largest = NULL;

	LIST_FOREACH(node, &queue->fairness_keys) {
		const struct fairness_key *fairness_key =
			container_of(node, struct fairness_key, link);

		if (fairness_key_weight(fairness_key, measure) <= most)
			continue;
		most = fairness_key_weight(fairness_key, measure);
		largest = fairness_key;
	}
	return largest != NULL ? container_of(largest->calls.prev, struct call, place) : NULL;
}

struct call *queue_first(const struct queue *queue)
{
	const struct fairness_key *fairness_key =
		container_of(queue->fairness_keys.next, struct fairness_key, link);

	return container_of(fairness_key->calls.next, struct call, place);
}

void queue_remove(struct queue *queue, struct call *call)
{
	struct fairness_key *fairness_key = call->fairness_key;

	if (fairness_key == NULL)
		return;
	call->fairness_key = NULL;
	list_remove(&call->place);
	fairness_key->count--;
	fairness_key->bytes -= call->body->text.n;
	queue->count--;
	queue->bytes -= call->body->text.n;
	list_remove(&fairness_key->link);
	if (list_is_empty(&fairness_key->calls))
		free(fairness_key);
	else
		list_append(&queue->fairness_keys, &fairness_key->link);
}
