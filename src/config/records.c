/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of records is read with the table's own walker, one record after the other, and is printed in
 * YAML's flow style, so that it stands on one line like any other value.
 */
#include "config/records.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/problem.h"
#include "config/quote.h"
#include "config/secret.h"
#include "config/table.h"
#include "config/yaml.h"

/* ---- texts ---- */

void types_free_texts(struct config_texts *texts)
{
	/* Arguments may be secrets. */
	for (size_t i = 0; i < texts->count; i++)
		secret_free(&texts->items[i]);
	free(texts->items);
	*texts = (struct config_texts){ 0 };
}

void types_load_texts(const struct types_context *context, const struct tree *value,
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
	types_free_texts(texts);
	texts->items = mem_zalloc((value->count + 1) * sizeof(*texts->items));
	for (size_t i = 0; i < value->count; i++)
		if (types_require_text(context, value->items[i]))
			texts->items[texts->count++] = mem_strdup(value->items[i]->text);
}

void types_print_texts(const struct config_texts *texts, struct buf *out)
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
		types_load_texts(context, value->items[i],
				 place_for_list(field, value->items[i]->key));
}

bool lists_print(const struct option *option, const void *base, struct buf *out)
{
	const void *field = (const char *)base + option->offset;
	const struct config_lists *lists = field;

	for (size_t i = 0; i < lists->count; i++) {
		buf_append_str(out, i == 0 ? "{" : ", ");
		quote_append(out, lists->items[i].name);
		buf_append_str(out, ": ");
		types_print_texts(&lists->items[i].texts, out);
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
		types_free_texts(&lists->items[i].texts);
	}
	free(lists->items);
	*lists = (struct config_lists){ 0 };
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

	memcpy(&records, (const char *)base + option->offset, sizeof(records));
	return records;
}

static void set_records(const struct option *option, void *base, struct records records)
{
	memcpy((char *)base + option->offset, &records, sizeof(records));
}

void records_fini(const struct option *option, void *base)
{
	struct records records = get_records(option, base);

	for (size_t i = 0; i < records.count; i++)
		table_free(option->records, records.items + i * option->record_size);
	free(records.items);
	set_records(option, base, (struct records){ NULL, 0 });
}

void records_load(const struct types_context *context, const struct option *option,
		  const struct tree *value, void *base)
{
	struct records records;

	if (value->kind != TREE_LIST) {
		problem_add_at(context->problems, value, "must be a list of maps, like %s",
			       option->example);
		return;
	}
	records_fini(option, base);
	records.items = mem_zalloc((value->count + 1) * option->record_size);
	records.count = value->count;
	for (size_t i = 0; i < records.count; i++) {
		char *record = records.items + i * option->record_size;

		table_set_defaults(option->records, record);
		table_load(context, option->records, value->items[i], record);
	}
	set_records(option, base, records);
}

bool records_print(const struct option *option, const void *base, struct buf *out)
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
