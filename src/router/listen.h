/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changes at a server of the modern era: it tells only who listens, and only what was asked for. Each such upstream
 * has one subscription for its pool: the lists that the server tells the changes of, and the resources that the pool's
 * clients have subscribed to. bridging.md §2.2; BACK-MSG-03, BACK-PROC-05.
 */
#ifndef MCPGATED_ROUTER_LISTEN_H
#define MCPGATED_ROUTER_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "jsonrpc/scan.h"

struct listen;
struct upstream;

/* The upstream is ready. Nothing for one of the legacy era, as all of the following. */
void listen_begin(struct upstream *upstream);
/* It is closed. */
void listen_end(struct upstream *upstream);
/* What its pool has subscribed to is something else. Later in the turn the server is asked anew. */
void listen_note_change(struct upstream *upstream);
/*
 * The request of this id, which is in flight at the upstream although nothing was sent, wants to subscribe to `uri` (as
 * subscriptions_spell_uri writes it): it gets its response once the server has agreed, or has not.
 */
void listen_subscribe(struct upstream *upstream, uint64_t id, struct slice uri);
/* One that wants to end a subscription gets it at once. */
void listen_unsubscribe(struct upstream *upstream, uint64_t id);
/* Whether a notification belongs to the subscription, so that it is for the pool. */
bool listen_covers(const struct upstream *upstream, const struct envelope *env);
/* The server agrees to a subscription, or ends it. False: the notification is about something else. */
bool listen_take_notification(struct upstream *upstream, const struct envelope *env);

#endif
