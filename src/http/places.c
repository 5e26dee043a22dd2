/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of holders by their address; each has its places that give way in two lists, in the order in which they
 * began to wait. Nobody is searched for: the holders that have something to give are in lists by rank.
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

struct holder {
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

/* Puts the holder where it belongs, at the end: it was there already, or has begun to wait. */
static void holder_settle(struct places *places, struct holder *holder)
{
	unsigned int rank = 0;

	if (holder->waiting_count[PLACE_FRESH] + holder->waiting_count[PLACE_KEPT] > 0)
		rank = rank_of(holder->is_trusted ? 1 : holder->places);
	CHECK(rank < PLACES_RANKS);
	if (rank == holder->rank)
		return;
	holder->rank = rank;
	list_remove(&holder->link);
	if (rank > 0)
		list_append(&places->ranks[rank], &holder->link);
}

static struct holder *holder_get(struct places *places, const struct peer *peer)
{
	bool is_trusted = http_trust_has(places->trust, peer);
	uint64_t key = peer_key(is_trusted ? &proxies : peer, places->seed);
	struct holder *holder = map_find(&places->holders, key);

	if (holder != NULL)
		return holder;
	holder = mem_zalloc(sizeof(*holder));
	holder->key = key;
	holder->is_trusted = is_trusted;
	list_init(&holder->link);
	list_init(&holder->waiting[PLACE_FRESH]);
	list_init(&holder->waiting[PLACE_KEPT]);
	map_insert(&places->holders, key, holder);
	return holder;
}

static void holder_free(struct places *places, struct holder *holder)
{
	CHECK(holder->places == 0 && holder->rank == 0);
	map_remove(&places->holders, holder->key);
	free(holder);
}

/* The place that gives way first of the holder's; NULL: none does. */
static struct place *holder_find(const struct holder *holder)
{
	enum place_use use =
		holder->waiting_count[PLACE_KEPT] > holder->waiting_count[PLACE_FRESH] ?
			PLACE_KEPT :
			PLACE_FRESH;

	CHECK(list_is_empty(&holder->waiting[use]) == (holder->waiting_count[use] == 0));
	if (list_is_empty(&holder->waiting[use]))
		return NULL;
	return container_of(holder->waiting[use].next, struct place, link);
}

/* Those of one rank take turns. */
static struct place *places_find(struct places *places)
{
	for (unsigned int rank = PLACES_RANKS - 1; rank > 0; rank--) {
		struct list *holders = &places->ranks[rank];
		struct list *first = holders->next;

		if (first == holders)
			continue;
		list_remove(first);
		list_append(holders, first);
		return holder_find(container_of(first, struct holder, link));
	}
	return NULL;
}

static void place_give_way(struct place *place)
{
	CHECK(place->use != PLACE_USED);
	place->give_way(place);
	CHECK(place->holder == NULL || place->use == PLACE_USED);
	if (place->holder == NULL)
		counter_add(COUNTER_CONNECTIONS_GAVE_WAY);
}

/* The holder, if it has its share already; NULL: it may have another place. */
static const struct holder *find_greedy(const struct places *places, const struct peer *peer)
{
	uint64_t share = places->max / 4 > 0 ? places->max / 4 : 1;
	const struct holder *holder;

	if (!places_are_scarce(places) || peer->family == 0 || peer_is_loopback(*peer) ||
	    http_trust_has(places->trust, peer))
		return NULL;
	holder = map_find(&places->holders, peer_key(peer, places->seed));
	return holder != NULL && holder->places >= share ? holder : NULL;
}

const char *places_make_room(struct places *places, const struct peer *peer)
{
	const char *reason = NULL;

	for (int i = 0; i < TRIES; i++) {
		const struct holder *greedy = find_greedy(places, peer);
		struct place *place;

		if (greedy == NULL && places->count < places->max)
			return NULL;
		reason = greedy != NULL ? "its address has a quarter of limits.connections open" :
					  "limits.connections are open";
		place = greedy != NULL ? holder_find(greedy) : places_find(places);
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
	CHECK(place->holder->waiting_count[place->use] > 0);
	place->holder->waiting_count[place->use]--;
	list_remove(&place->link);
}

static void place_start_waiting(struct place *place)
{
	if (place->use == PLACE_USED)
		return;
	place->holder->waiting_count[place->use]++;
	list_append(&place->holder->waiting[place->use], &place->link);
}

void place_enter(struct place *place, struct places *places, const struct peer *peer,
		 place_fn *give_way)
{
	CHECK(place->holder == NULL && give_way != NULL);
	*place = (struct place){
		.places = places,
		.holder = holder_get(places, peer),
		.give_way = give_way,
		.use = PLACE_FRESH,
	};
	list_init(&place->link);
	places->count++;
	place->holder->places++;
	place_start_waiting(place);
	holder_settle(places, place->holder);
}

void place_set_use(struct place *place, enum place_use use)
{
	CHECK(place->holder != NULL);
	if (place->use == use)
		return;
	place_stop_waiting(place);
	place->use = use;
	place_start_waiting(place);
	holder_settle(place->places, place->holder);
}

void place_leave(struct place *place)
{
	struct holder *holder = place->holder;
	struct places *places = place->places;

	if (holder == NULL)
		return;
	CHECK(places->count > 0 && holder->places > 0);
	place_stop_waiting(place);
	place->holder = NULL;
	places->count--;
	holder->places--;
	holder_settle(places, holder);
	if (holder->places == 0)
		holder_free(places, holder);
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
	CHECK(places->count == 0 && places->holders.count == 0);
	map_fini(&places->holders);
}
