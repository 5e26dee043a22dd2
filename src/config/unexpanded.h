/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `${NAME}` in a configuration file. Other programs put something in its place; here that stands for claims of callers alone
 * (claim.h), and whoever writes it is told the way.
 */
#ifndef MCPGATED_CONFIG_UNEXPANDED_H
#define MCPGATED_CONFIG_UNEXPANDED_H

#include "config/config.h"
#include "config/tree.h"

/*
 * Adds a problem for each text of the tree that has one, but for patterns (redact, deny_patterns), and for args of a shell,
 * which has variables of its own. Nothing of the text is told but the name.
 */
void unexpanded_check(const struct tree *root, struct config_problems *problems);

#endif
