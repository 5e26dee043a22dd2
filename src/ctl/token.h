/* SPDX-License-Identifier: Apache-2.0 */
/* Fresh static tokens. The daemon never learns one: its configuration has the hash. */
#ifndef MCPGATED_CTL_TOKEN_H
#define MCPGATED_CTL_TOKEN_H

#include <stdbool.h>

/* Prints a new token of 256 random bits and its entry for auth.tokens, as lines or as JSON. */
void token_print_new(const char *name, bool is_json);

#endif
