/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the YAML file of a configuration and the files that it includes into one tree. Included
 * files may only have servers, auth.tokens and auth.issuers, so that what applies to all is in one
 * place. mcpgated.yaml(5)
 */
#ifndef MCPGATED_CONFIG_INCLUDE_H
#define MCPGATED_CONFIG_INCLUDE_H

#include "config/config.h"
#include "config/tree.h"
#include "config/types.h"

#define INCLUDE_FILES_MAX 1024
#define INCLUDE_FILE_BYTES_MAX ((size_t)1 << 20)
/*
 * Of all files together. 4096 servers with all defaults printed stay below YAML_BYTES_MAX, the
 * gateway's limit.
 */
#define INCLUDE_BYTES_MAX ((size_t)4 << 20)

/*
 * Reads the file at `path`, then those that its `include` names, in the order of the list, sorted
 * by name within each pattern. Only their owners may be able to write to these files; an included
 * file must also be where only root, this process's user or the owner of the first file can put it.
 * Paths are appended to `paths`, which the caller frees after the tree. Problems are added to
 * context->problems. NULL: the first file cannot be read.
 */
struct tree *include_read(const char *path, struct types_context *context, struct slices *paths)
	must_check;

#endif
