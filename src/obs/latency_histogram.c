/* SPDX-License-Identifier: Apache-2.0 */
/* Bucket bounds are powers of two, so the bucket is found without a search. */
#include "obs/latency_histogram.h"

#include <string.h>

#include "base/check.h"

#define SLOT_MS 10000

void latency_histogram_add(struct latency_histogram *h, uint64_t took_ms, uint64_t now_ms)
{
	uint64_t slot = now_ms / SLOT_MS;
	size_t bucket = took_ms == 0 ? 0 : 64 - (size_t)__builtin_clzll(took_ms);

	if (bucket >= LATENCY_HISTOGRAM_BUCKETS)
		bucket = LATENCY_HISTOGRAM_BUCKETS - 1;
	/* Clears the slots that passed without a call. */
	CHECK(slot >= h->slot);
	if (slot - h->slot >= LATENCY_HISTOGRAM_SLOTS)
		memset(h->slots, 0, sizeof(h->slots));
	else
		for (uint64_t s = h->slot + 1; s <= slot; s++)
			h->slots[s % LATENCY_HISTOGRAM_SLOTS] = 0;
	h->slot = slot;
	h->slots[slot % LATENCY_HISTOGRAM_SLOTS]++;
	h->buckets[bucket]++;
	h->count++;
	h->sum_ms += took_ms;
}

uint64_t latency_histogram_last_minute(const struct latency_histogram *h, uint64_t now_ms)
{
	uint64_t now = now_ms / SLOT_MS;
	uint64_t count = 0;

	for (uint64_t ago = 1; ago < LATENCY_HISTOGRAM_SLOTS && ago <= now; ago++) {
		uint64_t slot = now - ago;

		if (slot <= h->slot && h->slot - slot < LATENCY_HISTOGRAM_SLOTS)
			count += h->slots[slot % LATENCY_HISTOGRAM_SLOTS];
	}
	return count;
}

uint64_t latency_histogram_bound_ms(size_t bucket)
{
	CHECK(bucket < LATENCY_HISTOGRAM_BUCKETS);
	return bucket < LATENCY_HISTOGRAM_BUCKETS - 1 ? UINT64_C(1) << bucket : UINT64_MAX;
}

uint64_t latency_histogram_quantile_ms(const struct latency_histogram *h, unsigned int permille)
{
	uint64_t wanted = (h->count * permille + 999) / 1000;
	uint64_t seen = 0;

	CHECK(permille <= 1000);
	if (h->count == 0)
		return 0;
	for (size_t i = 0; i < LATENCY_HISTOGRAM_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen >= wanted)
			return latency_histogram_bound_ms(i);
	}
	return UINT64_MAX;
}
