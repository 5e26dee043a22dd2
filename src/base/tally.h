/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was counted here, by key, since others who count the same were last told of it. Nothing is
 * kept while nobody tells others. Keys are hashes with a secret seed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"

#define TALLY_KEYS_MAX 1024 /* beyond that others count too little */

struct tally;
/* Others have counted so much; 0: they have begun anew. */
typedef void tally_told_fn(struct tally *tally, uint64_t key, uint64_t amount);

/* Embedded by who counts. */
struct tally {
	tally_told_fn *on_told;
	/* Set by whoever tells others: there is something to tell. NULL: nothing is kept. */
	void (*on_counted)(struct tally *tally);
	void *arg;
	struct map by_key;
	struct list entries; /* oldest first */
};

void tally_init(struct tally *tally, tally_told_fn *on_told);
void tally_fini(struct tally *tally);
void tally_add(struct tally *tally, uint64_t key, uint64_t amount);
/* What was counted of this key before does not count any more. */
void tally_reset(struct tally *tally, uint64_t key);

/* What is to be told of one key. */
struct tally_count {
	uint64_t key;
	uint64_t amount;
	bool is_anew; /* 0 is to be told before */
};
/* Takes one. False: there is none. */
bool tally_take(struct tally *tally, struct tally_count *count_r) must_check;
/* Others tell this. */
void tally_hear(struct tally *tally, uint64_t key, uint64_t amount);
