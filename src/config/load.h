/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a tree of values into a configuration. Reads no files except through context->resolve, and
 * the CA files of issuers.
 */
#ifndef MCPGATED_CONFIG_LOAD_H
#define MCPGATED_CONFIG_LOAD_H

#include "config/config.h"
#include "config/tree.h"
#include "config/types.h"

/*
 * Builds the configuration that `root` describes and checks its rules (rules.h). Returns it, or
 * NULL if context->problems is not empty afterwards. Warnings are added to context->warnings. The
 * caller keeps the tree.
 */
struct config *load_tree(const struct types_context *context, const struct tree *root) must_check;
/*
 * The same, but also returns a configuration with problems; values that could not be read have
 * their defaults. Never NULL. In a process that goes on, roles and scopes that `before` also has keep
 * their numbers (roles_keep_numbers, scope_table_add), and no number changes its meaning. This may run
 * out of numbers. `before` may be NULL.
 */
struct config *load_draft(const struct types_context *context, const struct tree *root,
			  const struct config *before) must_check;
/* Reads only what servers may do (sandbox, enabled). Reports no problems and reads no files. */
struct config *load_survey(const struct tree *root) must_check;

#endif
