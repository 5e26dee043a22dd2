/* SPDX-License-Identifier: Apache-2.0 */
/* The rows, newest first; and the names of the revisions that have none yet. */
#include "mcp/revision.h"

#define FEATURES_2025_03 REVISION_AUDIO
#define FEATURES_2025_06 \
	(FEATURES_2025_03 | REVISION_LINKS | REVISION_ELICITATION | REVISION_CONTEXT)
#define FEATURES_2025_11 (FEATURES_2025_06 | REVISION_MODES | REVISION_TASKS)

static const struct revision revisions[] = {
	{ .name = SLICE("2025-11-25"), .features = FEATURES_2025_11, .has_priming = true },
	{ .name = SLICE("2025-06-18"), .features = FEATURES_2025_06 },
	{ .name = SLICE("2025-03-26"), .features = FEATURES_2025_03, .has_batches = true },
	{ .name = SLICE("2024-11-05") },
};

/* Its elicitation has what 2025-11-25 brought; its tasks are others. */
const struct revision revision_modern = {
	.name = SLICE("2026-07-28"),
	.features = FEATURES_2025_11 & ~(unsigned int)REVISION_TASKS,
	.is_modern = true,
};

static const struct slice unserved[] = { SLICE("2026-07-28") };

const struct revision *revision_find(struct slice name)
{
	for (size_t i = 0; i < ARRAY_LEN(revisions); i++) {
		if (slice_is_equal(revisions[i].name, name))
			return &revisions[i];
	}
	return NULL;
}

bool revision_is_unserved(struct slice name)
{
	return slices_has((struct slices){ unserved, ARRAY_LEN(unserved) }, name);
}

unsigned int revision_lacks(const struct revision *to, const struct revision *from)
{
	return from != NULL ? from->features & ~to->features : 0;
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
