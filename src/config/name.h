/* SPDX-License-Identifier: Apache-2.0 */
/* Makes server names from texts that are not valid ones. */
#ifndef MCPGATED_CONFIG_NAME_H
#define MCPGATED_CONFIG_NAME_H

#include "base/slice.h"

/*
 * `text` in the alphabet of server names: lower case, other characters become '-', none at the
 * ends, at most 64 bytes; "server" if nothing is left. The caller frees it.
 */
char *name_from_text(struct slice text);
/* The nth server of that name, which is at most 64 bytes as well. The caller frees it. */
char *name_numbered(const char *name, size_t n);
/*
 * A name for a command line (NULL-terminated, not empty): for npx, uvx and the like, the name of
 * the package they run, without scope, version and the usual prefixes; otherwise the command's
 * name. The caller frees it.
 */
char *name_from_command(char *const *command);

#endif
