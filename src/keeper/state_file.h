/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of ours in the state directory. A server that runs as the daemon's user may also write it,
 * so it is opened like an untrusted file. It is not synced to disk, which may take long: a file
 * truncated by a crash fails to parse.
 */
#ifndef MCPGATED_KEEPER_STATE_FILE_H
#define MCPGATED_KEEPER_STATE_FILE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"

/*
 * Appends its contents, at most `most` + 1 bytes. Appends nothing and returns 0 if there is no file
 * or directory.
 */
int state_file_read(const char *name, size_t most, struct buf *text, struct error *err) must_check;
/* Replaces its contents as a whole. `directory` from state_directory_open. */
int state_file_write(int directory, const char *name, struct slice text, struct error *err)
	must_check;

#endif
