/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the members of a shared pool have subscribed to: a bounded set of URIs, all spelled alike. Who subscribes, and
 * what the server says to that, is known to subscribe.c. bridging.md §1.5; UTIL-SUBS-01.
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
	struct call *first;         /* whose request a server is sent; NULL: it has agreed */
	struct call_watcher leader; /* of that one */
	struct wait_queue waiting;  /* calls, for that one's answer */
	size_t subscribers;
	size_t length;
	char uri[];
};

struct subscriptions {
	struct list all;
	struct map by_key;
	uint64_t seed; /* 0: there were none yet */
	size_t count;
	size_t bytes;
};

/*
 * The inside of a JSON string with as few escapes as there can be: the same text for all ways to write a URI. Empty if
 * `uri` is no string. It is borrowed from `uri` or stands in `room`, which is empty before and ended by the caller.
 */
struct slice subscriptions_spell_uri(struct json uri, struct buf *room);

void subscriptions_init(struct subscriptions *set);
void subscriptions_fini(struct subscriptions *set);
struct slice subscription_uri(const struct subscription *subscription);
/* NULL: there is none. */
struct subscription *subscriptions_find(const struct subscriptions *set, struct slice uri);
/* Each new child is told all of them before its first call: there is only room for so many. DEF-11 */
bool subscriptions_have_room(const struct subscriptions *set, size_t size);
/* A new one, whose URI must not be there yet; `leader` and `waiting` are the caller's to fill in. */
struct subscription *subscriptions_add(struct subscriptions *set, struct slice uri,
				       struct call *first);
/* Frees it. */
void subscriptions_remove(struct subscriptions *set, struct subscription *subscription);
/*
 * Those that are `uri` or above it are beginnings of it: writes the lengths of the first `max` of them, and returns
 * how many there are.
 */
size_t subscriptions_find_above(const struct subscriptions *set, struct slice uri,
				size_t *lengths_r, size_t max);
/* Whether one of them is `uri` or above it; takes as long as that is, however many there are. */
bool subscriptions_concern(const struct subscriptions *set, struct slice uri);

#endif
