/* SPDX-License-Identifier: Apache-2.0 */
/* The rows, newest first. */
#include "mcp/revision.h"

#include <stddef.h>

#include "base/check.h"

/* ---- era ---- */

const char *era_name(enum era era)
{
	static const char *const names[] = { "unknown", "legacy", "modern" };

	CHECK((size_t)era < ARRAY_LEN(names));
	return names[era];
}

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

const struct revision *revision_find(struct slice name)
{
	for (size_t i = 0; i < ARRAY_LEN(revisions); i++) {
		if (slice_is_equal(revisions[i].name, name))
			return &revisions[i];
	}
	return NULL;
}

bool revision_is_modern(struct slice name)
{
	return slice_is_equal(name, revision_modern.name);
}

unsigned int revision_lacks(const struct revision *to, const struct revision *from)
{
	return from != NULL ? from->features & ~to->features : 0;
}

const struct revision *revision_newest(void)
{
	return &revisions[0];
}

static void append_names(struct buf *out, bool is_legacy_claim)
{
	buf_printf(out, "[\"%.*s\"", SLICE_ARG(revision_modern.name));
	for (size_t i = 0; !is_legacy_claim && i < ARRAY_LEN(revisions); i++)
		buf_printf(out, ",\"%.*s\"", SLICE_ARG(revisions[i].name));
	buf_append_char(out, ']');
}

void revision_append_served(struct buf *out)
{
	append_names(out, false);
}

void revision_append_supported(struct buf *out, struct slice requested, bool is_legacy_claim)
{
	buf_append_str(out, "{\"supported\":");
	append_names(out, is_legacy_claim);
	buf_append_str(out, ",\"requested\":");
	buf_append_slice(out, requested);
	buf_append_char(out, '}');
}
