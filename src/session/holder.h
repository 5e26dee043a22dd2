/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much one caller holds of a limited resource: of all sessions, or of a server's processes. A
 * caller is a principal; anonymous callers are distinguished by their address, where all IPv6
 * addresses of a /64 count as one.
 */
#ifndef MCPGATED_SESSION_HOLDER_H
#define MCPGATED_SESSION_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "io/peer.h"

struct principal;

struct holder {
	struct map_link by_key;
	struct holder_set *set;
	unsigned int refs;
	/* What the count is for: the set of sessions, a server or a limit; only compared. */
	const void *scope;
	const struct principal *principal;
	uint64_t network;
	bool is_crowd;    /* anonymous, of this machine: may be an undeclared proxy for everybody */
	struct list idle; /* its unused sessions; idle longest first */
	size_t count;     /* that it holds */
	size_t waiting; /* that it waits for; counted while callers are compared (router/process_slots) */
	size_t coming;  /* of those that it waits for, promised to it */
	size_t leaving; /* of those that it holds, promised to others */
};

/* Must not move. Needs no cleanup: a set without references holds no memory. */
struct holder_set {
	struct map by_key;
	uint64_t seed;
};

void holder_set_init(struct holder_set *set);
/*
 * Returns a reference to the holder of this caller. Whoever has one must also have one to the
 * principal.
 */
struct holder *holder_get(struct holder_set *set, const void *scope,
			  const struct principal *principal, const struct peer *peer);
/* The holder of this caller if there is one; else NULL. */
const struct holder *holder_find(const struct holder_set *set, const void *scope,
				 const struct principal *principal, const struct peer *peer);
/*
 * A number for this caller that stays the same across connections: for counting callers that hold
 * nothing.
 */
uint64_t holder_key(const struct holder_set *set, const void *scope,
		    const struct principal *principal, const struct peer *peer);
/*
 * The same without a scope, for what one caller causes: log lines, records. principal NULL: nobody
 * knows who it is. Unpredictable for peers, as keys of maps have to be.
 */
uint64_t holder_number(const struct principal *principal, const struct peer *peer);
/* Accepts NULL; sets the caller's pointer to NULL. */
void holder_unref(struct holder **holder);

#endif
