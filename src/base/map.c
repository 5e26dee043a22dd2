/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear probing over a power of two of slots, at most three quarters full. Removal moves later
 * slots of the probe sequence back, so there are no tombstones, and a lookup ends at the first free
 * slot.
 */
#include "base/map.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"

#define MAP_SMALLEST 8

static size_t map_home(const struct map *map, uint64_t key)
{
	return (size_t)((key * 0x9E3779B97F4A7C15u) >> 32) & (map->size - 1);
}

/* The slot of the key, or the free slot where it would be inserted. */
static size_t map_seek(const struct map *map, uint64_t key)
{
	size_t i = map_home(map, key);

	while (map->slots[i].value != NULL && map->slots[i].key != key)
		i = (i + 1) & (map->size - 1);
	return i;
}

static void map_rebuild(struct map *map, size_t size)
{
	struct map old = *map;

	CHECK((size & (size - 1)) == 0 && size > old.count);
	map->slots = mem_zalloc(size * sizeof(*map->slots));
	map->size = size;
	for (size_t i = 0; i < old.size; i++) {
		if (old.slots[i].value != NULL)
			map->slots[map_seek(map, old.slots[i].key)] = old.slots[i];
	}
	free(old.slots);
}

void *map_find(const struct map *map, uint64_t key)
{
	return map->count > 0 ? map->slots[map_seek(map, key)].value : NULL;
}

void map_insert(struct map *map, uint64_t key, void *value)
{
	size_t i;

	CHECK(value != NULL);
	if ((map->count + 1) * 4 > map->size * 3)
		map_rebuild(map, map->size > 0 ? map->size * 2 : MAP_SMALLEST);
	CHECK(map->count < map->size); /* otherwise a lookup of an absent key would not end */
	i = map_seek(map, key);
	CHECK(map->slots[i].value == NULL);
	map->slots[i] = (struct map_slot){ key, value };
	map->count++;
}

/*
 * Fills the gap at `hole` with later slots of the probe sequence whose home is not past the hole.
 */
static void map_close_gap(struct map *map, size_t hole)
{
	size_t mask = map->size - 1;

	for (size_t i = (hole + 1) & mask; map->slots[i].value != NULL; i = (i + 1) & mask) {
		size_t home = map_home(map, map->slots[i].key);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		map->slots[hole] = map->slots[i];
		hole = i;
	}
	map->slots[hole].value = NULL;
}

void *map_take(struct map *map, uint64_t key)
{
	void *value;
	size_t i;

	if (map->count == 0)
		return NULL;
	CHECK(map->count < map->size);
	i = map_seek(map, key);
	value = map->slots[i].value;
	if (value == NULL)
		return NULL;
	map_close_gap(map, i);
	map->count--;
	if (map->size > MAP_SMALLEST && map->count * 8 < map->size)
		map_rebuild(map, map->size / 2);
	return value;
}

void *map_remove(struct map *map, uint64_t key)
{
	void *value = map_take(map, key);

	if (map->count == 0)
		map_fini(map);
	return value;
}

struct map_link *map_find_link(const struct map *map, uint64_t key)
{
	return map_find(map, key);
}

void map_insert_link(struct map *map, uint64_t key, struct map_link *link)
{
	*link = (struct map_link){ map_find(map, key), key };
	CHECK(link->next != link && (link->next == NULL || link->next->key == key));
	if (link->next == NULL)
		map_insert(map, key, link);
	else
		map->slots[map_seek(map, key)].value = link;
}

void map_remove_link(struct map *map, struct map_link *link)
{
	struct map_link *at = map_find(map, link->key);

	CHECK(at != NULL);
	if (at == link && link->next == NULL) {
		map_remove(map, link->key);
	} else if (at == link) {
		map->slots[map_seek(map, link->key)].value = link->next;
	} else {
		for (; at->next != link; at = at->next)
			CHECK(at->next != NULL);
		at->next = link->next;
	}
}

void map_fini(struct map *map)
{
	free(map->slots);
	*map = (struct map){ NULL, 0, 0 };
}
