/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of each option type: read from a value, print, free. */
#ifndef MCPGATED_CONFIG_TYPES_H
#define MCPGATED_CONFIG_TYPES_H

#include <stdbool.h>

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

#endif
