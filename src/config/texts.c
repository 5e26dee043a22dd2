/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever has such a list may change its items. */
#include "config/texts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static struct slice *items_of(const struct slices *texts)
{
	return (struct slice *)(uintptr_t)texts->items;
}

void texts_add(struct slices *texts, struct slice text)
{
	struct slice *items;

	CHECK((texts->items == NULL) == (texts->count == 0));
	items = mem_resize(items_of(texts), (texts->count + 1) * sizeof(*items));

	items[texts->count++] = slice_of(mem_dup_slice(text), text.n);
	texts->items = items;
}

void texts_shorten(struct slice *text, size_t n)
{
	CHECK(n <= text->n);
	((char *)(uintptr_t)text->p)[n] = '\0';
	text->n = n;
}

void texts_free_one(struct slice *text)
{
	char *bytes = (char *)(uintptr_t)text->p;

	CHECK(bytes == NULL || bytes[text->n] == '\0');
	/* An argument may be a secret. */
	if (bytes != NULL)
		explicit_bzero(bytes, text->n);
	free(bytes);
	*text = (struct slice){ NULL, 0 };
}

void texts_free(struct slices *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		texts_free_one(&items_of(texts)[i]);
	free(items_of(texts));
	*texts = (struct slices){ NULL, 0 };
}

static struct named_slices *named_items_of(const struct slice_map *map)
{
	return (struct named_slices *)(uintptr_t)map->items;
}

struct slices *texts_place_in(struct slice_map *map, struct slice name)
{
	struct named_slices *items = named_items_of(map);

	CHECK((items == NULL) == (map->count == 0));
	for (size_t i = 0; i < map->count; i++)
		if (slice_is_equal(items[i].name, name))
			return &items[i].values;
	items = mem_resize(items, (map->count + 1) * sizeof(*items));
	items[map->count] = (struct named_slices){ .name = slice_of(mem_dup_slice(name), name.n) };
	map->items = items;
	return &items[map->count++].values;
}

void texts_free_map(struct slice_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		texts_free_one(&named_items_of(map)[i].name);
		texts_free(&named_items_of(map)[i].values);
	}
	free(named_items_of(map));
	*map = (struct slice_map){ NULL, 0 };
}
