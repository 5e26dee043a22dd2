/* SPDX-License-Identifier: Apache-2.0 */
/* Slices that own their texts: NUL-terminated copies, freed with the struct that contains them. */
#ifndef MCPGATED_CONFIG_TEXTS_H
#define MCPGATED_CONFIG_TEXTS_H

#include "base/check.h"
#include "base/slice.h"

/* Appends a copy. */
void texts_add(struct slices *texts, struct slice text);
/* Keeps only the first n bytes. */
void texts_shorten(struct slice *text, size_t n);
/* Overwrites, frees, empties. */
void texts_free_one(struct slice *text);
void texts_free(struct slices *texts);

/* The list with this name in a map; created empty if missing. Valid until the next one is added. */
struct slices *texts_place_in(struct slice_map *map, struct slice name);
/* Overwrites and frees names and lists; leaves the map empty. */
void texts_free_map(struct slice_map *map);

#endif
