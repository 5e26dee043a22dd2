/* SPDX-License-Identifier: Apache-2.0 */
/* A table by a seeded hash, as that of principals: peers choose their addresses. All parts are compared in the end. */
#include "session/holder.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "session/principal.h"

#define NETWORK_BYTES 8 /* of an IPv6 address: who has one address of a network may have all */

/* IPv4 addresses get numbers that, as networks of IPv6, are reserved and nobody's. RFC 4291 s2.4 */
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

struct holder *holder_get(struct holder_set *set, const void *scope,
			  const struct principal *principal, const struct peer *peer)
{
	struct {
		const void *scope;
		const struct principal *principal;
		uint64_t network;
	} who = { scope, principal, principal_is_anonymous(principal) ? network_of(peer) : 0 };
	uint64_t key = text_hash(set->seed, slice_of((const char *)&who, sizeof(who)));
	struct holder *holder;

	for (struct map_link *link = map_find_link(&set->by_key, key); link != NULL;
	     link = link->next) {
		holder = container_of(link, struct holder, by_key);
		if (holder->scope == scope && holder->principal == principal &&
		    holder->network == who.network) {
			holder->refs++;
			return holder;
		}
	}
	holder = mem_alloc(sizeof(*holder));
	*holder = (struct holder){ .set = set,
				   .refs = 1,
				   .scope = scope,
				   .principal = principal,
				   .network = who.network };
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
	map_remove_link(&h->set->by_key, &h->by_key);
	free(h);
}
