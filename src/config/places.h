/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places, in what was read, of the rules in policy/rule.def and of what the daemon opens; and
 * passing them on with a printed configuration.
 */
#ifndef MCPGATED_CONFIG_PLACES_H
#define MCPGATED_CONFIG_PLACES_H

#include <stdio.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "config/tree.h"
#include "policy/rule_places.h"

/* Collects the places in the tree; none from a command line, which has no lines. */
void places_collect(const struct tree *root, struct rule_places *places);
/*
 * Prefixes the error about this key's value with `FILE:LINE: KEY: ` if its place is known. Returns
 * -1.
 */
int places_tell(const struct rule_places *places, const char *key, struct error *err);
/* Appends them to a printed configuration, as YAML comments. */
void places_print(const struct rule_places *places, FILE *out);
/* Removes them again. Returns the input for rule_places_read; empty if there are none. */
struct slice places_cut(struct slice *text);

#endif
