/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many wrong tokens came from an address within a minute. An IPv6 address counts by its first
 * 64 bits, since one person can choose the rest. Peers on this machine are exempt: a proxy that is
 * not declared (trusted_proxies) would stand for everybody. AUTH-CH-11, AUTH-TOK-06, DEF-23.
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
/* Addresses remembered; beyond that, the one that failed longest ago is dropped. */
#define FAILURES_ADDRESSES_MAX 10000

struct failures {
	struct map by_key;
	struct list entries; /* by last failure */
	size_t count;
	uint64_t seed;
	uint64_t max; /* per FAILURES_WINDOW_MS and address; 0: unlimited */
};

void failures_init(struct failures *failures, uint64_t max);
void failures_fini(struct failures *failures);

/* Counts a failure. Returns after how many seconds the address may fail again; 0: now. */
unsigned int failures_note(struct failures *failures, const struct peer *peer);
/* Whether it has no failures left now. */
bool failures_is_slowed(const struct failures *failures, const struct peer *peer);
/* A valid token came from this address: resets its count. */
void failures_forget(struct failures *failures, const struct peer *peer);

#endif
