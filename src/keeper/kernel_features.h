/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a good configuration asks of the machine it runs on: users, directories, what the kernel can
 * refuse. Asked by -t and before every start, so that no promise of the file turns out to be empty later.
 */
#ifndef MCPGATED_KEEPER_KERNEL_FEATURES_H
#define MCPGATED_KEEPER_KERNEL_FEATURES_H

#include "config/config.h"

/* Adds `servers.NAME.KEY: what cannot be had, and what to do` for each. Changes nothing. SEC-62. */
void kernel_features_check(const struct config *config, struct config_problems *problems);

/*
 * Adds `servers.NAME.command: …` for each command that is not there or may not be executed. In a file that is a warning
 * and no problem: it may come later, or be visible to the server's own user alone, and the other servers work.
 */
void kernel_features_check_commands(const struct config *config, struct config_problems *problems);

#endif
