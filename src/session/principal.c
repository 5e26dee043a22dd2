/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table keyed by a seeded hash. A match is confirmed by comparing all bytes of all parts, so two
 * identities are never taken for one.
 */
#include "session/principal.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"

void principal_set_init(struct principal_set *set)
{
	*set = (struct principal_set){ .anonymous = { .set = set, .refs = 1 } };
	list_init(&set->anonymous.tokens);
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
	MAP_EACH(struct principal, known, &set->by_key, key, by_key)
		if (slice_is_equal(known->identity.issuer, identity->issuer) &&
		    slice_is_equal(known->identity.subject, identity->subject) &&
		    slice_is_equal(known->identity.client, identity->client))
			return principal_ref(known);
	principal = mem_alloc(sizeof(*principal) + size);
	at = (char *)(principal + 1);
	*principal = (struct principal){ .set = set, .refs = 1 };
	list_init(&principal->tokens);
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

static void forget_token(struct shown_token *token)
{
	list_remove(&token->link);
	buf_wipe(&token->token);
	free(token);
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
	LIST_DRAIN(struct shown_token, token, &p->tokens, link)
		forget_token(token);
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

const struct shown_token *principal_token(const struct principal *principal, struct slice place)
{
	LIST_EACH(const struct shown_token, token, &principal->tokens, link)
		if (slice_is_equal(slice_of(token->place, token->length), place))
			return token;
	return NULL;
}

void principal_keep_token(struct principal *principal, struct slice place, struct slice token)
{
	static uint64_t last;
	struct shown_token *kept =
		(struct shown_token *)(uintptr_t)principal_token(principal, place);

	CHECK(!principal_is_anonymous(principal));
	if (kept != NULL && slice_is_equal(buf_slice(&kept->token), token))
		return;
	if (kept != NULL)
		forget_token(kept);
	if (token.n == 0)
		return;
	kept = mem_zalloc(sizeof(*kept) + place.n);
	kept->number = ++last;
	kept->length = place.n;
	memcpy(kept->place, place.p, place.n);
	buf_reserve(&kept->token, token.n);
	buf_append_slice(&kept->token, token);
	list_append(&principal->tokens, &kept->link);
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

/* ---- what one caller has ---- */

/*
 * A table keyed by a seeded hash, like that of principals, because peers choose their addresses. A
 * match is confirmed by comparing all parts.
 */

#define NETWORK_BYTES 8 /* of an IPv6 address: a host may use any address of its network */

/*
 * IPv4 addresses get numbers that, as IPv6 networks, are reserved and belong to nobody. RFC 4291
 * s2.4
 */
static uint64_t network_of(const struct peer *peer)
{
	size_t count = peer->family == AF_INET ? 4 : NETWORK_BYTES;
	uint64_t number = peer->family == AF_INET;

	for (size_t i = 0; i < count; i++)
		number = number << 8 | peer->address[i];
	return number;
}

void holder_set_init(struct holder_set *set)
{
	*set = (struct holder_set){ .seed = 0 };
	random_bytes(&set->seed, sizeof(set->seed));
}

/* What distinguishes callers. */
struct caller {
	const void *scope;
	const struct principal *principal;
	uint64_t network;
};

static struct holder *principal_find(const struct holder_set *set, const struct caller *caller,
				     uint64_t key)
{
	MAP_EACH(struct holder, holder, &set->by_key, key, by_key)
		if (holder->scope == caller->scope && holder->principal == caller->principal &&
		    holder->network == caller->network)
			return holder;
	return NULL;
}

static struct caller make_caller(const void *scope, const struct principal *principal,
				 const struct peer *peer)
{
	uint64_t network = principal_is_anonymous(principal) ? network_of(peer) : 0;

	return (struct caller){ scope, principal, network };
}

/*
 * Peers can choose only the network, and different networks have different hashes: each step is
 * invertible.
 */
static uint64_t hash(uint64_t seed, uint64_t scope, uint64_t principal, uint64_t network)
{
	const uint64_t parts[] = { scope, principal, network };
	uint64_t number = seed;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		number = (number ^ parts[i]) * 0x9E3779B97F4A7C15u;
		number ^= number >> 32;
	}
	return number;
}

static uint64_t principal_key_of(const struct holder_set *set, const struct caller *caller)
{
	return hash(set->seed, (uintptr_t)caller->scope, (uintptr_t)caller->principal,
		    caller->network);
}

const struct holder *holder_find(const struct holder_set *set, const void *scope,
				 const struct principal *principal, const struct peer *peer)
{
	struct caller caller = make_caller(scope, principal, peer);

	return principal_find(set, &caller, principal_key_of(set, &caller));
}

uint64_t holder_key(const struct holder_set *set, const void *scope,
		    const struct principal *principal, const struct peer *peer)
{
	return hash(set->seed, (uintptr_t)scope, principal->by_key.key,
		    make_caller(scope, principal, peer).network);
}

uint64_t holder_number(const struct principal *principal, const struct peer *peer)
{
	static uint64_t seed;
	bool is_known = principal != NULL && !principal_is_anonymous(principal);

	if (seed == 0)
		random_bytes(&seed, sizeof(seed));
	return hash(seed, is_known, is_known ? principal->by_key.key : 0,
		    is_known ? 0 : network_of(peer));
}

struct holder *holder_get(struct holder_set *set, const void *scope,
			  const struct principal *principal, const struct peer *peer)
{
	struct caller caller = make_caller(scope, principal, peer);
	uint64_t key = principal_key_of(set, &caller);
	struct holder *holder = principal_find(set, &caller, key);

	if (holder != NULL) {
		holder->refs++;
		return holder;
	}
	holder = mem_alloc(sizeof(*holder));
	*holder = (struct holder){ .set = set,
				   .refs = 1,
				   .scope = scope,
				   .principal = principal,
				   .network = caller.network,
				   .is_crowd = principal_is_anonymous(principal) &&
					       (peer->family == 0 || peer_is_loopback(*peer)) };
	list_init(&holder->idle);
	map_insert_link(&set->by_key, key, &holder->by_key);
	return holder;
}

void holder_unref(struct holder **holder)
{
	struct holder *h = *holder;

	*holder = NULL;
	CHECK(h == NULL || h->refs > 0);
	if (h == NULL || --h->refs > 0)
		return;
	CHECK(h->count == 0 && h->waiting == 0 && h->coming == 0 && h->leaving == 0);
	CHECK(list_is_empty(&h->idle));
	map_remove_link(&h->set->by_key, &h->by_key);
	free(h);
}

#define COST_LEAST_MS 2   /* what costs less is not counted */
#define COST_FACTOR 2     /* as much time as it took is for others */
#define COST_MOST_MS 5000 /* that a request may have to wait */

void principal_charge(struct principal *principal, uint64_t began_ns)
{
	uint64_t took_ms = (clock_monotonic_ns() - began_ns) / 1000000;
	uint64_t now_ms = clock_now_ms();

	if (took_ms < COST_LEAST_MS)
		return;
	if (principal->paid_at_ms < now_ms)
		principal->paid_at_ms = now_ms;
	principal->paid_at_ms += COST_FACTOR * took_ms;
	if (principal->paid_at_ms > now_ms + COST_MOST_MS)
		principal->paid_at_ms = now_ms + COST_MOST_MS;
}
