/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of ours in the state directory. A server that runs as the daemon's user may also write it,
 * so it is opened like an untrusted file. What is in it is whole, or is not used: its first line
 * ends with the SHA-256 of the text, and the file is on the disk before it takes its name, so that
 * neither a crash nor a power failure leaves half of it. A file that cannot be used stays beside
 * the next one as NAME.bad.
 */
#ifndef MCPGATED_KEEPER_STATE_FILE_H
#define MCPGATED_KEEPER_STATE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/error.h"

/* ---- the directory ---- */

/*
 * The directory for files that the next start needs: systemd's STATE_DIRECTORY, else `mcpgated` in
 * XDG_STATE_HOME, else in ~/.local/state. Used only if nobody but this user can change its
 * contents, because the keeper may be root.
 */

/*
 * Opens it (close-on-exec) and, with makes_it, creates it; STATE_DIRECTORY, XDG_STATE_HOME and HOME
 * themselves must exist. Returns a descriptor; or -1, and err says why there is none.
 */
int state_directory_open(bool makes_it, struct error *err) must_check;

/* ---- the files ---- */

/*
 * Appends the text last written. Returns 1; 0 if there is no file or directory; or -1 if the file
 * cannot be used: its contents are not what was written, are more than `most` bytes, or others may
 * have written them. Then it is set aside, and nothing is appended. A file without a digest, as
 * earlier releases wrote it, is used if `first_line` is its first line and its last one is whole.
 */
int state_file_read(const char *name, struct slice first_line, size_t most, struct buf *text,
		    struct error *err) must_check;
/* For who finds only then that it cannot use the text. */
void state_file_set_aside(const char *name);
/*
 * Replaces the text as a whole, and waits for the disk. `directory` from state_directory_open.
 * `text` is not empty, and its first line does not end like a digest.
 */
int state_file_write(int directory, const char *name, struct slice text, struct error *err)
	must_check;

#endif
