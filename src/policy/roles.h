/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roles that the operator has made: who has one, and what it allows of which server. Pure: what a token says is read by
 * auth/grant. What a static token may call by itself is a role that it alone has. product.md §4, SEC-56.
 */
#ifndef MCPGATED_POLICY_ROLES_H
#define MCPGATED_POLICY_ROLES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"
#include "policy/permissions.h"
#include "policy/rights.h"

/* Patterns by server; those of `*` are for all. */
struct role_patterns {
	struct slice_map allow;
	struct slice_map deny;
};

struct role {
	struct slice name; /* of the role, or of the static token that has it for itself */
	struct slice_map
		when; /* claims, each with one of the values; none: only static tokens name it */
	struct role_patterns kinds[PERMISSION_KINDS];
	bool is_of_token;
	size_t token; /* which of auth.tokens it is then */
};

/* The index of a role is its number. One without a name is none any more: its number means nothing, for good. */
struct roles {
	struct role *items;
	size_t count;
	size_t named;               /* of them, those of the configuration */
	size_t room;                /* of items */
	bool lacks_some;            /* there was no room for one of a token */
	const struct roles *before; /* whose numbers are kept, while roles are added; or NULL */
};

/*
 * Before any is added: those to come that `before` has as well, by name and, if they have it, `when`, keep their numbers;
 * others get new ones. `before` is borrowed until the last is added.
 */
void roles_keep_numbers(struct roles *roles, const struct roles *before);
/* Adds one of the configuration and takes what it points to. */
void roles_add(struct roles *roles, const struct role *role);
/* Whether it is one of the configuration. */
static inline bool role_is_named(const struct role *role)
{
	return role->name.n > 0 && !role->is_of_token;
}
/* Adds one that a static token, by its number in auth.tokens, has for itself: all borrowed. Returns its number; ROLES_MAX: there is no room. */
size_t roles_add_of_token(struct roles *roles, size_t token, struct slice name,
			  struct slice_map tools);
/* The number of a named one; ROLES_MAX: there is none, or it is beyond ROLES_MAX. */
size_t roles_find(const struct roles *roles, struct slice name);
/* Gives the permissions of this server what the roles say of it. Before permissions_finish. */
void roles_give(const struct roles *roles, struct slice server, struct permissions *permissions);

#endif
