/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts, lists and maps that know their places in the file, and the problems that are found there.
 * Made from YAML text (yaml.h), or built by hand for other configurations (an imported JSON file,
 * the command line).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/map.h"
#include "config/config.h"

enum tree_kind { TREE_TEXT, TREE_LIST, TREE_MAP };

struct tree {
	enum tree_kind kind;
	bool is_plain;    /* a text without quotes; only this can be a number, a boolean or null */
	bool is_secret;   /* a text that was resolved from elsewhere and must not be shown */
	const char *file; /* borrowed: whoever builds the tree owns it */
	unsigned line;    /* from 1; 0: its source has no lines */
	unsigned column;
	struct tree *parent; /* NULL: this is the root */
	char *key;           /* in a map; else NULL */
	unsigned key_line;
	unsigned key_column;
	char *text;          /* of a text; without NUL */
	struct tree **items; /* of a list or map, in file order */
	size_t count;
	struct map by_key;    /* of a map with many members: these, by the hash of their keys */
	struct map_link link; /* in the parent's */
};

/* Overwrites all texts, then frees. Accepts NULL. */
void tree_free(struct tree **value);

/* A value without a place; `text` is copied and counts as quoted. The caller owns the result. */
struct tree *tree_new(enum tree_kind kind, const char *file);
struct tree *tree_new_text(const char *text, const char *file);
/*
 * Appends to a list (key NULL) or a map. The parent takes the child and returns it. The key must be
 * new.
 */
struct tree *tree_add(struct tree *parent, const char *key, struct tree *child);
/*
 * Moves the item at `index` from one list or map to another. An empty item stays in its place;
 * `from` must not be used any more.
 */
void tree_move(struct tree *from, size_t index, struct tree *to);
/* Removes the member from a map and frees it, if it exists. */
void tree_remove(struct tree *map, const char *key);

/* The member of a map; NULL if there is none or `map` is not a map. Borrowed. */
struct tree *tree_find(const struct tree *map, const char *key);
/* The same for a way of several keys, like "pool.max". `map` may be NULL. */
const struct tree *tree_find_way(const struct tree *map, const char *way);
/*
 * The member of a map, or the entry of a list. If there is none, `value` itself, as the place to
 * report what is missing.
 */
const struct tree *tree_below(const struct tree *value, const char *key);
const struct tree *tree_item(const struct tree *value, size_t index);
/* `key:` with nothing after it, `~` or `null`. */
bool tree_is_null(const struct tree *value);
/* Appends the path from the root, `servers.demo.args[1]`; nothing for the root itself. */
void tree_append_path(const struct tree *value, struct buf *out);

/*
 * ---- problem ----
 *
 * Collects the problems of a configuration: one line of text each, no line twice.
 */

/* Beyond this number, problems are not listed, only mentioned. */
#define PROBLEMS_MAX 100

/* Control characters become '?', so that a problem stays on one line. */
void problem_add(struct config_problems *problems, const char *format, ...) printf_like(2, 3);
/* Prefixes `FILE:LINE:COLUMN: PATH.TO.THE.VALUE: `, as far as they are known. */
void problem_add_at(struct config_problems *problems, const struct tree *value, const char *format,
		    ...) printf_like(3, 4);
/*
 * Prefixes the value's `FILE:LINE:COLUMN: ` if it has lines; for texts that name the value
 * themselves.
 */
void problem_add_in(struct config_problems *problems, const struct tree *value, const char *format,
		    ...) printf_like(3, 4);
/* Prefixes `FILE:LINE:COLUMN: ` of the value's key. */
void problem_add_at_key(struct config_problems *problems, const struct tree *value,
			const char *format, ...) printf_like(3, 4);
/*
 * Sorts by line, keeping the order of problems at the same place: first those of the file `first`
 * (NULL: none), then those of other files by name, then those without a line.
 */
void problems_sort(struct config_problems *problems, const char *first);

/*
 * Where an option of a server stands, `way` being like "sandbox.read": in its entry `at`, or under
 * `defaults`; else the entry.
 */
const struct tree *problem_place(const struct tree *at, const char *way);

/* ---- YAML (yaml.c) ---- */

#define YAML_BYTES_MAX ((size_t)16 << 20)
#define YAML_DEPTH_MAX 32u
#define YAML_ITEMS_MAX 4096u /* per list or map */
#define YAML_KEY_MAX 200u    /* bytes */

/*
 * Reads one document.
 *
 * text   at most YAML_BYTES_MAX bytes; borrowed for the call
 * file   its name in messages; borrowed as long as the tree lives
 * err    on failure: `LINE:COLUMN: reason`
 *
 * Rejects duplicate keys, anchors, aliases, tags, merge keys, keys that are not texts, NUL in a
 * text, a second document, and anything above the limits. An empty text is an empty map. Returns
 * the root (free with tree_free), or NULL.
 */
struct tree *yaml_read(struct slice text, const char *file, struct error *err) must_check;

/*
 * Appends `text` so that YAML reads exactly that text back, in double quotes unless it is obviously safe without them. Invalid UTF-8 becomes
 * U+FFFD, since YAML cannot express it.
 */
void yaml_append_text(struct buf *out, const char *text);
