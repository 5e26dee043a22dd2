/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded set of texts that a peer chose, in the order in which they came. */
#ifndef MCPGATED_ROUTER_TEXT_SET_H
#define MCPGATED_ROUTER_TEXT_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"

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
/* What text_set_has wants of a text: for who asks many sets. */
uint64_t text_set_key(struct slice text);
bool text_set_has(const struct text_set *set, uint64_t key, struct slice text);
/* Adds a copy; nothing, and false, if it is there already, or there is no room. */
bool text_set_add(struct text_set *set, struct slice text);
/* Returns whether it was there. */
bool text_set_remove(struct text_set *set, struct slice text);

#endif
