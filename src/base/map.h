/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers to pointers: open addressing, grows and shrinks. All zeros is an empty map. Keys are
 * chosen by us (counters, random numbers), never by a peer, so they need no keyed hash.
 */
#ifndef MCPGATED_BASE_MAP_H
#define MCPGATED_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_slot {
	uint64_t key;
	void *value; /* NULL: free */
};

struct map {
	struct map_slot *slots;
	size_t count;
	size_t size; /* of slots; a power of two, or 0 */
};

/* NULL if there is none. */
void *map_find(const struct map *map, uint64_t key);
/* The key must be new; value must not be NULL. */
void map_insert(struct map *map, uint64_t key, void *value);
/* Returns what was there, or NULL. */
void *map_remove(struct map *map, uint64_t key);
/* Frees the table, not the values. */
void map_fini(struct map *map);

#endif
