/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded set of texts chosen by a peer, in insertion order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/buf.h"
#include "base/slice.h"
#include "jsonrpc/scan.h"

#define TEXT_SET_MAX 4096
#define TEXT_SET_BYTES_MAX (8 * 1024)   /* of one text */
#define TEXT_SET_TOTAL_MAX (256 * 1024) /* of all */

struct text_set {
	struct list items;
	struct map by_key;
	size_t count;
	size_t bytes;
};

struct text_set_item {
	struct list link;
	struct map_link by_key;
	size_t length;
	char text[];
};

void text_set_init(struct text_set *set);
void text_set_fini(struct text_set *set);
/* Whether there is room for another text of `size` bytes. */
bool text_set_has_room(const struct text_set *set, size_t size);
/* The key for text_set_has; computed once to query many sets. */
uint64_t text_set_key(struct slice text);
bool text_set_has(const struct text_set *set, uint64_t key, struct slice text);
/* Adds a copy. False: it is already there, or there is no room. */
bool text_set_add(struct text_set *set, struct slice text);
/* Adds a copy, unless it is there or too long. Of very many the oldest are forgotten. */
void text_set_push(struct text_set *set, struct slice text);
/* Returns whether it was there. */
bool text_set_remove(struct text_set *set, struct slice text);

/*
 * The inside of a JSON string with the fewest possible escapes: the same text for every spelling of
 * a text, above all of a URI. Empty if `written` is not a string. Borrowed from it or stored in
 * `room`, which is initially empty and freed by the caller.
 */
struct slice text_set_spell(struct json written, struct buf *room);
