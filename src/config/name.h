/* SPDX-License-Identifier: Apache-2.0 */
/* Server names for servers that nobody named in our alphabet. */
#ifndef MCPGATED_CONFIG_NAME_H
#define MCPGATED_CONFIG_NAME_H

#include "base/slice.h"

/*
 * `text` in the alphabet of server names: small letters; what is foreign becomes '-', none at the
 * ends, at most 64 bytes; "server" if nothing is left. The caller frees it.
 */
char *name_from_text(struct slice text);
/*
 * A name for a command line (terminated by NULL, not empty): for npx, uvx and their kind that of
 * the package they run, without scope, version and the usual prefixes, else the command's. The
 * caller frees it.
 */
char *name_from_command(char *const *command);

#endif
