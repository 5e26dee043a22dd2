/* SPDX-License-Identifier: Apache-2.0 */
/* From the configuration of who may call to what the guard decides by and what is published. */
#ifndef MCPGATED_AUTHORIZATION_SETUP_H
#define MCPGATED_AUTHORIZATION_SETUP_H

#include "config/config.h"
#include "endpoint/authorization.h"
#include "endpoint/metadata.h"
#include "io/loop.h"

/* What was made for one server. */
struct authorization_setup_place {
	struct tool_scopes *tools;
	char *resource;
	char *metadata;
	char *scopes;
	struct slice *accepted;
};

struct authorization_setup {
	struct authorization_conf authorization;
	struct metadata_conf metadata; /* published if there are resources */
	struct scope_table scopes;
	struct static_token *tokens;
	struct slice *issuers;
	struct metadata_resource *resources;
	struct authorization_setup_place *places;
	size_t place_count;
	struct verifier *verifier;
	const struct config *config;
};

/*
 * Begins to fetch what issuers publish, without waiting. The configuration and the loop are borrowed for the
 * authorization's life; it must not move. -1: err says what cannot be.
 */
int authorization_setup_init(struct authorization_setup *authorization_setup,
			     const struct config *config, struct loop *loop, struct error *err)
	must_check;
/* Sets the entries of the configuration that hold still. AUTH-SES-07 */
void authorization_setup_deny(const struct config *config, struct deny_list *deny_list);
/* No request may wait any more. */
void authorization_setup_fini(struct authorization_setup *authorization_setup);
/* What this server asks for; valid as long as the authorization. Once for each. */
struct protected_resource authorization_setup_make_place(
	struct authorization_setup *authorization_setup, const struct config_server *server);

#endif
