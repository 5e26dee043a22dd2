/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a valid configuration needs of the machine: users, directories, features of the kernel. Checked by -t and
 * before every start, so that nothing that is configured turns out to be impossible later.
 */
#ifndef MCPGATED_KEEPER_KERNEL_FEATURES_H
#define MCPGATED_KEEPER_KERNEL_FEATURES_H

#include <stdbool.h>

#include "config/config.h"
#include "config/tree.h"

/*
 * Adds `FILE:LINE:COLUMN: servers.NAME.KEY: what is missing, and what to do` for each problem; `root` is the tree that the
 * configuration was read from, `running` the one whose servers run meanwhile, or NULL. Changes nothing. As a config_check_fn it
 * takes one that the rules refuse. SEC-62.
 */
void kernel_features_check(const struct config *config, const struct config *running,
			   const struct tree *root, struct config_problems *problems);

/* Whether it has a limit that only a cgroup keeps. */
bool kernel_features_needs_cgroup(const struct config_server *server);

/* What the operator may not expect: a server that runs as root because the daemon does, … */
bool kernel_features_is_root(const struct config_server *server);
/* … or one that can call this gateway because it may connect to any port. */
bool kernel_features_reaches_gateway(const struct config *config,
				     const struct config_server *server);
/* Adds that, what of a sandbox the kernel lacks, and directories that are not there for files that the daemon writes. */
void kernel_features_warn(const struct config *config, const struct tree *root,
			  struct config_problems *warnings);

/*
 * Adds the same for each command that is not there or may not be executed. These are warnings: a command may be
 * installed later, or be visible to the server's own user alone, and the other servers work.
 */
void kernel_features_check_commands(const struct config *config, const struct tree *root,
				    struct config_problems *list);

#endif
