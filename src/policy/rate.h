/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often each caller may do something: buckets that fill evenly. Pure: who a caller is, and what comes of a refusal, is
 * known above. product.md §4
 */
#ifndef MCPGATED_POLICY_RATE_H
#define MCPGATED_POLICY_RATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/list.h"
#include "base/map.h"

/* So many in a time, and `burst` of them at once after a rest. */
struct rate_rule {
	uint64_t calls; /* 0: any number */
	uint64_t per_ms;
	uint64_t burst; /* 0: as many as calls */
};

#define RATE_CALLERS_MAX 65536 /* beyond, the one who has come longest ago is forgotten */

/* All zeros but `recent`, which rate_set_init fills. Must not move. */
struct rate_set {
	struct map by_key;
	struct list recent; /* the one who has come longest ago is first */
	size_t count;
};

void rate_set_init(struct rate_set *set);
void rate_set_fini(struct rate_set *set);
/* After how many milliseconds rate_take would take them; 0: now. The caller has come, though. */
uint64_t rate_wait(struct rate_set *set, uint64_t key, const struct rate_rule *rule, size_t count,
		   uint64_t now_ms) must_check;
/*
 * Takes `count` calls of the caller of this key (a keyed hash of whatever tells callers apart, the rule included). Returns 0;
 * or, with nothing taken, after how many milliseconds they may be tried again. More at once than a full bucket holds are let
 * in when it is full, and the bucket is that much longer empty: a batch is taken as a whole or not.
 */
uint64_t rate_take(struct rate_set *set, uint64_t key, const struct rate_rule *rule, size_t count,
		   uint64_t now_ms) must_check;

#endif
