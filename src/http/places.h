/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection slots ("places") of limits.connections: who holds them, and who gives one up for a
 * newcomer. Unused connections give way: those that have not sent a complete request yet, and idle
 * ones between requests. A connection that waits for its answer or is in the middle of a body
 * stays.
 *
 * At the limit, the address that holds the most places loses one; among its connections, the kind
 * (enum place_use) of which it has more. So a flood of silent connections does not end idle ones,
 * and a flood of idle ones does not end newcomers before they have sent their request. Of that
 * kind, the connection that has waited longest goes.
 *
 * While half of all places are held, one address gets at most a quarter of them; IPv6 addresses
 * count by their first 64 bits. This does not apply to addresses that many clients may share:
 * trusted proxies, and this machine, since an undeclared local proxy would stand for everybody.
 * Trusted proxies also never count as the address that holds the most. DEF-14.
 *
 * Every operation takes constant time.
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
	/* no complete request yet: silent, in a handshake, or in the middle of a head */
	PLACE_FRESH,
	PLACE_KEPT, /* idle between two requests */
	PLACE_USED, /* does not give way */
};

/*
 * The connection must leave its place, or set it to PLACE_USED because unread input was waiting.
 * Called only from places_make_room.
 */
typedef void place_fn(struct place *place);

/* Embedded by connections and by those still in the acceptor. */
struct place {
	struct list link; /* in the list of its address and use */
	struct places *places;
	struct address_places *address; /* NULL: holds no place */
	place_fn *give_way;
	enum place_use use;
};

/*
 * Addresses are ranked by the number of places they hold: exactly up to 15, beyond that to within
 * an eighth.
 */
#define PLACES_RANKS 240

struct places {
	uint64_t max;
	const struct http_trust *trust;
	size_t count;
	uint64_t seed;
	struct map addresses;
	struct list ranks[PLACES_RANKS]; /* of addresses that have places to give up */
};

/* The trust is borrowed until places_fini. */
void places_init(struct places *places, uint64_t max, const struct http_trust *trust);
/* All places must have been left. */
void places_fini(struct places *places);

/*
 * Makes room for a newcomer; may call give_way of other places. Returns NULL, or the reason why
 * there is no room, as a fixed text.
 */
const char *places_make_room(struct places *places, const struct peer *peer) must_check;
/* Whether half of the places are held. */
bool places_are_scarce(const struct places *places);

/* Takes a free place, as PLACE_FRESH. */
void place_enter(struct place *place, struct places *places, const struct peer *peer,
		 place_fn *give_way);
/* If the use changes, the time that the place has waited starts anew. */
void place_set_use(struct place *place, enum place_use use);
/* Also valid if it holds no place. */
void place_leave(struct place *place);

#endif
