/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that a single value cannot break: what must fit together. */
#ifndef MCPGATED_CONFIG_RULES_H
#define MCPGATED_CONFIG_RULES_H

#include "config/config.h"
#include "config/tree.h"

/*
 * Adds everything that is wrong with `config` to `problems`, and what is given but has no effect, or
 * no longer has any, to `warnings`. `root` is the tree it was read from, for the places. Values that
 * could not be read are skipped: they have been reported before.
 */
void rules_check(const struct config *config, const struct tree *root,
		 struct config_problems *problems, struct config_problems *warnings);

#endif
