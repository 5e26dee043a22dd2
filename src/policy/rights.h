/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a caller's token contributes to access decisions: roles and scopes. A plain value; each call
 * keeps its own copy. SEC-56, SEC-58.
 */
#ifndef MCPGATED_POLICY_RIGHTS_H
#define MCPGATED_POLICY_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "policy/scopes.h"

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

#endif
