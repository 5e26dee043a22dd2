/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash table from 64-bit numbers to pointers: open addressing, grows and shrinks. An all-zero
 * struct is an empty map. We choose the keys (counters, random numbers), never a peer, so no keyed
 * hash is needed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct map_slot {
	uint64_t key;
	void *value; /* NULL: free slot */
};

struct map {
	struct map_slot *slots;
	size_t count;
	size_t size; /* number of slots: a power of two, or 0 */
};

/* Returns NULL if the key is absent. */
void *map_find(const struct map *map, uint64_t key);
/* The key must not be present; value must not be NULL. */
void map_insert(struct map *map, uint64_t key, void *value);
/* Removes the key. Returns its value, or NULL if it is absent. */
void *map_remove(struct map *map, uint64_t key);
/*
 * Like map_remove, but keeps a small table allocated until map_fini: for maps that become empty
 * often.
 */
void *map_take(struct map *map, uint64_t key);
/* Frees the table, but not the values. */
void map_fini(struct map *map);

/*
 * Several entries per key, for keys that are hashes: a map_link is embedded in each entry. A map is
 * used either only with the *_link functions or never with them.
 */
struct map_link {
	struct map_link *next; /* of the same key */
	uint64_t key;
};

/* The first entry of this key, or NULL. */
struct map_link *map_find_link(const struct map *map, uint64_t key);
/* `entry` is each `type` whose `member` has the key: compare the data that was hashed. */
#define MAP_EACH(type, entry, map, key, member)                                        \
	for (type *entry = map_entry(map_find_link(map, key), offsetof(type, member)); \
	     entry != NULL; entry = map_entry(entry->member.next, offsetof(type, member)))
static inline void *map_entry(struct map_link *link, size_t offset)
{
	return link != NULL ? (char *)link - offset : NULL;
}
/* Inserts the link as the first of its key. */
void map_insert_link(struct map *map, uint64_t key, struct map_link *link);
/* The link must be in the map. */
void map_remove_link(struct map *map, struct map_link *link);
