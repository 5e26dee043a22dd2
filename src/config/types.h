/* SPDX-License-Identifier: Apache-2.0 */
/* What each type of option can do: be read from a value, be printed, be freed. */
#ifndef MCPGATED_CONFIG_TYPES_H
#define MCPGATED_CONFIG_TYPES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/check.h"
#include "config/config.h"
#include "config/listed_path.h"
#include "config/options.h"
#include "config/secret.h"
#include "config/tree.h"

struct types_context {
	struct config_problems *problems;
	struct config_problems *warnings;
	secret_resolve_fn *resolve;
	struct listed_writers writers; /* whose servers may have made links to what is read */
	bool is_yaml; /* a file whose keys can be changed; else the command line, or what it imports */
	bool is_world_readable; /* the file the values come from */
	bool is_checked;        /* the rules were asked before: nobody has changed it since */
};

/* Those of OPTION_SECTION, OPTION_GROUP and OPTION_RECORDS are empty: table.c walks them itself. */
struct types_ops {
	const char *name; /* for the manual: "time"; NULL: the type has no value of its own */
	size_t size;      /* of its fields; 0: not always the same */
	/* Sets the option's field in the record `base`; what was there is freed. Reports what is wrong. */
	void (*load)(const struct types_context *context, const struct option *option,
		     const struct tree *value, void *base);
	/* Appends the field as a YAML value on one line. False: it is not set, and what was appended is void. */
	bool (*print)(const struct option *option, const void *base, struct buf *out);
	/* Frees the field itself, after overwriting it if it may be secret; NULL: nothing to free. */
	void (*fini)(void *at);
};

/* CHECKs that the field is as large as the type wants it. */
const struct types_ops *types_get(const struct option *option);
/* As print, of an OPTION_SECRET, or of OPTION_FIELDS: the secrets themselves. */
bool types_print_open(const struct option *option, const void *base, struct buf *out);

#endif
