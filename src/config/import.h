/* SPDX-License-Identifier: Apache-2.0 */
/* The `{"mcpServers": {…}}` files that clients keep, as a tree like that of our own files. */
#ifndef MCPGATED_CONFIG_IMPORT_H
#define MCPGATED_CONFIG_IMPORT_H

#include "base/slice.h"
#include "config/config.h"
#include "config/tree.h"

#define IMPORT_BYTES_MAX ((size_t)1 << 20)

/*
 * text      the file, at most IMPORT_BYTES_MAX bytes
 * file      for messages; borrowed as long as the tree lives
 * problems  gets what makes the import impossible
 * warnings  gets the entries that are left out, disabled or renamed, and what of an entry nobody knows
 *
 * The entries are in "mcpServers" or, as editors have it, in "servers"; comments and commas behind the last entry are
 * skipped. Of an entry command, args, env, cwd and disabled count; the rest is some client's own. Returns the tree (free with tree_free), or NULL if a problem was added.
 */
struct tree *import_read(struct slice text, const char *file, struct config_problems *problems,
			 struct config_problems *warnings) must_check;

#endif
