/* SPDX-License-Identifier: Apache-2.0 */
/* From a tree of values to a configuration. Reads no file but through context->resolve, and the CAs of issuers. */
#ifndef MCPGATED_CONFIG_LOAD_H
#define MCPGATED_CONFIG_LOAD_H

#include "config/config.h"
#include "config/types.h"
#include "config/tree.h"

/*
 * Builds the configuration that `root` describes, and asks the rules (rules.h). Returns it, or NULL if context->problems is not
 * empty afterwards. Warnings stay in context->warnings. The caller keeps the tree.
 */
struct config *load_tree(const struct types_context *context, const struct tree *root) must_check;
/*
 * The same of what has been checked, for a process that goes on: roles and scopes that `before` has, too, keep their numbers
 * (roles_reserve, scope_table_add), and no number gets another meaning. There may then be too many of them.
 */
struct config *load_after(const struct types_context *context, const struct tree *root,
			  const struct config *before) must_check;
/* The same, but returns it with problems as well: with the defaults of what could not be read. Never NULL. */
struct config *load_draft(const struct types_context *context, const struct tree *root);
/* What servers may do there (sandbox, enabled), and nothing else. Says nothing of problems, and reads no file. */
struct config *load_survey(const struct tree *root) must_check;

#endif
