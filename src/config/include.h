/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The YAML file of a configuration with those that it includes: one tree, as if all stood in the first. An included file has
 * servers, auth.tokens and auth.issuers, and nothing else: what holds for all stands in one place. product.md §4
 */
#ifndef MCPGATED_CONFIG_INCLUDE_H
#define MCPGATED_CONFIG_INCLUDE_H

#include "config/config.h"
#include "config/tree.h"
#include "config/types.h"

#define INCLUDE_FILES_MAX 1024
#define INCLUDE_FILE_BYTES_MAX ((size_t)1 << 20)
/* Of all files together. With every default of 4096 servers it is less than YAML_BYTES_MAX, as the gateway reads it. */
#define INCLUDE_BYTES_MAX ((size_t)4 << 20)

/*
 * Reads the file at `path`, and those that its `include` names, in the order of the list, each pattern's sorted by name; all must
 * be writable for their owners alone, and those that are included be found where nobody may put them but root, who runs this, or
 * the owner of the first. Texts of paths are added to `paths`, and freed by the caller after the tree. What is wrong
 * is added to context->problems. NULL: the first one cannot be read.
 */
struct tree *include_read(const char *path, struct types_context *context, struct slices *paths)
	must_check;

#endif
