/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a check, and the keywords that only look at a single value. Only for schema.c and
 * its neighbors.
 */
#ifndef MCPGATED_POLICY_SCHEMA_WALK_H
#define MCPGATED_POLICY_SCHEMA_WALK_H

#include "policy/pattern.h"
#include "policy/schema.h"
#include "policy/schema_keywords.h"

#define SCHEMA_BYTES_PER_STEP 64 /* of texts that are compared */

struct schema_walk {
	const struct schema *schema;
	size_t steps;
	size_t steps_max;
	size_t depth;
	unsigned int trials; /* enclosing alternatives: failures inside them are not recorded */
	struct pattern_work work;
	struct buf text;
	const char *over; /* why the check was given up; NULL: it was not */
	/* The recorded failure: */
	const struct json_node *keyword;
	const struct json_node *value;
	struct slice missing; /* the name of the missing member, in canonical form */
};

/* Whether a value satisfies a keyword of a schema; if not, the failure is recorded. */
typedef bool schema_check_fn(struct schema_walk *walk, const struct json_node *schema,
			     const struct json_node *keyword, const struct json_node *value);

/* Gives up: the result cannot be determined. Returns false, for callers to return. */
bool schema_walk_give_up(struct schema_walk *walk, const char *why);
/* Returns false if the steps are used up. */
bool schema_walk_spend(struct schema_walk *walk, size_t steps);
/* Records that the value violates the keyword. Returns false, for callers to return. */
bool schema_walk_note(struct schema_walk *walk, const struct json_node *keyword,
		      const struct json_node *value);
/*
 * Whether a text matches the pattern of the schema with this number. The text is a JSON string in
 * canonical form.
 */
bool schema_walk_matches(struct schema_walk *walk, uint32_t number, struct slice quoted);

schema_check_fn schema_check_type;
schema_check_fn schema_check_const;
schema_check_fn schema_check_enum;
schema_check_fn schema_check_number; /* minimum and similar, multipleOf */
schema_check_fn schema_check_length;
schema_check_fn schema_check_pattern;
schema_check_fn schema_check_count; /* number of members or elements */
schema_check_fn schema_check_unique;

#endif
