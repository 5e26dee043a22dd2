/* SPDX-License-Identifier: Apache-2.0 */
/* What a check of a value by a schema knows on its way, and the keywords that look at a value by itself. For schema.c alone. */
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
	unsigned int trials; /* alternatives around: what does not fit there is not noted */
	struct pattern_work work;
	struct buf text;
	const char *over; /* why it cannot be known; NULL: it can */
	/* What was noted: */
	const struct json_node *keyword;
	const struct json_node *value;
	struct slice missing; /* the name of a member, in canonical form */
};

/* Whether a value fits a keyword of a schema; if not, that is noted. */
typedef bool schema_check_fn(struct schema_walk *walk, const struct json_node *schema,
			     const struct json_node *keyword, const struct json_node *value);

/* It cannot be known whether the value fits. Returns false, for its callers to return. */
bool schema_walk_give_up(struct schema_walk *walk, const char *why);
/* False: the steps are used up. */
bool schema_walk_spend(struct schema_walk *walk, size_t steps);
/* The value does not fit the keyword. Returns false likewise. */
bool schema_walk_note(struct schema_walk *walk, const struct json_node *keyword,
		      const struct json_node *value);
/* Whether a text fits a pattern of the schema, by its number. The text is a string in canonical form. */
bool schema_walk_matches(struct schema_walk *walk, uint32_t number, struct slice quoted);

schema_check_fn schema_check_type;
schema_check_fn schema_check_const;
schema_check_fn schema_check_enum;
schema_check_fn schema_check_number; /* minimum and the like, multipleOf */
schema_check_fn schema_check_length;
schema_check_fn schema_check_pattern;
schema_check_fn schema_check_count; /* of members and elements */
schema_check_fn schema_check_unique;

#endif
