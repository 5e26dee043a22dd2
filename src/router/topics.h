/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sessions of a pool have subscribed to: a bounded set of URIs, spelled as route_spell_uri
 * does. Who subscribes, and what the server says to that, is sharing's matter. bridging.md §1.5; UTIL-SUBS-01.
 */
#ifndef MCPGATED_ROUTER_TOPICS_H
#define MCPGATED_ROUTER_TOPICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"

#define TOPICS_MAX 16384
#define TOPICS_BYTES_MAX (1024 * 1024)

struct call;

struct topic {
	struct list link;
	struct map_link by_key;
	struct call *first;  /* the request that a child was sent; NULL: it has agreed */
	struct list waiting; /* calls, for that one's answer */
	size_t subscribers;
	size_t length;
	char uri[];
};

struct topics {
	struct list all;
	struct map by_key;
	uint64_t seed; /* 0: there were none yet */
	size_t count;
	size_t bytes;
};

void topics_init(struct topics *topics);
void topics_fini(struct topics *topics);
struct slice topic_uri(const struct topic *topic);
/* NULL: there is none. */
struct topic *topics_find(const struct topics *topics, struct slice uri);
/* Each new child is told all of them before its first call: there is only room for so many. DEF-11 */
bool topics_have_room(const struct topics *topics, size_t size);
/* A new one, whose URI must not be there yet. */
struct topic *topics_add(struct topics *topics, struct slice uri, struct call *first);
/* Frees it. */
void topics_remove(struct topics *topics, struct topic *topic);
/*
 * Those that are `uri` or above it are beginnings of it: writes the lengths of the first `max` of them, and returns
 * how many there are.
 */
size_t topics_find_above(const struct topics *topics, struct slice uri, size_t *lengths_r,
			 size_t max);
/* Whether one of them is `uri` or above it; takes as long as that is, however many there are. */
bool topics_concern(const struct topics *topics, struct slice uri);

#endif
