/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a $ref refers to: the whole schema, a place in it (a JSON pointer), or a name in it
 * ($anchor, $dynamicAnchor, or as in draft-07 an $id that is a fragment). No other document is
 * fetched. BACK-SEC-02
 */
#ifndef MCPGATED_POLICY_SCHEMA_REFERENCE_H
#define MCPGATED_POLICY_SCHEMA_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "jsonrpc/canonical.h"

/* Whether an $id or $ref, as written, is of another document. */
bool schema_reference_is_foreign(struct slice id);
/*
 * The node that a $ref leads to. NULL: none that can be used; *why_r is then a fixed text. A
 * reference costs as much as is looked through for it, and all of a schema share one limit:
 * `searched` is 0 for the first one.
 */
struct json_node *schema_reference_find(const struct json_tree *tree,
					const struct json_node *reference, size_t *searched,
					const char **why_r) must_check;

#endif
