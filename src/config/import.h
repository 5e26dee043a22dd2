/* SPDX-License-Identifier: Apache-2.0 */
/* The files in which clients keep their servers, as a tree like that of our own files. */
#ifndef MCPGATED_CONFIG_IMPORT_H
#define MCPGATED_CONFIG_IMPORT_H

#include "base/slice.h"
#include "config/config.h"
#include "config/tree.h"

/* Claude Code keeps more than servers in its file. */
#define IMPORT_BYTES_MAX ((size_t)16 << 20)

/*
 * text      the file, at most IMPORT_BYTES_MAX bytes
 * file      for messages; borrowed as long as the tree lives
 * problems  gets what makes the import impossible
 * warnings  gets the entries that are left out, disabled or renamed, and what of an entry is not taken over
 *
 * It is JSON, with comments and commas behind last entries. The entries are in `mcpServers` (Claude, Cursor, Windsurf,
 * Gemini and others), `servers` or `mcp.servers` (VS Code), `context_servers` (Zed), `mcp_servers` (Codex, made JSON), or
 * `projects.DIRECTORY.mcpServers` (Claude Code; those are started in the directory), all of them if there are several. Of an entry command, args,
 * env, cwd, env_vars, disabled and enabled count; ${…} in them is as variables.h says. Each message has its line.
 *
 * More than 4096 servers, or variables or arguments of one, are a problem.
 *
 * Returns the tree (free with tree_free), or NULL if a problem was added.
 */
struct tree *import_read(struct slice text, const char *file, struct config_problems *problems,
			 struct config_problems *warnings) must_check;

#endif
