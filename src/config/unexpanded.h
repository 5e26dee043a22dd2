/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `${NAME}` in a configuration file. Other programs expand it; here only claims of callers are
 * substituted (claim.h), and users are told what to write instead.
 */
#ifndef MCPGATED_CONFIG_UNEXPANDED_H
#define MCPGATED_CONFIG_UNEXPANDED_H

#include "config/config.h"
#include "config/tree.h"

/*
 * Adds a problem for each text of the tree that contains one, except in patterns (redact,
 * deny_patterns) and in the args of a shell, which has its own variables. Messages show only the
 * name.
 */
void unexpanded_check(const struct tree *root, struct config_problems *problems);

#endif
