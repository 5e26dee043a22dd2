/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many calls there were, how long they took, and how many there were lately: a few numbers of fixed
 * size, cheap enough for every call.
 */
#ifndef MCPGATED_OBS_LATENCY_HISTOGRAM_H
#define MCPGATED_OBS_LATENCY_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

/* Bucket i counts what took less than 2^i ms; the last one everything else. */
#define LATENCY_HISTOGRAM_BUCKETS 18
#define LATENCY_HISTOGRAM_SLOTS 7 /* of ten seconds: the one that runs, and the last minute */

/* All zeros is an empty one. */
struct latency_histogram {
	uint64_t buckets[LATENCY_HISTOGRAM_BUCKETS];
	uint64_t count;
	uint64_t sum_ms;
	uint64_t slot; /* the number of the one that runs */
	uint32_t slots[LATENCY_HISTOGRAM_SLOTS];
};

/* Something has taken `took_ms`; now_ms is the loop's clock. */
void latency_histogram_add(struct latency_histogram *latency_histogram, uint64_t took_ms,
			   uint64_t now_ms);
/* How many there were in the last whole minute of slots before now_ms. */
uint64_t latency_histogram_last_minute(const struct latency_histogram *latency_histogram,
				       uint64_t now_ms);
/* The upper bound of the bucket in which that part of all lies (500 is the median); 0: there was none. */
uint64_t latency_histogram_quantile_ms(const struct latency_histogram *latency_histogram,
				       unsigned int permille);
/* The upper bound of bucket i; UINT64_MAX for the last. */
uint64_t latency_histogram_bound_ms(size_t bucket);

#endif
