/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker. A path like `servers.NAME.pool.max` is a record's (`servers.NAME`) and keys; an
 * option belongs to a level (a record, a section) if nothing but one key follows the level's
 * path.
 */
#include "config/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "auth/signing_key.h"
#include "base/mem.h"
#include "base/text.h"
#include "config/forms.h"
#include "config/tree.h"

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

/* The option with this key; NULL: there is none. */
static const struct option *table_find(const char *level, const char *key)
{
	const struct option *option = NULL;

	while ((option = table_next(level, option)) != NULL)
		if (strcmp(table_key(option), key) == 0)
			break;
	return option;
}

/* The option with this path, which there must be. */
static const struct option *table_get(const char *path)
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
static const struct slice client_keys = SLICE("mcpServers mcp_servers context_servers");

static void refuse_key(const struct types_context *context, const char *level,
		       const struct tree *member)
{
	const char *other = find_other_name(level, member->key);
	const char *similar = other != NULL ? other : find_similar(level, slice_str(member->key));
	const char *deeper = find_deeper(level, member->key);
	const struct option *option = NULL;
	at_end(buf_fini) struct buf hint = { 0 };

	if (strcmp(level, OPTIONS_TOP) == 0 &&
	    slice_has_part(client_keys, ' ', slice_str(member->key))) {
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

/* Record `i` of such an option in `base`; NULL: there are no more. */
static const void *table_record(const struct option *option, const void *base, size_t i)
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

	if (*value != NULL)
		return *value;
	if (strpbrk(option->def, "[]{}\"'#:,&*!|>%@`") != NULL) {
		*value = yaml_read(slice_str(option->def), option->path, NULL);
		CHECK(*value != NULL);
	} else {
		*value = tree_new_text(option->def, option->path);
		(*value)->is_plain = true;
	}
	return *value;
}

size_t config_find_server(const struct config *config, const char *name)
{
	size_t i = 0;

	while (i < config->server_count && strcmp(config->servers[i].conf.name, name) != 0)
		i++;
	return i;
}

const char *table_level_of(const struct config_server *server)
{
	return server->is_endpoint ? OPTIONS_ENDPOINT : OPTIONS_SERVER;
}

void table_set_defaults(const char *level, void *base)
{
	struct config_problems problems = { 0 };
	struct types_context context = { .problems = &problems, .is_checked = true };
	const struct option *option = NULL;

	while ((option = table_next(level, option)) != NULL) {
		if (option->def != NULL)
			types_get(option)->load(&context, option, read_default(option), base);
		CHECK(problems.count == 0);
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

static bool append_public_key(const char *pem, struct buf *out)
{
	at_end(signing_key_public_fini) struct signing_key_public public = { .jwk = NULL };

	if (pem == NULL || signing_key_publish(pem, &public, NULL) < 0)
		return false;
	yaml_append_text(out, public.jwk);
	return true;
}

/* Returns false, without anything appended that counts, if the field is not set or not for this reader. */
static bool append_value(enum table_reader reader, const struct option *option, const void *base,
			 struct buf *out)
{
	struct records records;

	if (!is_for(reader, option))
		return false;
	if (reader == TABLE_FOR_GATEWAY && option->form == form_signing_key)
		return append_public_key(*(char *const *)((const char *)base + option->offset),
					 out);
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

void table_print(enum table_reader reader, const char *level, const void *base, int indent,
		 FILE *out)
{
	const struct option *option = NULL;

	while ((option = table_next(level, option)) != NULL) {
		at_end(buf_fini) struct buf text = { 0 };

		/*
		 * Of a server with a url, what is for a command means nothing, and would be refused when it is read. The gateway,
		 * which does not know the url, sees what stands for nothing.
		 */
		if (option->is_for_command && reader != TABLE_FOR_GATEWAY &&
		    ((const struct config_server *)base)->url != NULL)
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
	}
}

/*
 * ---- relations ----
 *
 * One walk, record by record. Whether an option is given is read from the tree, so that a value
 * that could not be read is not reported once more as missing; which word it has, from the
 * configuration, which knows the defaults.
 */

/* A record of the configuration, and where it stands. */
struct record {
	const char *path; /* of its options, as OPTIONS_SERVER */
	const void *base;
	const struct tree *at;    /* for messages about the record */
	const struct tree *own;   /* NULL: nothing of it is given */
	const struct tree *usual; /* `defaults` of a server; else NULL */
};

struct walk {
	struct record top;
	struct config_problems *problems;
	struct config_problems *warnings;
};

/* An option of a record, from there: "pool.max". */
static const char *way_of(const struct record *record, const struct option *option)
{
	size_t length = strlen(record->path);

	return option->path + length + (length > 0);
}

static const struct tree *find_given(const struct record *record, const struct option *option)
{
	const struct tree *own = tree_find_way(record->own, way_of(record, option));

	return own != NULL ? own : tree_find_way(record->usual, way_of(record, option));
}

/* value: what is given; NULL: nothing */
static bool is_used(const struct option *option, const struct tree *value)
{
	if (value == NULL || tree_is_null(value))
		return false;
	if (value->kind != TREE_TEXT)
		return value->count > 0;
	return option->def == NULL || strcmp(value->text, option->def) != 0;
}

/* The record that the other option is in: the same, or the whole configuration. */
static const struct record *record_of(const struct walk *walk, const struct record *record,
				      const struct option *other)
{
	size_t length = strlen(record->path);
	bool is_same =
		strncmp(other->path, record->path, length) == 0 && other->path[length] == '.';

	return is_same ? record : &walk->top;
}

static bool has_word(const struct record *record, const struct option *option, const char *words)
{
	at_end(buf_fini) struct buf value = { 0 };

	CHECK(option->type == OPTION_ENUM);
	types_get(option)->print(option, record->base, &value);
	return slice_has_part(slice_str(words), ' ', buf_slice(&value));
}

/* Whether the relation demands nothing that is not so. */
static bool is_kept(const struct walk *walk, const struct record *record,
		    const struct option_relation *relation)
{
	const struct option *other = table_get(relation->other);
	const struct record *place = record_of(walk, record, other);
	const struct tree *value = find_given(place, other);

	if (relation->kind == RELATION_EXCLUDES)
		return !is_used(other, value);
	if (relation->words == NULL)
		return value != NULL;
	return relation->words[0] == '\0' ? is_used(other, value) :
					    has_word(place, other, relation->words);
}

/* The words with "or" between; as `'KEY: WORD'` each, unless key is NULL. */
static void append_words(const char *key, const char *words, struct buf *out)
{
	struct slice rest = slice_str(words);

	for (bool is_first = true; rest.n > 0; is_first = false) {
		struct slice word = slice_cut(&rest, ' ');

		buf_append_str(out, is_first ? "" : " or ");
		if (key != NULL)
			buf_printf(out, "'%s: %.*s'", key, SLICE_ARG(word));
		else
			buf_append_slice(out, word);
	}
}

static void refuse_need(const struct walk *walk, const struct record *record,
			const struct option_relation *relation, const struct tree *value)
{
	const struct option *other = table_get(relation->other);
	const char *key = way_of(record_of(walk, record, other), other);
	at_end(buf_fini) struct buf text = { 0 };

	if (relation->when != NULL)
		buf_printf(&text, "%s ", relation->when);
	buf_append_str(&text, "needs ");
	CHECK(other->example != NULL || relation->words != NULL);
	if (relation->words != NULL && relation->words[0] != '\0')
		append_words(key, relation->words, &text);
	else
		buf_printf(&text, "%s, like %s", key, other->example);
	if (relation->why != NULL)
		buf_printf(&text, ": %s", relation->why);
	problem_add_at(walk->problems, value, "%s", buf_terminate(&text));
}

static void check_at_most(const struct walk *walk, const struct record *record,
			  const struct option *option, const struct option *other)
{
	const uint64_t *number = (const void *)((const char *)record->base + option->offset);
	const uint64_t *limit = (const void *)((const char *)record->base + other->offset);
	const struct tree *value;

	CHECK(option->type == other->type && option->size == sizeof(*number));
	if (*number <= *limit)
		return;
	value = find_given(record, option);
	problem_add_at(walk->problems, value != NULL ? value : record->at,
		       "%s must not be %s than %s", way_of(record, option),
		       option->type == OPTION_DURATION ? "longer" : "more", way_of(record, other));
}

/* Whether another option of the level needs the same, which is a problem and says enough. */
static bool is_refused(const struct record *record, const char *level, const char *other)
{
	const struct option *option = NULL;

	while ((option = table_next(level, option)) != NULL)
		for (const struct option_relation *r = option->relations;
		     r != NULL && r->kind != RELATION_NONE; r++)
			if (r->kind <= RELATION_COMPLETE && strcmp(r->other, other) == 0 &&
			    is_used(option, find_given(record, option)))
				return true;
	return false;
}

/* What stands under `defaults` is meant for several servers, and not told. */
static void warn_of_idle(const struct walk *walk, const struct record *record, const char *level,
			 const struct option *option, const struct option_relation *relation)
{
	const struct tree *value = tree_find_way(record->own, way_of(record, option));
	const struct option *other = table_get(relation->other);
	const char *key = way_of(record_of(walk, record, other), other);
	at_end(buf_fini) struct buf why = { 0 };

	if (!is_used(option, value) || is_kept(walk, record, relation) ||
	    is_refused(record, level, relation->other))
		return;
	if (relation->why != NULL)
		buf_append_str(&why, relation->why);
	else if (relation->words == NULL)
		buf_printf(&why, "it needs '%s', which is not set", key);
	else
		buf_printf(&why, "it is for %s ", key);
	if (relation->why == NULL && relation->words != NULL)
		append_words(NULL, relation->words, &why);
	problem_add_at(walk->warnings, value, "has no effect here: %s", buf_terminate(&why));
}

static void check_relation(const struct walk *walk, const struct record *record, const char *level,
			   const struct option *option, const struct option_relation *relation)
{
	const struct tree *value;
	const char *key;

	if (relation->kind == RELATION_AT_MOST) {
		check_at_most(walk, record, option, table_get(relation->other));
		return;
	}
	if (relation->kind == RELATION_IDLE_UNLESS) {
		warn_of_idle(walk, record, level, option, relation);
		return;
	}
	value = find_given(record, option);
	if (!is_used(option, value) ||
	    (relation->when != NULL && !has_word(record, option, relation->when)) ||
	    is_kept(walk, record, relation))
		return;
	key = table_key(table_get(relation->other));
	if (relation->kind == RELATION_NEEDS)
		refuse_need(walk, record, relation, value);
	else if (relation->kind == RELATION_COMPLETE && strcmp(record->path, OPTIONS_SERVER) == 0 &&
		 tree_find(record->own, "command") != NULL)
		problem_add_at(walk->problems, value,
			       "is for a server with a 'url', and this one has a 'command'; what a "
			       "command needs goes into env");
	else if (relation->kind == RELATION_COMPLETE)
		problem_add_at(walk->problems, value->parent, "the key '%s' is missing", key);
	else
		problem_add_at(walk->problems, value,
			       "cannot stand beside %s%s%s; remove one of the two", key,
			       relation->why != NULL ? ": " : "",
			       relation->why != NULL ? relation->why : "");
}

/* One that is there but wrong has been reported. */
static void check_required(const struct walk *walk, const struct record *record,
			   const struct option *option)
{
	const struct tree *value = find_given(record, option);
	const char *or_key = option->or_key;

	if (or_key != NULL && tree_find(record->own, or_key) != NULL)
		return;
	if (value == NULL && (record->at->kind == TREE_MAP || tree_is_null(record->at)))
		problem_add_at(walk->problems, record->at, "the key '%s'%s%s%s is missing",
			       table_key(option), or_key != NULL ? " or '" : "",
			       or_key != NULL ? or_key : "", or_key != NULL ? "'" : "");
	else if (value != NULL && value->kind == TREE_LIST && value->count == 0)
		problem_add_at(walk->problems, value, "must not be empty");
}

/* What `defaults` says of programs is not meant for it: table_defaults_of. */
static void check_for_command(const struct walk *walk, const struct record *record,
			      const struct option *option)
{
	const struct tree *value = tree_find_way(record->own, way_of(record, option));
	const struct config_server *server = record->base;

	CHECK(strcmp(record->path, OPTIONS_SERVER) == 0);
	if (server->url != NULL && value != NULL)
		problem_add_at(walk->problems, value,
			       "is for a server with a 'command', and this one has a 'url'%s",
			       strcmp(table_key(option), "command") == 0 ?
				       "; a server has one of the two" :
			       strcmp(table_key(option), "env") == 0 ? "; use headers" :
								       "");
}

static void check_level(const struct walk *walk, const struct record *record, const char *level);

static void check_records(const struct walk *walk, const struct record *record,
			  const struct option *option)
{
	const struct tree *own = tree_find_way(record->own, way_of(record, option));
	const struct tree *list = find_given(record, option);
	const void *base;

	/* One that is not given has nothing but defaults. */
	for (size_t i = 0; list != NULL && (base = table_record(option, record->base, i)) != NULL;
	     i++) {
		const struct tree *item = tree_item(list, i);
		const struct record entry = { .path = option->records,
					      .base = base,
					      .at = item,
					      .own = own != NULL ? item : NULL,
					      .usual = own != NULL ? NULL : item };

		check_level(walk, &entry, entry.path);
	}
}

/* The options of a record or section. */
static void check_level(const struct walk *walk, const struct record *record, const char *level)
{
	const struct option *option = NULL;

	while ((option = table_next(level, option)) != NULL) {
		if (option->is_required || option->or_key != NULL)
			check_required(walk, record, option);
		if (option->is_for_command)
			check_for_command(walk, record, option);
		for (const struct option_relation *r = option->relations;
		     r != NULL && r->kind != RELATION_NONE; r++)
			check_relation(walk, record, level, option, r);
		if (option->type == OPTION_SECTION)
			check_level(walk, record, option->path);
		else if (option->records != NULL)
			check_records(walk, record, option);
	}
}

void relations_check(const struct config *config, const struct tree *root,
		     struct config_problems *problems, struct config_problems *warnings)
{
	const struct walk walk = { .top = { OPTIONS_TOP, config, root, root, NULL },
				   .problems = problems,
				   .warnings = warnings };

	check_level(&walk, &walk.top, OPTIONS_TOP);
	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];
		const struct tree *at =
			tree_find(tree_find(root, config_section_of(server)), server->conf.name);
		const struct tree *defaults =
			server->is_endpoint ? NULL : tree_find(root, "defaults");
		struct tree usual;
		const struct record record = { table_level_of(server), server, at, at,
					       table_defaults_of(at, defaults, &usual) };

		check_level(&walk, &record, record.path);
		table_defaults_end(&usual);
	}
}
