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
/* The same for maps that are empty again and again: a small table is kept, until map_fini. */
void *map_take(struct map *map, uint64_t key);
/* Frees the table, not the values. */
void map_fini(struct map *map);

/*
 * Several entries of one key, for keys that are hashes: embedded in each entry. The values of a map are either such
 * links, by these functions alone, or none of them.
 */
struct map_link {
	struct map_link *next; /* of the same key */
	uint64_t key;
};

/* The first of this key; NULL: there is none. The caller compares what the keys are hashes of. */
struct map_link *map_find_link(const struct map *map, uint64_t key);
/* Becomes the first of its key. */
void map_insert_link(struct map *map, uint64_t key, struct map_link *link);
/* It must be there. */
void map_remove_link(struct map *map, struct map_link *link);

#endif
