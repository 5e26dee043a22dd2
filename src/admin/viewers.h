/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Those who look at the status page: each gets a snapshot of everything once a second, as an event, for as long as it looks.
 * Nothing is made while nobody does, and never more than one a second: who comes is given the last one first. Who does not take what is there already misses snapshots, and is ended if that lasts.
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
	size_t count; /* on their way included; at most VIEWERS_MAX */
	struct timer every;
	struct buf last; /* the event that was made at last_ms, for those who come soon after */
	uint64_t last_ms;
};

void viewers_init(struct viewers *viewers);
/* When nobody looks any more. */
void viewers_fini(struct viewers *viewers);
/* The exchange that answers with the snapshots; NULL: there are too many, and the answer has said so. */
struct http_exchange *viewers_join(const struct inquiry *inquiry);

#endif
