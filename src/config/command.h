/* SPDX-License-Identifier: Apache-2.0 */
/* The one-command form: turns the command line of a single server into a tree. */
#ifndef MCPGATED_CONFIG_COMMAND_H
#define MCPGATED_CONFIG_COMMAND_H

#include "config/config.h"
#include "config/tree.h"

/*
 * Builds one server at /mcp with the request's name, variables and isolation, and with start.try;
 * everything else has its default. The request's command must not be empty. Invalid values are
 * added to problems. The caller frees the tree.
 */
struct tree *command_read(const struct config_request *request, struct config_problems *problems)
	must_check;

#endif
