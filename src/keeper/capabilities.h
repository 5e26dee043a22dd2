/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MCPGATED_KEEPER_CAPABILITIES_H
#define MCPGATED_KEEPER_CAPABILITIES_H

#include <stdbool.h>

#include "base/check.h"

/*
 * Drops all capabilities, including those gained by executing a program as root. Returns 0, or -1
 * with errno. Async-signal-safe.
 */
int capabilities_drop_all(void) must_check;

/*
 * Makes CAP_SYS_ADMIN effective, out of the capabilities that prctl(PR_SET_KEEPCAPS) kept across a
 * change of user. Returns 0, or -1 with errno. Async-signal-safe.
 */
int capabilities_use_admin(void) must_check;

/* Whether this process can start and kill processes of other users. Being root is not enough. */
bool capabilities_reach_users(void);

#endif
