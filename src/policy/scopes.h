/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scopes that the configuration names, as numbers, so that a set of them is a few words. Scopes of
 * tokens that nobody named need no number: they allow nothing. AUTH-SCP-02 … -05.
 */
#ifndef MCPGATED_POLICY_SCOPES_H
#define MCPGATED_POLICY_SCOPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

#define SCOPES_MAX 256
#define SCOPE_WORDS (SCOPES_MAX / 64)

/* A set of scopes. All zeros is the empty one. */
struct scope_set {
	uint64_t words[SCOPE_WORDS];
};

struct scope_table {
	struct slice names[SCOPES_MAX]; /* borrowed from the configuration */
	struct scope_set implied[SCOPES_MAX];
	size_t count;
	bool lacks_some; /* there were more than it has room for: it is not to be used */
};

/* Adds the scope to the set; the table gets it first if it is new and there is room. */
void scope_table_add(struct scope_table *table, struct slice name, struct scope_set *set);
/* Adds the scope to the set if the table has it: for what tokens hold. */
void scope_table_find(const struct scope_table *table, struct slice name, struct scope_set *set);
/* Whoever holds `name` is taken to hold `given` as well. */
void scope_table_imply(struct scope_table *table, struct slice name, struct slice given);
/* Whether who holds `name` is taken to hold `given`, over any number of steps. */
bool scope_table_implies(const struct scope_table *table, struct slice name, struct slice given);
/* `held` and all that it implies, over any number of steps. AUTH-SCP-04 */
struct scope_set scope_table_close(const struct scope_table *table, const struct scope_set *held);
/* The names, separated by spaces, in the table's order: always the same text. AUTH-SCP-10 */
void scope_table_append(const struct scope_table *table, const struct scope_set *set,
			struct buf *out);

void scope_set_join(struct scope_set *set, const struct scope_set *other);
bool scope_set_is_empty(const struct scope_set *set);
/* Whether all of `needed` is in `set`. */
bool scope_set_covers(const struct scope_set *set, const struct scope_set *needed);

#endif
