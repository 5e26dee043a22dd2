/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory for files that the next start needs: systemd's STATE_DIRECTORY, else `mcpgated` in
 * XDG_STATE_HOME, else in ~/.local/state. Used only if nobody but this user can change its
 * contents, because the keeper may be root. A server that runs as the daemon's user may write
 * there as well, so files are opened like untrusted ones.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"

/*
 * Opens it (close-on-exec) and, with makes_it, creates it; STATE_DIRECTORY, XDG_STATE_HOME and HOME
 * themselves must exist. Returns a descriptor; or -1, and err says why there is none.
 */
int state_directory_open(bool makes_it, struct error *err) must_check;
/* Its path, whether or not it exists. The caller frees it. NULL: nothing says where it is. */
char *state_directory_path(void);

/*
 * Appends what is in the file: the first 64 KiB without leaving copies. Returns 1; 0 if there is no
 * file; or -1 if it has more than `most` bytes, or others may have written it.
 */
int state_file_get(int directory, const char *name, size_t most, struct buf *text,
		   struct error *err) must_check;
/*
 * Replaces the file as a whole by these parts, one behind the other, readable for this user alone,
 * and waits for the disk.
 */
int state_file_put(int directory, const char *name, const struct slice *parts, size_t count,
		   struct error *err) must_check;
