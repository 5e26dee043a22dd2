/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a valid configuration needs of the machine: users, directories, features of the kernel. Checked by -t and
 * before every start, so that nothing that is configured turns out to be impossible later.
 */
#ifndef MCPGATED_KEEPER_KERNEL_FEATURES_H
#define MCPGATED_KEEPER_KERNEL_FEATURES_H

#include <stdbool.h>

#include "config/config.h"

/* Adds `servers.NAME.KEY: what is missing, and what to do` for each problem. Changes nothing. SEC-62. */
void kernel_features_check(const struct config *config, struct config_problems *problems);

/* What the operator may not expect: a server that runs as root because the daemon does, … */
bool kernel_features_is_root(const struct config_server *server);
/* … or one that can call this gateway because it may connect to any port. */
bool kernel_features_reaches_gateway(const struct config *config,
				     const struct config_server *server);
/* Adds that to config's warnings. */
void kernel_features_warn(struct config *config);

/*
 * Adds `servers.NAME.command: …` for each command that is not there or may not be executed. These are warnings: a
 * command may be installed later, or be visible to the server's own user alone, and the other servers work.
 */
void kernel_features_check_commands(const struct config *config, struct config_problems *problems);

#endif
