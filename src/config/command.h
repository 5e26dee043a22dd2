/* SPDX-License-Identifier: Apache-2.0 */
/* The one-command form: what the command line says of its one server, as a tree. */
#ifndef MCPGATED_CONFIG_COMMAND_H
#define MCPGATED_CONFIG_COMMAND_H

#include "config/config.h"
#include "config/tree.h"

/*
 * One server with every default, at /mcp, with the name, variables and isolation of the request, whose command has a first
 * word. What cannot be is added to problems. The caller frees the tree.
 */
struct tree *command_read(const struct config_request *request, struct config_problems *problems)
	must_check;

#endif
