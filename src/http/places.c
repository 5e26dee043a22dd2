/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of addresses; each has its places that give way in two lists, in the order in which they
 * began to wait. Nobody is searched for: the addresses that have something to give are in lists by rank.
 */
#include "http/places.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "obs/counters.h"

/* Of those asked to give way so many may come into use instead: they have just sent something. */
#define TRIES 16
#define EXACT_RANKS 16

/* Stands for all trusted proxies: of a prefix that is reserved and nobody's. RFC 4291 s2.4 */
static const struct peer proxies = { .family = AF_INET6, .address = { [7] = 2 } };

struct address_places {
	struct list link;  /* in ranks; by itself: it has nothing to give */
	unsigned int rank; /* 0: in none */
	bool is_trusted;   /* all trusted proxies together: many clients */
	uint64_t key;
	size_t places;
	struct list waiting[PLACE_USED]; /* by use; longest first */
	size_t waiting_count[PLACE_USED];
};

/* With three bits behind the first one. */
static unsigned int rank_of(size_t places)
{
	unsigned int shift;

	if (places < EXACT_RANKS)
		return (unsigned int)places;
	shift = 63 - (unsigned int)__builtin_clzll(places) - 3;
	CHECK(places >> 32 == 0 && places >> shift < 16);
	return shift * 8 + (unsigned int)(places >> shift);
}

/* Puts the address where it belongs, at the end: it was there already, or has begun to wait. */
static void address_places_settle(struct places *places, struct address_places *address)
{
	unsigned int rank = 0;

	if (address->waiting_count[PLACE_FRESH] + address->waiting_count[PLACE_KEPT] > 0)
		rank = rank_of(address->is_trusted ? 1 : address->places);
	CHECK(rank < PLACES_RANKS);
	if (rank == address->rank)
		return;
	address->rank = rank;
	list_remove(&address->link);
	if (rank > 0)
		list_append(&places->ranks[rank], &address->link);
}

static struct address_places *address_places_get(struct places *places, const struct peer *peer)
{
	bool is_trusted = http_trust_has(places->trust, peer);
	uint64_t key = peer_key(is_trusted ? &proxies : peer, places->seed);
	struct address_places *address = map_find(&places->addresses, key);

	if (address != NULL)
		return address;
	address = mem_zalloc(sizeof(*address));
	address->key = key;
	address->is_trusted = is_trusted;
	list_init(&address->link);
	list_init(&address->waiting[PLACE_FRESH]);
	list_init(&address->waiting[PLACE_KEPT]);
	map_insert(&places->addresses, key, address);
	return address;
}

static void address_places_free(struct places *places, struct address_places *address)
{
	CHECK(address->places == 0 && address->rank == 0);
	map_remove(&places->addresses, address->key);
	free(address);
}

/* The place that gives way first of the address's; NULL: none does. */
static struct place *address_places_find(const struct address_places *address)
{
	enum place_use use =
		address->waiting_count[PLACE_KEPT] > address->waiting_count[PLACE_FRESH] ?
			PLACE_KEPT :
			PLACE_FRESH;

	CHECK(list_is_empty(&address->waiting[use]) == (address->waiting_count[use] == 0));
	if (list_is_empty(&address->waiting[use]))
		return NULL;
	return container_of(address->waiting[use].next, struct place, link);
}

/* Those of one rank take turns. */
static struct place *places_find(struct places *places)
{
	for (unsigned int rank = PLACES_RANKS - 1; rank > 0; rank--) {
		struct list *addresses = &places->ranks[rank];
		struct list *first = addresses->next;

		if (first == addresses)
			continue;
		list_remove(first);
		list_append(addresses, first);
		return address_places_find(container_of(first, struct address_places, link));
	}
	return NULL;
}

static void place_give_way(struct place *place)
{
	CHECK(place->use != PLACE_USED);
	place->give_way(place);
	CHECK(place->address == NULL || place->use == PLACE_USED);
	if (place->address == NULL)
		counter_add(COUNTER_CONNECTIONS_GAVE_WAY);
}

/* The address, if it has its share already; NULL: it may have another place. */
static const struct address_places *find_greedy(const struct places *places,
						const struct peer *peer)
{
	uint64_t share = places->max / 4 > 0 ? places->max / 4 : 1;
	const struct address_places *address;

	if (!places_are_scarce(places) || peer->family == 0 || peer_is_loopback(*peer) ||
	    http_trust_has(places->trust, peer))
		return NULL;
	address = map_find(&places->addresses, peer_key(peer, places->seed));
	return address != NULL && address->places >= share ? address : NULL;
}

const char *places_make_room(struct places *places, const struct peer *peer)
{
	const char *reason = NULL;

	for (int i = 0; i < TRIES; i++) {
		const struct address_places *greedy = find_greedy(places, peer);
		struct place *place;

		if (greedy == NULL && places->count < places->max)
			return NULL;
		reason = greedy != NULL ? "its address has a quarter of limits.connections open" :
					  "limits.connections are open";
		place = greedy != NULL ? address_places_find(greedy) : places_find(places);
		if (place == NULL)
			break;
		place_give_way(place);
	}
	return reason;
}

bool places_are_scarce(const struct places *places)
{
	return places->count >= places->max - places->max / 2;
}

/* Out of the list that it waits in, if it does. */
static void place_stop_waiting(struct place *place)
{
	if (place->use == PLACE_USED)
		return;
	CHECK(place->address->waiting_count[place->use] > 0);
	place->address->waiting_count[place->use]--;
	list_remove(&place->link);
}

static void place_start_waiting(struct place *place)
{
	if (place->use == PLACE_USED)
		return;
	place->address->waiting_count[place->use]++;
	list_append(&place->address->waiting[place->use], &place->link);
}

void place_enter(struct place *place, struct places *places, const struct peer *peer,
		 place_fn *give_way)
{
	CHECK(place->address == NULL && give_way != NULL);
	*place = (struct place){
		.places = places,
		.address = address_places_get(places, peer),
		.give_way = give_way,
		.use = PLACE_FRESH,
	};
	list_init(&place->link);
	places->count++;
	place->address->places++;
	place_start_waiting(place);
	address_places_settle(places, place->address);
}

void place_set_use(struct place *place, enum place_use use)
{
	CHECK(place->address != NULL);
	if (place->use == use)
		return;
	place_stop_waiting(place);
	place->use = use;
	place_start_waiting(place);
	address_places_settle(place->places, place->address);
}

void place_leave(struct place *place)
{
	struct address_places *address = place->address;
	struct places *places = place->places;

	if (address == NULL)
		return;
	CHECK(places->count > 0 && address->places > 0);
	place_stop_waiting(place);
	place->address = NULL;
	places->count--;
	address->places--;
	address_places_settle(places, address);
	if (address->places == 0)
		address_places_free(places, address);
}

void places_init(struct places *places, uint64_t max, const struct http_trust *trust)
{
	CHECK(max > 0);
	*places = (struct places){ .max = max, .trust = trust };
	random_bytes(&places->seed, sizeof(places->seed));
	for (unsigned int rank = 0; rank < PLACES_RANKS; rank++)
		list_init(&places->ranks[rank]);
}

void places_fini(struct places *places)
{
	CHECK(places->count == 0 && places->addresses.count == 0);
	map_fini(&places->addresses);
}
