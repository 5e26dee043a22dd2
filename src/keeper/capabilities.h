/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MCPGATED_KEEPER_CAPABILITIES_H
#define MCPGATED_KEEPER_CAPABILITIES_H

#include <stdbool.h>

#include "base/check.h"

/*
 * Gives up all capabilities, also those that executing a program as root would bring. Returns 0 or -1
 * with errno. Async-signal-safe.
 */
int capabilities_drop_all(void) must_check;

/*
 * Of the capabilities that prctl(PR_SET_KEEPCAPS) has kept through a change of the user, takes CAP_SYS_ADMIN into use.
 * Returns 0 or -1 with errno. Async-signal-safe.
 */
int capabilities_use_admin(void) must_check;

/* Whether this process can start others as another user, and end them. Being root is not enough. */
bool capabilities_reach_users(void);

#endif
