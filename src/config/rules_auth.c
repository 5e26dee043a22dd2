/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of who may call: tokens, scopes, and what belongs to which mode. AUTH-CFG-01. */
#include <string.h>
#include <strings.h>

#include "auth/algorithm.h"
#include "auth/client_auth.h"
#include "auth/url.h"
#include "auth/verifier.h"
#include "base/text.h"
#include "config/problem.h"
#include "config/rules.h"
#include "session/principal.h"

/* ---- scopes ---- */

/* RFC 6749 §3.3; the two that concern the client and its issuer alone are never ours. AUTH-PRM-05 */
static void check_scope(const char *scope, const struct tree *at, struct config_problems *problems)
{
	size_t length = 0;

	while (scope[length] > ' ' && scope[length] < 0x7f && scope[length] != '"' &&
	       scope[length] != '\\')
		length++;
	if (scope[0] == '\0' || scope[length] != '\0')
		problem_add_at(
			problems, at,
			"the scope '%.60s' must have only visible ASCII characters other than \" "
			"and backslash",
			scope);
	else if (strcmp(scope, "openid") == 0 || strcmp(scope, "offline_access") == 0)
		problem_add_at(
			problems, at,
			"the scope '%s' says nothing about what a token may do here; remove it",
			scope);
}

static void check_scopes(const struct slices *scopes, const struct tree *at,
			 struct config_problems *problems)
{
	for (size_t i = 0; i < scopes->count; i++)
		check_scope(scopes->items[i].p, tree_item(at, i), problems);
}

/* AUTH-SCP-04 */
static void check_hierarchy(const struct config *config, const struct tree *auth,
			    struct config_problems *problems)
{
	const struct slice_map *lists = &config->frontend.authorization.scope_hierarchy;
	const struct tree *at = tree_below(auth, "scope_hierarchy");

	for (size_t i = 0; i < lists->count; i++) {
		const struct named_slices *list = &lists->items[i];
		const struct tree *list_at = tree_below(at, list->name.p);

		check_scope(list->name.p, list_at, problems);
		check_scopes(&list->values, list_at, problems);
		if (scope_table_implies(&config->scopes, list->name, list->name))
			problem_add_at(problems, list_at, "the scope '%.60s' would include itself",
				       list->name.p);
	}
}

/* ---- static tokens ---- */

static bool asks_for_tokens(const struct config *config)
{
	return config->frontend.authorization.mode >= AUTHORIZATION_TOKEN;
}

static void check_token(const struct config *config, size_t index, const struct tree *at,
			struct config_problems *problems)
{
	const struct static_tokens *tokens = &config->frontend.authorization.tokens;
	const struct static_token *token = &tokens->items[index];
	unsigned char hash[AUTHORIZATION_HASH_BYTES];

	if (token->name.n == 0 && tree_find(at, "name") == NULL)
		problem_add_at(problems, at, "the key 'name' is missing");
	if (token->sha256 == NULL && tree_find(at, "sha256") == NULL)
		problem_add_at(problems, at, "the key 'sha256' is missing");
	if (token->sha256 != NULL &&
	    text_from_hex(slice_str(token->sha256), hash, sizeof(hash)) < 0)
		problem_add_at(
			problems, tree_below(at, "sha256"),
			"must be 64 hexadecimal digits, the output of: printf %%s TOKEN | sha256sum");
	check_scopes(&token->scopes, tree_below(at, "scopes"), problems);
	for (size_t i = 0; i < token->servers.count; i++) {
		const char *name = token->servers.items[i].p;
		size_t s = 0;

		while (s < config->server_count && strcmp(config->servers[s].conf.name, name) != 0)
			s++;
		if (s == config->server_count)
			problem_add_at(problems, tree_item(tree_below(at, "servers"), i),
				       "there is no server '%.60s'", name);
	}
	/* If it stood there twice, whose would it be? */
	for (size_t i = 0; i < index && token->sha256 != NULL; i++)
		if (tokens->items[i].sha256 != NULL &&
		    strcasecmp(tokens->items[i].sha256, token->sha256) == 0)
			problem_add_at(problems, tree_below(at, "sha256"),
				       "this token is listed twice");
}

static void check_tokens(const struct config *config, const struct tree *auth,
			 struct config_problems *problems)
{
	const struct authorization_conf *authorization = &config->frontend.authorization;
	size_t count = authorization->tokens.count;
	const struct tree *list = tree_below(auth, "tokens");

	for (size_t i = 0; i < count; i++)
		check_token(config, i, tree_item(list, i), problems);
	if (authorization->mode == AUTHORIZATION_TOKEN && count == 0 && list == auth)
		problem_add_at(problems, auth,
			       "mode token needs at least one entry in tokens, like "
			       "[{name: NAME, sha256: HASH}]");
	if (authorization->takes_api_keys && count == 0)
		problem_add_at(
			problems, tree_below(auth, "x_api_key"),
			"X-API-Key is for static tokens: it needs at least one entry in tokens");
	if (!asks_for_tokens(config) && count > 0)
		problem_add_at(problems, list,
			       "tokens are checked only with 'mode: token' or 'mode: oauth'");
}

static void check_algorithms(const struct slices *names, const struct tree *at,
			     struct config_problems *problems)
{
	for (size_t i = 0; i < names->count; i++)
		if (algorithm_find(names->items[i]) == NULL)
			problem_add_at(
				problems, tree_item(at, i),
				"'%.20s' is not a supported signature algorithm; use RS256, PS256, "
				"ES256, EdDSA, or RS, PS, ES with 384 or 512",
				names->items[i].p);
}

/* ---- denied tokens ---- */

/* An entry for an issuer or token that does not exist would protect from nothing. */
static void check_denial(const struct authorization_conf *authorization,
			 const struct denial_marks *marks, const struct tree *at,
			 struct config_problems *problems)
{
	const struct verifier_conf *issuers = &authorization->issuers;
	const struct static_tokens *tokens = &authorization->tokens;
	bool is_static = slice_is_equal(marks->issuer, SLICE_LIT(PRINCIPAL_STATIC_ISSUER));
	bool has_issuer = is_static || marks->issuer.n == 0;
	struct slice sub = marks->names[DENIAL_BY_SUB];
	bool has_token = false;
	int names = 0;

	for (size_t i = 0; i < DENIAL_BY_COUNT; i++)
		names += marks->names[i].n > 0;
	for (size_t i = 0; i < issuers->count && !has_issuer; i++)
		has_issuer = issuers->items[i].issuer != NULL &&
			     slice_is_equal(slice_str(issuers->items[i].issuer), marks->issuer);
	for (size_t i = 0; i < tokens->count && sub.n > 0 && !has_token; i++)
		has_token = slice_is_equal(tokens->items[i].name, sub);
	if (marks->issuer.n == 0 && tree_find(at, "issuer") == NULL)
		problem_add_at(problems, at, "the key 'issuer' is missing");
	if (names != 1)
		problem_add_at(problems, at, "must have one of sub, client_id, jti and sid");
	if (!has_issuer)
		problem_add_at(problems, tree_below(at, "issuer"),
			       "no entry in auth.issuers is the same, byte for byte");
	if (is_static && names == 1 && !has_token)
		problem_add_at(
			problems, at,
			"a static token is denied by sub, which must be its name in auth.tokens");
}

/* AUTH-SCP-12 */
static void check_needs(enum permission_kind kind, const struct slice_map *map,
			const struct tree *at, struct config_problems *problems)
{
	static const char *const what[] = { "tool", "prompt", "resource", "template" };

	for (size_t i = 0; i < map->count; i++) {
		const struct named_slices *named = &map->items[i];
		const struct tree *named_at = tree_below(at, named->name.p);
		struct buf folded = { 0 };
		const char *why = permission_fold(kind, named->name, &folded);

		if (why != NULL)
			problem_add_at(problems, named_at, "the name of the %s %s", what[kind],
				       why);
		check_scopes(&named->values, named_at, problems);
		buf_fini(&folded);
	}
}

static void check_names(const struct server_conf *conf, const struct tree *at,
			struct config_problems *problems)
{
	static const char *const sections[] = {
		[PERMISSION_TOOL] = "tools",
		[PERMISSION_PROMPT] = "prompts",
		[PERMISSION_RESOURCE] = "resources",
		[PERMISSION_TEMPLATE] = "templates",
	};

	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++) {
		const struct permission_rules *rules = &conf->permissions.kinds[kind];
		const struct tree *section = tree_below(at, sections[kind]);

		rules_check_patterns(kind, &rules->allow, tree_below(section, "allow"), problems);
		rules_check_patterns(kind, &rules->deny, tree_below(section, "deny"), problems);
		check_needs(kind, &conf->needs.by_name[kind], tree_below(section, "scopes"),
			    problems);
	}
}

static void check_server(const struct config *config, const struct config_server *server,
			 const struct tree *root, struct config_problems *problems)
{
	const struct protected_resource *place = &server->endpoint.place;
	const struct tree *at = tree_below(tree_below(root, "servers"), server->conf.name);

	check_algorithms(&place->algorithms, tree_below(at, "algorithms"), problems);
	if (config->frontend.authorization.mode != AUTHORIZATION_OAUTH &&
	    place->clients.count + place->algorithms.count > 0)
		problem_add_at(
			problems, at,
			"clients and algorithms are for tokens from issuers: they need 'mode: "
			"oauth' in auth");
	check_scopes(&place->scopes, tree_below(at, "scopes"), problems);
	check_names(&server->conf, at, problems);
	if (!asks_for_tokens(config) && (place->scopes.count > 0 || needs_any(&server->conf.needs)))
		problem_add_at(problems, at,
			       "scopes are required here, but no token is: set auth.mode");
}

/* ---- issuers ---- */

/* AUTH-CFG-01 */
static void check_url(const char *url, const struct tree *at, struct config_problems *problems)
{
	struct error err;

	if (url != NULL && url_check_ours(slice_str(url), &err) < 0)
		problem_add_at(problems, at, "%s", err.text);
}

/* What has TLS is not asked without. */
static void check_scheme(bool has_tls, const char *url, const struct tree *at,
			 struct config_problems *problems)
{
	if (has_tls && url != NULL && strncasecmp(url, "http:", 5) == 0)
		problem_add_at(problems, at, "must begin with https://, like the issuer");
}

static void check_introspection(const struct verifier_issuer_conf *issuer, const struct tree *at,
				struct config_problems *problems)
{
	bool signs = issuer->auth_method == CLIENT_PRIVATE_KEY_JWT;
	const char *needed = signs ? "client_key" : "client_secret";
	const char *other = signs ? "client_secret" : "client_key";
	struct error err;

	if (issuer->client_id == NULL &&
	    (issuer->introspection_endpoint != NULL || issuer->client_secret != NULL ||
	     issuer->client_key != NULL || issuer->introspect_always))
		problem_add_at(problems, at, "the key 'client_id' is missing");
	if (issuer->client_id != NULL && tree_find(at, needed) == NULL)
		problem_add_at(problems, at, "the key '%s' is missing", needed);
	if (issuer->client_id != NULL && tree_find(at, other) != NULL)
		problem_add_at(problems, tree_below(at, other),
			       "is not used with this auth_method; set '%s' instead", needed);
	if (signs && issuer->client_key != NULL &&
	    client_auth_check_key(issuer->client_key, &err) < 0)
		problem_add_at(problems, tree_below(at, "client_key"), "%s", err.text);
}

static void check_issuer(const struct verifier_conf *issuers, size_t index, const struct tree *at,
			 struct config_problems *problems)
{
	const struct verifier_issuer_conf *issuer = &issuers->items[index];
	const char *endpoint = issuer->introspection_endpoint;
	const struct tree *issuer_at = tree_below(at, "issuer");
	const struct tree *jwks_at = tree_below(at, "jwks_uri");
	const struct tree *introspection_at = tree_below(at, "introspection");
	const struct tree *endpoint_at = tree_below(introspection_at, "endpoint");
	bool has_tls = issuer->issuer != NULL && strncasecmp(issuer->issuer, "https:", 6) == 0;

	if (issuer->issuer == NULL && tree_find(at, "issuer") == NULL)
		problem_add_at(problems, at, "the key 'issuer' is missing");
	check_url(issuer->issuer, issuer_at, problems);
	check_url(issuer->jwks_uri, jwks_at, problems);
	check_scheme(has_tls, issuer->jwks_uri, jwks_at, problems);
	check_scheme(has_tls, endpoint, endpoint_at, problems);
	check_url(endpoint, endpoint_at, problems);
	check_introspection(issuer, introspection_at, problems);
	check_algorithms(&issuer->algorithms, tree_below(at, "algorithms"), problems);
	for (size_t i = 0; i < issuer->required_claims.count; i++)
		if (issuer->required_claims.items[i].values.count == 0)
			problem_add_at(
				problems, tree_below(at, "required_claims"),
				"the claim '%.60s' has an empty list of values, so no token would "
				"pass",
				issuer->required_claims.items[i].name.p);
	for (size_t i = 0; i < index && issuer->issuer != NULL; i++)
		if (issuers->items[i].issuer != NULL &&
		    strcmp(issuers->items[i].issuer, issuer->issuer) == 0)
			problem_add_at(problems, issuer_at, "this issuer is listed twice");
}

static void check_oauth(const struct config *config, const struct tree *root,
			struct config_problems *problems)
{
	const struct authorization_conf *authorization = &config->frontend.authorization;
	const struct tree *auth = tree_below(root, "auth");
	const struct tree *list = tree_below(auth, "issuers");
	const struct metadata_conf *metadata = &config->frontend.metadata;
	bool is_on = authorization->mode == AUTHORIZATION_OAUTH;

	for (size_t i = 0; i < authorization->issuers.count; i++)
		check_issuer(&authorization->issuers, i, tree_item(list, i), problems);
	check_scopes(&authorization->initial_scopes, tree_below(auth, "initial_scopes"), problems);
	if (metadata->client_id.n == 0 && metadata->redirect_uris.count > 0)
		problem_add_at(problems, tree_below(auth, "registration_facade"),
			       "the key 'client_id' is missing");
	/* AUTH-PRM-03: identifiers are never made from what a client sends. */
	if (is_on && authorization->public_url.n == 0)
		problem_add_at(
			problems, auth,
			"mode oauth needs public_url, the origin that clients use: the names by "
			"which issuers know the servers are made from it");
	else if (is_on)
		check_url(authorization->public_url.p, tree_below(root, "public_url"), problems);
	if (is_on && authorization->issuers.count == 0 && list == auth)
		problem_add_at(problems, auth,
			       "mode oauth needs at least one entry in issuers, like [{issuer: "
			       "https://id.example.com}]");
	if (!is_on && authorization->issuers.count > 0)
		problem_add_at(problems, list, "issuers are used only with 'mode: oauth'");
}

void rules_check_auth(const struct config *config, const struct tree *root,
		      struct config_problems *problems)
{
	const struct tree *auth = tree_below(root, "auth");
	const struct tree *denials = tree_below(auth, "deny");

	check_tokens(config, auth, problems);
	rules_check_roles(config, root, problems);
	for (size_t i = 0; i < config->deny.count; i++)
		check_denial(&config->frontend.authorization, &config->deny.items[i].marks,
			     tree_item(denials, i), problems);
	if (!asks_for_tokens(config) && config->deny.count > 0)
		problem_add_at(problems, denials,
			       "tokens are checked only with 'mode: token' or 'mode: oauth'");
	check_hierarchy(config, auth, problems);
	check_oauth(config, root, problems);
	/* What is left out of a decision would be allowed to everybody. */
	if (config->scopes.lacks_some)
		problem_add_at(problems, root, "there are more than %d different scopes",
			       SCOPES_MAX);
	for (size_t i = 0; i < config->server_count; i++)
		check_server(config, &config->servers[i], root, problems);
}

/* SEC-69 */
void rules_warn_of_proxy(const struct config *config, const struct tree *root,
			 struct config_problems *warnings)
{
	const struct authorization_conf *authorization = &config->frontend.authorization;
	const struct tree *told_by = tree_find(root, "public_url");

	if (told_by == NULL && config->trusted_proxies.count > 0)
		told_by = tree_find(root, "trusted_proxies");
	for (size_t i = 0; i < config->listen_count && told_by == NULL; i++)
		if (config->listen[i].proxy_protocol)
			told_by = tree_find(tree_item(tree_find(root, "listen"), i),
					    "proxy_protocol");
	if (authorization->mode == AUTHORIZATION_NONE && told_by != NULL)
		problem_add_at(
			warnings, told_by,
			"clients seem to come through a proxy, and no token is required: say who "
			"may call (auth: {mode: token} or oauth), or that everybody may (auth: "
			"{mode: anonymous})");
}
