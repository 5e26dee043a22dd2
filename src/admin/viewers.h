/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The viewers of the status page: each gets a snapshot once a second, as an event, until it
 * disconnects. No snapshot is made without viewers, and never more than one a second: a new viewer
 * gets the last one first. A viewer that has not read the previous snapshot misses the next, and is
 * disconnected if that continues.
 */
#ifndef MCPGATED_ADMIN_VIEWERS_H
#define MCPGATED_ADMIN_VIEWERS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/list.h"
#include "io/loop.h"

#define VIEWERS_MAX 16
#define VIEWERS_EVERY_MS 1000
#define VIEWERS_BEHIND_MAX_MS 10000

struct inquiry;
struct http_exchange;

struct viewers {
	struct list all;
	size_t count; /* including those about to begin; at most VIEWERS_MAX */
	struct timer every;
	struct buf last; /* the event made at last_ms, for viewers that come soon after */
	uint64_t last_ms;
};

void viewers_init(struct viewers *viewers);
/* There must be no viewers. */
void viewers_fini(struct viewers *viewers);
/*
 * Returns the exchange that sends the snapshots. NULL: there are too many viewers, and the request
 * has been answered.
 */
struct http_exchange *viewers_join(const struct inquiry *inquiry);

#endif
