/* SPDX-License-Identifier: Apache-2.0 */
/* One list per class of weights: eight classes from each power of two to the next. */
#include "base/ranking.h"

#include "base/check.h"

#define FINE_BITS 3

static unsigned int class_of(size_t weight)
{
	unsigned int high;

	if (weight < 1u << FINE_BITS)
		return (unsigned int)weight;
	high = 63 - (unsigned int)__builtin_clzll(weight);
	return ((high - FINE_BITS + 1) << FINE_BITS) +
	       (unsigned int)(weight >> (high - FINE_BITS) & ((1u << FINE_BITS) - 1));
}

void ranking_init(struct ranking *ranking)
{
	for (size_t i = 0; i < RANKING_CLASSES; i++)
		list_init(&ranking->classes[i]);
}

void ranked_init(struct ranked *ranked)
{
	list_init(&ranked->link);
	ranked->class = 0;
}

void ranking_set(struct ranking *ranking, struct ranked *ranked, size_t weight)
{
	unsigned int class = class_of(weight);

	CHECK(class < RANKING_CLASSES && ranked->class < RANKING_CLASSES);
	CHECK((ranked->class == 0) == list_is_empty(&ranked->link));
	if (class == ranked->class)
		return;
	list_remove(&ranked->link);
	ranked->class = class;
	if (class > 0)
		list_append(&ranking->classes[class], &ranked->link);
}

struct ranked *ranking_first(const struct ranking *ranking)
{
	for (size_t i = RANKING_CLASSES - 1; i > 0; i--)
		if (!list_is_empty(&ranking->classes[i]))
			return container_of(ranking->classes[i].next, struct ranked, link);
	return NULL;
}
