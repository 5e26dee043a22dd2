/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the files, JSON and TOML, in which clients list their servers, into a tree in the form of our own
 * files; and makes names of servers, from theirs and from a command.
 */
#pragma once

#include <stdbool.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "config/config.h"
#include "config/tree.h"

/*
 * A server name from a text that is none: in the alphabet of server names: lower case, other characters become '-', none at the
 * ends, at most 64 bytes; "server" if nothing is left. The caller frees it.
 */
char *name_from_text(struct slice text);
/*
 * A name for a command line (NULL-terminated, not empty): for npx, uvx and the like, the name of
 * the package they run, without scope, version and the usual prefixes; otherwise the command's
 * name. The caller frees it.
 */
char *name_from_command(char *const *command);

/* The nth server of that name, which is at most 64 bytes as well. The caller frees it. */
char *name_numbered(const char *name, size_t n);

/* Large, because the file of Claude Code contains more than servers. */
#define IMPORT_BYTES_MAX ((size_t)16 << 20)

/*
 * text      the file, at most IMPORT_BYTES_MAX bytes
 * file      its name in messages; borrowed as long as the tree lives
 * problems  gets what makes the import impossible: not one entry can be served
 * warnings  gets entries that are left out, disabled or renamed, and members that are ignored or
 *           converted: one odd entry takes no other down
 *
 * The text is JSON, where comments and trailing commas are allowed, or TOML (import_is_toml). Entries are read from all of these
 * members that exist: `mcpServers` (Claude, Cursor, Windsurf, Gemini and others), `servers` or
 * `mcp.servers` (VS Code), `context_servers` (Zed), `mcp_servers` (Codex), and
 * `projects.DIRECTORY.mcpServers` (Claude Code; those servers start in that directory). Of an
 * entry, command, args, env, cwd, env_vars, disabled, enabled and isActive (Cherry Studio) are used,
 * and the lists of allowed and excluded servers of Gemini CLI; ${…} is expanded as in variables.h. Each message has its line. More than 4096 servers, or more than 4096 variables
 * or arguments of one, are a problem.
 *
 * Returns the tree (free with tree_free), or NULL if a problem was added.
 */
struct tree *import_read(struct slice text, const char *file, struct config_problems *problems,
			 struct config_problems *warnings) must_check;

/* An entry, and where it stands. All is borrowed for the call. */
struct import_entry {
	const char *list; /* the way to the list: mcpServers, projects.DIRECTORY.mcpServers */
	const char *name;
	size_t at; /* of its value, in bytes from the beginning of the file; of TOML, of its lines or of its table in braces */
	size_t length;
	struct slice value;        /* as JSON; of JSON, as long as it is in the file */
	const struct tree *server; /* NULL: it cannot be served */
	/* what would not be as with its client; but what only the client goes by is not among it */
	const struct config_problems *warnings;
};
/* A file whose name ends so, or that begins with a list of Codex. */
bool import_is_toml(struct slice text, const char *file);
typedef void import_entry_fn(const struct import_entry *entry, void *arg);
/*
 * The same reading, for who moves entries: calls take_entry for each of the file, in the order of import_read. -1: the file cannot
 * be read; an empty one can.
 */
int import_entries(struct slice text, const char *file, import_entry_fn *take_entry, void *arg,
		   struct error *err) must_check;
