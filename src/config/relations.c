/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk, record by record. Whether an option is given is read from the tree, so that a value that
 * could not be read is not reported once more as missing; which word it has, from the configuration,
 * which knows the defaults.
 */
#include "config/relations.h"

#include <string.h>

#include "config/problem.h"
#include "config/table.h"

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
	struct slice rest = slice_str(words);
	struct buf value = { 0 };
	bool has_it = false;

	CHECK(option->type == OPTION_ENUM);
	types_get(option)->print(option, record->base, &value);
	while (rest.n > 0 && !has_it)
		has_it = slice_is_equal(slice_cut(&rest, ' '), buf_slice(&value));
	buf_fini(&value);
	return has_it;
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
	struct buf text = { 0 };

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
	buf_fini(&text);
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
	struct buf why = { 0 };

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
	buf_fini(&why);
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
			       "is for a server with a 'command', and this one has a 'url'");
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
