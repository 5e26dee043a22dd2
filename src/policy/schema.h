/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Schema, as tools describe their arguments with it: 2020-12, 2019-09 and draft-07. Both sides are strangers: the
 * schema is a server's, the value a client's. What a schema says and is not understood here makes that schema unusable,
 * and what takes too long is refused: a value is never taken for lack of knowledge. Keywords of one dialect count in the
 * others as well; those that no dialect has say nothing, and format is an annotation. SEC-59
 */
#ifndef MCPGATED_POLICY_SCHEMA_H
#define MCPGATED_POLICY_SCHEMA_H

#include <stddef.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

#define SCHEMA_BYTES_MAX (256 * 1024)
#define SCHEMA_DEPTH_MAX 128
#define SCHEMA_NODES_MAX (20 * 1000)          /* members and elements of a schema */
#define SCHEMA_VALUES_MAX (100 * 1000)        /* the same of what is checked */
#define SCHEMA_STEPS_MAX (1000 * 1000)        /* of one check: a keyword at a value is about one */
#define SCHEMA_NESTING_MAX 600                /* schemas within schemas of one check */
#define SCHEMA_PATTERNS_MAX 256               /* regular expressions of one */
#define SCHEMA_PATTERN_BYTES_MAX (256 * 1024) /* of these, when they are compiled */

struct schema;

/* Reads a schema: JSON text, scanned as valid. Caller owns. NULL: err says where it cannot be understood, and why. */
struct schema *schema_new(struct slice text, struct error *err) must_check;
/* Accepts a pointer to NULL; sets it to NULL. */
void schema_free(struct schema **schema);
/* Of memory. */
size_t schema_size(const struct schema *schema);
/*
 * 0: the value, in canonical form (jsonrpc/canonical.h), fits. -1: it does not (ERROR_INVALID), or that is too hard to know
 * (ERROR_LIMIT): err says why, for a text that begins with what the value is ("arguments"). It repeats no value.
 * `shares`: so many checks together may take what one alone may; at least 1.
 */
int schema_check(const struct schema *schema, struct slice value, size_t shares, struct error *err)
	must_check;

#endif
