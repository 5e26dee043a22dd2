/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roles defined by the operator: who has them, and what they allow on which server. Pure
 * functions; auth/grant reads the tokens. The tools that a static token lists for itself form a
 * role that only this token has. mcpgated.yaml(5), SEC-56.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "policy/permissions.h"

/* Patterns by server; those of `*` apply to all servers. */
struct role_patterns {
	struct slice_map allow;
	struct slice_map deny;
};

struct role {
	struct slice name; /* of the role, or of the static token whose private role it is */
	/* claims, each with its accepted values; none: only static tokens refer to the role */
	struct slice_map when;
	struct role_patterns kinds[PERMISSION_KINDS];
	bool is_of_token;
	size_t token; /* index in auth.tokens, if is_of_token */
};

/*
 * The number of a role is its index. A role without a name has been removed, and its number stays
 * unused.
 */
struct roles {
	struct role *items;
	size_t count;
	size_t named;    /* number of roles of the configuration */
	size_t room;     /* allocated size of items */
	bool lacks_some; /* there was no room for the role of a token */
	/* the roles whose numbers are kept while roles are added; or NULL */
	const struct roles *before;
};

/*
 * Call before adding roles: those that `before` also has, with the same name and, if they have it,
 * the same `when`, keep their numbers; others get new ones. `before` is borrowed until the last
 * role is added.
 */
void roles_keep_numbers(struct roles *roles, const struct roles *before);
/* Adds a role of the configuration and takes ownership of what it points to. */
void roles_add(struct roles *roles, const struct role *role);
/* Whether it is a role of the configuration. */
static inline bool role_is_named(const struct role *role)
{
	return role->name.n > 0 && !role->is_of_token;
}
/*
 * Adds the private role of a static token, given its index in auth.tokens; everything is borrowed.
 * Returns its number, or ROLES_MAX if there is no room.
 */
size_t roles_add_of_token(struct roles *roles, size_t token, struct slice name,
			  struct slice_map tools);
/*
 * The number of a role of the configuration; ROLES_MAX if there is none or it is beyond ROLES_MAX.
 */
size_t roles_find(const struct roles *roles, struct slice name);
/*
 * Adds to the permissions of this server what the roles say about it. Call before
 * permissions_finish.
 */
void roles_give(const struct roles *roles, struct slice server, struct permissions *permissions);
/*
 * The same for an endpoint over these servers: who has a role that allows anything of one of them may
 * do everything there, for it is judged where it goes.
 */
void roles_give_endpoint(const struct roles *roles, struct slice endpoint,
			 const struct slice *servers, size_t count,
			 struct permissions *permissions);
