/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the files of a configuration to a tree of values, and from that to the configuration, which
 * is checked.
 */
#pragma once

#include <stdio.h>
#include <sys/types.h>

#include "base/check.h"
#include "base/error.h"
#include "base/slice.h"
#include "config/config.h"
#include "config/tree.h"
#include "config/table.h"
#include "policy/rule.h"

/*
 * ---- include ----
 *
 * Merges the YAML file of a configuration and the files that it includes into one tree. Included
 * files may only have servers, auth.tokens and auth.issuers, so that what applies to all is in
 * one place. mcpgated.yaml(5)
 */

#define INCLUDE_FILES_MAX 1024
#define INCLUDE_FILE_BYTES_MAX ((size_t)1 << 20)
/*
 * Of all files together. 4096 servers with all defaults printed stay below YAML_BYTES_MAX, the
 * gateway's limit.
 */
#define INCLUDE_BYTES_MAX ((size_t)4 << 20)

/*
 * Whoever writes such a file chooses what is run as the daemon's user: only its owner may. Notes
 * whether everybody can read it.
 */
void include_check_mode(const char *path, mode_t mode, struct types_context *context);
/*
 * Reads the file at `path`, then those that its `include` names, in the order of the list, sorted
 * by name within each pattern. Only their owners may be able to write to these files; an included
 * file must also be where only root, this process's user or the owner of the first file can put it.
 * Paths are appended to `paths`, which the caller frees after the tree. Problems are added to
 * context->problems. NULL: the first file cannot be read.
 */
struct tree *include_read(const char *path, struct types_context *context, struct slices *paths)
	must_check;

/*
 * ---- places ----
 *
 * The places, in what was read, of the rules in policy/rule.def and of what the daemon opens;
 * and passing them on with a printed configuration.
 */

/*
 * Prefixes the error about this key's value with `FILE:LINE: KEY: ` if its place is known. Returns
 * -1.
 */
int places_tell(const struct rule_places *places, const char *key, struct error *err);
/* Appends them to a printed configuration, as YAML comments. */
void places_print(const struct rule_places *places, FILE *out);
/* Removes them again. Returns the input for rule_places_read; empty if there are none. */
struct slice places_cut(struct slice *text);

/*
 * ---- load ----
 *
 * Turns a tree of values into a configuration. Reads no files except through context->resolve,
 * and the CA files of issuers.
 */

/*
 * Builds the configuration that `root` describes and checks its rules (rules_check). Returns it, or
 * NULL if context->problems is not empty afterwards. Warnings are added to context->warnings. The
 * caller keeps the tree.
 */
struct config *load_tree(const struct types_context *context, const struct tree *root) must_check;
/*
 * The same, but also returns a configuration with problems; values that could not be read have
 * their defaults. Never NULL. In a process that goes on, roles and scopes that `before` also has keep
 * their numbers (roles_keep_numbers, scope_table_add), and no number changes its meaning. This may run
 * out of numbers. `before` may be NULL.
 */
struct config *load_draft(const struct types_context *context, const struct tree *root,
			  const struct config *before) must_check;
/* Reads only what servers may do (sandbox, enabled). Reports no problems and reads no files. */
struct config *load_survey(const struct tree *root) must_check;

/* ---- rules.c: the rules that a single value cannot break: what must fit together ---- */

/*
 * Adds everything that is wrong with `config` to `problems`, and what is given but has no effect, or
 * no longer has any, to `warnings`. `root` is the tree it was read from, for the places. Values that
 * could not be read are skipped: they have been reported before.
 */
void rules_check(const struct config *config, const struct tree *root,
		 struct config_problems *problems, struct config_problems *warnings);
