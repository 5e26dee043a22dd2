/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table keyed by a seeded hash. A match is confirmed by comparing all bytes of all parts, so two
 * identities are never taken for one.
 */
#include "session/principal.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"

void principal_set_init(struct principal_set *set)
{
	*set = (struct principal_set){ .anonymous = { .set = set, .refs = 1 } };
	random_bytes(&set->seed, sizeof(set->seed));
}

void principal_set_rename_claims(struct principal_set *set, struct slices claim_names)
{
	bool is_same = set->claim_names.count == claim_names.count;

	for (size_t i = 0; is_same && i < claim_names.count; i++)
		is_same = slice_is_equal(set->claim_names.items[i], claim_names.items[i]);
	set->claim_names = claim_names;
	set->names_are += !is_same;
}

/* Whether the principal has claims, stored for the claim names that are configured now. */
static bool has_claims(const struct principal *principal)
{
	return principal->claims != NULL && principal->claims_are == principal->set->names_are;
}

static void forget_claims(struct principal *principal)
{
	for (size_t i = 0; i < principal->claim_count; i++)
		free(principal->claims[i]);
	free(principal->claims);
	principal->claims = NULL;
	principal->claim_count = 0;
}

struct principal *principal_get(struct principal_set *set, const struct identity *identity)
{
	size_t size = identity->issuer.n + identity->subject.n + identity->client.n;
	uint64_t key = text_hash_part(set->seed, identity->issuer);
	struct principal *principal;
	char *at;

	CHECK(size > 0);
	key = text_hash_part(text_hash_part(key, identity->subject), identity->client);
	for (struct map_link *link = map_find_link(&set->by_key, key); link != NULL;
	     link = link->next) {
		principal = container_of(link, struct principal, by_key);
		if (slice_is_equal(principal->identity.issuer, identity->issuer) &&
		    slice_is_equal(principal->identity.subject, identity->subject) &&
		    slice_is_equal(principal->identity.client, identity->client))
			return principal_ref(principal);
	}
	principal = mem_alloc(sizeof(*principal) + size);
	at = (char *)(principal + 1);
	*principal = (struct principal){ .set = set, .refs = 1 };
	principal->identity.issuer = mem_put_slice(&at, identity->issuer);
	principal->identity.subject = mem_put_slice(&at, identity->subject);
	principal->identity.client = mem_put_slice(&at, identity->client);
	map_insert_link(&set->by_key, key, &principal->by_key);
	return principal;
}

struct principal *principal_ref(struct principal *principal)
{
	CHECK(principal->refs > 0);
	principal->refs++;
	return principal;
}

void principal_unref(struct principal **principal)
{
	struct principal *p = *principal;

	*principal = NULL;
	CHECK(p == NULL || p->refs > 0);
	if (p == NULL || --p->refs > 0)
		return;
	CHECK(!principal_is_anonymous(p)); /* the set itself holds a reference */
	CHECK(p->sessions == 0);
	forget_claims(p);
	map_remove_link(&p->set->by_key, &p->by_key);
	free(p);
}

void principal_set_claim(struct principal *principal, size_t index, struct slice value)
{
	const char *before;

	CHECK(index < principal->set->claim_names.count && !principal_is_anonymous(principal));
	before = has_claims(principal) ? principal->claims[index] : NULL;
	if (!text_is_claim(value))
		value.n = 0;
	/* Nearly always the value of the previous request. */
	if (before != NULL ? slice_is_equal(slice_str(before), value) : value.n == 0)
		return;
	if (!has_claims(principal)) {
		forget_claims(principal);
		principal->claim_count = principal->set->claim_names.count;
		principal->claims = mem_zalloc(principal->claim_count * sizeof(*principal->claims));
		principal->claims_are = principal->set->names_are;
	}
	free(principal->claims[index]);
	principal->claims[index] = value.n > 0 ? mem_dup_slice(value) : NULL;
}

const char *principal_claim(const struct principal *principal, struct slice name)
{
	for (size_t i = 0; has_claims(principal) && i < principal->claim_count; i++)
		if (slice_is_equal(principal->set->claim_names.items[i], name))
			return principal->claims[i];
	return NULL;
}

bool principal_is_anonymous(const struct principal *principal)
{
	return principal == &principal->set->anonymous;
}
