/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes at a modern server, which notifies only listeners, and only of what they asked for. Each
 * such upstream has one subscription for its pool: to the lists whose changes the server reports
 * and the resources that the pool's clients have subscribed to. bridging.md §2.2; BACK-MSG-03,
 * BACK-PROC-05.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "jsonrpc/scan.h"

struct upstream;

/* The upstream is ready. This and all of the following are no-ops for a legacy upstream. */
void listen_begin(struct upstream *upstream);
/* The upstream is closed. */
void listen_end(struct upstream *upstream);
/* Another gateway goes on with the upstream, and subscribes for itself. */
void listen_hand_over(struct upstream *upstream);
/*
 * The pool's subscriptions have changed: renews the server's subscription later in this loop turn.
 */
void listen_note_change(struct upstream *upstream);
/*
 * A request to subscribe to `uri` (spelled by text_set_spell), registered in flight at the
 * upstream under this id although nothing was sent: it is answered once the server has agreed or
 * has not.
 */
void listen_subscribe(struct upstream *upstream, uint64_t id, struct slice uri);
/* Whether a notification belongs to the subscription, so that it is for the pool. */
bool listen_covers(const struct upstream *upstream, const struct envelope *env);
/*
 * The server acknowledges or ends a subscription. False: the notification is about something else.
 */
bool listen_take_notification(struct upstream *upstream, const struct envelope *env);
