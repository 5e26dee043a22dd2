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
static struct conn_place *address_places_find(const struct address_places *address)
{
	enum place_use use =
		address->waiting_count[PLACE_KEPT] > address->waiting_count[PLACE_FRESH] ?
			PLACE_KEPT :
			PLACE_FRESH;

	CHECK(list_is_empty(&address->waiting[use]) == (address->waiting_count[use] == 0));
	if (list_is_empty(&address->waiting[use]))
		return NULL;
	return container_of(address->waiting[use].next, struct conn_place, link);
}

/* Those of one rank take turns. */
static struct conn_place *places_find(struct places *places)
{
	for (unsigned int rank = PLACES_RANKS - 1; rank > 0; rank--) {
		struct list *addresses = &places->ranks[rank];
		struct list *first = addresses->next;

		if (first == addresses)
			continue;
		list_move(addresses, first);
		return address_places_find(container_of(first, struct address_places, link));
	}
	return NULL;
}

static void place_give_way(struct conn_place *place)
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
		struct conn_place *place;

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
static void place_stop_waiting(struct conn_place *place)
{
	if (place->use == PLACE_USED)
		return;
	CHECK(place->address->waiting_count[place->use] > 0);
	place->address->waiting_count[place->use]--;
	list_remove(&place->link);
}

static void place_start_waiting(struct conn_place *place)
{
	if (place->use == PLACE_USED)
		return;
	place->address->waiting_count[place->use]++;
	list_append(&place->address->waiting[place->use], &place->link);
}

void place_enter(struct conn_place *place, struct places *places, const struct peer *peer,
		 place_fn *give_way)
{
	CHECK(place->address == NULL && give_way != NULL);
	*place = (struct conn_place){
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

void place_set_use(struct conn_place *place, enum place_use use)
{
	CHECK(place->address != NULL);
	if (place->use == use)
		return;
	place_stop_waiting(place);
	place->use = use;
	place_start_waiting(place);
	address_places_settle(place->places, place->address);
}

void place_leave(struct conn_place *place)
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

/* ---- who the client behind a proxy is ---- */

/*
 * Each proxy appends an element that names the address it got the request from. So the last element was
 * written by the connection's peer, the one before it by the address that the last one names, and so on.
 * Elements are read from the end as long as their writer is trusted. What stands before them, however much
 * and however malformed, was written by the client and is never looked at. A malformed element names
 * nobody, and reading ends there.
 */

bool http_trust_has(const struct http_trust *trust, const struct peer *peer)
{
	for (size_t i = 0; i < trust->count; i++) {
		if (peer_net_has(&trust->nets[i], peer))
			return true;
	}
	return false;
}

/* ---- Forwarded: elements of pairs, whose values may be quoted ---- */

static size_t skip_spaces(struct slice text, size_t at)
{
	while (at < text.n && (text.p[at] == ' ' || text.p[at] == '\t'))
		at++;
	return at;
}

/* A run of bytes that end neither a name nor an unquoted value. */
static size_t skip_word(struct slice text, size_t at)
{
	while (at < text.n && memchr(" \t,;=\"", text.p[at], 7) == NULL)
		at++;
	return at;
}

/* The value at *at_r, without its quotes; p == NULL: malformed, which includes escapes: no proxy writes them. */
static struct slice take_value(struct slice text, size_t *at_r)
{
	size_t begin = *at_r;
	const char *end;

	if (begin >= text.n || text.p[begin] != '"') {
		*at_r = skip_word(text, begin);
		return slice_of(text.p + begin, *at_r - begin);
	}
	begin++;
	end = memchr(text.p + begin, '"', text.n - begin);
	if (end == NULL || memchr(text.p + begin, '\\', (size_t)(end - text.p) - begin) != NULL)
		return (struct slice){ NULL, 0 };
	*at_r = (size_t)(end - text.p) + 1;
	return slice_between(text.p + begin, end);
}

/* `name=value` at *at_r, of which only `for` matters; false: malformed. */
static bool take_pair(struct slice text, size_t *at_r, struct slice *address_r)
{
	size_t begin = skip_spaces(text, *at_r);
	size_t end = skip_word(text, begin);
	struct slice name = slice_of(text.p + begin, end - begin);
	struct slice value;

	CHECK(*at_r <= text.n);
	if (name.n == 0 || end >= text.n || text.p[end] != '=')
		return false;
	*at_r = end + 1;
	value = take_value(text, at_r);
	if (value.p == NULL)
		return false;
	if (slice_is_equal_nocase(name, SLICE_LIT("for")))
		*address_r = value;
	*at_r = skip_spaces(text, *at_r);
	return true;
}

/* The address of an element; p == NULL: malformed, or none. */
static struct slice read_element(struct slice text)
{
	struct slice address = { NULL, 0 };
	size_t at = 0;

	while (take_pair(text, &at, &address)) {
		if (at == text.n)
			return address;
		if (text.p[at++] != ';')
			break;
	}
	return (struct slice){ NULL, 0 };
}

/* ---- lists ---- */

/* Cuts the last element off; none is left when p is NULL. No proxy writes a comma within one. */
static struct slice take_last(struct slice *list)
{
	const char *comma = list->n > 0 ? memrchr(list->p, ',', list->n) : NULL;
	struct slice last = *list;

	*list = (struct slice){ NULL, 0 };
	if (comma != NULL) {
		*list = slice_between(last.p, comma);
		last = slice_between(comma + 1, last.p + last.n);
	}
	return slice_trim(last);
}

/* X-Forwarded-For goes first: nearly every proxy writes it, and most pass on a Forwarded that the client made up. */
void http_forwarded_apply(const struct http_trust *trust, const struct http_request *request,
			  struct peer *client)
{
	bool has_pairs =
		http_has(request, HTTP_FORWARDED) && !http_has(request, HTTP_X_FORWARDED_FOR);
	struct slice list = request->fields[has_pairs ? HTTP_FORWARDED : HTTP_X_FORWARDED_FOR];

	while (list.n > 0 && http_trust_has(trust, client)) {
		struct slice last = take_last(&list);

		if (!peer_parse(has_pairs ? read_element(last) : last, client))
			return; /* it names no address */
	}
}

bool http_is_forwarded(const struct http_request *request)
{
	return http_has(request, HTTP_FORWARDED) || http_has(request, HTTP_X_FORWARDED_FOR) ||
	       request->has_proxy_field;
}
