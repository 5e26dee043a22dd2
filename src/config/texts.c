/* SPDX-License-Identifier: Apache-2.0 */
/* Printed in YAML's flow style, so that a list stands on one line like any other value. */
#include "config/texts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/problem.h"
#include "config/quote.h"
#include "config/yaml.h"

/* ---- texts ---- */

bool texts_is_one(const struct types_context *context, const struct tree *value)
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

bool texts_are_few(const struct types_context *context, const struct tree *value)
{
	if (value->count > YAML_ITEMS_MAX)
		problem_add_at(context->problems, value, "must not have more than %u entries",
			       YAML_ITEMS_MAX);
	return value->count <= YAML_ITEMS_MAX;
}

bool texts_is_map(const struct types_context *context, const struct tree *value,
		  const char *example)
{
	if (value->kind != TREE_MAP && !tree_is_null(value))
		problem_add_at(context->problems, value, "must be a map, like %s", example);
	return value->kind == TREE_MAP;
}

/* These lists are ours: their items may be changed. */
static struct slice *items_of(const struct slices *texts)
{
	return (struct slice *)(uintptr_t)texts->items;
}

void texts_add(struct slices *texts, struct slice text)
{
	struct slice *items;

	CHECK((texts->items == NULL) == (texts->count == 0));
	items = mem_resize(items_of(texts), (texts->count + 1) * sizeof(*items));

	items[texts->count++] = slice_of(mem_dup_slice(text), text.n);
	texts->items = items;
}

void texts_free_one(struct slice *text)
{
	char *bytes = (char *)(uintptr_t)text->p;

	CHECK(bytes == NULL || bytes[text->n] == '\0');
	/* An argument may be a secret. */
	if (bytes != NULL)
		explicit_bzero(bytes, text->n);
	free(bytes);
	*text = (struct slice){ NULL, 0 };
}

void texts_free(struct slices *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		texts_free_one(&items_of(texts)[i]);
	free(items_of(texts));
	*texts = (struct slices){ NULL, 0 };
}

void texts_load(const struct types_context *context, const struct tree *value, struct slices *texts)
{
	if (value->kind != TREE_LIST) {
		problem_add_at(context->problems, value, "must be a list, like [a, b]");
		return;
	}
	if (!texts_are_few(context, value))
		return;
	texts_free(texts);
	for (size_t i = 0; i < value->count; i++)
		if (texts_is_one(context, value->items[i]))
			texts_add(texts, slice_str(value->items[i]->text));
}

void texts_print(const struct slices *texts, struct buf *out)
{
	CHECK((texts->items == NULL) == (texts->count == 0));
	buf_append_char(out, '[');
	for (size_t i = 0; i < texts->count; i++) {
		buf_append_str(out, i > 0 ? ", " : "");
		quote_append(out, texts->items[i].p);
	}
	buf_append_char(out, ']');
}

/* ---- lists by name ---- */

static struct named_slices *named_items_of(const struct slice_map *map)
{
	return (struct named_slices *)(uintptr_t)map->items;
}

static struct slices *place_for_list(struct slice_map *map, struct slice name)
{
	struct named_slices *items = named_items_of(map);

	CHECK((items == NULL) == (map->count == 0));
	for (size_t i = 0; i < map->count; i++)
		if (slice_is_equal(items[i].name, name))
			return &items[i].values;
	items = mem_resize(items, (map->count + 1) * sizeof(*items));
	items[map->count] = (struct named_slices){ .name = slice_of(mem_dup_slice(name), name.n) };
	map->items = items;
	return &items[map->count++].values;
}

void texts_load_map(const struct types_context *context, const struct tree *value,
		    struct slice_map *map)
{
	if (!texts_is_map(context, value, "{NAME: [a, b]}"))
		return;
	for (size_t i = 0; i < value->count; i++)
		texts_load(context, value->items[i],
			   place_for_list(map, slice_str(value->items[i]->key)));
}

void texts_print_map(const struct slice_map *map, struct buf *out)
{
	CHECK(map->count > 0);
	for (size_t i = 0; i < map->count; i++) {
		buf_append_str(out, i == 0 ? "{" : ", ");
		quote_append(out, map->items[i].name.p);
		buf_append_str(out, ": ");
		texts_print(&map->items[i].values, out);
	}
	buf_append_char(out, '}');
}

void texts_free_map(struct slice_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		texts_free_one(&named_items_of(map)[i].name);
		texts_free(&named_items_of(map)[i].values);
	}
	free(named_items_of(map));
	*map = (struct slice_map){ NULL, 0 };
}
