/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the configuration that says who may call: `auth`. See config.h. */
#ifndef MCPGATED_CONFIG_AUTH_H
#define MCPGATED_CONFIG_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/texts.h"

/* Different scopes that may be named. */
#define CONFIG_SCOPES_MAX 256

enum config_auth_mode { CONFIG_AUTH_NONE, CONFIG_AUTH_TOKEN, CONFIG_AUTH_ANONYMOUS };

/* A static token: who shows the text with this hash is `name`. */
struct config_token {
	char *name;
	char *sha256; /* 64 hexadecimal digits, of the token's text */
	struct config_texts scopes;
	struct config_texts servers; /* none: all */
	uint64_t expires_ms;         /* since 1970; 0: never */
};

struct config_tokens {
	struct config_token *items;
	size_t count;
};

struct config_auth {
	enum config_auth_mode mode;
	struct config_tokens tokens;
	struct config_lists scope_hierarchy; /* who holds the name holds the list */
	bool challenge_held; /* name the scopes that a token has among those that it needs */
};

#endif
