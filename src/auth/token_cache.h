/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches verdicts on tokens by a keyed SHA-256 of the token, never the token itself. Bounded; the
 * least recently used entry is dropped first. AUTH-IN-07, AUTH-OPQ-03
 */
#ifndef MCPGATED_AUTH_TOKEN_CACHE_H
#define MCPGATED_AUTH_TOKEN_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <openssl/evp.h>

#include "auth/grant.h"
#include "auth/verdict.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"

#define TOKEN_DIGEST_BYTES 32

/* Keyed, so that an attacker cannot choose tokens that collide in the map. */
struct token_digest {
	unsigned char bytes[TOKEN_DIGEST_BYTES];
};

struct token_cache {
	unsigned char key[TOKEN_DIGEST_BYTES];
	EVP_MD *sha256; /* fetched once: that costs more than the digest of a token */
	EVP_MD_CTX *ctx;
	struct map map;
	struct list used; /* least recently used first */
	size_t count;
	size_t count_max;
};

struct token_entry {
	struct list link;
	struct token_digest digest;
	size_t issuer; /* number of its issuer */
	struct verdict verdict;
	struct grant *grant; /* NULL unless the verdict is OK */
	uint64_t until_ms;   /* clock_now_ms */
};

void token_cache_init(struct token_cache *cache, size_t count_max);
void token_cache_fini(struct token_cache *cache);
struct token_digest token_cache_digest(const struct token_cache *cache, struct slice token);

/* Borrowed until the cache changes; NULL if there is no current entry. Times as in clock.h. */
const struct token_entry *token_cache_find(struct token_cache *cache,
					   const struct token_digest *digest);
/*
 * Caches for `for_ms`, but no longer than the grant is current. The cache takes its own reference
 * to the grant.
 */
void token_cache_put(struct token_cache *cache, const struct token_digest *digest, size_t issuer,
		     const struct verdict *verdict, struct grant *grant, uint64_t for_ms);
/*
 * This issuer's keys have changed: drops all its verdicts except those of introspection.
 * AUTH-KEY-06
 */
void token_cache_forget_keys(struct token_cache *cache, size_t issuer);

/* Drops all entries. */
void token_cache_forget(struct token_cache *cache);

#endif
