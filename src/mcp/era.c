/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/era.h"

#include <stddef.h>

#include "base/check.h"

const char *era_name(enum era era)
{
	static const char *const names[] = { "unknown", "legacy", "modern" };

	CHECK((size_t)era < ARRAY_LEN(names));
	return names[era];
}
