/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many calls there were, how long they took, and how many there were recently. Fixed size, and
 * cheap enough to update on every call.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Bucket i counts durations below 2^i ms and at least the bound of the bucket before; the last one
 * counts all longer ones.
 */
#define LATENCY_HISTOGRAM_BUCKETS 18
#define LATENCY_HISTOGRAM_SLOTS 7 /* ten seconds each: the current one, and the last minute */

/* All zeros is an empty histogram. */
struct latency_histogram {
	uint64_t buckets[LATENCY_HISTOGRAM_BUCKETS];
	uint64_t count;
	uint64_t sum_ms;
	uint64_t slot; /* number of the current one */
	uint32_t slots[LATENCY_HISTOGRAM_SLOTS];
};

/* Records a duration; now_ms is clock_now_ms. */
void latency_histogram_add(struct latency_histogram *latency_histogram, uint64_t took_ms,
			   uint64_t now_ms);
/* How many durations were recorded in the six complete slots before now_ms: the last minute. */
uint64_t latency_histogram_last_minute(const struct latency_histogram *latency_histogram,
				       uint64_t now_ms);
/*
 * The upper bound of the bucket that contains this quantile (500 is the median); 0 if nothing was
 * recorded.
 */
uint64_t latency_histogram_quantile_ms(const struct latency_histogram *latency_histogram,
				       unsigned int permille);
/* The upper bound of bucket i; UINT64_MAX for the last. */
uint64_t latency_histogram_bound_ms(size_t bucket);
