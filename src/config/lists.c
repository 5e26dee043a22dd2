/* SPDX-License-Identifier: Apache-2.0 */
/* Printed in YAML's flow style, so that a list stands on one line like any other value. */
#include "config/lists.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/problem.h"
#include "config/quote.h"
#include "config/secret.h"
#include "config/yaml.h"

/* ---- texts ---- */

bool texts_require_one(const struct types_context *context, const struct tree *value)
{
	if (value->kind != TREE_TEXT)
		problem_add_at(context->problems, value, "must be a text, not a %s",
			       value->kind == TREE_LIST ? "list" : "map");
	else if (tree_is_null(value))
		problem_add_at(context->problems, value, "has no value");
	else
		return true;
	return false;
}

void texts_free(struct config_texts *texts)
{
	/* Arguments may be secrets. */
	for (size_t i = 0; i < texts->count; i++)
		secret_free(&texts->items[i]);
	free(texts->items);
	*texts = (struct config_texts){ 0 };
}

void texts_load(const struct types_context *context, const struct tree *value,
		struct config_texts *texts)
{
	if (value->kind != TREE_LIST) {
		problem_add_at(context->problems, value, "must be a list, like [a, b]");
		return;
	}
	if (value->count > YAML_ITEMS_MAX) {
		problem_add_at(context->problems, value, "must not have more than %u entries",
			       YAML_ITEMS_MAX);
		return;
	}
	texts_free(texts);
	texts->items = mem_zalloc((value->count + 1) * sizeof(*texts->items));
	for (size_t i = 0; i < value->count; i++)
		if (texts_require_one(context, value->items[i]))
			texts->items[texts->count++] = mem_strdup(value->items[i]->text);
}

void texts_print(const struct config_texts *texts, struct buf *out)
{
	buf_append_char(out, '[');
	for (size_t i = 0; i < texts->count; i++) {
		buf_append_str(out, i > 0 ? ", " : "");
		quote_append(out, texts->items[i]);
	}
	buf_append_char(out, ']');
}

/* ---- maps of lists ---- */

static struct config_texts *place_for_list(struct config_lists *lists, const char *name)
{
	for (size_t i = 0; i < lists->count; i++)
		if (strcmp(lists->items[i].name, name) == 0)
			return &lists->items[i].texts;
	lists->items = mem_resize(lists->items, (lists->count + 1) * sizeof(*lists->items));
	lists->items[lists->count] = (struct config_list){ .name = mem_strdup(name) };
	return &lists->items[lists->count++].texts;
}

void lists_load(const struct types_context *context, const struct option *option,
		const struct tree *value, void *base)
{
	void *field = (char *)base + option->offset;

	if (tree_is_null(value))
		return;
	if (value->kind != TREE_MAP) {
		problem_add_at(context->problems, value, "must be a map, like {NAME: [a, b]}");
		return;
	}
	for (size_t i = 0; i < value->count; i++)
		texts_load(context, value->items[i], place_for_list(field, value->items[i]->key));
}

bool lists_print(const struct option *option, const void *base, struct buf *out)
{
	const void *field = (const char *)base + option->offset;
	const struct config_lists *lists = field;

	for (size_t i = 0; i < lists->count; i++) {
		buf_append_str(out, i == 0 ? "{" : ", ");
		quote_append(out, lists->items[i].name);
		buf_append_str(out, ": ");
		texts_print(&lists->items[i].texts, out);
	}
	if (lists->count > 0)
		buf_append_char(out, '}');
	return lists->count > 0;
}

void lists_fini(const struct option *option, void *base)
{
	void *field = (char *)base + option->offset;
	struct config_lists *lists = field;

	for (size_t i = 0; i < lists->count; i++) {
		free(lists->items[i].name);
		texts_free(&lists->items[i].texts);
	}
	free(lists->items);
	*lists = (struct config_lists){ 0 };
}
