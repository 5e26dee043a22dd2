/* SPDX-License-Identifier: Apache-2.0 */
#include "router/listing_kind.h"

static const struct listing_kind kinds[PERMISSION_KINDS] = {
	[PERMISSION_TOOL] = { SLICE("tools/list"), SLICE("tools"), PERMISSION_TOOL, SLICE("name") },
	[PERMISSION_PROMPT] = { SLICE("prompts/list"), SLICE("prompts"), PERMISSION_PROMPT,
				SLICE("name") },
	[PERMISSION_RESOURCE] = { SLICE("resources/list"), SLICE("resources"), PERMISSION_RESOURCE,
				  SLICE("uri") },
	[PERMISSION_TEMPLATE] = { SLICE("resources/templates/list"), SLICE("resourceTemplates"),
				  PERMISSION_TEMPLATE, SLICE("uriTemplate") },
};

const struct listing_kind *listing_kind_find(const struct method *method)
{
	for (size_t i = 0; method->flags & METHOD_PAGED && i < ARRAY_LEN(kinds); i++)
		if (slice_is_equal(method->name, kinds[i].method))
			return &kinds[i];
	return NULL;
}

const struct listing_kind *listing_kind_of(enum permission_kind kind)
{
	CHECK((size_t)kind < ARRAY_LEN(kinds));
	return &kinds[kind];
}
