/* SPDX-License-Identifier: Apache-2.0 */
#include "process/pin_shadows.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "obs/counters.h"
#include "obs/log.h"

void pin_shadows_find(const struct server *servers, size_t count, shadow_fn *on_shadow, void *arg)
{
	struct shadow_side *sides = mem_zalloc((count + 1) * sizeof(*sides));
	size_t there = 0;

	for (size_t i = 0; i < count; i++)
		if (servers[i].conf.name != NULL && !servers[i].is_retired &&
		    !servers[i].pins.follows)
			sides[there++] =
				(struct shadow_side){ servers[i].conf.name, &servers[i].pins };
	shadows_find(sides, there, on_shadow, arg);
	free(sides);
}

/* A hash of all names involved; never 0. */
static uint64_t key_of(const struct shadow *shadow)
{
	uint64_t key = shadow->side->pins->seed + shadow->is_mention;

	key = text_hash_part(key, slice_str(shadow->side->server));
	key = text_hash_part(key, slice_str(shadow->other->server));
	key = text_hash_part(key, shadow->pin->folded);
	return text_hash_part(key, shadow->tool->folded);
}

static void tell(const struct shadow *shadow, void *arg)
{
	struct pin_shadows *shadows = arg;
	uint64_t key = key_of(shadow);

	if (shadows->told.count >= SHADOWS_MAX || map_find(&shadows->told, key) != NULL)
		return;
	map_insert(&shadows->told, key, shadows);
	counter_add(COUNTER_TOOLS_SHADOWED);
	LOG(TOOL_SHADOWED, LOG_STR("server", shadow->side->server),
	    LOG_STR("kind", pin_kind_name(shadow->pin->kind)), LOG_SLICE("name", shadow->pin->name),
	    LOG_STR("by", shadow->is_mention ? "description" : "name"),
	    LOG_STR("other", shadow->other->server), LOG_SLICE("tool", shadow->tool->name));
}

void pin_shadows_look(struct pin_shadows *shadows, const struct server *servers, size_t count)
{
	pin_shadows_find(servers, count, tell, shadows);
}

void pin_shadows_fini(struct pin_shadows *shadows)
{
	map_fini(&shadows->told);
}
