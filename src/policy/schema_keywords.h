/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parsed schema: which member is which keyword, checked for valid values, with its references
 * resolved. Only for schema.c and its neighbors.
 */
#ifndef MCPGATED_POLICY_SCHEMA_KEYWORDS_H
#define MCPGATED_POLICY_SCHEMA_KEYWORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"
#include "base/error.h"
#include "jsonrpc/json_tree.h"

struct pattern;

/* The mark of a member of a schema. */
enum schema_keyword {
	KEYWORD_NONE, /* or a keyword that does not restrict values */
	KEYWORD_ADDITIONAL_ITEMS,
	KEYWORD_ADDITIONAL_PROPERTIES,
	KEYWORD_ALL_OF,
	KEYWORD_ANY_OF,
	KEYWORD_CONST,
	KEYWORD_CONTAINS,
	KEYWORD_DEPENDENCIES,
	KEYWORD_DEPENDENT_REQUIRED,
	KEYWORD_DEPENDENT_SCHEMAS,
	KEYWORD_ELSE,
	KEYWORD_ENUM,
	KEYWORD_EXCLUSIVE_MAXIMUM,
	KEYWORD_EXCLUSIVE_MINIMUM,
	KEYWORD_IF,
	KEYWORD_ITEMS,
	KEYWORD_MAX_CONTAINS,
	KEYWORD_MAX_ITEMS,
	KEYWORD_MAX_LENGTH,
	KEYWORD_MAX_PROPERTIES,
	KEYWORD_MAXIMUM,
	KEYWORD_MIN_CONTAINS,
	KEYWORD_MIN_ITEMS,
	KEYWORD_MIN_LENGTH,
	KEYWORD_MIN_PROPERTIES,
	KEYWORD_MINIMUM,
	KEYWORD_MULTIPLE_OF,
	KEYWORD_NOT,
	KEYWORD_ONE_OF,
	KEYWORD_PATTERN,
	KEYWORD_PATTERN_PROPERTIES,
	KEYWORD_PREFIX_ITEMS,
	KEYWORD_PROPERTIES,
	KEYWORD_PROPERTY_NAMES,
	KEYWORD_REF,
	KEYWORD_REQUIRED,
	KEYWORD_THEN,
	KEYWORD_TYPE,
	KEYWORD_UNEVALUATED_ITEMS,
	KEYWORD_UNEVALUATED_PROPERTIES,
	KEYWORD_UNIQUE_ITEMS,
	KEYWORD_COUNT,
};

/* Types as bits: 1 << enum json_type, with true for both booleans; and this one. */
#define SCHEMA_TYPE_INTEGER (1u << 16)

/*
 * `link` of its nodes is: for $ref, the number of the target node; for pattern and each member of
 * patternProperties, the number of its compiled pattern; for a limit on a count, the value; for
 * type, the types. A node is used as only one of these, because their values have different types.
 */
struct schema {
	struct json_tree tree;
	struct pattern **patterns;
	size_t pattern_count;
	size_t pattern_bytes;
	bool ignores_beside_ref;     /* draft-07: $ref replaces its whole schema */
	bool is_contained_evaluated; /* 2020-12: elements matched by contains count as evaluated */
};

/* Fills an empty struct. Returns 0 or -1; err says where it cannot be understood, and why. */
int schema_keywords_read(struct schema *schema, struct slice text, struct error *err) must_check;

#endif
