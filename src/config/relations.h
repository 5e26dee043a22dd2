/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the table of options along a configuration, and says what a row demands of others: the
 * options that must be given, and those that need, exclude or bound each other (options.h).
 */
#ifndef MCPGATED_CONFIG_RELATIONS_H
#define MCPGATED_CONFIG_RELATIONS_H

#include "config/config.h"
#include "config/tree.h"

/*
 * `root` is the tree that `config` was read from: what counts as given, and the places of messages,
 * are from there. Keys of a server count as given under `defaults` as well, except where the message
 * is a warning.
 */
void relations_check(const struct config *config, const struct tree *root,
		     struct config_problems *problems, struct config_problems *warnings);

#endif
