/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the daemon may keep a file for its next start: systemd's STATE_DIRECTORY, else `mcpgated` in XDG_STATE_HOME, else
 * in ~/.local/state. It counts only if nobody but this user can change what is in it: the keeper may be root.
 */
#ifndef MCPGATED_KEEPER_STATE_DIRECTORY_H
#define MCPGATED_KEEPER_STATE_DIRECTORY_H

#include <stdbool.h>

#include "base/check.h"
#include "base/error.h"

/*
 * Opens it (close-on-exec), and makes it with makes_it, which STATE_DIRECTORY, XDG_STATE_HOME and HOME themselves must
 * not need. Returns a descriptor; or -1, and why there is none.
 */
int state_directory_open(bool makes_it, struct error *err) must_check;

#endif
