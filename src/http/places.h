/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places that limits.connections gives: who holds them, and who gives his to a newcomer. What nobody uses gives
 * way: a connection that has sent no whole request yet, or waits for its next one. One that is owed an answer, or is
 * in the middle of a body, stays.
 *
 * At the limit the address that holds most loses a place; of its connections, the kind (enum place_use) of which it
 * has more: so neither a flood of silent connections ends the others between two requests, nor a flood of those
 * ends newcomers before they have sent theirs. Of that kind the one that has waited longest goes.
 *
 * While half of all places are held, one address holds at most a quarter; IPv6 counts by its first 64 bits. That does
 * not hold for addresses that many clients may share: trusted proxies, and this machine, because a proxy on it that
 * nobody has declared would be everybody. Trusted proxies do not count as holding much, either. DEF-14.
 *
 * Every step takes the same time, however many places there are.
 */
#ifndef MCPGATED_HTTP_PLACES_H
#define MCPGATED_HTTP_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "http/forwarded.h"
#include "io/peer.h"

struct address_places;
struct place;

enum place_use {
	PLACE_FRESH, /* no whole request has come: silent, in a handshake, in the middle of a head */
	PLACE_KEPT,  /* between two requests */
	PLACE_USED,  /* does not give way */
};

/*
 * Either leaves, or comes into use, because something had come that was not read yet. Called from places_make_room
 * alone.
 */
typedef void place_fn(struct place *place);

/* Embedded by connections, and by what becomes one. */
struct place {
	struct list link; /* among its address's of the same use */
	struct places *places;
	struct address_places *address; /* NULL: holds none */
	place_fn *give_way;
	enum place_use use;
};

/* Addresses are kept by about how many places they hold: exactly up to 15, and to an eighth beyond. */
#define PLACES_RANKS 240

struct places {
	uint64_t max;
	const struct http_trust *trust;
	size_t count;
	uint64_t seed;
	struct map addresses;
	struct list ranks[PLACES_RANKS]; /* of addresses that have something to give */
};

/* The trust is borrowed until places_fini. */
void places_init(struct places *places, uint64_t max, const struct http_trust *trust);
/* All have left. */
void places_fini(struct places *places);

/* Makes room for a newcomer. Returns NULL, or why there is none. Others' give_way may be called. */
const char *places_make_room(struct places *places, const struct peer *peer) must_check;
/* Whether half of the places are held. */
bool places_are_scarce(const struct places *places);

/* Takes a place that there is: PLACE_FRESH. */
void place_enter(struct place *place, struct places *places, const struct peer *peer,
		 place_fn *give_way);
/* With another use than before it begins to wait anew. */
void place_set_use(struct place *place, enum place_use use);
/* Also if it holds none. */
void place_leave(struct place *place);

#endif
