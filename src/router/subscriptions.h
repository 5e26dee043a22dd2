/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subscriptions of the members of a shared pool: a bounded set of URIs in a canonical spelling.
 * subscribe.c tracks who subscribes and what the server answers. bridging.md §1.5; UTIL-SUBS-01.
 */
#ifndef MCPGATED_ROUTER_SUBSCRIPTIONS_H
#define MCPGATED_ROUTER_SUBSCRIPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"
#include "router/call.h"

#define SUBSCRIPTIONS_MAX 16384
#define SUBSCRIPTIONS_BYTES_MAX (1024 * 1024)

struct subscription {
	struct list link;
	struct map_link by_key;
	struct call *first; /* whose request goes to a server; NULL: the server has agreed */
	struct call_watcher leader; /* watches `first` */
	struct wait_queue waiting;  /* calls that wait for the answer to `first` */
	size_t subscribers;
	size_t length;
	char uri[];
};

struct subscriptions {
	struct list all;
	struct map by_key;
	uint64_t seed; /* 0: never had an entry */
	size_t count;
	size_t bytes;
};

/*
 * The inside of a JSON string with the fewest possible escapes: the same text for every spelling of
 * a URI. Empty if `uri` is not a string. Borrowed from `uri` or stored in `room`, which is
 * initially empty and freed by the caller.
 */
struct slice subscriptions_spell_uri(struct json uri, struct buf *room);

void subscriptions_init(struct subscriptions *set);
void subscriptions_fini(struct subscriptions *set);
struct slice subscription_uri(const struct subscription *subscription);
/* NULL: none. */
struct subscription *subscriptions_find(const struct subscriptions *set, struct slice uri);
/* Each new child is told all of them before its first call, which limits their size. DEF-11 */
bool subscriptions_have_room(const struct subscriptions *set, size_t size);
/* Adds an entry for a URI that is not in the set; the caller sets `leader` and `waiting`. */
struct subscription *subscriptions_add(struct subscriptions *set, struct slice uri,
				       struct call *first);
/* Removes and frees the entry. */
void subscriptions_remove(struct subscriptions *set, struct subscription *subscription);
/*
 * Entries that equal `uri` or are above it are prefixes of it: writes the lengths of the first
 * `max` of them and returns how many there are.
 */
size_t subscriptions_find_above(const struct subscriptions *set, struct slice uri,
				size_t *lengths_r, size_t max);
/*
 * Whether an entry equals `uri` or is above it. Takes time proportional to the URI's length only.
 */
bool subscriptions_concern(const struct subscriptions *set, struct slice uri);

#endif
