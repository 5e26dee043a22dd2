/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of values. Its texts may be secrets, so they are overwritten before they are freed. */
#include "config/tree.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/unicode.h"

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
	MAP_EACH(struct tree, member, &map->by_key, text_hash(0, key), link)
		if (slice_is_equal(slice_str(member->key), key))
			return member;
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
	return value->kind == TREE_TEXT && value->is_plain &&
	       (value->text[0] == '\0' ||
		slice_has_part(SLICE_LIT("~ null Null NULL"), ' ', slice_str(value->text)));
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

/*
 * ---- problem ----
 *
 * Problems are collected, not thrown, so that one run shows all of them. The same defect may be
 * met several times (`defaults` are applied to each server); it is kept once.
 */

/* What terminals obey, what is not seen there, what turns the direction of writing, and what is no UTF-8: a `?` for each byte. */
static void replace_hidden(struct buf *line)
{
	struct slice rest = buf_slice(line);

	while (rest.n > 0) {
		size_t n = text_utf8_length(rest);

		bool is_shown = n > 0 && !unicode_is_hidden(unicode_decode(slice_of(rest.p, n)));

		n = n > 0 ? n : 1;
		if (!is_shown)
			memset(line->data + (line->len - rest.n), '?', n);
		rest = slice_of(rest.p + n, rest.n - n);
	}
}

/* Adds `place`, which is freed, and the formatted text behind it. */
__attribute__((format(printf, 3, 0))) static void add_line(struct config_problems *problems,
							   struct buf *place, const char *format,
							   va_list args)
{
	at_end(mem_free) char *text = NULL;

	CHECK(problems->count <= PROBLEMS_MAX + 1);
	/* The formats are ours; vasprintf fails for lack of memory alone. */
	CHECK(vasprintf(&text, format, args) >= 0);
	buf_append_str(place, text);
	replace_hidden(place);
	buf_terminate(place);
	for (size_t i = 0; i < problems->count; i++) {
		if (strcmp(problems->items[i], place->data) == 0) {
			buf_fini(place);
			return;
		}
	}
	if (problems->count <= PROBLEMS_MAX) {
		bool is_last = problems->count == PROBLEMS_MAX;
		size_t size = (problems->count + 1) * sizeof(*problems->items);

		problems->items = mem_resize(problems->items, size);
		problems->items[problems->count++] =
			mem_strdup(is_last ? "there are more problems than these" : place->data);
	}
	buf_fini(place);
}

static void append_place(struct buf *out, const char *file, unsigned line, unsigned column)
{
	CHECK(file != NULL && out->len == 0);
	buf_append_str(out, file);
	if (line > 0)
		buf_printf(out, ":%u:%u", line, column);
	buf_append_str(out, ": ");
}

void problem_add(struct config_problems *problems, const char *format, ...)
{
	struct buf none = { 0 };
	va_list args;

	va_start(args, format);
	add_line(problems, &none, format, args);
	va_end(args);
}

void problem_add_at(struct config_problems *problems, const struct tree *value, const char *format,
		    ...)
{
	struct buf place = { 0 };
	va_list args;

	append_place(&place, value->file, value->line, value->column);
	tree_append_path(value, &place);
	if (value->parent != NULL)
		buf_append_str(&place, ": ");
	va_start(args, format);
	add_line(problems, &place, format, args);
	va_end(args);
}

void problem_add_in(struct config_problems *problems, const struct tree *value, const char *format,
		    ...)
{
	struct buf place = { 0 };
	va_list args;

	if (value->line > 0)
		append_place(&place, value->file, value->line, value->column);
	va_start(args, format);
	add_line(problems, &place, format, args);
	va_end(args);
}

void problem_add_at_key(struct config_problems *problems, const struct tree *value,
			const char *format, ...)
{
	struct buf place = { 0 };
	va_list args;

	CHECK(value->key != NULL);
	append_place(&place, value->file, value->key_line, value->key_column);
	va_start(args, format);
	add_line(problems, &place, format, args);
	va_end(args);
}

/* ---- their order ---- */

struct place {
	bool is_elsewhere; /* not in the first file */
	struct slice file;
	uint64_t line; /* UINT64_MAX: the problem has none */
	uint64_t column;
};

/* Cuts a number and the colon behind it off. */
static bool cut_number(struct slice *text, uint64_t *number_r)
{
	const char *colon = memchr(text->p, ':', text->n);
	struct slice digits = slice_between(text->p, colon != NULL ? colon : text->p);

	if (text_parse_u64(digits, number_r) < 0)
		return false;
	*text = slice_of(text->p + digits.n + 1, text->n - digits.n - 1);
	return true;
}

/* The name of a file may have colons. */
static struct place find_place(const char *problem, const char *first)
{
	struct place place = { .line = UINT64_MAX };

	for (const char *at = strchr(problem, ':'); at != NULL; at = strchr(at + 1, ':')) {
		struct slice rest = slice_str(at + 1);
		uint64_t line, column;

		if (!cut_number(&rest, &line) || !cut_number(&rest, &column))
			continue;
		place.file = slice_between(problem, at);
		place.line = line;
		place.column = column;
		break;
	}
	place.is_elsewhere = first == NULL || !slice_is_equal(place.file, slice_str(first));
	return place;
}

static int compare_texts(struct slice one, struct slice other)
{
	size_t n = one.n < other.n ? one.n : other.n;
	int order = n > 0 ? memcmp(one.p, other.p, n) : 0;

	return order != 0 ? order : (one.n > other.n) - (one.n < other.n);
}

static bool is_before(const struct place *one, const struct place *other)
{
	int order;

	if ((one->line == UINT64_MAX) != (other->line == UINT64_MAX))
		return other->line == UINT64_MAX;
	if (one->is_elsewhere != other->is_elsewhere)
		return other->is_elsewhere;
	order = compare_texts(one->file, other->file);
	if (order != 0)
		return order < 0;
	return one->line < other->line || (one->line == other->line && one->column < other->column);
}

void problems_sort(struct config_problems *problems, const char *first)
{
	for (size_t i = 1; i < problems->count; i++) {
		char *item = problems->items[i];
		struct place place = find_place(item, first);
		size_t at = i;

		for (; at > 0; at--) {
			struct place before = find_place(problems->items[at - 1], first);

			if (!is_before(&place, &before))
				break;
			problems->items[at] = problems->items[at - 1];
		}
		problems->items[at] = item;
	}
}

void config_problems_fini(struct config_problems *problems)
{
	for (size_t i = 0; i < problems->count; i++)
		free(problems->items[i]);
	free(problems->items);
	*problems = (struct config_problems){ 0 };
}

const struct tree *problem_place(const struct tree *at, const char *way)
{
	const struct tree *root = at;
	const struct tree *found = tree_find_way(at, way);

	while (root->parent != NULL)
		root = root->parent;
	if (found == NULL)
		found = tree_find_way(tree_find(root, "defaults"), way);
	return found != NULL ? found : at;
}
