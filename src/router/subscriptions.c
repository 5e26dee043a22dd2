/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table by a seeded hash: clients choose the URIs, there may be many, and servers may name one after the other.
 * Those above a URI are looked up one by one: its beginnings that end before or with a slash.
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

void subscriptions_init(struct subscriptions *subscriptions)
{
	*subscriptions = (struct subscriptions){ .count = 0 };
	list_init(&subscriptions->all);
}

void subscriptions_fini(struct subscriptions *subscriptions)
{
	while (!list_is_empty(&subscriptions->all))
		subscriptions_remove(subscriptions, container_of(subscriptions->all.next,
								 struct subscription, link));
	map_fini(&subscriptions->by_key);
}

struct slice subscription_uri(const struct subscription *subscription)
{
	return slice_of(subscription->uri, subscription->length);
}

static struct subscription *find_by_key(const struct subscriptions *subscriptions, uint64_t key,
					struct slice uri)
{
	for (struct map_link *at = map_find_link(&subscriptions->by_key, key); at != NULL;
	     at = at->next) {
		struct subscription *subscription = container_of(at, struct subscription, by_key);

		if (slice_is_equal(subscription_uri(subscription), uri))
			return subscription;
	}
	return NULL;
}

struct subscription *subscriptions_find(const struct subscriptions *subscriptions, struct slice uri)
{
	return find_by_key(subscriptions, text_hash(subscriptions->seed, uri), uri);
}

bool subscriptions_have_room(const struct subscriptions *subscriptions, size_t size)
{
	return subscriptions->count < SUBSCRIPTIONS_MAX &&
	       subscriptions->bytes + size <= SUBSCRIPTIONS_BYTES_MAX;
}

struct subscription *subscriptions_add(struct subscriptions *subscriptions, struct slice uri,
				       struct call *first)
{
	struct subscription *subscription = mem_alloc(sizeof(*subscription) + uri.n);

	if (subscriptions->seed == 0)
		random_bytes(&subscriptions->seed, sizeof(subscriptions->seed));
	subscription->first = first;
	subscription->subscribers = 0;
	subscription->length = uri.n;
	memcpy(subscription->uri, uri.p, uri.n);
	subscription->leader = (struct call_watcher){ .ops = NULL };
	list_init(&subscription->leader.link);
	wait_queue_init(&subscription->waiting, NULL);
	list_append(&subscriptions->all, &subscription->link);
	map_insert_link(&subscriptions->by_key, text_hash(subscriptions->seed, uri),
			&subscription->by_key);
	subscriptions->count++;
	subscriptions->bytes += uri.n;
	return subscription;
}

void subscriptions_remove(struct subscriptions *subscriptions, struct subscription *subscription)
{
	CHECK(wait_queue_is_empty(&subscription->waiting) && subscriptions->count > 0);
	map_remove_link(&subscriptions->by_key, &subscription->by_key);
	list_remove(&subscription->link);
	subscriptions->count--;
	subscriptions->bytes -= subscription->length;
	free(subscription);
}

size_t subscriptions_find_above(const struct subscriptions *subscriptions, struct slice uri,
				size_t *lengths_r, size_t max)
{
	uint64_t key = subscriptions->seed;
	size_t count = 0;

	for (size_t n = 1; n <= uri.n; n++) {
		key = text_hash(key, slice_of(uri.p + n - 1, 1));
		if (n < uri.n && uri.p[n - 1] != '/' && uri.p[n] != '/')
			continue;
		if (find_by_key(subscriptions, key, slice_of(uri.p, n)) == NULL)
			continue;
		if (count < max)
			lengths_r[count] = n;
		count++;
	}
	return count;
}

bool subscriptions_concern(const struct subscriptions *subscriptions, struct slice uri)
{
	return subscriptions->count > 0 &&
	       subscriptions_find_above(subscriptions, uri, NULL, 0) > 0;
}
