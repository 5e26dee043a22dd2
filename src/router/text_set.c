/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list, and a table keyed by a hash. The hash is seeded, once for all sets, because peers choose
 * the texts.
 */
#include "router/text_set.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "jsonrpc/write.h"

void text_set_init(struct text_set *set)
{
	*set = (struct text_set){ .count = 0 };
	list_init(&set->items);
}

uint64_t text_set_key(struct slice text)
{
	static uint64_t seed;

	if (seed == 0)
		random_bytes(&seed, sizeof(seed));
	return text_hash(seed, text);
}

static struct text_set_item *text_set_find(const struct text_set *set, uint64_t key,
					   struct slice text)
{
	MAP_EACH(struct text_set_item, item, &set->by_key, key, by_key)
		if (slice_is_equal(slice_of(item->text, item->length), text))
			return item;
	return NULL;
}

bool text_set_has(const struct text_set *set, uint64_t key, struct slice text)
{
	return text_set_find(set, key, text) != NULL;
}

static void text_set_free(struct text_set *set, struct text_set_item *item)
{
	map_remove_link(&set->by_key, &item->by_key);
	list_remove(&item->link);
	set->count--;
	set->bytes -= item->length;
	free(item);
}

void text_set_fini(struct text_set *set)
{
	LIST_DRAIN(struct text_set_item, item, &set->items, link)
		text_set_free(set, item);
}

bool text_set_has_room(const struct text_set *set, size_t size)
{
	return set->count < TEXT_SET_MAX && size <= TEXT_SET_BYTES_MAX &&
	       set->bytes + size <= TEXT_SET_TOTAL_MAX;
}

bool text_set_add(struct text_set *set, struct slice text)
{
	uint64_t key = text_set_key(text);
	struct text_set_item *item;

	if (!text_set_has_room(set, text.n) || text_set_find(set, key, text) != NULL)
		return false;
	item = mem_alloc(sizeof(*item) + text.n);
	item->length = text.n;
	memcpy(item->text, text.p, text.n);
	list_append(&set->items, &item->link);
	map_insert_link(&set->by_key, key, &item->by_key);
	set->count++;
	set->bytes += text.n;
	return true;
}

bool text_set_remove(struct text_set *set, struct slice text)
{
	struct text_set_item *item = text_set_find(set, text_set_key(text), text);

	CHECK(set->bytes <= TEXT_SET_TOTAL_MAX);
	if (item == NULL)
		return false;
	text_set_free(set, item);
	return true;
}

struct slice text_set_spell(struct json written, struct buf *room)
{
	at_end(buf_fini) struct buf plain = { 0 };
	struct slice text = SLICE_LIT("");

	CHECK(room->len == 0);
	if (written.type == JSON_STRING)
		text = slice_of(written.text.p + 1, written.text.n - 2);
	if (text.n > 0 && memchr(text.p, '\\', text.n) != NULL &&
	    scan_decode_string(written, &plain) == 0) {
		write_string(room, buf_slice(&plain));
		text = slice_of(room->data + 1, room->len - 2);
	}
	return text;
}

void text_set_push(struct text_set *set, struct slice text)
{
	while (text.n <= TEXT_SET_BYTES_MAX && !text_set_has_room(set, text.n)) {
		const struct text_set_item *first =
			container_of(set->items.next, struct text_set_item, link);

		(void)text_set_remove(set, slice_of(first->text, first->length));
	}
	(void)text_set_add(set, text);
}
