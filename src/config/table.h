/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the option table, one record at a time, to read, check, print and free the record's
 * struct; and the operations of each option type, by which it does so.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"
#include "config/config.h"
#include "config/listed_path.h"
#include "config/options.h"
#include "config/tree.h"
#include "config/variables.h"

/* ---- slices that own their texts: NUL-terminated copies, freed with the struct around them ---- */

/* Appends a copy. */
void texts_add(struct slices *texts, struct slice text);
/* Keeps only the first n bytes. */
void texts_shorten(struct slice *text, size_t n);
/* Overwrites, frees, empties. */
void texts_free_one(struct slice *text);
void texts_free(struct slices *texts);

/* ---- the types ---- */

struct types_context {
	struct config_problems *problems;
	struct config_problems *warnings;
	secret_resolve_fn *resolve;
	struct listed_writers writers; /* whose servers may have created links */
	bool is_yaml; /* a file whose keys can be changed; else the command line or an import */
	bool is_world_readable; /* the file that the values come from */
	bool is_checked;        /* the rules were checked before, and nobody has changed it since */
};

/*
 * OPTION_SECTION, OPTION_GROUP and OPTION_RECORDS have no operations: table.c handles them itself.
 */
struct types_ops {
	const char *name; /* for the manual: "time"; NULL: the type has no value of its own */
	size_t size;      /* of its fields; 0: varies */
	/*
	 * Sets the option's field in the record `base`, freeing the old content. Reports problems.
	 */
	void (*load)(const struct types_context *context, const struct option *option,
		     const struct tree *value, void *base);
	/*
	 * Appends the field as a YAML value on one line. False: it is not set, and the appended
	 * text is invalid.
	 */
	bool (*print)(const struct option *option, const void *base, struct buf *out);
	/*
	 * Frees the field itself, after overwriting it if it may be secret. NULL: nothing to free
	 */
	void (*fini)(void *at);
};

/* CHECKs that the field has the size that the type requires. */
const struct types_ops *types_get(const struct option *option);
/* As print, for OPTION_SECRET and OPTION_FIELDS, but shows the secrets. */
bool types_print_open(const struct option *option, const void *base, struct buf *out);

/* ---- the walker (table.c) ---- */

/*
 * Iterates over the options directly below `level` (OPTIONS_TOP, OPTIONS_LISTEN, OPTIONS_SERVER, or
 * a section's path), in the order of the table. Pass NULL first, then the previous result, until it
 * returns NULL.
 */
const struct option *table_next(const char *level, const struct option *previous);
/* The level of the options of this entry of `servers` or `endpoints`. */
const char *table_level_of(const struct config_server *server);
/* The last part of the option's path: its key. */
const char *table_key(const struct option *option);

/* Sets every field of a zeroed record to its default. */
void table_set_defaults(const char *level, void *base);
/*
 * Reads the record or section `value` into `base`; missing keys change nothing. Unknown keys and
 * wrong values are added to context->problems. Groups of named records are left to the caller.
 */
void table_load(const struct types_context *context, const char *level, const struct tree *value,
		void *base);
/*
 * What `defaults` (or NULL) says about the server `own`: all of it, except that what is for a
 * command is left out for a server with a url. Valid until table_defaults_end(room), which must
 * follow.
 */
const struct tree *table_defaults_of(const struct tree *own, const struct tree *defaults,
				     struct tree *room);
void table_defaults_end(struct tree *room);
/* Frees the content of the fields. */
void table_free(const char *level, void *base);

/*
 * Who reads the output. People see everything except secrets; a program sees what is for it (enum
 * option_reader), the fetcher with secrets. The last is for comparisons: what a server's processes
 * depend on, that is, all but rules.
 */
enum table_reader { TABLE_FOR_PEOPLE, TABLE_FOR_GATEWAY, TABLE_FOR_FETCHER, TABLE_FOR_PROCESSES };

/* Prints the options below `level` as YAML lines indented by `indent` spaces, without named records. */
void table_print(enum table_reader reader, const char *level, const void *base, int indent,
		 FILE *out);

/*
 * ---- relations ----
 *
 * Walks the table of options along a configuration, and says what a row demands of others: the
 * options that must be given, and those that need, exclude or bound each other (options.h).
 */

/*
 * `root` is the tree that `config` was read from: what counts as given, and the places of messages,
 * are from there. Keys of a server count as given under `defaults` as well, except where the message
 * is a warning.
 */
void relations_check(const struct config *config, const struct tree *root,
		     struct config_problems *problems, struct config_problems *warnings);
