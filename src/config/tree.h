/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts, lists and maps, in which every value knows where it stood. Made from YAML text (yaml.h),
 * or by hand for configurations that are none (an imported JSON file, the command line).
 */
#ifndef MCPGATED_CONFIG_TREE_H
#define MCPGATED_CONFIG_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/map.h"

enum tree_kind { TREE_TEXT, TREE_LIST, TREE_MAP };

struct tree {
	enum tree_kind kind;
	bool is_plain; /* a text without quotes: only such a one can be a number, true or nothing */
	bool is_secret; /* a text that came from elsewhere into the file, and is not to be shown */
	const char *file; /* borrowed: whoever builds the tree keeps it */
	unsigned line;    /* from 1; 0: not from a text with lines */
	unsigned column;
	struct tree *parent; /* NULL: the root */
	char *key;           /* in a map; else NULL */
	unsigned key_line;
	unsigned key_column;
	char *text;          /* of a text; no NUL inside */
	struct tree **items; /* of a list or map, in the order of the file */
	size_t count;
	struct map by_key;    /* of a map that has many: its members, by the hash of their keys */
	struct map_link link; /* in the parent's */
};

/* Overwrites all texts, then frees. Accepts NULL. */
void tree_free(struct tree **value);

/* A value without a place; `text` is copied and counts as quoted. Caller owns. */
struct tree *tree_new(enum tree_kind kind, const char *file);
struct tree *tree_new_text(const char *text, const char *file);
/* Appends to a list (key NULL) or a map; the parent takes the child, which is returned. A key must be new. */
struct tree *tree_add(struct tree *parent, const char *key, struct tree *child);
/* The item at `index` leaves its list or map, which keeps an empty one in its place and is of no use any more, for `to`. */
void tree_move(struct tree *from, size_t index, struct tree *to);
/* Takes the member out of a map and frees it, if it is there. */
void tree_remove(struct tree *map, const char *key);

/* The member of a map; NULL if there is none or `map` is no map. Borrowed. */
struct tree *tree_find(const struct tree *map, const char *key);
/* The member of a map, or the entry of a list; `value` itself where there is none, so that what is missing is told there. */
const struct tree *tree_below(const struct tree *value, const char *key);
const struct tree *tree_item(const struct tree *value, size_t index);
/* `key:` with nothing after it, `~` or `null`. */
bool tree_is_null(const struct tree *value);
/* Appends the way from the root, `servers.demo.args[1]`; nothing for the root itself. */
void tree_append_path(const struct tree *value, struct buf *out);

#endif
