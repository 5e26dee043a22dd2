/* SPDX-License-Identifier: Apache-2.0 */
/* From the configuration of who may call to what the guard decides by. */
#ifndef MCPGATED_AUTHORIZATION_H
#define MCPGATED_AUTHORIZATION_H

#include "config/config.h"
#include "endpoint/guard.h"

struct authorization {
	struct guard_conf guard;
	struct scope_table scopes;
	struct guard_token *tokens;
	struct slice **servers;    /* of each token */
	struct guard_tool **tools; /* of each place made */
	size_t place_count;
};

/* The configuration is borrowed for the authorization's life; it must not move. */
void authorization_init(struct authorization *authorization, const struct config *config);
void authorization_fini(struct authorization *authorization);
/* What this server asks for; valid as long as the authorization. Once for each. */
struct guard_place authorization_make_place(struct authorization *authorization,
					    const struct config_server *server);

#endif
