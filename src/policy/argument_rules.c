/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/argument_rules.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "policy/name.h"
#include "policy/pattern.h"

static struct slice fold(struct slice name)
{
	struct buf folded = { 0 };
	struct slice form = { NULL, 0 };

	if (name_fold(name, &folded) == NULL)
		form = slice_of(mem_dup_slice(buf_slice(&folded)), folded.len);
	buf_fini(&folded);
	return form;
}

static void free_form(struct slice *form)
{
	free((char *)(uintptr_t)form->p);
	*form = slice_of(NULL, 0);
}

static void prepare_names(struct member_names *names)
{
	struct slice *folded = mem_zalloc((names->written.count + 1) * sizeof(*folded));

	CHECK(names->folded == NULL);
	for (size_t i = 0; i < names->written.count; i++)
		folded[i] = fold(names->written.items[i]);
	names->folded = folded;
}

static void free_names(struct member_names *names)
{
	struct slice *folded = (struct slice *)(uintptr_t)names->folded;

	for (size_t i = 0; folded != NULL && i < names->written.count; i++)
		free_form(&folded[i]);
	free(folded);
	names->folded = NULL;
}

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
		patterns[i].folded = fold(rules->deny_patterns.items[i].name);
		prepare_patterns(&rules->deny_patterns.items[i].values, &patterns[i]);
	}
	rules->patterns = patterns;
	prepare_names(&rules->forbidden_keys);
	prepare_names(&rules->path_members);
	prepare_names(&rules->paths_ignored);
}

void argument_rules_fini(struct argument_rules *rules)
{
	struct tool_patterns *patterns = (struct tool_patterns *)(uintptr_t)rules->patterns;

	for (size_t i = 0; patterns != NULL && i < rules->deny_patterns.count; i++) {
		for (size_t j = 0; j < patterns[i].count; j++)
			pattern_free(&patterns[i].items[j]);
		free(patterns[i].items);
		free_form(&patterns[i].folded);
	}
	free(patterns);
	rules->patterns = NULL;
	free_names(&rules->forbidden_keys);
	free_names(&rules->path_members);
	free_names(&rules->paths_ignored);
}
