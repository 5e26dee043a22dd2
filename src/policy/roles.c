/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/roles.h"

#include "base/mem.h"

void roles_reserve(struct roles *roles, size_t more)
{
	CHECK(roles->count == roles->named);
	roles->items = mem_resize(roles->items, (roles->count + more + 1) * sizeof(*roles->items));
}

size_t roles_add_of_token(struct roles *roles, size_t token, struct slice name,
			  struct slice_map tools)
{
	if (roles->count >= ROLES_MAX)
		return ROLES_MAX;
	roles->items[roles->count] = (struct role){
		.name = name,
		.kinds = { [PERMISSION_TOOL] = { .allow = tools } },
		.is_of_token = true,
		.token = token,
	};
	return roles->count++;
}

size_t roles_find(const struct roles *roles, struct slice name)
{
	for (size_t i = 0; i < roles->named && i < ROLES_MAX; i++)
		if (slice_is_equal(roles->items[i].name, name))
			return i;
	return ROLES_MAX;
}

/* ---- what they say of one server ---- */

static struct slices find_patterns(const struct slice_map *map, struct slice server)
{
	for (size_t i = 0; i < map->count; i++)
		if (slice_is_equal(map->items[i].name, server))
			return map->items[i].values;
	return (struct slices){ NULL, 0 };
}

static void give(const struct roles *roles, size_t number, struct slice server,
		 struct permissions *permissions)
{
	const struct role *role = &roles->items[number];
	struct permission_role given = { .number = number,
					 .name = role->name,
					 .is_of_token = role->is_of_token,
					 .token = role->token,
					 .server = server };
	bool has_some = false;

	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++) {
		const struct role_patterns *patterns = &role->kinds[kind];

		given.kinds[kind].allow = find_patterns(&patterns->allow, server);
		given.kinds[kind].deny = find_patterns(&patterns->deny, server);
		has_some |= given.kinds[kind].allow.count + given.kinds[kind].deny.count > 0;
	}
	if (!has_some)
		return;
	permissions->roles = mem_resize(permissions->roles, (permissions->role_count + 1) *
								    sizeof(*permissions->roles));
	permissions->roles[permissions->role_count++] = given;
}

void roles_give(const struct roles *roles, struct slice server, struct permissions *permissions)
{
	CHECK(permissions->role_count == 0);
	for (size_t i = 0; i < roles->count && i < ROLES_MAX; i++) {
		give(roles, i, SLICE_LIT("*"), permissions);
		give(roles, i, server, permissions);
	}
}
