/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much one caller holds of something that there is a limit for: of all sessions, or of a server's processes. A
 * caller is a principal; anonymous ones are told apart by the address that they come from, as far as that goes: IPv6
 * addresses of one network (/64) are one.
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
	const void *
		scope; /* what it is about: the set of sessions, a server, a limit; only compared */
	const struct principal *principal;
	uint64_t network;
	bool is_crowd; /* anonymous, of this machine: a proxy that nobody has declared would be everybody */
	struct list idle; /* of its sessions, those that nobody uses; longest first */
	size_t count;     /* that it holds */
	size_t waiting; /* that it waits for: kept up by pools of principals; of sessions, while reclaim compares */
	size_t coming;  /* of those that it waits for, promised to it */
	size_t leaving; /* of those that it holds, promised to others */
};

/* Must not move. Nothing to release: a set without references holds no memory. */
struct holder_set {
	struct map by_key;
	uint64_t seed;
};

void holder_set_init(struct holder_set *set);
/* A reference to this caller's; whoever has one has one to the principal as well. */
struct holder *holder_get(struct holder_set *set, const void *scope,
			  const struct principal *principal, const struct peer *peer);
/* This caller's, if it holds, or waits for, anything; or NULL. */
const struct holder *holder_find(const struct holder_set *set, const void *scope,
				 const struct principal *principal, const struct peer *peer);
/* A number for this caller, the same whenever it comes: for what is counted of those who hold nothing. */
uint64_t holder_key(const struct holder_set *set, const void *scope,
		    const struct principal *principal, const struct peer *peer);
/* Accepts NULL; sets the caller's pointer to NULL. */
void holder_unref(struct holder **holder);

#endif
