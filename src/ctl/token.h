/* SPDX-License-Identifier: Apache-2.0 */
/* Creates static tokens. The daemon never sees the token itself: its configuration has the hash. */
#ifndef MCPGATED_CTL_TOKEN_H
#define MCPGATED_CTL_TOKEN_H

#include <stdbool.h>

/* Creates a token and prints it, with its entry for auth.tokens under this name. */
void token_print(const char *name, bool is_json);

#endif
