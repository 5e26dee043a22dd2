/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches parsed schemas by their text, so that a tool that is called repeatedly has its schema
 * parsed once. Bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"

#define SCHEMA_CACHE_BYTES \
	(16 * 1024 * 1024) /* beyond that, the least recently used one is dropped */

struct schema_cache {
	uint64_t seed;
	struct map by_hash;
	struct list recent; /* the least recently used is first */
	size_t bytes;
};

/* A cached result; valid until the next call of schema_cache_get. */
struct cached_schema {
	const struct schema *schema; /* NULL: it is unusable, see `why` */
	const char *why;
	bool is_new; /* this call parsed it: it was not in the cache */
};

void schema_cache_init(struct schema_cache *cache);
void schema_cache_fini(struct schema_cache *cache);
/*
 * Looks up `text`, which must be valid for schema_new. *key caches the hash of the text; initially
 * 0.
 */
struct cached_schema schema_cache_get(struct schema_cache *cache, struct slice text, uint64_t *key);
