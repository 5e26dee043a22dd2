/* SPDX-License-Identifier: Apache-2.0 */
/* The eight names in order. */
#include "mcp/level.h"

#include "base/check.h"

static const struct slice names[] = {
	SLICE("debug"), SLICE("info"),     SLICE("notice"), SLICE("warning"),
	SLICE("error"), SLICE("critical"), SLICE("alert"),  SLICE("emergency"),
};

int level_find(struct slice name)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (slice_is_equal(names[i], name))
			return (int)i;
	}
	return -1;
}

struct slice level_name(int level)
{
	CHECK(level >= 0 && (size_t)level < ARRAY_LEN(names));
	return names[level];
}
