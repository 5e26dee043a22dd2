/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory for files that the next start needs: systemd's STATE_DIRECTORY, else `mcpgated` in
 * XDG_STATE_HOME, else in ~/.local/state. Used only if nobody but this user can change its
 * contents, because the keeper may be root.
 */
#ifndef MCPGATED_KEEPER_STATE_DIRECTORY_H
#define MCPGATED_KEEPER_STATE_DIRECTORY_H

#include <stdbool.h>

#include "base/check.h"
#include "base/error.h"

/*
 * Opens it (close-on-exec) and, with makes_it, creates it; STATE_DIRECTORY, XDG_STATE_HOME and HOME
 * themselves must exist. Returns a descriptor; or -1, and err says why there is none.
 */
int state_directory_open(bool makes_it, struct error *err) must_check;

#endif
