/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table keyed by a seeded hash, like that of principals, because peers choose their addresses. A
 * match is confirmed by comparing all parts.
 */
#include "session/holder.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/random.h"
#include "session/principal.h"

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

static struct holder *find(const struct holder_set *set, const struct caller *caller, uint64_t key)
{
	for (struct map_link *link = map_find_link(&set->by_key, key); link != NULL;
	     link = link->next) {
		struct holder *holder = container_of(link, struct holder, by_key);

		if (holder->scope == caller->scope && holder->principal == caller->principal &&
		    holder->network == caller->network)
			return holder;
	}
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

static uint64_t key_of(const struct holder_set *set, const struct caller *caller)
{
	return hash(set->seed, (uintptr_t)caller->scope, (uintptr_t)caller->principal,
		    caller->network);
}

const struct holder *holder_find(const struct holder_set *set, const void *scope,
				 const struct principal *principal, const struct peer *peer)
{
	struct caller caller = make_caller(scope, principal, peer);

	return find(set, &caller, key_of(set, &caller));
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
	uint64_t key = key_of(set, &caller);
	struct holder *holder = find(set, &caller, key);

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
