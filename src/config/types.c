/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of options: for each the functions that read, print and free it, joined in one table at
 * the end. What concerns more than one option is in table.c and rules.c.
 */
#include "config/table.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/forms.h"
#include "config/tree.h"

/* ---- texts that are owned: whoever has such a list may change its items ---- */

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

void texts_shorten(struct slice *text, size_t n)
{
	CHECK(n <= text->n);
	((char *)(uintptr_t)text->p)[n] = '\0';
	text->n = n;
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

static struct named_slices *named_items_of(const struct slice_map *map)
{
	return (struct named_slices *)(uintptr_t)map->items;
}

/* The list with this name in a map; created empty if missing. Valid until the next one is added. */
static struct slices *texts_place_in(struct slice_map *map, struct slice name)
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

static void *field_of(const struct option *option, void *base)
{
	return (char *)base + option->offset;
}

static const void *field_of_const(const struct option *option, const void *base)
{
	return (const char *)base + option->offset;
}

/* How a value is quoted in a message; a list or map has no short text. */
static const char *shown(const struct tree *value)
{
	if (value->kind == TREE_TEXT)
		return value->text;
	return value->kind == TREE_LIST ? "[…]" : "{…}";
}

/* A text that is there; what is wrong is reported, as by the next two. */
static bool is_text(const struct types_context *context, const struct tree *value)
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

/* What of the form of a text is wrong is reported; it is used as it is nevertheless. */
static void judge(const struct types_context *context, option_form_fn *form, const char *text,
		  const struct tree *at)
{
	struct error err;

	if (form != NULL && !context->is_checked && form(slice_str(text), &err) < 0)
		problem_add_at(context->problems, at, "%s", err.text);
}

/*
 * No more entries than YAML may have: the command line and imported files come without that limit, but are
 * printed as YAML.
 */
static bool are_few(const struct types_context *context, const struct tree *value)
{
	if (value->count > YAML_ITEMS_MAX)
		problem_add_at(context->problems, value, "must not have more than %u entries",
			       YAML_ITEMS_MAX);
	return value->count <= YAML_ITEMS_MAX;
}

/* A map; another value is reported, unless it is empty. */
static bool is_map(const struct types_context *context, const struct tree *value,
		   const char *example)
{
	if (value->kind != TREE_MAP && !tree_is_null(value))
		problem_add_at(context->problems, value, "must be a map, like %s", example);
	return value->kind == TREE_MAP;
}

/* Begins member number i of a map, up to its value. */
static void append_name(struct buf *out, size_t i, const char *name)
{
	buf_append_str(out, i == 0 ? "{" : ", ");
	yaml_append_text(out, name);
	buf_append_str(out, ": ");
}

/* ---- text ---- */

static bool is_not_empty(const struct types_context *context, const struct tree *value)
{
	if (!is_text(context, value))
		return false;
	if (value->text[0] == '\0')
		problem_add_at(context->problems, value, "must not be empty");
	return value->text[0] != '\0';
}

static void load_text(const struct types_context *context, const struct option *option,
		      const struct tree *value, void *base)
{
	char **field = field_of(option, base);

	if (!is_not_empty(context, value))
		return;
	judge(context, option->form, value->text, value);
	free(*field);
	*field = mem_strdup(value->text);
}

static bool print_text(const struct option *option, const void *base, struct buf *out)
{
	char *const *field = field_of_const(option, base);

	if (*field != NULL)
		yaml_append_text(out, *field);
	return *field != NULL;
}

static void fini_text(void *at)
{
	secret_free(at);
}

static void load_slice(const struct types_context *context, const struct option *option,
		       const struct tree *value, void *base)
{
	struct slice *field = field_of(option, base);

	if (!is_not_empty(context, value))
		return;
	judge(context, option->form, value->text, value);
	texts_free_one(field);
	*field = slice_str(mem_strdup(value->text));
}

static bool print_slice(const struct option *option, const void *base, struct buf *out)
{
	const struct slice *field = field_of_const(option, base);

	if (field->n > 0)
		yaml_append_text(out, field->p);
	return field->n > 0;
}

static void fini_slice(void *at)
{
	texts_free_one(at);
}

/* ---- bool ---- */

/* Returns whether it is one; what is wrong is reported. */
static bool read_bool(const struct types_context *context, const struct tree *value, bool *bool_r)
{
	bool is_plain = value->kind == TREE_TEXT && value->is_plain;

	*bool_r = is_plain && strcmp(value->text, "true") == 0;
	if (*bool_r || (is_plain && strcmp(value->text, "false") == 0))
		return true;
	problem_add_at(context->problems, value, "must be true or false%s, not '%.60s'",
		       value->kind == TREE_TEXT && !is_plain ? " without quotes" : "",
		       shown(value));
	return false;
}

static void load_bool(const struct types_context *context, const struct option *option,
		      const struct tree *value, void *base)
{
	bool read;

	if (read_bool(context, value, &read))
		*(bool *)field_of(option, base) = read;
}

static bool print_bool(const struct option *option, const void *base, struct buf *out)
{
	const bool *field = field_of_const(option, base);

	buf_append_str(out, *field ? "true" : "false");
	return true;
}

/* ---- numbers ---- */

typedef int parse_fn(struct slice text, uint64_t *number_r);

struct number {
	parse_fn *parse;
	void (*append)(struct buf *out, uint64_t number);
	const char *expected;
};

static void append_percent(struct buf *out, uint64_t percent)
{
	buf_printf(out, "%" PRIu64 "%%", percent);
}

static const struct number numbers[OPTION_TYPE_COUNT] = {
	[OPTION_COUNT] = { text_parse_u64, buf_append_u64, "a whole number" },
	[OPTION_SIZE] = { quantity_parse_size, quantity_append_size,
			  "a size like 512KiB, 4MiB or 1GiB" },
	[OPTION_PERCENT] = { quantity_parse_percent, append_percent, "a percentage such as 10%" },
	[OPTION_DURATION] = { quantity_parse_duration, quantity_append_duration,
			      "a time like 500ms, 30s, 5m, 2h or 1d" },
};

static void check_limits(const struct types_context *context, const struct option *option,
			 const struct tree *value, parse_fn *parse, uint64_t number)
{
	uint64_t limit;

	if (option->min != NULL && parse(slice_str(option->min), &limit) == 0 && number < limit)
		problem_add_at(context->problems, value, "must be at least %s, not '%.60s'",
			       option->min, shown(value));
	if (option->max != NULL && parse(slice_str(option->max), &limit) == 0 && number > limit)
		problem_add_at(context->problems, value, "must be at most %s, not '%.60s'",
			       option->max, shown(value));
}

/* `type` is that of the value, which may be one of several in the option. */
static void read_number(const struct types_context *context, const struct option *option,
			enum option_type type, const struct tree *value, uint64_t *number_r)
{
	const struct number *number = &numbers[type];

	CHECK(number->parse != NULL);
	if (value->kind != TREE_TEXT || (type == OPTION_COUNT && !value->is_plain) ||
	    number->parse(slice_str(value->text), number_r) != 0)
		problem_add_at(context->problems, value, "must be %s, not '%.60s'",
			       number->expected, shown(value));
	else
		check_limits(context, option, value, number->parse, *number_r);
}

static void load_number(const struct types_context *context, const struct option *option,
			const struct tree *value, void *base)
{
	read_number(context, option, option->type, value, field_of(option, base));
}

/* A number without a default is 0 until the file names it, and its `min` is more. */
static bool print_number(const struct option *option, const void *base, struct buf *out)
{
	const uint64_t *field = field_of_const(option, base);

	CHECK(numbers[option->type].append != NULL);
	numbers[option->type].append(out, *field);
	return option->def != NULL || *field > 0;
}

static void load_range(const struct types_context *context, const struct option *option,
		       const struct tree *value, void *base)
{
	const char *dots = value->kind == TREE_TEXT ? strstr(value->text, "..") : NULL;
	uint64_t *field = field_of(option, base);

	if (dots == NULL ||
	    quantity_parse_duration(slice_between(value->text, dots), &field[0]) != 0 ||
	    quantity_parse_duration(slice_str(dots + 2), &field[1]) != 0) {
		problem_add_at(context->problems, value,
			       "must be two times like 1s..60s, not '%.60s'", shown(value));
		return;
	}
	if (field[0] > field[1])
		problem_add_at(context->problems, value,
			       "the first time must not be longer than the second");
	check_limits(context, option, value, quantity_parse_duration, field[0]);
	check_limits(context, option, value, quantity_parse_duration, field[1]);
}

static bool print_range(const struct option *option, const void *base, struct buf *out)
{
	const uint64_t *field = field_of_const(option, base);

	CHECK(field[0] <= field[1]);
	quantity_append_duration(out, field[0]);
	buf_append_str(out, "..");
	quantity_append_duration(out, field[1]);
	return true;
}

/* ---- dates ---- */

static void load_date(const struct types_context *context, const struct option *option,
		      const struct tree *value, void *base)
{
	if (value->kind != TREE_TEXT ||
	    quantity_parse_date(slice_str(value->text), field_of(option, base)) != 0)
		problem_add_at(
			context->problems, value,
			"must be a date like 2027-01-31 or a time like 2027-01-31T18:00:00Z, not "
			"'%.60s'",
			shown(value));
}

static bool print_date(const struct option *option, const void *base, struct buf *out)
{
	const uint64_t *field = field_of_const(option, base);
	char text[QUANTITY_TEXT_MAX];

	if (*field == 0)
		return false;
	quantity_format_date(*field, text);
	yaml_append_text(out, text);
	return true;
}

/* ---- one of several words ---- */

/* The choice with this name; NULL: reported, with all of them. */
static const struct option_choice *find_choice(const struct types_context *context,
					       const struct option *option,
					       const struct tree *place, const char *name)
{
	const struct option_choice *choice = option->choices;
	at_end(buf_fini) struct buf names = { 0 };

	CHECK(choice != NULL && choice->name != NULL);
	for (; choice->name != NULL && strcmp(name, choice->name) != 0; choice++)
		buf_printf(&names, "%s%s", names.len > 0 ? ", " : "", choice->name);
	if (choice->name == NULL)
		problem_add_at(context->problems, place, "must be one of %s, not '%.60s'",
			       buf_terminate(&names), name);
	return choice->name != NULL ? choice : NULL;
}

static void load_enum(const struct types_context *context, const struct option *option,
		      const struct tree *value, void *base)
{
	const struct option_choice *choice = find_choice(context, option, value, shown(value));
	void *field = field_of(option, base);

	CHECK(option->size == sizeof(bool) || option->size == sizeof(int));
	if (choice != NULL && option->size == sizeof(bool))
		*(bool *)field = choice->value != 0;
	else if (choice != NULL)
		*(int *)field = choice->value;
}

static bool print_enum(const struct option *option, const void *base, struct buf *out)
{
	const void *field = field_of_const(option, base);
	int value = option->size == sizeof(bool) ? *(const bool *)field : *(const int *)field;

	for (const struct option_choice *c = option->choices; c->name != NULL; c++)
		if (c->value == value)
			buf_append_str(out, c->name);
	return true;
}

/* ---- lists of texts ---- */

/* Replaces the texts by those of the list `value`; another value is reported. */
static void load_list(const struct types_context *context, const struct option *option,
		      const struct tree *value, struct slices *texts)
{
	if (value->kind != TREE_LIST) {
		problem_add_at(context->problems, value, "must be a list, like [a, b]");
		return;
	}
	if (!are_few(context, value))
		return;
	texts_free(texts);
	for (size_t i = 0; i < value->count; i++) {
		const struct tree *item = value->items[i];

		if (!is_text(context, item))
			continue;
		judge(context, option->form, item->text, item);
		texts_add(texts, slice_str(item->text));
	}
}

static void append_list(const struct slices *texts, struct buf *out)
{
	CHECK((texts->items == NULL) == (texts->count == 0));
	buf_append_char(out, '[');
	for (size_t i = 0; i < texts->count; i++) {
		buf_append_str(out, i > 0 ? ", " : "");
		yaml_append_text(out, texts->items[i].p);
	}
	buf_append_char(out, ']');
}

static void load_texts(const struct types_context *context, const struct option *option,
		       const struct tree *value, void *base)
{
	load_list(context, option, value, field_of(option, base));
}

static bool print_texts(const struct option *option, const void *base, struct buf *out)
{
	append_list(field_of_const(option, base), out);
	return true;
}

static void fini_texts(void *at)
{
	texts_free(at);
}

/* ---- lists by name ---- */

static void load_map(const struct types_context *context, const struct option *option,
		     const struct tree *value, void *base)
{
	if (!is_map(context, value, "{NAME: [a, b]}"))
		return;
	for (size_t i = 0; i < value->count; i++) {
		const struct tree *item = value->items[i];

		judge(context, option->name_form, item->key, item);
		load_list(context, option, item,
			  texts_place_in(field_of(option, base), slice_str(item->key)));
	}
}

static bool print_map(const struct option *option, const void *base, struct buf *out)
{
	const struct slice_map *field = field_of_const(option, base);

	for (size_t i = 0; i < field->count; i++) {
		append_name(out, i, field->items[i].name.p);
		append_list(&field->items[i].values, out);
	}
	buf_append_char(out, '}');
	return field->count > 0;
}

static void fini_map(void *at)
{
	struct slice_map *map = at;

	for (size_t i = 0; i < map->count; i++) {
		texts_free_one(&named_items_of(map)[i].name);
		texts_free(&named_items_of(map)[i].values);
	}
	free(named_items_of(map));
	*map = (struct slice_map){ NULL, 0 };
}

/* ---- texts by name ---- */

/* A map of these keys as the text of a JSON object, without what is wrong, which is reported. */
static char *load_object(const struct types_context *context, const struct option *option,
			 const struct tree *value)
{
	size_t count = is_map(context, value, option->example) ? value->count : 0;
	json_auto_t *object = json_object();
	char *text;

	for (size_t i = 0; i < count; i++) {
		const struct tree *item = value->items[i];
		const struct option_choice *key = find_choice(context, option, item, item->key);
		bool is_hint = key != NULL && key->value != 0, is_true = false;

		if (is_hint && read_bool(context, item, &is_true))
			json_object_set_new(object, item->key, json_boolean(is_true));
		else if (key != NULL && !is_hint && is_text(context, item))
			json_object_set_new(object, item->key, json_string(item->text));
	}
	text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
	CHECK(text != NULL);
	return text;
}

static void load_named(const struct types_context *context, const struct option *option,
		       const struct tree *value, void *base)
{
	if (!is_map(context, value, option->example) || !are_few(context, value))
		return;
	for (size_t i = 0; i < value->count; i++) {
		const struct tree *item = value->items[i];
		at_end(mem_free) char *object =
			option->choices != NULL ? load_object(context, option, item) : NULL;
		struct slices *place;

		if (object == NULL && !is_text(context, item))
			continue;
		judge(context, option->name_form, item->key, item);
		if (object == NULL)
			judge(context, option->form, item->text, item);
		place = texts_place_in(field_of(option, base), slice_str(item->key));
		texts_free(place);
		texts_add(place, slice_str(object != NULL ? object : item->text));
	}
}

static bool print_named(const struct option *option, const void *base, struct buf *out)
{
	const struct slice_map *field = field_of_const(option, base);

	for (size_t i = 0; i < field->count; i++) {
		append_name(out, i, field->items[i].name.p);
		if (option->choices != NULL)
			buf_append_slice(out, field->items[i].values.items[0]);
		else
			yaml_append_text(out, field->items[i].values.items[0].p);
	}
	buf_append_char(out, '}');
	return field->count > 0;
}

static void load_one_object(const struct types_context *context, const struct option *option,
			    const struct tree *value, void *base)
{
	struct slice *field = field_of(option, base);

	texts_free_one(field);
	*field = slice_str(load_object(context, option, value));
}

static bool print_object(const struct option *option, const void *base, struct buf *out)
{
	const struct slice *field = field_of_const(option, base);

	buf_append_slice(out, *field);
	return field->n > 0;
}

/* ---- ports ---- */

static void fini_ports(void *at)
{
	struct config_ports *field = at;

	free(field->items);
	*field = (struct config_ports){ 0 };
}

static void load_ports(const struct types_context *context, const struct option *option,
		       const struct tree *value, void *base)
{
	struct config_ports *field = field_of(option, base);
	bool is_any = value->kind == TREE_TEXT && strcmp(value->text, "any") == 0;

	if (value->kind != TREE_LIST && !is_any) {
		problem_add_at(context->problems, value,
			       "must be a list of ports, like [443], or the word any");
		return;
	}
	if (!are_few(context, value))
		return;
	fini_ports(field);
	field->is_any = is_any;
	field->items = mem_zalloc((value->count + 1) * sizeof(*field->items));
	for (size_t i = 0; i < value->count; i++) {
		const struct tree *port = value->items[i];
		uint64_t number;

		if (port->kind != TREE_TEXT || !port->is_plain ||
		    text_parse_u64(slice_str(port->text), &number) != 0 || number < 1 ||
		    number > UINT16_MAX)
			problem_add_at(context->problems, port,
				       "must be a port, 1 to 65535, not '%.60s'", shown(port));
		else
			field->items[field->count++] = (uint16_t)number;
	}
}

static bool print_ports(const struct option *option, const void *base, struct buf *out)
{
	const struct config_ports *field = field_of_const(option, base);

	CHECK(!field->is_any || field->count == 0);
	buf_append_str(out, field->is_any ? "any" : "[");
	for (size_t i = 0; i < field->count; i++)
		buf_printf(out, "%s%u", i > 0 ? ", " : "", (unsigned int)field->items[i]);
	buf_append_str(out, field->is_any ? "" : "]");
	return true;
}

/* ---- environment, secrets ---- */

/* {file: PATH} and its kin. NULL: reported. */
static char *load_reference(const struct types_context *context, const struct tree *value)
{
	const struct tree *name = value->count == 1 ? value->items[0] : NULL;
	char *secret = NULL;
	struct error err;

	if (name == NULL || name->kind != TREE_TEXT || !secret_is_kind(name->key))
		problem_add_at(context->problems, value,
			       "must be a text, {file: PATH}, {env: NAME} or {credential: NAME}");
	else if (name->text[0] == '\0')
		problem_add_at(context->problems, name, "must not be empty");
	else if (claim_is_in(name->text))
		problem_add_at(
			context->problems, name,
			"claims of the caller (${claim:…}) can only be in env and headers, as a "
			"text or in {file: PATH}");
	else if (context->resolve(name->key, name->text, &context->writers, &secret, &err) != 0)
		problem_add_at(context->problems, name, "%s", err.text);
	else if (secret_is_open(name->key, name->text))
		problem_add_at(
			context->warnings, name,
			"everybody can read this secret; remove that permission: chmod o-r %.200s",
			name->text);
	return secret;
}

static void warn_readable(const struct types_context *context, const struct tree *value)
{
	if (!context->is_world_readable)
		return;
	/* An imported file has texts alone, and no lines. */
	if (value->line > 0)
		problem_add_at(
			context->warnings, value,
			"a secret in a file that everybody can read; remove that permission (chmod "
			"o-r) or put the secret into a file of its own: {file: PATH}");
	else
		problem_add_at(
			context->warnings, value,
			"a secret in a file that everybody can read; remove that permission: chmod "
			"o-r %.200s",
			value->file);
}

static bool check_claims(const struct types_context *context, const struct tree *value)
{
	struct slice rest = slice_str(value->text);
	struct slice before, name;
	int result;

	while ((result = claim_cut(&rest, &before, &name)) > 0)
		;
	if (result < 0)
		problem_add_at(
			context->problems, value,
			"a claim must be written like ${claim:sub}, with a name of 1 to %d visible "
			"ASCII characters",
			CLAIM_NAME_MAX);
	return result == 0;
}

/* {file: PATH} with claims in the path: a file for each caller. */
static bool is_file_of_caller(const struct tree *value)
{
	return value->kind == TREE_MAP && value->count == 1 && value->items[0]->kind == TREE_TEXT &&
	       strcmp(value->items[0]->key, "file") == 0 && claim_is_in(value->items[0]->text);
}

/* What comes before the first claim is a directory, or the beginning of a file's name. */
static void load_file_of_caller(const struct types_context *context, const struct tree *path,
				struct config_pair *pair)
{
	struct slice rest = slice_str(path->text);
	struct slice before, name;

	if (!check_claims(context, path))
		return;
	for (int i = 0; claim_cut(&rest, &before, &name) > 0; i++) {
		if (i == 0 || memchr(before.p, '/', before.n) != NULL)
			continue;
		problem_add_at(context->problems, path,
			       "two claims in one part of a path may name another caller's file; "
			       "write a / between them");
		return;
	}
	if (path->text[0] != '/') {
		problem_add_at(
			context->problems, path,
			"must be an absolute path, like /etc/mcpgated/keys/${claim:sub}.key");
		return;
	}
	pair->value = mem_strdup(path->text);
	pair->has_claims = pair->names_file = true;
	pair->is_secret = false;
}

static bool load_pair(const struct types_context *context, const struct tree *value,
		      struct config_pair *pair_r)
{
	struct config_pair pair = { .is_secret = true };

	CHECK(value->key != NULL);
	if (value->key[0] == '\0' || strchr(value->key, '=') != NULL ||
	    strlen(value->key) > YAML_KEY_MAX) {
		problem_add_at_key(context->problems, value,
				   "'%.60s' cannot be the name of a variable", value->key);
		return false;
	}
	if (is_file_of_caller(value)) {
		load_file_of_caller(context, value->items[0], &pair);
	} else if (value->kind == TREE_MAP) {
		pair.value = load_reference(context, value);
		if (pair.value != NULL)
			pair.file = secret_find_file(value->items[0]->key, value->items[0]->text);
	} else if (is_text(context, value)) {
		pair.value = mem_strdup(value->text);
		pair.has_claims = claim_is_in(value->text) && check_claims(context, value);
		/* The name of a claim is no secret; text beside it may be one. */
		pair.is_secret = value->is_secret ||
				 (secret_is_name(value->key) && !claim_is_alone(value->text));
		if (pair.is_secret && !value->is_secret)
			warn_readable(context, value);
	}
	if (pair.value == NULL)
		return false;
	pair.name = mem_strdup(value->key);
	*pair_r = pair;
	return true;
}

/* NULL: reported. */
static char *read_secret(const struct types_context *context, const struct tree *value)
{
	if (value->kind == TREE_MAP)
		return load_reference(context, value);
	if (value->kind == TREE_TEXT)
		warn_readable(context, value);
	return is_text(context, value) ? mem_strdup(value->text) : NULL;
}

static void load_secret(const struct types_context *context, const struct option *option,
			const struct tree *value, void *base)
{
	char **field = field_of(option, base);
	char *secret = read_secret(context, value);

	if (secret == NULL)
		return;
	judge(context, option->form, secret, value);
	secret_free(field);
	*field = secret;
}

static bool append_secret(const char *secret, bool is_open, struct buf *out)
{
	if (secret != NULL)
		yaml_append_text(out, is_open ? secret : SECRET_MASK);
	return secret != NULL;
}

static bool print_secret(const struct option *option, const void *base, struct buf *out)
{
	return append_secret(*(char *const *)field_of_const(option, base), false, out);
}

static void fini_fields(void *at)
{
	struct fetch_fields *fields = at;

	for (size_t i = 0; i < fields->count; i++) {
		free(fields->items[i].name);
		secret_free(&fields->items[i].value);
	}
	free(fields->items);
	*fields = (struct fetch_fields){ NULL, 0 };
}

static void load_fields(const struct types_context *context, const struct option *option,
			const struct tree *value, void *base)
{
	struct fetch_fields *fields = field_of(option, base);

	if (!is_map(context, value, "{NAME: value}") || !are_few(context, value))
		return;
	fini_fields(fields);
	fields->items = mem_zalloc((value->count + 1) * sizeof(*fields->items));
	for (size_t i = 0; i < value->count; i++) {
		const struct tree *item = value->items[i];
		char *secret = read_secret(context, item);

		judge(context, option->name_form, item->key, item);
		if (secret != NULL)
			judge(context, option->form, secret, item);
		if (secret != NULL)
			fields->items[fields->count++] =
				(struct fetch_field){ mem_strdup(item->key), secret };
	}
}

static bool append_fields(const struct fetch_fields *fields, bool is_open, struct buf *out)
{
	for (size_t i = 0; i < fields->count; i++) {
		CHECK(fields->items[i].name != NULL && fields->items[i].value != NULL);
		append_name(out, i, fields->items[i].name);
		(void)append_secret(fields->items[i].value, is_open, out);
	}
	buf_append_char(out, '}');
	return fields->count > 0;
}

static bool print_fields(const struct option *option, const void *base, struct buf *out)
{
	return append_fields(field_of_const(option, base), false, out);
}

bool types_print_open(const struct option *option, const void *base, struct buf *out)
{
	const void *field = field_of_const(option, base);

	CHECK(option->type == OPTION_SECRET || option->type == OPTION_FIELDS);
	if (option->type == OPTION_FIELDS)
		return append_fields(field, true, out);
	return append_secret(*(char *const *)field, true, out);
}

static void free_pair(struct config_pair *pair)
{
	secret_free(&pair->value);
	free(pair->file);
	free(pair->name);
}

/* Where a variable of this name stands, or where a new one is to be put. */
static struct config_pair *place_for_pair(struct config_server *server, const char *name)
{
	for (size_t i = 0; i < server->env_count; i++) {
		if (strcmp(server->env[i].name, name) == 0) {
			free_pair(&server->env[i]);
			return &server->env[i];
		}
	}
	server->env = mem_resize(server->env, (server->env_count + 1) * sizeof(struct config_pair));
	return &server->env[server->env_count++];
}

static void load_env(const struct types_context *context, const struct option *option,
		     const struct tree *value, void *base)
{
	struct config_pair pair;

	if (!is_map(context, value, "{NAME: value}") || !are_few(context, value))
		return;
	for (size_t i = 0; i < value->count; i++) {
		const struct tree *item = value->items[i];

		if (!load_pair(context, item, &pair))
			continue;
		judge(context, option->name_form, item->key, item);
		judge(context, option->form, pair.value, item);
		*place_for_pair(base, pair.name) = pair;
	}
}

static bool print_env(const struct option *option, const void *base, struct buf *out)
{
	const struct config_server *server = base;

	/* `env` and `headers` are one: that of a program, and that of a URL. */
	if (server->env_count == 0 || option->is_for_command != (server->url == NULL))
		return false;
	for (size_t i = 0; i < server->env_count; i++) {
		const struct config_pair *pair = &server->env[i];

		CHECK(pair->name != NULL && pair->value != NULL);
		append_name(out, i, pair->name);
		buf_append_str(out, pair->names_file ? "{file: " : "");
		yaml_append_text(out, pair->is_secret ? SECRET_MASK : pair->value);
		buf_append_str(out, pair->names_file ? "}" : "");
	}
	buf_append_char(out, '}');
	return true;
}

static void fini_env(void *at)
{
	struct config_server *server = at;

	for (size_t i = 0; i < server->env_count; i++)
		free_pair(&server->env[i]);
	free(server->env);
	server->env = NULL;
	server->env_count = 0;
}

/* ---- times of tools ---- */

static uint64_t *place_for_timeout(struct tool_timeouts *timeouts, struct slice tool)
{
	struct tool_timeout *added;

	for (size_t i = 0; i < timeouts->count; i++)
		if (slice_is_equal(timeouts->items[i].tool, tool))
			return &timeouts->items[i].timeout_ms;
	timeouts->items = mem_resize(timeouts->items, (timeouts->count + 1) * sizeof(*added));
	added = &timeouts->items[timeouts->count++];
	*added = (struct tool_timeout){ .tool = slice_of(mem_dup_slice(tool), tool.n) };
	return &added->timeout_ms;
}

static void load_timeouts(const struct types_context *context, const struct option *option,
			  const struct tree *value, void *base)
{
	if (!is_map(context, value, "{TOOL: 10m}"))
		return;
	for (size_t i = 0; i < value->count; i++)
		read_number(context, option, OPTION_DURATION, value->items[i],
			    place_for_timeout(field_of(option, base),
					      slice_str(value->items[i]->key)));
}

static bool print_timeouts(const struct option *option, const void *base, struct buf *out)
{
	const struct tool_timeouts *field = field_of_const(option, base);

	CHECK((field->items == NULL) == (field->count == 0));
	for (size_t i = 0; i < field->count; i++) {
		append_name(out, i, field->items[i].tool.p);
		quantity_append_duration(out, field->items[i].timeout_ms);
	}
	buf_append_char(out, '}');
	return field->count > 0;
}

static void fini_timeouts(void *at)
{
	struct tool_timeouts *field = at;

	for (size_t i = 0; i < field->count; i++)
		texts_free_one(&field->items[i].tool);
	free(field->items);
	*field = (struct tool_timeouts){ NULL, 0 };
}

/* ---- servers of an endpoint ---- */

#define PREFIX_BYTES_MAX 66 /* of the usual one: a name and two underscores */

static void fini_legs(void *at)
{
	struct server_legs *field = at;

	for (size_t i = 0; i < field->count; i++) {
		texts_free_one(&field->items[i].server);
		texts_free_one(&field->items[i].prefix);
	}
	free(field->items);
	*field = (struct server_legs){ NULL, 0 };
}

/* What is said of one of them: {prefix: gh_}, or nothing. NULL: the usual prefix. */
static const char *read_prefix(const struct types_context *context, const struct tree *value)
{
	const struct tree *prefix = tree_find(value, "prefix");

	for (size_t i = 0; value->kind == TREE_MAP && i < value->count; i++)
		if (value->items[i] != prefix)
			problem_add_at_key(context->problems, value->items[i],
					   "unknown key '%.60s'; the only one here is 'prefix'",
					   value->items[i]->key);
	if (!is_map(context, value, "{prefix: gh_}") || prefix == NULL || !is_text(context, prefix))
		return NULL;
	/* As a tool's name: many clients pass names on to models that take nothing else. */
	if (prefix->text[0] != '\0' && (strlen(prefix->text) > PREFIX_BYTES_MAX ||
					!slice_is_name(slice_str(prefix->text), "_-")))
		problem_add_at(context->problems, prefix,
			       "must have at most %d letters, digits, '-' and '_'",
			       PREFIX_BYTES_MAX);
	return prefix->text;
}

static void load_legs(const struct types_context *context, const struct option *option,
		      const struct tree *value, void *base)
{
	struct server_legs *field = field_of(option, base);

	if (value->kind != TREE_LIST && value->kind != TREE_MAP) {
		problem_add_at(context->problems, value,
			       "must be a list of servers, like [files, wiki], or a map, like "
			       "{files: {prefix: f_}}");
		return;
	}
	if (!are_few(context, value))
		return;
	fini_legs(field);
	field->items = mem_zalloc((value->count + 1) * sizeof(*field->items));
	for (size_t i = 0; i < value->count; i++) {
		const struct tree *item = value->items[i];
		bool is_named = value->kind == TREE_MAP;
		const char *prefix = is_named ? read_prefix(context, item) : NULL;
		const char *name = is_named ? item->key : item->text;
		struct server_leg *leg = &field->items[field->count];

		if (!is_named && !is_not_empty(context, item))
			continue;
		field->count++;
		leg->server = slice_str(mem_strdup(name));
		leg->prefix =
			slice_str(prefix != NULL ? mem_strdup(prefix) : mem_printf("%s__", name));
	}
}

static bool print_legs(const struct option *option, const void *base, struct buf *out)
{
	const struct server_legs *field = field_of_const(option, base);

	CHECK(field->count == 0 || field->items != NULL);
	for (size_t i = 0; i < field->count; i++) {
		append_name(out, i, field->items[i].server.p);
		buf_append_str(out, "{prefix: ");
		yaml_append_text(out, field->items[i].prefix.p);
		buf_append_char(out, '}');
	}
	buf_append_char(out, '}');
	return field->count > 0;
}

_Static_assert(offsetof(struct server_conf, backoff_max_ms) ==
		       offsetof(struct server_conf, backoff_min_ms) + sizeof(uint64_t),
	       "OPTION_RANGE writes two neighbours");

_Static_assert(offsetof(struct config, listen_count) ==
			       offsetof(struct config, listen) + sizeof(void *) &&
		       offsetof(struct config_listen, tls_count) ==
			       offsetof(struct config_listen, tls) + sizeof(void *),
	       "LIST is two neighbours");

static const struct types_ops types[OPTION_TYPE_COUNT] = {
	[OPTION_SECTION] = { .name = NULL },
	[OPTION_GROUP] = { .name = NULL },
	[OPTION_TEXT] = { "text", sizeof(char *), load_text, print_text, fini_text },
	[OPTION_SLICE] = { "text", sizeof(struct slice), load_slice, print_slice, fini_slice },
	[OPTION_BOOL] = { "true or false", sizeof(bool), load_bool, print_bool, NULL },
	[OPTION_COUNT] = { "number", sizeof(uint64_t), load_number, print_number, NULL },
	[OPTION_SIZE] = { "size", sizeof(uint64_t), load_number, print_number, NULL },
	[OPTION_PERCENT] = { "percentage", sizeof(uint64_t), load_number, print_number, NULL },
	[OPTION_DURATION] = { "time", sizeof(uint64_t), load_number, print_number, NULL },
	[OPTION_RANGE] = { "two times", sizeof(uint64_t), load_range, print_range, NULL },
	[OPTION_ENUM] = { "word", 0, load_enum, print_enum, NULL },
	[OPTION_TEXTS] = { "list of texts", sizeof(struct slices), load_texts, print_texts,
			   fini_texts },
	[OPTION_PORTS] = { "list of ports, or any", sizeof(struct config_ports), load_ports,
			   print_ports, fini_ports },
	[OPTION_ENV] = { "map of texts", 0, load_env, print_env, fini_env },
	[OPTION_TIMEOUTS] = { "map of times", sizeof(struct tool_timeouts), load_timeouts,
			      print_timeouts, fini_timeouts },
	[OPTION_SECRET] = { "text", sizeof(char *), load_secret, print_secret, fini_text },
	[OPTION_FIELDS] = { "map of texts", sizeof(struct fetch_fields), load_fields, print_fields,
			    fini_fields },
	[OPTION_LEGS] = { "list or map of servers", sizeof(struct server_legs), load_legs,
			  print_legs, fini_legs },
	[OPTION_DATE] = { "date", sizeof(uint64_t), load_date, print_date, NULL },
	[OPTION_LISTS] = { "map of lists", sizeof(struct slice_map), load_map, print_map,
			   fini_map },
	[OPTION_NAMED] = { "map of texts", sizeof(struct slice_map), load_named, print_named,
			   fini_map },
	[OPTION_OBJECT] = { "map of texts", sizeof(struct slice), load_one_object, print_object,
			    fini_slice },
	[OPTION_RECORDS] = { .name = "list of maps" },
};

const struct types_ops *types_get(const struct option *option)
{
	const struct types_ops *ops;

	CHECK(option->type < OPTION_TYPE_COUNT);
	ops = &types[option->type];
	CHECK(ops->size == 0 || ops->size == option->size);
	return ops;
}
