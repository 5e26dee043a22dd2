/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where rules of the configuration stand, and some other keys: file and line, by key. The gateway is given its configuration without those of
 * the file; this is handed on beside it, as text. Bounded: what comes beyond a bound is found at the nearest key that is known.
 */
#ifndef MCPGATED_POLICY_RULE_PLACES_H
#define MCPGATED_POLICY_RULE_PLACES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/slice.h"
#include "policy/rule.h"

#define RULE_PLACES_MAX (16 * 1024)
#define RULE_PLACE_KEY_MAX 512 /* bytes of a key */
#define RULE_PLACE_FILE_MAX 96 /* of the name of a file; of a longer one the end is told */
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

/* `key` as rule_append writes it. Nothing is noted of line 0, and of what is no line of visible text. Both texts are copied. */
void rule_places_add(struct rule_places *places, struct slice key, struct slice file,
		     unsigned int line);
/* All are there. Of a key that was added twice, one counts. */
void rule_places_finish(struct rule_places *places);
void rule_places_free(struct rule_places *places);
/*
 * Appends `FILE:LINE` of the rule; of its list, where its entry is not known; of `defaults`, where the server has nothing at
 * its key; else of the server or role. False: none of these is known, and nothing was appended.
 */
bool rule_places_append(const struct rule_places *places, const struct rule *rule,
			struct slice server, struct buf *out);
/* Likewise of a key as it was added. */
bool rule_places_append_key(const struct rule_places *places, struct slice key, struct buf *out);
/* All of them as lines of text, and back: what is no such line is left out. */
void rule_places_write(const struct rule_places *places, struct buf *out);
void rule_places_read(struct rule_places *places, struct slice text);

#endif
