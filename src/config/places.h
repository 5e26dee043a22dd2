/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the rules of policy/rule.def stand in what was read, and what the daemon opens; and how that is handed on with a printed
 * configuration.
 */
#ifndef MCPGATED_CONFIG_PLACES_H
#define MCPGATED_CONFIG_PLACES_H

#include <stdio.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "config/tree.h"
#include "policy/rule_places.h"

/* Notes those of the tree: of a command line, which has no lines, none. */
void places_collect(const struct tree *root, struct rule_places *places);
/* Puts `FILE:LINE: KEY: ` in front of what is wrong with what the key says, where its place is known. Returns -1. */
int places_tell(const struct rule_places *places, const char *key, struct error *err);
/* Writes them behind a configuration, of whose YAML they are comments. */
void places_print(const struct rule_places *places, FILE *out);
/* Cuts them off again. Returns what rule_places_read takes; empty if there are none. */
struct slice places_cut(struct slice *text);

#endif
