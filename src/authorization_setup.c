/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All scopes that the configuration names get their numbers first: only then is known what a token holds of
 * them. Texts stay where the configuration has them.
 */
#include "authorization_setup.h"

#include <stdlib.h>

#include "auth/dpop.h"
#include "auth/verifier.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"

/* Proofs that are remembered, so that none is taken twice. */
#define PROOFS_MAX 100000

static void add_scopes(struct scope_table *table, const struct slices *names, struct scope_set *set)
{
	for (size_t i = 0; i < names->count; i++)
		scope_table_add(table, names->items[i], set);
}

static void number_scopes(struct scope_table *table, const struct config *config)
{
	struct scope_set all = { { 0 } };

	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];

		add_scopes(table, &server->wants.scopes, &all);
		for (size_t j = 0; j < server->wants.tool_scopes.count; j++)
			add_scopes(table, &server->wants.tool_scopes.items[j].values, &all);
	}
	add_scopes(table, &config->auth.initial_scopes, &all);
	for (size_t i = 0; i < config->auth.scope_hierarchy.count; i++) {
		const struct named_slices *list = &config->auth.scope_hierarchy.items[i];

		for (size_t j = 0; j < list->values.count; j++)
			scope_table_imply(table, list->name, list->values.items[j]);
	}
}

static unsigned char digit_of(char c)
{
	return (unsigned char)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

static void read_hash(const char *digits, unsigned char hash_r[AUTHORIZATION_HASH_BYTES])
{
	for (size_t i = 0; i < AUTHORIZATION_HASH_BYTES; i++)
		hash_r[i] =
			(unsigned char)(digit_of(digits[2 * i]) << 4 | digit_of(digits[2 * i + 1]));
}

static void make_tokens(struct authorization_setup *a, const struct config *config)
{
	size_t count = config->auth.tokens.count;

	a->tokens = mem_zalloc((count + 1) * sizeof(*a->tokens));
	for (size_t i = 0; i < count; i++) {
		const struct config_token *from = &config->auth.tokens.items[i];
		struct static_token *token = &a->tokens[i];

		*token = (struct static_token){
			.name = slice_str(from->name),
			.servers = from->servers,
			.ends_at_ms = from->expires_ms > 0 ? from->expires_ms : UINT64_MAX,
		};
		read_hash(from->sha256, token->sha256);
		for (size_t j = 0; j < from->scopes.count; j++)
			scope_table_find(&a->scopes, from->scopes.items[j], &token->scopes);
	}
}

/* ---- issuers ---- */

static struct verifier_issuer_conf issuer_conf(const struct config_issuer *issuer)
{
	return (struct verifier_issuer_conf){
		.issuer = issuer->issuer,
		.audience = issuer->audience,
		.client_is_audience = issuer->audience_claim == CONFIG_AUDIENCE_CLIENT_ID,
		.algorithms = issuer->algorithms,
		.jwks_uri = issuer->jwks_uri,
		.jwks_interval_ms = issuer->jwks_interval_ms,
		.leeway_ms = issuer->leeway_ms,
		.max_lifetime_ms = issuer->max_lifetime_ms,
		.required_claims = issuer->required_claims,
		.introspection_endpoint = issuer->introspection_endpoint,
		.client_id = issuer->introspection_client_id,
		.client_secret = issuer->introspection_client_secret,
		.sends_secret_in_form =
			issuer->introspection_auth_method == CONFIG_CLIENT_SECRET_POST,
		.introspect_always = issuer->introspection_always,
		.introspection_ttl_ms = issuer->introspection_ttl_ms,
		.ca = issuer->ca != NULL ? slice_str(issuer->ca) : (struct slice){ NULL, 0 },
		.allow_private = issuer->allow_private,
	};
}

static int make_verifier(struct authorization_setup *a, struct loop *loop, struct error *err)
{
	const struct config_issuers *issuers = &a->config->auth.issuers;
	struct verifier_issuer_conf *confs = mem_zalloc((issuers->count + 1) * sizeof(*confs));
	const struct verifier_conf conf = { confs, issuers->count };

	a->issuers = mem_zalloc((issuers->count + 1) * sizeof(*a->issuers));
	for (size_t i = 0; i < issuers->count; i++) {
		confs[i] = issuer_conf(&issuers->items[i]);
		a->issuers[i] = slice_str(issuers->items[i].issuer);
	}
	a->verifier = verifier_new(loop, &conf, err);
	free(confs);
	return a->verifier != NULL ? 0 : -1;
}

static int make_oauth(struct authorization_setup *a, struct loop *loop, struct error *err)
{
	const struct config_auth *auth = &a->config->auth;
	bool has_one = auth->issuers.count == 1;

	if (make_verifier(a, loop, err) < 0)
		return -1;
	a->authorization.verifier = a->verifier;
	a->authorization.origin = slice_str(a->config->public_url);
	if (auth->dpop != CONFIG_DPOP_OFF)
		a->authorization.proofs = dpop_memory_new(PROOFS_MAX);
	a->metadata = (struct metadata_conf){
		.resources = a->resources,
		.issuers = { a->issuers, auth->issuers.count },
		.origin = slice_str(a->config->public_url),
		.takes_proofs = auth->dpop != CONFIG_DPOP_OFF,
		.requires_proofs = auth->dpop == CONFIG_DPOP_REQUIRED,
		.has_facade = auth->metadata_facade == CONFIG_FACADE_ON ||
			      (auth->metadata_facade == CONFIG_FACADE_AUTO && has_one),
		.verifier = a->verifier,
		.redirect_uris = auth->registration_redirect_uris,
	};
	if (auth->registration_client_id != NULL)
		a->metadata.client_id = slice_str(auth->registration_client_id);
	return 0;
}

int authorization_setup_init(struct authorization_setup *a, const struct config *config,
			     struct loop *loop, struct error *err)
{
	static const enum authorization_mode modes[] = {
		[CONFIG_AUTH_NONE] = AUTHORIZATION_OPEN,
		[CONFIG_AUTH_TOKEN] = AUTHORIZATION_TOKEN,
		[CONFIG_AUTH_OAUTH] = AUTHORIZATION_OAUTH,
		[CONFIG_AUTH_ANONYMOUS] = AUTHORIZATION_OPEN,
	};
	static const enum authorization_dpop dpops[] = {
		[CONFIG_DPOP_OFF] = AUTHORIZATION_DPOP_OFF,
		[CONFIG_DPOP_ON] = AUTHORIZATION_DPOP_ON,
		[CONFIG_DPOP_REQUIRED] = AUTHORIZATION_DPOP_REQUIRED,
	};

	*a = (struct authorization_setup){ .config = config };
	number_scopes(&a->scopes, config);
	make_tokens(a, config);
	a->places = mem_zalloc((config->server_count + 1) * sizeof(*a->places));
	a->resources = mem_zalloc((config->server_count + 1) * sizeof(*a->resources));
	a->authorization = (struct authorization_conf){
		.mode = modes[config->auth.mode],
		.scopes = &a->scopes,
		.tokens = a->tokens,
		.token_count = config->auth.tokens.count,
		.takes_api_keys = config->auth.x_api_key,
		.names_held = config->auth.challenge_held,
		.failures_max = config->auth.failures_per_minute,
		.binds_client = config->auth.bind_client,
		.dpop = dpops[config->auth.dpop],
	};
	add_scopes(&a->scopes, &config->auth.initial_scopes, &a->authorization.initial);
	return config->auth.mode == CONFIG_AUTH_OAUTH ? make_oauth(a, loop, err) : 0;
}

/* ---- servers ---- */

/* The names by which issuers know it. AUTH-PRM-01, -03, AUTH-AUD-02 */
static void name_place(struct authorization_setup *a, const struct config_server *server,
		       struct authorization_setup_place *names, struct protected_resource *place)
{
	const char *origin = a->config->public_url;
	struct scope_set first = place->base;
	struct buf scopes = { 0 };

	scope_set_join(&first, &a->authorization.initial);
	scope_table_append(&a->scopes, &first, &scopes);
	names->scopes = mem_dup_slice(buf_slice(&scopes));
	buf_fini(&scopes);
	names->resource = mem_printf("%s%s", origin, server->path);
	names->metadata =
		mem_printf("%s/.well-known/oauth-protected-resource%s", origin, server->path);
	names->accepted = mem_zalloc((server->wants.audience.count + 1) * sizeof(*names->accepted));
	names->accepted[0] = slice_str(names->resource);
	for (size_t i = 0; i < server->wants.audience.count; i++)
		names->accepted[i + 1] = server->wants.audience.items[i];
	place->resource = slice_str(names->resource);
	place->metadata = slice_str(names->metadata);
	place->accepted = names->accepted;
	place->accepted_count = server->wants.audience.count + 1;
	place->clients = server->wants.clients;
	place->algorithms = server->wants.algorithms;
	a->resources[a->metadata.resource_count++] = (struct metadata_resource){
		.path = slice_str(server->path),
		.resource = place->resource,
		.scopes = slice_str(names->scopes),
	};
}

struct protected_resource authorization_setup_make_place(struct authorization_setup *a,
							 const struct config_server *server)
{
	struct authorization_setup_place *made = &a->places[a->place_count++];
	size_t count = server->wants.tool_scopes.count;
	struct protected_resource place = { .server = slice_str(server->conf.name),
					    .tool_count = count,
					    .tells_in_result = server->wants.challenge_in_result };

	made->tools = mem_zalloc((count + 1) * sizeof(*made->tools));
	place.tools = made->tools;
	add_scopes(&a->scopes, &server->wants.scopes, &place.base);
	for (size_t i = 0; i < count; i++) {
		made->tools[i].pattern = server->wants.tool_scopes.items[i].name;
		add_scopes(&a->scopes, &server->wants.tool_scopes.items[i].values,
			   &made->tools[i].needed);
	}
	if (a->authorization.mode == AUTHORIZATION_OAUTH)
		name_place(a, server, made, &place);
	return place;
}

static void deny_by(struct deny_list *deny_list, const struct config_denial *from,
		    enum denial_by by, const char *name)
{
	uint64_t until_ms = from->until_ms > 0 ? from->until_ms : UINT64_MAX;

	if (name == NULL || until_ms <= clock_wall_ms())
		return;
	/* The configuration may not have more than there is room for. */
	CHECK(deny_list_add(deny_list, slice_str(from->issuer), by, slice_str(name), until_ms) !=
	      NULL);
}

void authorization_setup_deny(const struct config *config, struct deny_list *deny_list)
{
	for (size_t i = 0; i < config->auth.deny.count; i++) {
		const struct config_denial *from = &config->auth.deny.items[i];

		deny_by(deny_list, from, DENIAL_BY_SUB, from->sub);
		deny_by(deny_list, from, DENIAL_BY_CLIENT_ID, from->client_id);
		deny_by(deny_list, from, DENIAL_BY_JTI, from->jti);
		deny_by(deny_list, from, DENIAL_BY_SID, from->sid);
	}
}

void authorization_setup_fini(struct authorization_setup *a)
{
	for (size_t i = 0; i < a->place_count; i++) {
		free(a->places[i].tools);
		free(a->places[i].resource);
		free(a->places[i].metadata);
		free(a->places[i].scopes);
		free(a->places[i].accepted);
	}
	verifier_free(&a->verifier);
	dpop_memory_free(&a->authorization.proofs);
	free(a->places);
	free(a->resources);
	free(a->issuers);
	free(a->tokens);
}
