/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of parties, each with its own calls in the order in which they came. */
#include "router/queue.h"

#include <stdlib.h>

#include "base/mem.h"
#include "router/call.h"

struct party {
	struct list link;
	struct list calls;
	size_t count;
	size_t bytes; /* of the requests */
	const void *who;
};

void queue_init(struct queue *queue)
{
	list_init(&queue->parties);
	queue->count = 0;
	queue->bytes = 0;
}

static struct party *party_find(const struct queue *queue, const void *who)
{
	LIST_FOREACH(node, &queue->parties) {
		struct party *party = container_of(node, struct party, link);

		if (party->who == who)
			return party;
	}
	return NULL;
}

static struct party *party_get(struct queue *queue, const void *who)
{
	struct party *party = party_find(queue, who);

	if (party != NULL)
		return party;
	party = mem_zalloc(sizeof(*party));
	party->who = who;
	list_init(&party->calls);
	list_append(&queue->parties, &party->link);
	return party;
}

void queue_push(struct queue *queue, struct call *call, const void *who)
{
	struct party *party = party_get(queue, who);

	call->party = party;
	list_append(&party->calls, &call->place);
	party->count++;
	party->bytes += call->body->text.n;
	queue->count++;
	queue->bytes += call->body->text.n;
}

static size_t party_weight(const struct party *party, enum queue_measure measure)
{
	if (party == NULL)
		return 0;
	return measure == QUEUE_CALLS ? party->count : party->bytes;
}

struct call *queue_find_excess(const struct queue *queue, const void *who,
			       enum queue_measure measure, size_t more)
{
	size_t most = party_weight(party_find(queue, who), measure) + more;
	const struct party *largest = NULL;

	LIST_FOREACH(node, &queue->parties) {
		const struct party *party = container_of(node, struct party, link);

		if (party_weight(party, measure) <= most)
			continue;
		most = party_weight(party, measure);
		largest = party;
	}
	return largest != NULL ? container_of(largest->calls.prev, struct call, place) : NULL;
}

struct call *queue_first(const struct queue *queue)
{
	const struct party *party = container_of(queue->parties.next, struct party, link);

	return container_of(party->calls.next, struct call, place);
}

void queue_remove(struct queue *queue, struct call *call)
{
	struct party *party = call->party;

	if (party == NULL)
		return;
	call->party = NULL;
	list_remove(&call->place);
	party->count--;
	party->bytes -= call->body->text.n;
	queue->count--;
	queue->bytes -= call->body->text.n;
	list_remove(&party->link);
	if (list_is_empty(&party->calls))
		free(party);
	else
		list_append(&queue->parties, &party->link);
}
