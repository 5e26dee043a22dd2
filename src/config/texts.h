/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of the configuration as slices: one, a list, lists by name. All are terminated copies, owned by
 * the struct that holds them.
 */
#ifndef MCPGATED_CONFIG_TEXTS_H
#define MCPGATED_CONFIG_TEXTS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/slice.h"
#include "config/tree.h"
#include "config/types.h"

/* Whether the value is a text that is there; what is wrong is reported. */
bool texts_is_one(const struct types_context *context, const struct tree *value);
/*
 * Whether a list or map has no more entries than YAML may have: the command line and imported files come without
 * that limit, but are printed as YAML. What is wrong is reported.
 */
bool texts_are_few(const struct types_context *context, const struct tree *value);
/* Whether the value is a map; another one is reported, unless it is empty. */
bool texts_is_map(const struct types_context *context, const struct tree *value,
		  const char *example);
/* Overwrites, frees, empties. */
void texts_free_one(struct slice *text);

/* Appends a copy. */
void texts_add(struct slices *texts, struct slice text);
/* Replaces the texts by those of the list `value`; another value is reported. */
void texts_load(const struct types_context *context, const struct tree *value,
		struct slices *texts);
void texts_print(const struct slices *texts, struct buf *out);
void texts_free(struct slices *texts);

/* {NAME: [text, …]}. A name that is there already gets the new list. */
void texts_load_map(const struct types_context *context, const struct tree *value,
		    struct slice_map *map);
void texts_print_map(const struct slice_map *map, struct buf *out);
void texts_free_map(struct slice_map *map);

#endif
