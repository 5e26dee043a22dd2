/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the option table: one record's options at a time, into and out of the record's struct. */
#ifndef MCPGATED_CONFIG_TABLE_H
#define MCPGATED_CONFIG_TABLE_H

#include <stdio.h>

#include "config/options.h"
#include "config/tree.h"
#include "config/types.h"

/*
 * The options directly below `level` (OPTIONS_TOP, OPTIONS_LISTEN, OPTIONS_SERVER, or a section's
 * path), in the order of the table: pass NULL, then what it returned, until NULL.
 */
const struct option *table_next(const char *level, const struct option *previous);
/* That of this key; NULL: there is none. */
const struct option *table_find(const char *level, const char *key);
/* The last part of the option's path: its key. */
const char *table_key(const struct option *option);

/* Sets every field of a record (all zeros before) to its default. */
void table_set_defaults(const char *level, void *base);
/*
 * Reads the record or section `value` into `base`; keys that are not there change nothing. Unknown
 * keys and wrong values are added to context->problems. Groups are left to the caller.
 */
void table_load(const struct types_context *context, const char *level, const struct tree *value,
		void *base);
/* Frees what the fields hold. */
void table_free(const char *level, void *base);

/*
 * Who reads what is printed: people see all but secrets; a program what is for it (enum option_reader), the fetcher with
 * secrets. The last is for comparisons: what processes of a server depend on, which is no rule.
 */
enum table_reader { TABLE_FOR_PEOPLE, TABLE_FOR_GATEWAY, TABLE_FOR_FETCHER, TABLE_FOR_PROCESSES };

/* Prints the options below `level` as YAML lines with `indent` spaces, without groups. */
void table_print(enum table_reader reader, const char *level, const void *base, int indent,
		 FILE *out);

#endif
