/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table by a seeded hash: clients choose the URIs, there may be many, and servers may name one after the other.
 * Those above a URI are looked up one by one: its beginnings that end before or with a slash.
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
	for (struct map_link *at = map_find_link(&topics->by_key, key); at != NULL; at = at->next) {
		struct topic *topic = container_of(at, struct topic, by_key);

		if (slice_is_equal(topic_uri(topic), uri))
			return topic;
	}
	return NULL;
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
	topic->first = first;
	topic->subscribers = 0;
	topic->length = uri.n;
	memcpy(topic->uri, uri.p, uri.n);
	list_init(&topic->waiting);
	list_append(&topics->all, &topic->link);
	map_insert_link(&topics->by_key, text_hash(topics->seed, uri), &topic->by_key);
	topics->count++;
	topics->bytes += uri.n;
	return topic;
}

void topics_remove(struct topics *topics, struct topic *topic)
{
	map_remove_link(&topics->by_key, &topic->by_key);
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
