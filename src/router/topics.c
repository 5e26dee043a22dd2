/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table by a seeded hash, with chains: clients choose the URIs, there may be many, and servers may name one after the
 * other. Those above a URI are looked up one by one: its beginnings that end before or with a slash.
 */
#include "router/topics.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"

void topics_init(struct topics *topics)
{
	*topics = (struct topics){ .count = 0 };
	list_init(&topics->all);
}

void topics_fini(struct topics *topics)
{
	while (!list_is_empty(&topics->all))
		topics_remove(topics, container_of(topics->all.next, struct topic, link));
	map_fini(&topics->by_key);
}

struct slice topic_uri(const struct topic *topic)
{
	return slice_of(topic->uri, topic->length);
}

static struct topic *find_by_key(const struct topics *topics, uint64_t key, struct slice uri)
{
	struct topic *topic = map_find(&topics->by_key, key);

	while (topic != NULL && !slice_is_equal(topic_uri(topic), uri))
		topic = topic->next;
	return topic;
}

struct topic *topics_find(const struct topics *topics, struct slice uri)
{
	return find_by_key(topics, text_hash(topics->seed, uri), uri);
}

bool topics_have_room(const struct topics *topics, size_t size)
{
	return topics->count < TOPICS_MAX && topics->bytes + size <= TOPICS_BYTES_MAX;
}

struct topic *topics_add(struct topics *topics, struct slice uri, struct call *first)
{
	struct topic *topic = mem_alloc(sizeof(*topic) + uri.n);

	if (topics->seed == 0)
		random_bytes(&topics->seed, sizeof(topics->seed));
	topic->key = text_hash(topics->seed, uri);
	topic->first = first;
	topic->subscribers = 0;
	topic->length = uri.n;
	memcpy(topic->uri, uri.p, uri.n);
	list_init(&topic->waiting);
	list_append(&topics->all, &topic->link);
	topic->next = map_remove(&topics->by_key, topic->key);
	map_insert(&topics->by_key, topic->key, topic);
	topics->count++;
	topics->bytes += uri.n;
	return topic;
}

/* Takes it out of the chain of its key. */
static void unchain(struct topics *topics, struct topic *topic)
{
	struct topic *first = map_remove(&topics->by_key, topic->key);
	struct topic **at = &first;

	while (*at != topic)
		at = &(*at)->next;
	*at = topic->next;
	if (first != NULL)
		map_insert(&topics->by_key, topic->key, first);
}

void topics_remove(struct topics *topics, struct topic *topic)
{
	unchain(topics, topic);
	list_remove(&topic->link);
	topics->count--;
	topics->bytes -= topic->length;
	free(topic);
}

size_t topics_find_above(const struct topics *topics, struct slice uri, size_t *lengths_r,
			 size_t max)
{
	uint64_t key = topics->seed;
	size_t count = 0;

	for (size_t n = 1; n <= uri.n; n++) {
		key = text_hash(key, slice_of(uri.p + n - 1, 1));
		if (n < uri.n && uri.p[n - 1] != '/' && uri.p[n] != '/')
			continue;
		if (find_by_key(topics, key, slice_of(uri.p, n)) == NULL)
			continue;
		if (count < max)
			lengths_r[count] = n;
		count++;
	}
	return count;
}

bool topics_concern(const struct topics *topics, struct slice uri)
{
	return topics->count > 0 && topics_find_above(topics, uri, NULL, 0) > 0;
}
