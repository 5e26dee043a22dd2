/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts servers once, by itself and as the daemon would, and says what works and what does not. No daemon
 * is needed.
 */
#ifndef MCPGATED_CTL_DOCTOR_H
#define MCPGATED_CTL_DOCTOR_H

#include "config/config.h"

/* Examines the server of this name, or all that are enabled. Returns how many are ill, or -1: there is none. */
int doctor_examine(struct config *config, const char *name);

#endif
