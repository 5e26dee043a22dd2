/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a good configuration asks of the machine it runs on: users, directories, what the kernel can
 * refuse. Asked by -t and before every start, so that no promise of the file turns out to be empty later.
 */
#ifndef MCPGATED_KEEPER_MACHINE_H
#define MCPGATED_KEEPER_MACHINE_H

#include "config/config.h"

/* Adds `servers.NAME.KEY: what cannot be had, and what to do` for each. Changes nothing. SEC-62. */
void machine_check(const struct config *config, struct config_problems *problems);

/*
 * Adds `servers.NAME.command: …` for each command that is not there. A warning and no problem: it may come later,
 * or be visible to the server's own user alone.
 */
void machine_warn(const struct config *config, struct config_problems *warnings);

#endif
