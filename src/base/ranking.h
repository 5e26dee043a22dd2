/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has most. Owners of a shared bound are ranked by what they have of it, so that whoever has
 * most is found at once when somebody must give up something. Each step costs the same, however
 * many owners there are; in return, weights that differ by less than an eighth count as equal, and
 * of these the one that has stayed so longest comes first.
 */
#pragma once

#include <stddef.h>

#include "base/list.h"

#define RANKING_CLASSES 512

struct ranking {
	struct list classes[RANKING_CLASSES];
};

/* Embedded in an owner. */
struct ranked {
	struct list link;
	unsigned int class; /* 0: in no ranking */
};

void ranking_init(struct ranking *ranking);
void ranked_init(struct ranked *ranked);
/* Ranks it by this weight; 0: no longer. */
void ranking_set(struct ranking *ranking, struct ranked *ranked, size_t weight);
/* The one with most; NULL: there is none. */
struct ranked *ranking_first(const struct ranking *ranking);
