/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table keyed by a seeded hash: clients choose the URIs, there may be many, and servers may name
 * one after the other. The subscriptions above a URI are found by looking up its beginnings that
 * end before or with a slash.
 */
#include "router/subscriptions.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "jsonrpc/write.h"

struct slice subscriptions_spell_uri(struct json uri, struct buf *room)
{
	struct buf plain = { 0 };
	struct slice text = SLICE_LIT("");

	CHECK(room->len == 0);
	if (uri.type == JSON_STRING)
		text = slice_of(uri.text.p + 1, uri.text.n - 2);
	if (text.n > 0 && memchr(text.p, '\\', text.n) != NULL &&
	    scan_decode_string(uri, &plain) == 0) {
		write_string(room, buf_slice(&plain));
		text = slice_of(room->data + 1, room->len - 2);
	}
	buf_fini(&plain);
	return text;
}

void subscriptions_init(struct subscriptions *set)
{
	*set = (struct subscriptions){ .count = 0 };
	list_init(&set->all);
}

void subscriptions_fini(struct subscriptions *set)
{
	while (!list_is_empty(&set->all))
		subscriptions_remove(set, container_of(set->all.next, struct subscription, link));
	map_fini(&set->by_key);
}

struct slice subscription_uri(const struct subscription *subscription)
{
	return slice_of(subscription->uri, subscription->length);
}

static struct subscription *find_by_key(const struct subscriptions *set, uint64_t key,
					struct slice uri)
{
	for (struct map_link *at = map_find_link(&set->by_key, key); at != NULL; at = at->next) {
		struct subscription *subscription = container_of(at, struct subscription, by_key);

		if (slice_is_equal(subscription_uri(subscription), uri))
			return subscription;
	}
	return NULL;
}

struct subscription *subscriptions_find(const struct subscriptions *set, struct slice uri)
{
	return find_by_key(set, text_hash(set->seed, uri), uri);
}

bool subscriptions_have_room(const struct subscriptions *set, size_t size)
{
	return set->count < SUBSCRIPTIONS_MAX && set->bytes + size <= SUBSCRIPTIONS_BYTES_MAX;
}

struct subscription *subscriptions_add(struct subscriptions *set, struct slice uri,
				       struct call *first)
{
	struct subscription *subscription = mem_alloc(sizeof(*subscription) + uri.n);

	if (set->seed == 0)
		random_bytes(&set->seed, sizeof(set->seed));
	subscription->first = first;
	subscription->subscribers = 0;
	subscription->length = uri.n;
	memcpy(subscription->uri, uri.p, uri.n);
	subscription->leader = (struct call_watcher){ .ops = NULL };
	list_init(&subscription->leader.link);
	wait_queue_init(&subscription->waiting, NULL);
	list_append(&set->all, &subscription->link);
	map_insert_link(&set->by_key, text_hash(set->seed, uri), &subscription->by_key);
	set->count++;
	set->bytes += uri.n;
	return subscription;
}

void subscriptions_remove(struct subscriptions *set, struct subscription *subscription)
{
	CHECK(wait_queue_is_empty(&subscription->waiting) && set->count > 0);
	map_remove_link(&set->by_key, &subscription->by_key);
	list_remove(&subscription->link);
	set->count--;
	set->bytes -= subscription->length;
	free(subscription);
}

size_t subscriptions_find_above(const struct subscriptions *set, struct slice uri,
				size_t *lengths_r, size_t max)
{
	uint64_t key = set->seed;
	size_t count = 0;

	for (size_t n = 1; n <= uri.n; n++) {
		key = text_hash(key, slice_of(uri.p + n - 1, 1));
		if (n < uri.n && uri.p[n - 1] != '/' && uri.p[n] != '/')
			continue;
		if (find_by_key(set, key, slice_of(uri.p, n)) == NULL)
			continue;
		if (count < max)
			lengths_r[count] = n;
		count++;
	}
	return count;
}

bool subscriptions_concern(const struct subscriptions *set, struct slice uri)
{
	return set->count > 0 && subscriptions_find_above(set, uri, NULL, 0) > 0;
}
