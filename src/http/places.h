/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose a connection is, behind a proxy too, and how many each address may have.
 *
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
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "http/parse.h"
#include "io/peer.h"

struct address_places;
struct conn_place;

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
typedef void place_fn(struct conn_place *place);

/* Embedded by connections and by those still in the acceptor. */
struct conn_place {
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
void place_enter(struct conn_place *place, struct places *places, const struct peer *peer,
		 place_fn *give_way);
/* If the use changes, the time that the place has waited starts anew. */
void place_set_use(struct conn_place *place, enum place_use use);
/* Also valid if it holds no place. */
void place_leave(struct conn_place *place);

/* ---- who the client behind a proxy is ---- */

/*
 * Determines which client sent a request: the peer of the connection or, if that is a trusted
 * proxy, the address that it reports. The fields are ignored from anybody else. Forwarded scheme
 * and host are not used: the configuration defines our own addresses. RFC 7239; DEF-07, SEC-15.
 */

struct http_trust {
	const struct peer_net *nets; /* the trusted proxies; borrowed */
	size_t count;
};

bool http_trust_has(const struct http_trust *trust, const struct peer *peer);

/*
 * `client` is initially the peer of the connection. It is replaced by the forwarded address as long
 * as it is a trusted proxy.
 */
void http_forwarded_apply(const struct http_trust *trust, const struct http_request *request,
			  struct peer *client);
/*
 * Whether the request has a field that proxies add (Forwarded, X-Forwarded-*, X-Real-IP, Via, CF-*
 * …) and clients do not. SEC-69
 */
bool http_is_forwarded(const struct http_request *request);
