/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of ours in the state directory. A server that runs as the daemon's user may write it, too: so it is opened like a
 * stranger's. It is not synced to the disk, which may take long: one that a crash has cut off is no correct text.
 */
#ifndef MCPGATED_KEEPER_STATE_FILE_H
#define MCPGATED_KEEPER_STATE_FILE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"

/* Appends what it holds, at most one byte more than `most`. Nothing, and 0: there is none, or no directory yet. */
int state_file_read(const char *name, size_t most, struct buf *text, struct error *err) must_check;
/* In place of what it held, as a whole. `directory` as of state_directory_open. */
int state_file_write(int directory, const char *name, struct slice text, struct error *err)
	must_check;

#endif
