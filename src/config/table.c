/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker. A path like `servers.NAME.pool.max` is a record's (`servers.NAME`) and keys; an option
 * belongs to a level (a record, a section) if nothing but one key follows the level's path.
 */
#include "config/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/problem.h"
#include "config/yaml.h"

#define OPTIONS_MAX 512
#define NO_PARENT UINT16_MAX

/* Of each option: the length of the level that it is a key of, and the next key of that level; 0: it is the last. */
static struct place {
	uint16_t parent_bytes;
	uint16_t next;
} places[OPTIONS_MAX];

static bool is_key_of(size_t i, const char *level, size_t length)
{
	return places[i].parent_bytes == length &&
	       memcmp(options_table[i].path, level, length) == 0;
}

static size_t find_key_of(const char *level, size_t length, size_t from)
{
	while (from < options_count && !is_key_of(from, level, length))
		from++;
	return from;
}

/* Once: a configuration of thousands of servers asks for each key of each. */
static void find_places(void)
{
	CHECK(options_count <= OPTIONS_MAX);
	for (size_t i = 0; i < options_count; i++) {
		const char *path = options_table[i].path;
		const char *dot = strrchr(path, '.');

		if (strchr(dot != NULL ? dot : path, '[') != NULL)
			places[i].parent_bytes = NO_PARENT;
		else
			places[i].parent_bytes = dot != NULL ? (uint16_t)(dot - path) : 0;
	}
	for (size_t i = 0; i < options_count; i++) {
		size_t next = find_key_of(options_table[i].path, places[i].parent_bytes, i + 1);

		places[i].next = next < options_count ? (uint16_t)next : 0;
	}
}

const struct option *table_next(const char *level, const struct option *previous)
{
	static bool is_ready;
	size_t length = strlen(level);
	size_t i;

	if (!is_ready)
		find_places();
	is_ready = true;
	CHECK(length == 0 || level[length - 1] != '.');
	if (previous == NULL) {
		i = find_key_of(level, length, 0);
		return i < options_count ? &options_table[i] : NULL;
	}
	i = (size_t)(previous - options_table);
	CHECK(i < options_count && is_key_of(i, level, length));
	return places[i].next > 0 ? &options_table[places[i].next] : NULL;
}

const char *table_key(const struct option *option)
{
	const char *dot = strrchr(option->path, '.');

	return dot != NULL ? dot + 1 : option->path;
}

const struct option *table_find(const char *level, const char *key)
{
	const struct option *option = NULL;

	while ((option = table_next(level, option)) != NULL)
		if (strcmp(table_key(option), key) == 0)
			break;
	return option;
}

const struct option *table_get(const char *path)
{
	size_t i = 0;

	while (i < options_count && strcmp(options_table[i].path, path) != 0)
		i++;
	CHECK(i < options_count);
	return &options_table[i];
}

/* The key of this level that looks most like `key`; NULL: none looks like it. */
static const char *find_similar(const char *level, struct slice key)
{
	const struct option *option = NULL;
	const char *similar = NULL;
	size_t distance = SIZE_MAX;

	while ((option = table_next(level, option)) != NULL)
		if (text_is_nearer(key, slice_str(table_key(option)), &distance))
			similar = table_key(option);
	return similar;
}

/* The way from this level to a key of just this name in one of its sections, like `pool.max`; NULL: there is none. */
static const char *find_deeper(const char *level, const char *key)
{
	const struct option *section = NULL;

	while ((section = table_next(level, section)) != NULL) {
		const struct option *option =
			section->type == OPTION_SECTION ? table_find(section->path, key) : NULL;

		if (option != NULL)
			return option->path + (table_key(section) - section->path);
	}
	return NULL;
}

/* What others call it; NULL: nothing. */
static const char *find_other_name(const char *level, const char *key)
{
	static const struct {
		const char *theirs;
		const char *ours;
	} names[] = {
		{ "cmd", "command" },      { "exec", "command" },
		{ "arguments", "args" },   { "environment", "env" },
		{ "workdir", "cwd" },      { "directory", "cwd" },
		{ "disabled", "enabled" }, { "timeout", "request_timeout" },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i].theirs, key) == 0 && table_find(level, names[i].ours) != NULL)
			return names[i].ours;
	return NULL;
}

/* Under such keys clients have their servers. */
static bool is_of_client(const char *key)
{
	return strcmp(key, "mcpServers") == 0 || strcmp(key, "mcp_servers") == 0 ||
	       strcmp(key, "context_servers") == 0;
}

static void refuse_key(const struct types_context *context, const char *level,
		       const struct tree *member)
{
	const char *other = find_other_name(level, member->key);
	const char *similar = other != NULL ? other : find_similar(level, slice_str(member->key));
	const char *deeper = find_deeper(level, member->key);
	const struct option *option = NULL;
	struct buf hint = { 0 };

	if (strcmp(level, OPTIONS_TOP) == 0 && is_of_client(member->key)) {
		problem_add_at_key(
			context->problems, member,
			"unknown key '%.60s': this is the file of a client; to serve what "
			"it has, use --import",
			member->key);
		return;
	}
	if (deeper != NULL && other == NULL)
		buf_printf(&hint, "did you mean '%s'?", deeper);
	else if (similar != NULL)
		buf_printf(&hint, "did you mean '%s'?", similar);
	while (similar == NULL && deeper == NULL && (option = table_next(level, option)) != NULL)
		buf_printf(&hint, "%s%s",
			   hint.len > 0 ? ", " : "the keys here are: ", table_key(option));
	problem_add_at_key(context->problems, member, "unknown key '%.60s'; %s", member->key,
			   buf_terminate(&hint));
	buf_fini(&hint);
}

static void *field_of(const struct option *option, void *base)
{
	return (char *)base + option->offset;
}

/* ---- lists of records ---- */

/* What every such field looks like, whatever its records are. */
struct records {
	char *items;
	size_t count;
};

static struct records get_records(const struct option *option, const void *at)
{
	struct records records;

	CHECK(option->size == sizeof(records) && option->record_size > 0);
	memcpy(&records, at, sizeof(records));
	return records;
}

const void *table_record(const struct option *option, const void *base, size_t i)
{
	struct records records = get_records(option, (const char *)base + option->offset);

	return i < records.count ? records.items + i * option->record_size : NULL;
}

static void free_records(const struct option *option, void *at)
{
	struct records records = get_records(option, at);

	for (size_t i = 0; i < records.count; i++)
		table_free(option->records, records.items + i * option->record_size);
	free(records.items);
	memset(at, 0, sizeof(records));
}

/* A list of so many records of defaults. */
static struct records new_records(const struct option *option, size_t count)
{
	struct records records = { mem_zalloc((count + 1) * option->record_size), count };

	for (size_t i = 0; i < count; i++)
		table_set_defaults(option->records, records.items + i * option->record_size);
	return records;
}

static void refuse_records(const struct types_context *context, const struct option *option,
			   const struct tree *value)
{
	const struct option *first = table_next(option->records, NULL);

	if (option->list == OPTION_LIST_OR_ONE)
		problem_add_at(context->problems, value,
			       "must be a map like %s, or a list of such maps", option->example);
	else if (option->example != NULL)
		problem_add_at(context->problems, value, "must be a list of maps, like %s",
			       option->example);
	else
		problem_add_at(context->problems, value, "must be a list of maps, like [{%s: %s}]",
			       table_key(first), first->def);
}

static void load_records(const struct types_context *context, const struct option *option,
			 const struct tree *value, void *at)
{
	bool is_one = option->list == OPTION_LIST_OR_ONE && value->kind == TREE_MAP;
	size_t count = is_one ? 1 : value->count;
	struct records records;

	if (option->type == OPTION_GROUP && tree_is_null(value))
		return;
	if ((value->kind != TREE_LIST && !is_one) || (count == 0 && option->list != OPTION_LIST)) {
		refuse_records(context, option, value);
		return;
	}
	free_records(option, at);
	records = new_records(option, count);
	for (size_t i = 0; i < count; i++)
		table_load(context, option->records, tree_item(value, i),
			   records.items + i * option->record_size);
	memcpy(at, &records, sizeof(records));
}

/* ---- reading ---- */

void table_load(const struct types_context *context, const char *level, const struct tree *value,
		void *base)
{
	/* A section all of whose lines are commented out. */
	if (tree_is_null(value))
		return;
	if (value->kind != TREE_MAP) {
		problem_add_at(context->problems, value, "must be a map of keys and values");
		return;
	}
	for (size_t i = 0; i < value->count; i++) {
		const struct tree *member = value->items[i];
		const struct option *option = table_find(level, member->key);

		if (option == NULL)
			refuse_key(context, level, member);
		else if (option->type == OPTION_SECTION)
			table_load(context, option->path, member, base);
		else if (option->records != NULL)
			load_records(context, option, member, field_of(option, base));
		else if (option->type != OPTION_GROUP)
			types_get(option)->load(context, option, member, base);
	}
}

/*
 * Defaults are read like any other value, so the table can write them as people would: once, because a configuration of
 * thousands of servers asks for those of each. Most need no parser.
 */
static const struct tree *read_default(const struct option *option)
{
	static struct tree *read[OPTIONS_MAX];
	struct tree **value = &read[option - options_table];
	struct error err;

	if (*value != NULL)
		return *value;
	if (strpbrk(option->def, "[]{}\"'#:,&*!|>%@`") != NULL) {
		*value = yaml_read(slice_str(option->def), option->path, &err);
		CHECK(*value != NULL);
	} else {
		*value = tree_new_text(option->def, option->path);
		(*value)->is_plain = true;
	}
	return *value;
}

const char *table_level_of(const struct config_server *server)
{
	return server->is_endpoint ? OPTIONS_ENDPOINT : OPTIONS_SERVER;
}

static void set_default(const struct option *option, void *base)
{
	struct config_problems problems = { 0 };
	struct types_context context = { .problems = &problems, .is_checked = true };

	types_get(option)->load(&context, option, read_default(option), base);
	CHECK(problems.count == 0);
}

void table_set_defaults(const char *level, void *base)
{
	const struct option *option = NULL;

	while ((option = table_next(level, option)) != NULL) {
		if (option->def != NULL)
			set_default(option, base);
		if (option->list == OPTION_LIST_NEVER_EMPTY) {
			struct records records = new_records(option, 1);

			memcpy(field_of(option, base), &records, sizeof(records));
		}
		if (option->type == OPTION_SECTION)
			table_set_defaults(option->path, base);
	}
}

const struct tree *table_defaults_of(const struct tree *own, const struct tree *defaults,
				     struct tree *room)
{
	*room = (struct tree){ .kind = TREE_MAP };
	if (defaults == NULL || defaults->kind != TREE_MAP || tree_find(own, "url") == NULL)
		return defaults;
	/* A map that has the same members, but for some. */
	*room = *defaults;
	room->by_key = (struct map){ 0 };
	room->count = 0;
	room->items = mem_zalloc((defaults->count + 1) * sizeof(*room->items));
	for (size_t i = 0; i < defaults->count; i++) {
		const struct option *option = table_find(OPTIONS_SERVER, defaults->items[i]->key);

		if (option == NULL || !option->is_for_command)
			room->items[room->count++] = defaults->items[i];
	}
	return room;
}

void table_defaults_end(struct tree *room)
{
	free(room->items);
	room->items = NULL;
}

/* ---- freeing ---- */

void table_free(const char *level, void *base)
{
	const struct option *option = NULL;

	while ((option = table_next(level, option)) != NULL) {
		const struct types_ops *ops = types_get(option);

		if (option->type == OPTION_SECTION)
			table_free(option->path, base);
		else if (option->records != NULL)
			free_records(option, field_of(option, base));
		else if (ops->fini != NULL)
			ops->fini(field_of(option, base));
	}
}

/* ---- printing ---- */

/* The record or section as a map in YAML's flow style: `{key: value, …}`. */
static void append_map(enum table_reader reader, const char *level, const void *base,
		       struct buf *out);

static bool is_for(enum table_reader reader, const struct option *option)
{
	static const enum option_reader own[] = {
		[TABLE_FOR_GATEWAY] = OPTION_FOR_GATEWAY,
		[TABLE_FOR_FETCHER] = OPTION_FOR_FETCHER,
	};

	if (reader == TABLE_FOR_PEOPLE || reader == TABLE_FOR_PROCESSES)
		return reader == TABLE_FOR_PEOPLE || !option->is_rule;
	return option->reader == OPTION_FOR_ALL || option->reader == own[reader];
}

/* Returns false, without anything appended that counts, if the field is not set or not for this reader. */
static bool append_value(enum table_reader reader, const struct option *option, const void *base,
			 struct buf *out)
{
	struct records records;

	if (!is_for(reader, option))
		return false;
	if (reader == TABLE_FOR_FETCHER &&
	    (option->type == OPTION_SECRET || option->type == OPTION_FIELDS))
		return types_print_open(option, base, out);
	if (option->type != OPTION_RECORDS)
		return types_get(option)->print(option, base, out);
	records = get_records(option, (const char *)base + option->offset);
	for (size_t i = 0; i < records.count; i++) {
		buf_append_str(out, i == 0 ? "[" : ", ");
		append_map(reader, option->records, records.items + i * option->record_size, out);
	}
	if (records.count > 0)
		buf_append_char(out, ']');
	return records.count > 0;
}

static void append_map(enum table_reader reader, const char *level, const void *base,
		       struct buf *out)
{
	const struct option *option = NULL;
	bool is_first = true;

	buf_append_char(out, '{');
	while ((option = table_next(level, option)) != NULL) {
		size_t begin = out->len;
		bool is_there = true;

		buf_printf(out, "%s%s: ", is_first ? "" : ", ", table_key(option));
		if (option->type == OPTION_SECTION)
			append_map(reader, option->path, base, out);
		else
			is_there = append_value(reader, option, base, out);
		if (!is_there)
			out->len = begin;
		is_first = is_first && !is_there;
	}
	buf_append_char(out, '}');
}

static void print_group(enum table_reader reader, const struct option *option, const void *base,
			int indent, FILE *out)
{
	const void *record;

	for (size_t i = 0; (record = table_record(option, base, i)) != NULL; i++) {
		if (i == 0)
			fprintf(out, "%*s%s:\n", indent, "", table_key(option));
		fprintf(out, "%*s-\n", indent + 2, "");
		table_print(reader, option->records, record, indent + 4, out);
	}
}

/* Of such a server what is for a command means nothing, and would be refused when it is read. */
static bool is_behind_url(const void *server)
{
	return ((const struct config_server *)server)->url != NULL;
}

void table_print(enum table_reader reader, const char *level, const void *base, int indent,
		 FILE *out)
{
	const struct option *option = NULL;

	while ((option = table_next(level, option)) != NULL) {
		struct buf text = { 0 };

		/* The gateway, which does not know the url, sees what stands for nothing. */
		if (option->is_for_command && reader != TABLE_FOR_GATEWAY && is_behind_url(base))
			continue;
		if (option->type == OPTION_SECTION) {
			fprintf(out, "%*s%s:\n", indent, "", table_key(option));
			table_print(reader, option->path, base, indent + 2, out);
		} else if (option->type == OPTION_GROUP && option->records != NULL) {
			print_group(reader, option, base, indent, out);
		} else if (option->type != OPTION_GROUP &&
			   append_value(reader, option, base, &text)) {
			fprintf(out, "%*s%s: %s\n", indent, "", table_key(option),
				buf_terminate(&text));
		}
		buf_fini(&text);
	}
}
