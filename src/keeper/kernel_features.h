/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a valid configuration requires of the machine: users, directories, kernel features. Checked
 * by -t and before every start, so that nothing that is configured turns out to be impossible
 * later.
 */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "config/tree.h"

/*
 * Adds `FILE:LINE:COLUMN: servers.NAME.KEY: what is missing, and what to do` for each problem.
 * `root`: the tree that the configuration was read from; `running`: the configuration whose servers
 * run meanwhile, or NULL. Changes nothing. As a config_check_fn it accepts a configuration that
 * violates the rules. SEC-62.
 */
void kernel_features_check(const struct config *config, const struct config *running,
			   const struct tree *root, struct config_problems *problems);

/*
 * Adds a problem for each cwd that is not a directory. Of an imported file these are warnings: it
 * lists what a client had once, and the other servers work.
 */
void kernel_features_check_directories(const struct config *config, const struct tree *root,
				       struct config_problems *list);

/* What may surprise the operator: a server that runs as root because the daemon does, … */
bool kernel_features_is_root(const struct config_server *server);
/* … or one that can call this gateway because it may connect to any port. */
bool kernel_features_reaches_gateway(const struct config *config,
				     const struct config_server *server);
/*
 * Adds those, sandbox features that the kernel lacks, and missing directories of files that the
 * daemon writes.
 */
void kernel_features_warn(const struct config *config, const struct tree *root,
			  struct config_problems *warnings);

/*
 * Adds a problem for each command that does not exist or is not executable. These are warnings: a
 * command may be installed later or be visible only to the server's own user, and the other servers
 * work.
 */
void kernel_features_check_commands(const struct config *config, const struct tree *root,
				    struct config_problems *list);
