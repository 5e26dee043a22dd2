/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a caller's token contributes to access decisions: roles and scopes. A plain value; each call
 * keeps its own copy. SEC-56, SEC-58.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"

/* ---- scopes ---- */

/*
 * The scopes that the configuration names, as numbers, so that a set of them is a few words. Other
 * scopes of tokens need no number: they allow nothing. AUTH-SCP-02 … -05.
 */

#define SCOPES_MAX 256
#define SCOPE_WORDS (SCOPES_MAX / 64)

/* All zeros is the empty set. */
struct scope_set {
	uint64_t words[SCOPE_WORDS];
};

struct scope_table {
	struct slice names[SCOPES_MAX]; /* borrowed from the configuration */
	struct scope_set implied[SCOPES_MAX];
	size_t count;
	/* there were more scopes than it has room for: the table must not be used */
	bool lacks_some;
};

/* Adds the scope to the set, and to the table if it is new and there is room. */
void scope_table_add(struct scope_table *table, struct slice name, struct scope_set *set);
/* Adds the scope to the set if it is in the table: for the scopes of tokens. */
void scope_table_find(const struct scope_table *table, struct slice name, struct scope_set *set);
/* A holder of `name` also holds `given`. */
void scope_table_imply(struct scope_table *table, struct slice name, struct slice given);
/* Whether a holder of `name` also holds `given`, directly or indirectly. */
bool scope_table_implies(const struct scope_table *table, struct slice name, struct slice given);
/* `held` and all scopes that it implies, directly or indirectly. AUTH-SCP-04 */
struct scope_set scope_table_close(const struct scope_table *table, const struct scope_set *held);
/*
 * Appends the names, separated by spaces, in the order of the table, so the text is deterministic.
 * AUTH-SCP-10
 */
void scope_table_append(const struct scope_table *table, const struct scope_set *set,
			struct buf *out);

void scope_set_join(struct scope_set *set, const struct scope_set *other);
bool scope_set_is_empty(const struct scope_set *set);
/* Whether `set` contains all of `needed`. */
bool scope_set_covers(const struct scope_set *set, const struct scope_set *needed);

/* ---- rights ---- */

#define ROLES_MAX 256

/* A set of roles, by number. */
struct role_set {
	uint64_t words[ROLES_MAX / 64];
};

static inline void role_set_add(struct role_set *set, size_t number)
{
	CHECK(number < ROLES_MAX);
	set->words[number / 64] |= (uint64_t)1 << number % 64;
}

static inline bool role_set_has(const struct role_set *set, size_t number)
{
	CHECK(number < ROLES_MAX);
	return set->words[number / 64] >> number % 64 & 1;
}

/* All zeros: neither roles nor scopes are required, as for the operator. */
struct rights {
	bool needs_roles;  /* the caller may use only what its roles allow */
	bool needs_scopes; /* the caller may use only what its scopes suffice for */
	struct role_set roles;
	struct scope_set scopes;
	uint64_t token; /* the first bytes of the hash of a static token; 0: no static token */
};
