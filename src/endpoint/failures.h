/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often wrong tokens came from an address within a minute. An IPv6 address counts by its first 64 bits, which
 * one person can choose the rest of. Peers on this machine do not count: a proxy among them that nobody has
 * declared (trusted_proxies) would be everybody. AUTH-CH-11, AUTH-TOK-06, DEF-23.
 */
#ifndef MCPGATED_ENDPOINT_FAILURES_H
#define MCPGATED_ENDPOINT_FAILURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "io/peer.h"

#define FAILURES_WINDOW_MS (60 * 1000)
/* Addresses that are remembered; the one that failed longest ago goes first. */
#define FAILURES_ADDRESSES_MAX 10000

struct failures {
	struct map by_key;
	struct list entries; /* by their last failure */
	size_t count;
	uint64_t seed;
	uint64_t max; /* in FAILURES_WINDOW_MS, of one address; 0: any number */
};

void failures_init(struct failures *failures, uint64_t max);
void failures_fini(struct failures *failures);

/* One more. Returns after how many seconds the address may fail again; 0: it may now. */
unsigned int failures_note(struct failures *failures, const struct peer *peer);
/* Whether it may not fail now. */
bool failures_is_slowed(const struct failures *failures, const struct peer *peer);
/* A good token came from there: its count begins anew. */
void failures_forget(struct failures *failures, const struct peer *peer);

#endif
