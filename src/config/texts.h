/* SPDX-License-Identifier: Apache-2.0 */
/* Slices that own their texts: terminated copies, freed with the struct that holds them. */
#ifndef MCPGATED_CONFIG_TEXTS_H
#define MCPGATED_CONFIG_TEXTS_H

#include "base/check.h"
#include "base/slice.h"

/* Appends a copy. */
void texts_add(struct slices *texts, struct slice text);
/* Only the first n bytes stay. */
void texts_shorten(struct slice *text, size_t n);
/* Overwrites, frees, empties. */
void texts_free_one(struct slice *text);
void texts_free(struct slices *texts);

/* The list of this name in a map; a new one is empty. Valid until the next is added. */
struct slices *texts_place_in(struct slice_map *map, struct slice name);
/* Frees names and lists, overwriting them first; the map is empty then. */
void texts_free_map(struct slice_map *map);

#endif
