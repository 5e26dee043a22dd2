/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/roles.h"

#include "base/mem.h"

static bool is_same_map(const struct slice_map *one, const struct slice_map *other)
{
	if (one->count != other->count)
		return false;
	for (size_t i = 0; i < one->count; i++) {
		const struct named_slices *a = &one->items[i], *b = &other->items[i];

		if (!slice_is_equal(a->name, b->name) || a->values.count != b->values.count)
			return false;
		for (size_t j = 0; j < a->values.count; j++)
			if (!slice_is_equal(a->values.items[j], b->values.items[j]))
				return false;
	}
	return true;
}

static size_t roles_find_number(const struct roles *roles, const struct role *role)
{
	for (size_t i = 0; roles->before != NULL && i < roles->before->count; i++) {
		const struct role *old = &roles->before->items[i];

		if (old->is_of_token == role->is_of_token &&
		    slice_is_equal(old->name, role->name) && is_same_map(&old->when, &role->when) &&
		    roles->items[i].name.n == 0)
			return i;
	}
	return roles->count;
}

static size_t place(struct roles *roles, const struct role *role)
{
	size_t number = roles_find_number(roles, role);

	CHECK(number <= roles->count);
	if (number == roles->count && roles->count++ == roles->room) {
		roles->room = roles->room * 2 + 8;
		roles->items = mem_resize(roles->items, roles->room * sizeof(*roles->items));
	}
	roles->items[number] = *role;
	return number;
}

void roles_keep_numbers(struct roles *roles, const struct roles *before)
{
	CHECK(roles->count == 0 && roles->items == NULL);
	roles->before = before;
	roles->count = roles->room = before->count;
	roles->items = mem_zalloc((before->count + 1) * sizeof(*roles->items));
}

void roles_add(struct roles *roles, const struct role *role)
{
	CHECK(!role->is_of_token);
	(void)place(roles, role);
	roles->named++;
}

size_t roles_add_of_token(struct roles *roles, size_t token, struct slice name,
			  struct slice_map tools)
{
	const struct role role = {
		.name = name,
		.kinds = { [PERMISSION_TOOL] = { .allow = tools } },
		.is_of_token = true,
		.token = token,
	};

	roles->lacks_some |= roles_find_number(roles, &role) >= ROLES_MAX;
	return roles->lacks_some ? ROLES_MAX : place(roles, &role);
}

size_t roles_find(const struct roles *roles, struct slice name)
{
	for (size_t i = 0; i < roles->count && i < ROLES_MAX; i++)
		if (role_is_named(&roles->items[i]) && slice_is_equal(roles->items[i].name, name))
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

static void roles_append(struct permissions *permissions, const struct permission_role *given)
{
	permissions->roles = mem_resize(permissions->roles, (permissions->role_count + 1) *
								    sizeof(*permissions->roles));
	permissions->roles[permissions->role_count++] = *given;
}

/* Without patterns. */
static struct permission_role given_by(const struct roles *roles, size_t number,
				       struct slice server)
{
	const struct role *role = &roles->items[number];

	return (struct permission_role){ .number = number,
					 .name = role->name,
					 .is_of_token = role->is_of_token,
					 .token = role->token,
					 .server = server };
}

static void roles_give_one(const struct roles *roles, size_t number, struct slice server,
			   struct permissions *permissions)
{
	const struct role *role = &roles->items[number];
	struct permission_role given = given_by(roles, number, server);
	bool has_some = false;

	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++) {
		const struct role_patterns *patterns = &role->kinds[kind];

		given.kinds[kind].allow = find_patterns(&patterns->allow, server);
		given.kinds[kind].deny = find_patterns(&patterns->deny, server);
		has_some |= given.kinds[kind].allow.count + given.kinds[kind].deny.count > 0;
	}
	if (has_some)
		roles_append(permissions, &given);
}

void roles_give(const struct roles *roles, struct slice server, struct permissions *permissions)
{
	CHECK(permissions->role_count == 0);
	for (size_t i = 0; i < roles->count && i < ROLES_MAX; i++) {
		roles_give_one(roles, i, SLICE_LIT("*"), permissions);
		roles_give_one(roles, i, server, permissions);
	}
}

static bool allows_any(const struct role *role, struct slice server)
{
	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++)
		if (find_patterns(&role->kinds[kind].allow, server).count > 0)
			return true;
	return false;
}

void roles_give_endpoint(const struct roles *roles, struct slice endpoint,
			 const struct slice *servers, size_t count, struct permissions *permissions)
{
	static const struct slice all[] = { SLICE("*") };

	CHECK(permissions->role_count == 0 && count > 0);
	for (size_t i = 0; i < roles->count && i < ROLES_MAX; i++) {
		const struct role *role = &roles->items[i];
		struct permission_role given = given_by(roles, i, endpoint);
		bool has_some = allows_any(role, all[0]);

		for (size_t j = 0; j < count; j++)
			has_some |= allows_any(role, servers[j]);
		for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++)
			given.kinds[kind].allow = (struct slices){ all, ARRAY_LEN(all) };
		if (has_some)
			roles_append(permissions, &given);
	}
}
