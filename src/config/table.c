/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker. A path like `servers.NAME.pool.max` is a record's prefix (`servers.NAME.`) and keys;
 * an option belongs to a level if nothing but one key follows the level's prefix.
 */
#include "config/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/problem.h"
#include "config/yaml.h"

const struct option *table_next(const char *prefix, const struct option *previous)
{
	const struct option *option = previous != NULL ? previous + 1 : options_table;
	size_t length = strlen(prefix);

	CHECK(length == 0 || prefix[length - 1] == '.');
	CHECK(option >= options_table && option <= options_table + options_count);
	for (; option < options_table + options_count; option++)
		if (strncmp(option->path, prefix, length) == 0 &&
		    strpbrk(option->path + length, ".[") == NULL)
			return option;
	return NULL;
}

const char *table_key(const struct option *option)
{
	const char *dot = strrchr(option->path, '.');

	return dot != NULL ? dot + 1 : option->path;
}

/* The prefix of what is in a section; the caller frees it. */
static char *prefix_of(const struct option *section)
{
	return mem_printf("%s.", section->path);
}

static const struct option *find_option(const char *prefix, const char *key)
{
	const struct option *option = NULL;

	while ((option = table_next(prefix, option)) != NULL)
		if (strcmp(table_key(option), key) == 0)
			return option;
	return NULL;
}

/* A key that differs in more letters than this was hardly meant. */
static size_t similar_limit(const char *key)
{
	return 1 + strlen(key) / 3;
}

/* The beginning of a name is as near to it as one wrong letter. */
static size_t distance_of(struct slice key, struct slice candidate)
{
	if (key.n > 2 && slice_has_prefix(candidate, key))
		return 1;
	return text_distance(key, candidate, YAML_KEY_MAX);
}

/* The key of this level that looks most like `key`; NULL: none looks like it. */
static const char *find_similar(const char *prefix, const char *key)
{
	const struct option *option = NULL;
	size_t nearest = similar_limit(key) + 1;
	const char *similar = NULL;

	while ((option = table_next(prefix, option)) != NULL) {
		const char *candidate = table_key(option);
		size_t distance = distance_of(slice_str(key), slice_str(candidate));

		if (distance < nearest) {
			nearest = distance;
			similar = candidate;
		}
	}
	return similar;
}

static void refuse_key(const struct types_context *context, const char *prefix,
		       const struct tree *member)
{
	const char *similar = find_similar(prefix, member->key);
	const struct option *option = NULL;
	struct buf hint = { 0 };

	if (similar != NULL)
		buf_printf(&hint, "did you mean '%s'?", similar);
	while (similar == NULL && (option = table_next(prefix, option)) != NULL)
		buf_printf(&hint, "%s%s",
			   hint.len > 0 ? ", " : "the keys here are: ", table_key(option));
	problem_add_at_key(context->problems, member, "unknown key '%.60s'; %s", member->key,
			   buf_terminate(&hint));
	buf_fini(&hint);
}

/* ---- lists of records ---- */

/* What every such field looks like, whatever its records are. */
struct records {
	char *items;
	size_t count;
};

static struct records get_records(const struct option *option, const void *base)
{
	struct records records;

	CHECK(option->size == sizeof(records) && option->record_size > 0);
	memcpy(&records, (const char *)base + option->offset, sizeof(records));
	return records;
}

static void set_records(const struct option *option, void *base, struct records records)
{
	memcpy((char *)base + option->offset, &records, sizeof(records));
}

static void free_records(const struct option *option, void *base)
{
	struct records records = get_records(option, base);

	for (size_t i = 0; i < records.count; i++)
		table_free(option->records, records.items + i * option->record_size);
	free(records.items);
	set_records(option, base, (struct records){ NULL, 0 });
}

static void load_records(const struct types_context *context, const struct option *option,
			 const struct tree *value, void *base)
{
	struct records records;

	if (value->kind != TREE_LIST) {
		problem_add_at(context->problems, value, "must be a list of maps, like %s",
			       option->example);
		return;
	}
	free_records(option, base);
	records.items = mem_zalloc((value->count + 1) * option->record_size);
	records.count = value->count;
	for (size_t i = 0; i < records.count; i++) {
		char *record = records.items + i * option->record_size;

		table_set_defaults(option->records, record);
		table_load(context, option->records, value->items[i], record);
	}
	set_records(option, base, records);
}

static bool append_records(const struct option *option, const void *base, struct buf *out)
{
	struct records records = get_records(option, base);

	for (size_t i = 0; i < records.count; i++) {
		buf_append_str(out, i == 0 ? "[" : ", ");
		table_append(option->records, records.items + i * option->record_size, out);
	}
	if (records.count > 0)
		buf_append_char(out, ']');
	return records.count > 0;
}

/* ---- reading ---- */

static void load_member(const struct types_context *context, const char *prefix,
			const struct tree *member, void *base)
{
	const struct option *option = find_option(prefix, member->key);
	char *below;

	if (option == NULL) {
		refuse_key(context, prefix, member);
	} else if (option->type == OPTION_SECTION) {
		below = prefix_of(option);
		table_load(context, below, member, base);
		free(below);
	} else if (option->type == OPTION_RECORDS) {
		load_records(context, option, member, base);
	} else if (option->type != OPTION_GROUP) {
		types_get(option)->load(context, option, member, base);
	}
}

void table_load(const struct types_context *context, const char *prefix, const struct tree *value,
		void *base)
{
	/* A section all of whose lines are commented out. */
	if (tree_is_null(value))
		return;
	if (value->kind != TREE_MAP) {
		problem_add_at(context->problems, value, "must be a map of keys and values");
		return;
	}
	for (size_t i = 0; i < value->count; i++)
		load_member(context, prefix, value->items[i], base);
}

/* Defaults are read like any other value, so the table can write them as people would. */
static void set_default(const struct option *option, void *base)
{
	struct config_problems problems = { 0 };
	struct types_context context = { .problems = &problems };
	struct error err;
	struct tree *value = yaml_read(slice_str(option->def), option->path, &err);

	CHECK(value != NULL);
	types_get(option)->load(&context, option, value, base);
	CHECK(problems.count == 0);
	tree_free(&value);
}

void table_set_defaults(const char *prefix, void *base)
{
	const struct option *option = NULL;

	while ((option = table_next(prefix, option)) != NULL) {
		if (option->def != NULL)
			set_default(option, base);
		if (option->type == OPTION_SECTION) {
			char *below = prefix_of(option);

			table_set_defaults(below, base);
			free(below);
		}
	}
}

/* ---- freeing ---- */

static void free_fields(const char *prefix, bool only_for_child, void *base)
{
	const struct option *option = NULL;

	while ((option = table_next(prefix, option)) != NULL) {
		const struct types_ops *ops = types_get(option);
		bool is_meant = option->is_for_child || !only_for_child;

		if (is_meant && option->type == OPTION_RECORDS)
			free_records(option, base);
		else if (is_meant && ops->fini != NULL)
			ops->fini(option, base);
		if (option->type == OPTION_SECTION) {
			char *below = prefix_of(option);

			free_fields(below, only_for_child, base);
			free(below);
		}
	}
}

void table_free(const char *prefix, void *base)
{
	free_fields(prefix, false, base);
}

void table_forget(const char *prefix, void *base)
{
	free_fields(prefix, true, base);
}

/* ---- printing ---- */

/* Returns false, without anything appended that counts, if the field is not set. */
static bool append_value(const struct option *option, const void *base, struct buf *out)
{
	return option->type == OPTION_RECORDS ? append_records(option, base, out) :
						types_get(option)->print(option, base, out);
}

static void print_value(const struct option *option, const void *base, int indent, FILE *out)
{
	struct buf text = { 0 };

	if (append_value(option, base, &text))
		fprintf(out, "%*s%s: %s\n", indent, "", table_key(option), buf_terminate(&text));
	buf_fini(&text);
}

void table_print(const char *prefix, const void *base, int indent, FILE *out)
{
	const struct option *option = NULL;

	while ((option = table_next(prefix, option)) != NULL) {
		if (option->type == OPTION_SECTION) {
			char *below = prefix_of(option);

			fprintf(out, "%*s%s:\n", indent, "", table_key(option));
			table_print(below, base, indent + 2, out);
			free(below);
		} else if (option->type != OPTION_GROUP) {
			print_value(option, base, indent, out);
		}
	}
}

static void append_fields(const char *prefix, const void *base, bool *is_first, struct buf *out)
{
	const struct option *option = NULL;

	while ((option = table_next(prefix, option)) != NULL) {
		size_t begin = out->len;
		bool is_there = true;

		buf_printf(out, "%s%s: ", *is_first ? "" : ", ", table_key(option));
		if (option->type == OPTION_SECTION) {
			char *below = prefix_of(option);

			table_append(below, base, out);
			free(below);
		} else {
			is_there = append_value(option, base, out);
		}
		if (!is_there)
			out->len = begin;
		*is_first = *is_first && !is_there;
	}
}

void table_append(const char *prefix, const void *base, struct buf *out)
{
	bool is_first = true;

	buf_append_char(out, '{');
	append_fields(prefix, base, &is_first, out);
	buf_append_char(out, '}');
}
