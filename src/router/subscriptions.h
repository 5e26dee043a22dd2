/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subscriptions of the members of a shared pool: a bounded set of URIs in a canonical spelling
 * (text_set_spell); who subscribes, and what the server answers; and who is told of a change.
 * bridging.md §1.5; UTIL-SUBS-01.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "io/loop.h"
#include "jsonrpc/scan.h"
#include "mcp/method.h"
#include "router/call.h"

struct pool;
struct pool_member;
struct upstream;

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
	size_t longest; /* no entry since there was none is longer */
};

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

/* ---- subscribe ---- */

/*
 * resources/subscribe and resources/unsubscribe of the members of a pool. The server sees
 * the first subscriber's request; others wait for its outcome, and later ones are answered here.
 * All servers of the pool are subscribed, because a change may occur in any of them. UTIL-SUBS-01,
 * DEF-11.
 */

/*
 * Takes a linked call with one of the two methods. Returns false if it must be
 * sent to a server; else it has been answered, or waits.
 */
bool subscribe_take(struct call *call, const struct envelope *env);
/* The client ends: drops all its subscriptions. */
void subscribe_forget(struct client *client);
/* The client has these subscriptions from an earlier process of ours. */
void subscribe_again(struct client *client);
/* Subscribes an upstream that is ready to what the pool has subscribed to. */
void subscribe_replay(struct upstream *upstream);

/* ---- notification fanout ---- */

/*
 * Server notifications for all members of a pool that they concern: list_changed and
 * resources/updated. bridging.md §1.7.
 */

/* What the members of a shared pool are yet to be told. */
struct notices {
	struct list updates; /* of lists and resources */
	struct map updates_by_key;
	size_t update_bytes;
	struct update *current; /* some members know it already; NULL: none is being told */
	struct list *next;      /* who is told of it next: as the link of a member */
	struct timer telling;
	uint64_t rules; /* server_rules, when they last knew which lists there are */
};
void notification_fanout_init(struct notices *notices);
void notification_fanout_fini(struct notices *notices);
/* The member is about to leave its pool. */
void notification_fanout_leave(const struct pool_member *member);
/* `env` is such a notification. */
void notification_fanout_take(struct upstream *upstream, const struct envelope *env,
			      const struct method *method);
/*
 * A pool's lists may have changed: notifies its members, of the lists whose changes the server
 * reports.
 */
void notification_fanout_tell_changes(struct pool *pool);
/* The same for one member, which was away. */
void notification_fanout_tell_member(struct pool_member *member);
/*
 * A session's subscribed resources may have changed: it had no process that would have reported it.
 */
void notification_fanout_tell_updates(struct pool *pool);
