/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rule of the configuration decided: a key of rule.def, and the entry below it. For audit
 * records and the operator; clients are not told. SEC-63
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"

enum rule_key {
#define X(name, key, below) RULE_##name,
#include "policy/rule.def"
	RULE_KEY_COUNT
};

/* All zeros: no rule. Its texts belong to the configuration. */
struct rule {
	enum rule_key key;
	struct slice name;   /* stands for NAME in the key; empty: the server concerned */
	size_t number;       /* stands for [] in the key */
	struct slice member; /* of the map at the key; empty: not a map, or the whole map */
	bool has_entry;
	size_t entry; /* index in the list there */
};

/* The key as in rule.def, and how many levels below it a rule may be. */
const char *rule_key_text(enum rule_key key);
unsigned int rule_key_below(enum rule_key key);
/*
 * Appends e.g. `servers.github.tools.deny[2]` or `roles.dev.allow.github[0]`; nothing for no rule.
 */
void rule_append(const struct rule *rule, struct slice server, struct buf *out);

/* ---- places of rules ---- */

/*
 * File and line of the configuration's rules and some other keys. The gateway receives its
 * configuration without line numbers of the original files; this table is passed along with it, as
 * text. Its size is bounded: what exceeds a bound resolves to the nearest known key.
 */

#define RULE_PLACES_MAX (16 * 1024)
#define RULE_PLACE_KEY_MAX 512 /* bytes of a key */
#define RULE_PLACE_FILE_MAX 96 /* of a file name; of a longer one the end is kept */
#define RULE_PLACE_FILES_MAX 64

struct rule_place {
	struct slice key;
	size_t file;
	unsigned int line; /* from 1 */
};

/* All zeros: no place is known. */
struct rule_places {
	struct rule_place *items;
	size_t count;
	char *files[RULE_PLACE_FILES_MAX];
	size_t file_count;
};

/*
 * `key` as rule_append writes it. Entries with line 0, and texts that are not one line of visible
 * text, are ignored. Both texts are copied.
 */
void rule_places_add(struct rule_places *places, struct slice key, struct slice file,
		     unsigned int line);
/* Call after the last entry is added. If a key was added twice, one of the two counts. */
void rule_places_finish(struct rule_places *places);
void rule_places_free(struct rule_places *places);
/*
 * Appends `FILE:LINE` of the rule; if its entry is unknown, of its list; if the server has no such
 * key, of `defaults`; otherwise of the server or role. Returns false, without appending, if none of
 * these is known.
 */
bool rule_places_append(const struct rule_places *places, const struct rule *rule,
			struct slice server, struct buf *out);
/*
 * Whether the configuration has the list or the entry, for the server or in `defaults`. If not, it is
 * what holds where nothing is written.
 */
bool rule_places_has(const struct rule_places *places, const struct rule *rule,
		     struct slice server);
/* Like rule_places_append, for a key as it was added. */
bool rule_places_append_key(const struct rule_places *places, struct slice key, struct buf *out);
/* Writes all entries as lines of text, and reads them back; other lines are ignored. */
void rule_places_write(const struct rule_places *places, struct buf *out);
void rule_places_read(struct rule_places *places, struct slice text);
