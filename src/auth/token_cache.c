/* SPDX-License-Identifier: Apache-2.0 */
/* A map by the first bytes of the digest, and a list in the order of use. */
#include "auth/token_cache.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"

void token_cache_init(struct token_cache *cache, size_t count_max)
{
	*cache = (struct token_cache){ .count_max = count_max };
	cache->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	cache->ctx = EVP_MD_CTX_new();
	CHECK(cache->sha256 != NULL && cache->ctx != NULL);
	list_init(&cache->used);
	random_bytes(cache->key, sizeof(cache->key));
}

struct token_digest token_cache_digest(const struct token_cache *cache, struct slice token)
{
	EVP_MD_CTX *ctx = cache->ctx;
	struct token_digest digest;

	CHECK(EVP_DigestInit_ex(ctx, cache->sha256, NULL) == 1 &&
	      EVP_DigestUpdate(ctx, cache->key, sizeof(cache->key)) == 1 &&
	      EVP_DigestUpdate(ctx, token.p, token.n) == 1 &&
	      EVP_DigestFinal_ex(ctx, digest.bytes, NULL) == 1);
	return digest;
}

static uint64_t place_of(const struct token_digest *digest)
{
	uint64_t place;

	memcpy(&place, digest->bytes, sizeof(place));
	return place;
}

static void token_cache_remove(struct token_cache *cache, struct token_entry *entry)
{
	CHECK(map_remove(&cache->map, place_of(&entry->digest)) == entry && cache->count > 0);
	list_remove(&entry->link);
	cache->count--;
	grant_unref(&entry->grant);
	free(entry);
}

void token_cache_fini(struct token_cache *cache)
{
	while (!list_is_empty(&cache->used))
		token_cache_remove(cache, container_of(cache->used.next, struct token_entry, link));
	CHECK(cache->count == 0);
	map_fini(&cache->map);
	EVP_MD_CTX_free(cache->ctx);
	EVP_MD_free(cache->sha256);
}

const struct token_entry *token_cache_find(struct token_cache *cache,
					   const struct token_digest *digest)
{
	struct token_entry *entry = map_find(&cache->map, place_of(digest));

	if (entry == NULL || memcmp(&entry->digest, digest, sizeof(*digest)) != 0)
		return NULL;
	if (clock_now_ms() >= entry->until_ms ||
	    (entry->grant != NULL && !grant_is_current(entry->grant, clock_wall_ms()))) {
		token_cache_remove(cache, entry);
		return NULL;
	}
	list_remove(&entry->link);
	list_append(&cache->used, &entry->link);
	return entry;
}

void token_cache_put(struct token_cache *cache, const struct token_digest *digest, size_t issuer,
		     const struct verdict *verdict, struct grant *grant, uint64_t for_ms)
{
	struct token_entry *entry = map_find(&cache->map, place_of(digest));

	CHECK((grant != NULL) == (verdict->kind == VERDICT_OK));
	if (entry != NULL)
		token_cache_remove(cache, entry);
	if (cache->count == cache->count_max)
		token_cache_remove(cache, container_of(cache->used.next, struct token_entry, link));
	entry = mem_zalloc(sizeof(*entry));
	entry->digest = *digest;
	entry->issuer = issuer;
	entry->verdict = *verdict;
	entry->grant = grant != NULL ? grant_ref(grant) : NULL;
	entry->until_ms = clock_now_ms() + for_ms;
	map_insert(&cache->map, place_of(digest), entry);
	list_append(&cache->used, &entry->link);
	cache->count++;
}

void token_cache_forget(struct token_cache *cache)
{
	LIST_FOREACH_SAFE(node, &cache->used)
		token_cache_remove(cache, container_of(node, struct token_entry, link));
}

void token_cache_forget_keys(struct token_cache *cache, size_t issuer)
{
	LIST_FOREACH_SAFE(node, &cache->used) {
		struct token_entry *entry = container_of(node, struct token_entry, link);

		if (entry->issuer == issuer &&
		    (entry->grant == NULL || entry->grant->source == GRANT_JWT))
			token_cache_remove(cache, entry);
	}
}
