/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MCPGATED_KEEPER_CAPABILITIES_H
#define MCPGATED_KEEPER_CAPABILITIES_H

#include "base/check.h"

/*
 * Gives up all capabilities, also those that executing a program as root would bring. Returns 0 or -1
 * with errno. Async-signal-safe.
 */
int capabilities_drop_all(void) must_check;

#endif
