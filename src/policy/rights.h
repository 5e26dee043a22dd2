/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the token of a caller brings to where it is decided what he may use: his roles, and his scopes. A plain value: a call
 * keeps its own. SEC-56, SEC-58.
 */
#ifndef MCPGATED_POLICY_RIGHTS_H
#define MCPGATED_POLICY_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "policy/scopes.h"

#define ROLES_MAX 256

/* Roles, by their numbers. */
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

/* All zeros: neither roles nor scopes are asked for, as with the operator. */
struct rights {
	bool needs_roles;  /* what none of his roles allows, he may not use */
	bool needs_scopes; /* what needs scopes that he has not, he may not use */
	struct role_set roles;
	struct scope_set scopes;
	uint64_t token; /* a static one brought them: the beginning of its hash; else 0 */
};

#endif
