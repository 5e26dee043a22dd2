/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rate limits per caller: token buckets. Callers are identified, and refusals handled, in the
 * layers above. mcpgated.yaml(5)
 */
#ifndef MCPGATED_POLICY_RATE_H
#define MCPGATED_POLICY_RATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/list.h"
#include "base/map.h"

/* `calls` per `per_ms`, and up to `burst` at once after a pause. */
struct rate_rule {
	uint64_t calls; /* 0: unlimited */
	uint64_t per_ms;
	uint64_t burst; /* 0: the same as calls */
};

#define RATE_CALLERS_MAX 65536 /* beyond that, the least recently active is forgotten */

/* All zeros except `recent`; rate_set_init initializes it. Must not move. */
struct rate_set {
	struct map by_key;
	struct list recent; /* the caller that was active longest ago is first */
	size_t count;
};

void rate_set_init(struct rate_set *set);
void rate_set_fini(struct rate_set *set);
/*
 * After how many milliseconds rate_take would succeed; 0: now. This counts as activity of the
 * caller.
 */
uint64_t rate_wait(struct rate_set *set, uint64_t key, const struct rate_rule *rule, size_t count,
		   uint64_t now_ms) must_check;
/*
 * Takes `count` calls from the bucket of `key` (a keyed hash of everything that distinguishes
 * callers, including the rule). Returns 0, or takes nothing and returns the number of milliseconds
 * after which to retry. A count larger than a full bucket is accepted when the bucket is full, and
 * the bucket then stays empty correspondingly longer: a batch is accepted as a whole or not at all.
 */
uint64_t rate_take(struct rate_set *set, uint64_t key, const struct rate_rule *rule, size_t count,
		   uint64_t now_ms) must_check;

#endif
