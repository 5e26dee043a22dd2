/* SPDX-License-Identifier: Apache-2.0 */
/* The rows, newest first. */
#include "mcp/revision.h"

static const struct revision revisions[] = {
	{ .name = SLICE("2025-11-25"), .has_modes = true, .has_priming = true },
	{ .name = SLICE("2025-06-18") },
	{ .name = SLICE("2025-03-26"), .has_batches = true },
	{ .name = SLICE("2024-11-05") },
};

const struct revision *revision_find(struct slice name)
{
	for (size_t i = 0; i < ARRAY_LEN(revisions); i++) {
		if (slice_is_equal(revisions[i].name, name))
			return &revisions[i];
	}
	return NULL;
}

const struct revision *revision_newest(void)
{
	return &revisions[0];
}

void revision_append_supported(struct buf *out, struct slice requested)
{
	buf_append_str(out, "{\"supported\":[");
	for (size_t i = 0; i < ARRAY_LEN(revisions); i++) {
		buf_append_str(out, i > 0 ? ",\"" : "\"");
		buf_append_slice(out, revisions[i].name);
		buf_append_char(out, '"');
	}
	buf_append_str(out, "],\"requested\":");
	buf_append_slice(out, requested);
	buf_append_char(out, '}');
}
