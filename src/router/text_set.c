/* SPDX-License-Identifier: Apache-2.0 */
/* A list: the sets are small, and looked at seldom. */
#include "router/text_set.h"

#include <stdlib.h>

#include "base/mem.h"

void text_set_init(struct text_set *set)
{
	list_init(&set->items);
	set->count = 0;
	set->bytes = 0;
}

static struct text_set_item *text_set_find(const struct text_set *set, struct slice text)
{
	LIST_FOREACH(node, &set->items) {
		struct text_set_item *item = container_of(node, struct text_set_item, link);

		if (slice_is_equal(slice_of(item->text, item->length), text))
			return item;
	}
	return NULL;
}

void text_set_fini(struct text_set *set)
{
	while (!list_is_empty(&set->items)) {
		struct text_set_item *item =
			container_of(set->items.next, struct text_set_item, link);

		list_remove(&item->link);
		free(item);
	}
	set->count = 0;
	set->bytes = 0;
}

bool text_set_has_room(const struct text_set *set, size_t size)
{
	return set->count < TEXT_SET_MAX && size <= TEXT_SET_BYTES_MAX &&
	       set->bytes + size <= TEXT_SET_TOTAL_MAX;
}

bool text_set_add(struct text_set *set, struct slice text)
{
	struct text_set_item *item;

	if (!text_set_has_room(set, text.n) || text_set_find(set, text) != NULL)
		return false;
	item = mem_alloc(sizeof(*item) + text.n);
	item->length = text.n;
	memcpy(item->text, text.p, text.n);
	list_append(&set->items, &item->link);
	set->count++;
	set->bytes += text.n;
	return true;
}

bool text_set_remove(struct text_set *set, struct slice text)
{
	struct text_set_item *item = text_set_find(set, text);

	if (item == NULL)
		return false;
	list_remove(&item->link);
	free(item);
	set->count--;
	set->bytes -= text.n;
	return true;
}
