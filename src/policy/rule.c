/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/rule.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/text.h"
#include "obs/line.h"

static const struct {
	const char *text;
	unsigned int below;
} keys[] = {
#define X(name, key, depth) [RULE_##name] = { key, depth },
#include "policy/rule.def"
};

const char *rule_key_text(enum rule_key key)
{
	CHECK(key < RULE_KEY_COUNT);
	return keys[key].text;
}

unsigned int rule_key_below(enum rule_key key)
{
	CHECK(key < RULE_KEY_COUNT);
	return keys[key].below;
}

void rule_append(const struct rule *rule, struct slice server, struct buf *out)
{
	static const struct slice name = SLICE("NAME");
	struct slice rest = slice_str(rule_key_text(rule->key));

	while (rest.n > 0) {
		size_t taken = 1;

		if (slice_has_prefix(rest, name)) {
			buf_append_slice(out, rule->name.n > 0 ? rule->name : server);
			taken = name.n;
		} else if (slice_has_prefix(rest, SLICE_LIT("[]"))) {
			buf_printf(out, "[%zu]", rule->number);
			taken = 2;
		} else {
			buf_append_char(out, *rest.p);
		}
		rest = slice_of(rest.p + taken, rest.n - taken);
	}
	if (rule->member.n > 0)
		buf_printf(out, ".%.*s", SLICE_ARG(rule->member));
	if (rule->has_entry)
		buf_printf(out, "[%zu]", rule->entry);
}

/* ---- places of rules ---- */

/* Sorted by key. As text: `@FILE`, and behind it a line `LINE KEY` for each rule of that file. */

/* ---- what is known ---- */

/* The end of a long name says more than its beginning. */
static struct slice end_of(struct slice name)
{
	size_t n = name.n < RULE_PLACE_FILE_MAX ? name.n : RULE_PLACE_FILE_MAX;
	struct slice end = slice_of(name.p + name.n - n, n);

	while (end.n < name.n && end.n > 0 && ((unsigned char)*end.p & 0xC0) == 0x80)
		end = slice_of(end.p + 1, end.n - 1);
	return end;
}

/* Its number; RULE_PLACE_FILES_MAX: there is no room for one more. */
static size_t get_file(struct rule_places *places, struct slice name)
{
	for (size_t i = places->file_count; i > 0; i--)
		if (slice_is_equal(slice_str(places->files[i - 1]), name))
			return i - 1;
	if (places->file_count == RULE_PLACE_FILES_MAX)
		return RULE_PLACE_FILES_MAX;
	places->files[places->file_count] = mem_dup_slice(name);
	return places->file_count++;
}

void rule_places_add(struct rule_places *places, struct slice key, struct slice file,
		     unsigned int line)
{
	size_t number;

	if (line == 0 || key.n == 0 || key.n > RULE_PLACE_KEY_MAX || !line_is_seen(key) ||
	    !line_is_seen(file) || places->count == RULE_PLACES_MAX)
		return;
	number = get_file(places, end_of(file));
	if (number == RULE_PLACE_FILES_MAX)
		return;
	if ((places->count & (places->count - 1)) ==
	    0) /* is full: it has room for a power of two */
		places->items =
			mem_resize(places->items, (places->count == 0 ? 1 : places->count * 2) *
							  sizeof(*places->items));
	places->items[places->count++] =
		(struct rule_place){ slice_of(mem_dup_slice(key), key.n), number, line };
}

static int rule_compare(const void *a, const void *b)
{
	const struct rule_place *one = a, *other = b;
	size_t n = one->key.n < other->key.n ? one->key.n : other->key.n;
	int order = memcmp(one->key.p, other->key.p, n);

	return order != 0 ? order : (one->key.n > other->key.n) - (one->key.n < other->key.n);
}

void rule_places_finish(struct rule_places *places)
{
	if (places->count > 0)
		qsort(places->items, places->count, sizeof(*places->items), rule_compare);
}

void rule_places_free(struct rule_places *places)
{
	for (size_t i = 0; i < places->count; i++)
		free((char *)(uintptr_t)places->items[i].key.p);
	for (size_t i = 0; i < places->file_count; i++)
		free(places->files[i]);
	free(places->items);
	*places = (struct rule_places){ .items = NULL };
}

/* ---- finding ---- */

static const struct rule_place *rule_find_key(const struct rule_places *places, struct slice key)
{
	const struct rule_place wanted = { .key = key };

	return places->count == 0 ? NULL :
				    bsearch(&wanted, places->items, places->count,
					    sizeof(*places->items), rule_compare);
}

/* `defaults` in place of the server. */
static const struct rule_place *find_one(const struct rule_places *places, const struct rule *rule,
					 struct slice server, bool in_defaults)
{
	static const char defaults[] = "defaults";
	size_t skipped = in_defaults ? strlen("servers.") + server.n : 0;
	at_end(buf_fini) struct buf whole = { 0 }, key = { 0 };

	rule_append(rule, server, &whole);
	CHECK(whole.len >= skipped);
	buf_append(&key, defaults, in_defaults ? strlen(defaults) : 0);
	buf_append(&key, whole.data + skipped, whole.len - skipped);
	return rule_find_key(places, buf_slice(&key));
}

/* The entry; else the list that it is in; else all that is at the key. */
static const struct rule_place *find_nearest(const struct rule_places *places, struct rule rule,
					     struct slice server, bool in_defaults)
{
	const struct rule_place *place = find_one(places, &rule, server, in_defaults);

	if (place == NULL && rule.has_entry) {
		rule.has_entry = false;
		place = find_one(places, &rule, server, in_defaults);
	}
	if (place == NULL && rule.member.n > 0) {
		rule.member.n = 0;
		place = find_one(places, &rule, server, in_defaults);
	}
	return place;
}

/* The server's own, or what `defaults` says of all. */
static const struct rule_place *find_written(const struct rule_places *places,
					     const struct rule *rule, struct slice server)
{
	bool is_of_server =
		slice_has_prefix(slice_str(rule_key_text(rule->key)), SLICE_LIT("servers.NAME."));
	const struct rule_place *place = find_nearest(places, *rule, server, false);

	return place == NULL && is_of_server ? find_nearest(places, *rule, server, true) : place;
}

bool rule_places_has(const struct rule_places *places, const struct rule *rule, struct slice server)
{
	return find_written(places, rule, server) != NULL;
}

/* NULL: nothing is known. */
static bool rule_append_bytes(const struct rule_places *places, const struct rule_place *place,
			      struct buf *out)
{
	if (place != NULL)
		buf_printf(out, "%s:%u", places->files[place->file], place->line);
	return place != NULL;
}

bool rule_places_append(const struct rule_places *places, const struct rule *rule,
			struct slice server, struct buf *out)
{
	struct slice text = slice_str(rule_key_text(rule->key));
	bool is_of_server = slice_has_prefix(text, SLICE_LIT("servers.NAME."));
	struct rule owner = { .key = is_of_server ? RULE_SERVER : RULE_ROLE, .name = rule->name };
	const struct rule_place *place;

	if (rule->key == RULE_NONE)
		return false;
	place = find_written(places, rule, server);
	if (place == NULL && (is_of_server || rule->name.n > 0))
		place = find_one(places, &owner, server, false);
	return rule_append_bytes(places, place, out);
}

bool rule_places_append_key(const struct rule_places *places, struct slice key, struct buf *out)
{
	return rule_append_bytes(places, rule_find_key(places, key), out);
}

/* ---- as text ---- */

void rule_places_write(const struct rule_places *places, struct buf *out)
{
	size_t file = RULE_PLACE_FILES_MAX;

	for (size_t i = 0; i < places->count; i++) {
		const struct rule_place *place = &places->items[i];

		if (place->file != file)
			buf_printf(out, "@%s\n", places->files[place->file]);
		file = place->file;
		buf_printf(out, "%u %.*s\n", place->line, SLICE_ARG(place->key));
	}
}

void rule_places_read(struct rule_places *places, struct slice text)
{
	struct slice file = { NULL, 0 };

	while (text.n > 0) {
		struct slice line = slice_cut(&text, '\n');
		struct slice number;
		uint64_t value;

		if (slice_has_prefix(line, SLICE_LIT("@"))) {
			file = slice_of(line.p + 1, line.n - 1);
			continue;
		}
		number = slice_cut(&line, ' ');
		if (file.n > 0 && text_parse_u64(number, &value) == 0 && value <= UINT_MAX)
			rule_places_add(places, line, file, (unsigned int)value);
	}
	rule_places_finish(places);
}
