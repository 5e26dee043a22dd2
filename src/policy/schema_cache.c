/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/schema_cache.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "policy/schema.h"

struct entry {
	struct map_link by_hash;
	struct list link;
	struct schema *schema; /* NULL: see err */
	struct error err;
	size_t bytes;
	size_t length;
	char text[];
};

void schema_cache_init(struct schema_cache *cache)
{
	*cache = (struct schema_cache){ .bytes = 0 };
	random_bytes(&cache->seed, sizeof(cache->seed));
	list_init(&cache->recent);
}

static void schema_cache_forget(struct schema_cache *cache, struct entry *entry)
{
	CHECK(cache->bytes >= entry->bytes);
	cache->bytes -= entry->bytes;
	map_remove_link(&cache->by_hash, &entry->by_hash);
	list_remove(&entry->link);
	schema_free(&entry->schema);
	free(entry);
}

static struct entry *schema_cache_oldest(const struct schema_cache *cache)
{
	return container_of(cache->recent.next, struct entry, link);
}

void schema_cache_fini(struct schema_cache *cache)
{
	while (!list_is_empty(&cache->recent))
		schema_cache_forget(cache, schema_cache_oldest(cache));
	CHECK(cache->bytes == 0);
	map_fini(&cache->by_hash);
}

static struct entry *schema_cache_find(const struct schema_cache *cache, uint64_t hash,
				       struct slice text)
{
	MAP_EACH(struct entry, entry, &cache->by_hash, hash, by_hash)
		if (slice_is_equal(slice_of(entry->text, entry->length), text))
			return entry;
	return NULL;
}

static struct entry *schema_cache_add(struct schema_cache *cache, uint64_t hash, struct slice text)
{
	struct entry *entry = mem_zalloc(sizeof(*entry) + text.n);

	entry->length = text.n;
	memcpy(entry->text, text.p, text.n);
	entry->schema = schema_new(text, &entry->err);
	entry->bytes = sizeof(*entry) + text.n;
	if (entry->schema != NULL)
		entry->bytes += schema_size(entry->schema);
	cache->bytes += entry->bytes;
	map_insert_link(&cache->by_hash, hash, &entry->by_hash);
	list_init(&entry->link);
	return entry;
}

struct cached_schema schema_cache_get(struct schema_cache *cache, struct slice text, uint64_t *key)
{
	struct entry *entry;
	bool is_new;

	if (*key == 0)
		*key = text_hash(cache->seed, text);
	entry = schema_cache_find(cache, *key, text);
	is_new = entry == NULL;
	if (is_new)
		entry = schema_cache_add(cache, *key, text);
	list_move(&cache->recent, &entry->link);
	while (cache->bytes > SCHEMA_CACHE_BYTES && schema_cache_oldest(cache) != entry)
		schema_cache_forget(cache, schema_cache_oldest(cache));
	return (struct cached_schema){ entry->schema, entry->err.text, is_new };
}
