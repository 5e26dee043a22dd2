/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/argument_rules.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "policy/name.h"
#include "policy/pattern.h"

static void prepare_patterns(const struct slices *expressions, struct tool_patterns *patterns)
{
	struct error err;

	patterns->items = mem_zalloc((expressions->count + 1) * sizeof(*patterns->items));
	for (size_t i = 0; i < expressions->count; i++) {
		struct pattern *pattern = pattern_new(expressions->items[i], &err);

		if (pattern != NULL)
			patterns->items[patterns->count++] = pattern;
	}
}

void argument_rules_prepare(struct argument_rules *rules)
{
	size_t count = rules->deny_patterns.count;
	struct tool_patterns *patterns = mem_zalloc((count + 1) * sizeof(*patterns));

	CHECK(rules->patterns == NULL);
	for (size_t i = 0; i < count; i++) {
		patterns[i].folded = name_fold_copy(rules->deny_patterns.items[i].name);
		prepare_patterns(&rules->deny_patterns.items[i].values, &patterns[i]);
	}
	rules->patterns = patterns;
	names_finish(&rules->forbidden_keys);
	names_finish(&rules->path_members);
	names_finish(&rules->paths_ignored);
}

void argument_rules_fini(struct argument_rules *rules)
{
	struct tool_patterns *patterns = (struct tool_patterns *)(uintptr_t)rules->patterns;

	for (size_t i = 0; patterns != NULL && i < rules->deny_patterns.count; i++) {
		for (size_t j = 0; j < patterns[i].count; j++)
			pattern_free(&patterns[i].items[j]);
		free(patterns[i].items);
		free((char *)(uintptr_t)patterns[i].folded.p);
	}
	free(patterns);
	rules->patterns = NULL;
	names_free(&rules->forbidden_keys);
	names_free(&rules->path_members);
	names_free(&rules->paths_ignored);
}
