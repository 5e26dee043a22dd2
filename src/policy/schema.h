/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Schema validation for the arguments of tools: 2020-12, 2019-09 and draft-07. Both sides are
 * untrusted: the schema is a server's, the value a client's. A schema with something that is not
 * checked here is unusable, and a check that takes too long fails: no value is accepted for lack of
 * knowledge. Keywords of each dialect also count in the others; keywords of none are ignored, and
 * format is an annotation. Not checked are unevaluatedProperties and unevaluatedItems,
 * dependentRequired, dependentSchemas and dependencies, minContains and maxContains, a multipleOf
 * of more than 9 digits, and references that leave the document or depend on the way. SEC-59
 */
#pragma once

#include <stddef.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "jsonrpc/canonical.h"

#define SCHEMA_BYTES_MAX (256 * 1024)
#define SCHEMA_DEPTH_MAX 128
#define SCHEMA_NODES_MAX (20 * 1000)          /* members and elements of a schema */
#define SCHEMA_VALUES_MAX (100 * 1000)        /* members and elements of a value */
#define SCHEMA_STEPS_MAX (1000 * 1000)        /* per check; a keyword at a value is about one */
#define SCHEMA_NESTING_MAX 600                /* nested schema evaluations of one check */
#define SCHEMA_PATTERNS_MAX 256               /* regular expressions per schema */
#define SCHEMA_PATTERN_BYTES_MAX (256 * 1024) /* of these, compiled */

struct schema;

/*
 * Reads a schema from JSON text that was scanned as valid. The caller owns the result. Returns NULL
 * on failure; err says where it cannot be understood, and why.
 */
struct schema *schema_new(struct slice text, struct error *err) must_check;
/* Accepts a pointer to NULL; sets it to NULL. */
void schema_free(struct schema **schema);
/* Memory use in bytes. */
size_t schema_size(const struct schema *schema);
/*
 * Checks a value, as its canonical form. Returns 0 if it is valid, or -1: it is not
 * (ERROR_INVALID), or the check exceeds a limit (ERROR_LIMIT). err says why, as a text that begins
 * with what the value is ("arguments") and never quotes the value. `shares` is the number of checks
 * that together may take as long as a single one; at least 1.
 */
int schema_check(const struct schema *schema, const struct canonical_form *value, size_t shares,
		 struct error *err) must_check;
