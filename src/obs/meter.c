/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets are powers of two: the right one is found without a search. */
#include "obs/meter.h"

#include <string.h>

#define SLOT_MS 10000

static size_t bucket_of(uint64_t took_ms)
{
	size_t bucket = took_ms == 0 ? 0 : 64 - (size_t)__builtin_clzll(took_ms);

	return bucket < METER_BUCKETS ? bucket : METER_BUCKETS - 1;
}

/* Empties the slots that have passed without a call. */
static void meter_turn_to(struct meter *meter, uint64_t slot)
{
	if (slot - meter->slot >= METER_SLOTS)
		memset(meter->slots, 0, sizeof(meter->slots));
	for (uint64_t s = meter->slot + 1; s <= slot && slot - meter->slot < METER_SLOTS; s++)
		meter->slots[s % METER_SLOTS] = 0;
	meter->slot = slot;
}

void meter_add(struct meter *meter, uint64_t took_ms, uint64_t now_ms)
{
	uint64_t slot = now_ms / SLOT_MS;

	if (slot != meter->slot)
		meter_turn_to(meter, slot);
	meter->slots[slot % METER_SLOTS]++;
	meter->buckets[bucket_of(took_ms)]++;
	meter->count++;
	meter->sum_ms += took_ms;
}

uint64_t meter_last_minute(const struct meter *meter, uint64_t now_ms)
{
	uint64_t now = now_ms / SLOT_MS;
	uint64_t count = 0;

	for (uint64_t ago = 1; ago < METER_SLOTS && ago <= now; ago++) {
		uint64_t slot = now - ago;

		if (slot <= meter->slot && meter->slot - slot < METER_SLOTS)
			count += meter->slots[slot % METER_SLOTS];
	}
	return count;
}

uint64_t meter_bound_ms(size_t bucket)
{
	return bucket < METER_BUCKETS - 1 ? UINT64_C(1) << bucket : UINT64_MAX;
}

uint64_t meter_quantile_ms(const struct meter *meter, unsigned int permille)
{
	uint64_t wanted = (meter->count * permille + 999) / 1000;
	uint64_t seen = 0;

	if (meter->count == 0)
		return 0;
	for (size_t i = 0; i < METER_BUCKETS; i++) {
		seen += meter->buckets[i];
		if (seen >= wanted)
			return meter_bound_ms(i);
	}
	return UINT64_MAX;
}
