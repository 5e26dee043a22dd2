/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of values. Its texts may be secrets, so they are overwritten before they are freed. */
#include "config/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define FEW 16 /* members are looked for one by one */

struct tree *tree_new(enum tree_kind kind, const char *file)
{
	struct tree *value = mem_zalloc(sizeof(*value));

	CHECK(kind <= TREE_MAP && file != NULL);
	value->kind = kind;
	value->file = file;
	return value;
}

struct tree *tree_new_text(const char *text, const char *file)
{
	struct tree *value = tree_new(TREE_TEXT, file);

	value->text = mem_strdup(text);
	return value;
}

static void index_member(struct tree *map, struct tree *member)
{
	map_insert_link(&map->by_key, text_hash(0, slice_str(member->key)), &member->link);
}

struct tree *tree_add(struct tree *parent, const char *key, struct tree *child)
{
	CHECK(parent->kind != TREE_TEXT && (parent->kind == TREE_MAP) == (key != NULL));
	CHECK(child != parent && child->parent == NULL && child->key == NULL);
	/* Grown at powers of two: there is room up to the next one, and after tree_remove even more. */
	if ((parent->count & (parent->count - 1)) == 0) {
		size_t cap = parent->count == 0 ? 1 : parent->count * 2;

		parent->items = mem_resize(parent->items, cap * sizeof(*parent->items));
	}
	child->parent = parent;
	child->key = key != NULL ? mem_strdup(key) : NULL;
	parent->items[parent->count++] = child;
	if (parent->by_key.count > 0)
		index_member(parent, child);
	else if (parent->kind == TREE_MAP && parent->count > FEW)
		for (size_t i = 0; i < parent->count; i++)
			index_member(parent, parent->items[i]);
	return child;
}

void tree_move(struct tree *from, size_t index, struct tree *to)
{
	struct tree *item = from->items[index];
	char *key = item->key;

	CHECK(from->kind == to->kind && item->parent == from);
	if (from->by_key.count > 0)
		map_remove_link(&from->by_key, &item->link);
	item->key = NULL;
	item->parent = NULL;
	tree_add(to, key, item);
	free(key);
	from->items[index] = tree_new(TREE_TEXT, item->file);
	from->items[index]->key = from->kind == TREE_MAP ? mem_strdup("") : NULL;
}

void tree_free(struct tree **value)
{
	struct tree *v = *value;

	*value = NULL;
	if (v == NULL)
		return;
	for (size_t i = 0; i < v->count; i++)
		tree_free(&v->items[i]);
	if (v->text != NULL)
		explicit_bzero(v->text, strlen(v->text));
	free(v->text);
	free(v->key);
	free(v->items);
	map_fini(&v->by_key);
	free(v);
}

void tree_remove(struct tree *map, const char *key)
{
	size_t kept = 0;

	CHECK(map->kind == TREE_MAP);
	for (size_t i = 0; i < map->count; i++) {
		if (strcmp(map->items[i]->key, key) != 0) {
			map->items[kept++] = map->items[i];
			continue;
		}
		if (map->by_key.count > 0)
			map_remove_link(&map->by_key, &map->items[i]->link);
		tree_free(&map->items[i]);
	}
	CHECK(kept <= map->count);
	map->count = kept;
}

static struct tree *find(const struct tree *map, struct slice key)
{
	if (map == NULL || map->kind != TREE_MAP)
		return NULL;
	if (map->by_key.count == 0) {
		for (size_t i = 0; i < map->count; i++)
			if (slice_is_equal(slice_str(map->items[i]->key), key))
				return map->items[i];
		return NULL;
	}
	for (struct map_link *link = map_find_link(&map->by_key, text_hash(0, key)); link != NULL;
	     link = link->next) {
		struct tree *member = container_of(link, struct tree, link);

		if (slice_is_equal(slice_str(member->key), key))
			return member;
	}
	return NULL;
}

struct tree *tree_find(const struct tree *map, const char *key)
{
	return find(map, slice_str(key));
}

const struct tree *tree_find_way(const struct tree *map, const char *way)
{
	struct slice rest = slice_str(way);

	while (map != NULL && rest.n > 0)
		map = find(map, slice_cut(&rest, '.'));
	return map;
}

const struct tree *tree_below(const struct tree *value, const char *key)
{
	const struct tree *member = tree_find(value, key);

	return member != NULL ? member : value;
}

const struct tree *tree_item(const struct tree *value, size_t index)
{
	return value->kind == TREE_LIST && index < value->count ? value->items[index] : value;
}

bool tree_is_null(const struct tree *value)
{
	static const char *const names[] = { "", "~", "null", "Null", "NULL" };

	if (value->kind != TREE_TEXT || !value->is_plain)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(value->text, names[i]) == 0)
			return true;
	return false;
}

void tree_append_path(const struct tree *value, struct buf *out)
{
	const struct tree *parent = value->parent;
	size_t index = 0;

	if (parent == NULL)
		return;
	tree_append_path(parent, out);
	if (value->key != NULL) {
		buf_printf(out, "%s%s", parent->parent != NULL ? "." : "", value->key);
		return;
	}
	while (index < parent->count && parent->items[index] != value)
		index++;
	CHECK(index < parent->count);
	buf_printf(out, "[%zu]", index);
}
