/* SPDX-License-Identifier: Apache-2.0 */
/* What either form of a name needs is needed: the server may know it by the one or the other. SEC-50 */
#include "policy/needs.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "policy/operation.h"
#include "policy/uses.h"

/* ---- made ---- */

static void add_scopes(struct scope_table *table, struct slices names, struct scope_set *set)
{
	for (size_t i = 0; i < names.count; i++)
		scope_table_add(table, names.items[i], set);
}

void needs_finish(struct needs *needs, struct scope_table *table)
{
	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++) {
		const struct slice_map *map = &needs->by_name[kind];

		CHECK(needs->names[kind] == NULL);
		needs->names[kind] = mem_zalloc((map->count + 1) * sizeof(*needs->names[kind]));
		for (size_t i = 0; i < map->count; i++) {
			struct name_needs *name = &needs->names[kind][i];

			name->folded = permission_fold_deny(kind, map->items[i].name);
			add_scopes(table, map->items[i].values, &name->scopes);
		}
	}
}

void needs_free(struct needs *needs)
{
	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++) {
		for (size_t i = 0; needs->names[kind] != NULL && i < needs->by_name[kind].count;
		     i++)
			free((char *)(uintptr_t)needs->names[kind][i].folded.p);
		free(needs->names[kind]);
		needs->names[kind] = NULL;
	}
}

bool needs_any(const struct needs *needs)
{
	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++)
		if (needs->by_name[kind].count > 0)
			return true;
	return false;
}

/* ---- names ---- */

/* Of a template it is not known which resources come of it: those that its own text fits. */
static enum permission_kind kind_of_needs(enum permission_kind kind)
{
	return kind == PERMISSION_TEMPLATE ? PERMISSION_RESOURCE : kind;
}

static void add_all(const struct needs *needs, enum permission_kind kind, struct scope_set *needed)
{
	for (size_t i = 0; i < needs->by_name[kind].count; i++)
		scope_set_join(needed, &needs->names[kind][i].scopes);
}

const char *needs_add_of_name(const struct needs *needs, enum permission_kind kind,
			      struct slice name, struct scope_set *needed)
{
	const struct slice_map *map;
	struct buf folded = { 0 };
	const char *why;

	kind = kind_of_needs(kind);
	map = &needs->by_name[kind];
	if (map->count == 0)
		return NULL;
	why = permission_fold(kind, name, &folded);
	for (size_t i = 0; why == NULL && i < map->count; i++)
		if (text_fits_pattern(name, map->items[i].name) ||
		    permission_fits_deny(kind, buf_slice(&folded), needs->names[kind][i].folded))
			scope_set_join(needed, &needs->names[kind][i].scopes);
	buf_fini(&folded);
	return why;
}

static const char *add_of_json(const struct needs *needs, enum permission_kind kind,
			       struct json name, struct scope_set *needed)
{
	struct buf decoded = { 0 };
	const char *why = "is not a text";

	if (needs->by_name[kind_of_needs(kind)].count == 0)
		return NULL;
	if (scan_decode_string(name, &decoded) == 0)
		why = needs_add_of_name(needs, kind, buf_slice(&decoded), needed);
	else
		add_all(needs, kind_of_needs(kind), needed);
	buf_fini(&decoded);
	return why;
}

bool needs_show(const struct needs *needs, const struct rights *rights, enum permission_kind kind,
		struct json name)
{
	struct scope_set needed = { { 0 } };

	if (!needs->hides || !rights->needs_scopes || kind == PERMISSION_TEMPLATE)
		return true;
	return add_of_json(needs, kind, name, &needed) == NULL &&
	       scope_set_covers(&rights->scopes, &needed);
}

/* ---- messages ---- */

struct visit {
	const struct needs *needs;
	struct scope_set *needed;
	const char *why;
};

static bool visit_name(enum permission_kind kind, struct json name, void *arg)
{
	struct visit *visit = arg;

	visit->why = kind == PERMISSION_TOOL ? NULL :
					       add_of_json(visit->needs, kind, name, visit->needed);
	return visit->why == NULL;
}

/* Of prompts and resources. Where there is no name to be found, it could be any. */
static struct needs_flaw add_of_others(const struct needs *needs, const struct envelope *env,
				       struct scope_set *needed)
{
	struct visit visit = { needs, needed, NULL };
	struct needs_flaw flaw = { .what = NULL };

	if (needs->by_name[PERMISSION_PROMPT].count + needs->by_name[PERMISSION_RESOURCE].count ==
	    0)
		return flaw;
	flaw.what = uses_visit(env, visit_name, &visit);
	flaw.why = visit.why != NULL ? visit.why : "cannot be read";
	if (flaw.what == NULL || visit.why != NULL)
		return flaw;
	if (strcmp(flaw.what, "tool") == 0)
		return (struct needs_flaw){ .what = NULL };
	add_all(needs, PERMISSION_PROMPT, needed);
	add_all(needs, PERMISSION_RESOURCE, needed);
	return flaw;
}

struct needs_flaw needs_add_of_message(const struct needs *needs, const struct envelope *env,
				       struct scope_set *needed)
{
	struct needs_flaw flaw = { .what = "tool" };

	if (needs->by_name[PERMISSION_TOOL].count == 0 || operation_of(env) != OPERATION_TOOL)
		return add_of_others(needs, env, needed);
	if (env->params.type == JSON_ARRAY)
		flaw.why = "has no place in an array of params";
	else
		flaw.why = add_of_json(needs, PERMISSION_TOOL, env->name, needed);
	if (flaw.why == NULL)
		flaw.what = NULL;
	return flaw;
}
