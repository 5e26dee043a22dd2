/* SPDX-License-Identifier: Apache-2.0 */
#include "config/places.h"

#include <string.h>

/* No line of a printed configuration is like it: texts in it have no line ends. */
#define BEGIN "\n# Where the rules stand:\n"

/* A value on the way to what a key of the table names. */
struct visit {
	struct rule_places *places;
	struct buf key; /* of the value */
	unsigned int below;
};

/* The value, and what stands so far below it. */
static void note(struct visit *visit, const struct tree *value, unsigned int below)
{
	size_t length = visit->key.len;

	rule_places_add(visit->places, buf_slice(&visit->key), slice_str(value->file),
			value->key_line > 0 ? value->key_line : value->line);
	for (size_t i = 0; below > 0 && i < value->count; i++) {
		const struct tree *item = value->items[i];

		if (item->key != NULL)
			buf_printf(&visit->key, ".%s", item->key);
		else
			buf_printf(&visit->key, "[%zu]", i);
		note(visit, item, below - 1);
		visit->key.len = length;
	}
}

static void look(struct visit *visit, const struct tree *value, struct slice rest);

/* All entries of a list. */
static void look_at_entries(struct visit *visit, const struct tree *list, struct slice rest)
{
	size_t length = visit->key.len;

	for (size_t i = 0; list->kind == TREE_LIST && i < list->count; i++) {
		buf_printf(&visit->key, "[%zu]", i);
		look(visit, list->items[i], rest);
		visit->key.len = length;
	}
}

/* The member of this name, or any. */
static void look_at_members(struct visit *visit, const struct tree *map, struct slice name,
			    struct slice rest)
{
	bool is_any = slice_is_equal(name, SLICE_LIT("NAME"));
	size_t length = visit->key.len;

	for (size_t i = 0; map->kind == TREE_MAP && i < map->count; i++) {
		const struct tree *member = map->items[i];

		if (!is_any && !slice_is_equal(name, slice_str(member->key)))
			continue;
		buf_printf(&visit->key, "%s%s", length > 0 ? "." : "", member->key);
		look(visit, member, rest);
		visit->key.len = length;
	}
}

/* `rest`: the way from the value to what the key names, like tools.deny, or [].tools. */
static void look(struct visit *visit, const struct tree *value, struct slice rest)
{
	size_t n = 0;

	if (slice_has_prefix(rest, SLICE_LIT(".")))
		rest = slice_of(rest.p + 1, rest.n - 1);
	while (n < rest.n && rest.p[n] != '.' && rest.p[n] != '[')
		n++;
	if (rest.n == 0)
		note(visit, value, visit->below);
	else if (n == 0)
		look_at_entries(visit, value, slice_of(rest.p + 2, rest.n - 2));
	else
		look_at_members(visit, value, slice_of(rest.p, n),
				slice_of(rest.p + n, rest.n - n));
}

/* What is opened when the configuration is used, and may fail then. */
static const char *const opened[] = { "log.target",    "audit.to",      "listen[].address",
				      "admin.address", "admin.metrics", "admin.page" };

void places_collect(const struct tree *root, struct rule_places *places)
{
	static const struct slice of_server = SLICE("servers.NAME.");
	const struct tree *defaults = tree_find(root, "defaults");

	for (size_t i = 0; i < ARRAY_LEN(opened); i++) {
		struct visit visit = { .places = places };

		look(&visit, root, slice_str(opened[i]));
		buf_fini(&visit.key);
	}
	for (enum rule_key key = RULE_NONE + 1; key < RULE_KEY_COUNT; key++) {
		struct slice text = slice_str(rule_key_text(key));
		struct visit visit = { .places = places, .below = rule_key_below(key) };

		look(&visit, root, text);
		if (defaults != NULL && slice_has_prefix(text, of_server)) {
			buf_append_str(&visit.key, "defaults");
			look(&visit, defaults,
			     slice_of(text.p + of_server.n, text.n - of_server.n));
		}
		buf_fini(&visit.key);
	}
	rule_places_finish(places);
}

int places_tell(const struct rule_places *places, const char *key, struct error *err)
{
	const struct error what = *err;
	struct buf place = { 0 };

	if (rule_places_append_key(places, slice_str(key), &place))
		error_set(err, what.kind, "%s: %s: %s", buf_terminate(&place), key, what.text);
	buf_fini(&place);
	return -1;
}

void places_print(const struct rule_places *places, FILE *out)
{
	struct buf text = { 0 };

	rule_places_write(places, &text);
	if (text.len > 0)
		fprintf(out, "%s%s", &BEGIN[1], buf_terminate(&text));
	buf_fini(&text);
}

struct slice places_cut(struct slice *text)
{
	static const struct slice begin = SLICE(BEGIN);
	const char *at = memmem(text->p, text->n, begin.p, begin.n);
	const char *end = text->p + text->n;

	if (at == NULL)
		return slice_of(end, 0);
	*text = slice_between(text->p, at + 1);
	return slice_between(at + begin.n, end);
}
