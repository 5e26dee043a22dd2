/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas that were read, by their text: a tool that is called again and again has its schema read once. Bounded. */
#ifndef MCPGATED_POLICY_SCHEMA_CACHE_H
#define MCPGATED_POLICY_SCHEMA_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"

#define SCHEMA_CACHE_BYTES \
	(16 * 1024 * 1024) /* beyond, the one that was used longest ago is forgotten */

struct schema_cache {
	uint64_t seed;
	struct map by_hash;
	struct list recent; /* the one that was used longest ago is first */
	size_t bytes;
};

/* What is known of a text; valid until the next is asked for. */
struct cached_schema {
	const struct schema *schema; /* NULL: it cannot be used, and */
	const char *why;
	bool is_new; /* nobody has asked for it, since it was forgotten */
};

void schema_cache_init(struct schema_cache *cache);
void schema_cache_fini(struct schema_cache *cache);
/* `text` as schema_new has it. *key: 0 where it was never asked for with it; what is found out is kept there. */
struct cached_schema schema_cache_get(struct schema_cache *cache, struct slice text, uint64_t *key);

#endif
