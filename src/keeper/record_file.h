/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the daemon appends to: the log and the audit. */
#ifndef MCPGATED_KEEPER_RECORD_FILE_H
#define MCPGATED_KEEPER_RECORD_FILE_H

#include "base/check.h"
#include "base/error.h"

/*
 * Whether a start could open this absolute path with these flags (without O_CREAT). Does not create
 * a missing file, but checks its directory. -1: err says what is in the way.
 */
int record_file_try(const char *path, int flags, struct error *err) must_check;

#endif
