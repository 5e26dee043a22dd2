/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens in clear text, one a line, for the command line; the configuration gets their hashes. */
#ifndef MCPGATED_CONFIG_TOKEN_FILE_H
#define MCPGATED_CONFIG_TOKEN_FILE_H

#include "config/tree.h"
#include "config/types.h"

/* Fewer characters than this are no secret: 128 bits need 22 of base64url. */
#define TOKEN_CHARACTERS_MIN 22

/*
 * Makes `root` say auth.mode token, with one entry for each line of the file that is neither empty nor
 * begins with '#'. Nobody but its owner may read the file. What is wrong is reported. AUTH-TOK-01.
 */
void token_file_add(const struct types_context *context, const char *path, struct tree *root);

#endif
