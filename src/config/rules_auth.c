/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of who may call: tokens, scopes, and what belongs to which mode. AUTH-CFG-01. */
#include <string.h>
#include <strings.h>

#include "auth/verifier.h"
#include "config/problem.h"
#include "config/rules.h"
#include "session/principal.h"

#define HASH_DIGITS 64

static const struct tree *member(const struct tree *map, const char *key)
{
	const struct tree *below = map != NULL ? tree_find(map, key) : NULL;

	return below != NULL ? below : map;
}

static const struct tree *item(const struct tree *list, size_t index)
{
	return list != NULL && list->kind == TREE_LIST && index < list->count ? list->items[index] :
										list;
}

/* ---- scopes ---- */

/* RFC 6749 §3.3; the two that concern the client and its issuer alone are never ours. AUTH-PRM-05 */
static void check_scope(const char *scope, const struct tree *at, struct config_problems *problems)
{
	size_t length = 0;

	while (scope[length] > ' ' && scope[length] < 0x7f && scope[length] != '"' &&
	       scope[length] != '\\')
		length++;
	if (scope[0] == '\0' || scope[length] != '\0')
		problem_add_at(problems, at,
			       "the scope '%.60s' must be visible ASCII characters without \" and "
			       "backslash",
			       scope);
	else if (strcmp(scope, "openid") == 0 || strcmp(scope, "offline_access") == 0)
		problem_add_at(
			problems, at,
			"the scope '%s' says nothing about what a token may do here; take it "
			"away",
			scope);
}

static void check_scopes(const struct slices *scopes, const struct tree *at,
			 struct config_problems *problems)
{
	for (size_t i = 0; i < scopes->count; i++)
		check_scope(scopes->items[i].p, item(at, i), problems);
}

/* The list of this name; lists->count: none. */
static size_t find_list(const struct slice_map *lists, struct slice name)
{
	size_t i = 0;

	while (i < lists->count && !slice_is_equal(lists->items[i].name, name))
		i++;
	return i;
}

/* Whether `wanted` is in the list, or in one that it leads to; each is looked into once. */
static bool is_held(const struct slice_map *lists, size_t index, struct slice wanted, bool *seen)
{
	const struct slices *held = &lists->items[index].values;

	seen[index] = true;
	for (size_t i = 0; i < held->count; i++) {
		size_t next = find_list(lists, held->items[i]);

		if (slice_is_equal(held->items[i], wanted))
			return true;
		if (next < lists->count && !seen[next] && is_held(lists, next, wanted, seen))
			return true;
	}
	return false;
}

/* AUTH-SCP-04 */
static void check_hierarchy(const struct config *config, const struct tree *auth,
			    struct config_problems *problems)
{
	const struct slice_map *lists = &config->auth.scope_hierarchy;
	const struct tree *at = member(auth, "scope_hierarchy");

	if (lists->count > CONFIG_SCOPES_MAX)
		return; /* it is said that there are too many */
	for (size_t i = 0; i < lists->count; i++) {
		const struct named_slices *list = &lists->items[i];
		const struct tree *list_at = member(at, list->name.p);
		bool seen[CONFIG_SCOPES_MAX] = { false };

		check_scope(list->name.p, list_at, problems);
		check_scopes(&list->values, list_at, problems);
		if (is_held(lists, i, list->name, seen))
			problem_add_at(problems, list_at, "the scope '%.60s' would hold itself",
				       list->name.p);
	}
}

/* Those that are named, each once. */
struct scope_names {
	const char *names[CONFIG_SCOPES_MAX];
	size_t count; /* one more than there is room for: too many */
};

static void count_name(struct scope_names *all, const char *name)
{
	for (size_t i = 0; i < all->count && i < CONFIG_SCOPES_MAX; i++)
		if (strcmp(all->names[i], name) == 0)
			return;
	if (all->count < CONFIG_SCOPES_MAX)
		all->names[all->count] = name;
	if (all->count <= CONFIG_SCOPES_MAX)
		all->count++;
}

static void count_names(struct scope_names *all, const struct slices *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		count_name(all, texts->items[i].p);
}

static void count_lists(struct scope_names *all, const struct slice_map *lists)
{
	for (size_t i = 0; i < lists->count; i++)
		count_names(all, &lists->items[i].values);
}

/* What is left out of a decision would be allowed to everybody. */
static void check_scope_count(const struct config *config, const struct tree *root,
			      struct config_problems *problems)
{
	struct scope_names all = { .count = 0 };

	for (size_t i = 0; i < config->server_count; i++) {
		count_names(&all, &config->servers[i].wants.scopes);
		count_lists(&all, &config->servers[i].wants.tool_scopes);
	}
	count_names(&all, &config->auth.initial_scopes);
	for (size_t i = 0; i < config->auth.scope_hierarchy.count; i++)
		count_name(&all, config->auth.scope_hierarchy.items[i].name.p);
	count_lists(&all, &config->auth.scope_hierarchy);
	if (all.count > CONFIG_SCOPES_MAX)
		problem_add_at(problems, root, "there are more than %d different scopes",
			       CONFIG_SCOPES_MAX);
}

/* ---- static tokens ---- */

static bool asks_for_tokens(const struct config *config)
{
	return config->auth.mode == CONFIG_AUTH_TOKEN || config->auth.mode == CONFIG_AUTH_OAUTH;
}

static bool has_server(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->server_count; i++)
		if (strcmp(config->servers[i].conf.name, name) == 0)
			return true;
	return false;
}

static void check_token(const struct config *config, const struct config_token *token,
			const struct tree *at, struct config_problems *problems)
{
	if (token->name == NULL && tree_find(at, "name") == NULL)
		problem_add_at(problems, at, "the key 'name' is missing");
	if (token->sha256 == NULL && tree_find(at, "sha256") == NULL)
		problem_add_at(problems, at, "the key 'sha256' is missing");
	if (token->sha256 != NULL &&
	    (strlen(token->sha256) != HASH_DIGITS ||
	     strspn(token->sha256, "0123456789abcdefABCDEF") != HASH_DIGITS))
		problem_add_at(
			problems, member(at, "sha256"),
			"must be 64 hexadecimal digits, the output of: printf %%s TOKEN | sha256sum");
	check_scopes(&token->scopes, member(at, "scopes"), problems);
	for (size_t i = 0; i < token->servers.count; i++)
		if (!has_server(config, token->servers.items[i].p))
			problem_add_at(problems, item(member(at, "servers"), i),
				       "there is no server '%.60s'", token->servers.items[i].p);
}

/* Whose would it be? */
static void check_token_is_unique(const struct config_tokens *tokens, size_t index,
				  const struct tree *at, struct config_problems *problems)
{
	const char *hash = tokens->items[index].sha256;

	for (size_t i = 0; i < index && hash != NULL; i++)
		if (tokens->items[i].sha256 != NULL &&
		    strcasecmp(tokens->items[i].sha256, hash) == 0)
			problem_add_at(problems, member(at, "sha256"), "this token is here twice");
}

static void check_tokens(const struct config *config, const struct tree *auth,
			 struct config_problems *problems)
{
	const struct tree *list = member(auth, "tokens");
	bool takes_tokens = asks_for_tokens(config);

	for (size_t i = 0; i < config->auth.tokens.count; i++) {
		check_token(config, &config->auth.tokens.items[i], item(list, i), problems);
		check_token_is_unique(&config->auth.tokens, i, item(list, i), problems);
	}
	if (config->auth.mode == CONFIG_AUTH_TOKEN && config->auth.tokens.count == 0 &&
	    list == auth)
		problem_add_at(problems, auth,
			       "mode token needs at least one entry in tokens, like "
			       "[{name: NAME, sha256: HASH}]");
	if (config->auth.x_api_key && config->auth.tokens.count == 0)
		problem_add_at(problems, member(auth, "x_api_key"),
			       "X-API-Key is for entries of tokens, and there are none");
	if (!takes_tokens && config->auth.tokens.count > 0)
		problem_add_at(problems, list,
			       "tokens are asked for only with 'mode: token' or 'mode: oauth'");
}

static void check_algorithms(const struct slices *names, const struct tree *at,
			     struct config_problems *problems)
{
	for (size_t i = 0; i < names->count; i++)
		if (!verifier_knows_algorithm(names->items[i]))
			problem_add_at(
				problems, item(at, i),
				"'%.20s' is no signature that can be accepted; there are RS256, "
				"PS256, ES256, EdDSA, and RS, PS, ES with 384 and 512",
				names->items[i].p);
}

/* ---- denied tokens ---- */

static bool has_issuer(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->auth.issuers.count; i++)
		if (config->auth.issuers.items[i].issuer != NULL &&
		    strcmp(config->auth.issuers.items[i].issuer, name) == 0)
			return true;
	return false;
}

static bool has_token(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->auth.tokens.count; i++)
		if (config->auth.tokens.items[i].name != NULL &&
		    strcmp(config->auth.tokens.items[i].name, name) == 0)
			return true;
	return false;
}

/* What names nothing that there is would look like safety and be none. */
static void check_denial(const struct config *config, const struct config_denial *denial,
			 const struct tree *at, struct config_problems *problems)
{
	int names = (denial->sub != NULL) + (denial->client_id != NULL) + (denial->jti != NULL) +
		    (denial->sid != NULL);
	bool is_static =
		denial->issuer != NULL && strcmp(denial->issuer, PRINCIPAL_STATIC_ISSUER) == 0;

	if (denial->issuer == NULL && tree_find(at, "issuer") == NULL)
		problem_add_at(problems, at, "the key 'issuer' is missing");
	if (names != 1)
		problem_add_at(problems, at, "must have one of sub, client_id, jti and sid");
	if (denial->issuer != NULL && !is_static && !has_issuer(config, denial->issuer))
		problem_add_at(problems, member(at, "issuer"),
			       "there is no such entry in auth.issuers, byte for byte");
	if (is_static && names == 1 && (denial->sub == NULL || !has_token(config, denial->sub)))
		problem_add_at(problems, at,
			       "a static token is denied by sub, which is its name in auth.tokens");
}

static void check_deny_list(const struct config *config, const struct tree *auth,
			    struct config_problems *problems)
{
	const struct tree *list = member(auth, "deny");

	for (size_t i = 0; i < config->auth.deny.count; i++)
		check_denial(config, &config->auth.deny.items[i], item(list, i), problems);
	if (!asks_for_tokens(config) && config->auth.deny.count > 0)
		problem_add_at(problems, list,
			       "tokens are asked for only with 'mode: token' or 'mode: oauth'");
}

static void check_server(const struct config *config, const struct config_server *server,
			 const struct tree *root, struct config_problems *problems)
{
	const struct tree *at = member(member(root, "servers"), server->conf.name);
	const struct tree *tools = member(member(at, "tools"), "scopes");

	check_algorithms(&server->wants.algorithms, member(at, "algorithms"), problems);
	if (config->auth.mode != CONFIG_AUTH_OAUTH &&
	    server->wants.clients.count + server->wants.algorithms.count > 0)
		problem_add_at(
			problems, at,
			"clients and algorithms are of tokens of issuers: they need 'mode: oauth' "
			"in auth");
	check_scopes(&server->wants.scopes, member(at, "scopes"), problems);
	for (size_t i = 0; i < server->wants.tool_scopes.count; i++)
		check_scopes(&server->wants.tool_scopes.items[i].values,
			     member(tools, server->wants.tool_scopes.items[i].name.p), problems);
	if (!asks_for_tokens(config) &&
	    server->wants.scopes.count + server->wants.tool_scopes.count > 0)
		problem_add_at(problems, at,
			       "scopes are needed here, but nobody is asked for a token: set "
			       "auth.mode");
}

/* ---- issuers ---- */

/* AUTH-CFG-01 */
static void check_url(const char *url, const struct tree *at, struct config_problems *problems)
{
	struct error err;

	if (url != NULL && verifier_check_url(slice_str(url), &err) < 0)
		problem_add_at(problems, at, "%s", err.text);
}

/* What has TLS is not asked without. */
static void check_scheme(const struct config_issuer *issuer, const char *url, const struct tree *at,
			 struct config_problems *problems)
{
	if (url != NULL && issuer->issuer != NULL &&
	    strncasecmp(issuer->issuer, "https:", 6) == 0 && strncasecmp(url, "http:", 5) == 0)
		problem_add_at(problems, at, "must begin with https://, like the issuer");
}

static void check_introspection(const struct config_issuer *issuer, const struct tree *at,
				struct config_problems *problems)
{
	bool is_wanted = issuer->introspection_endpoint != NULL ||
			 issuer->introspection_client_secret != NULL ||
			 issuer->introspection_always;

	check_url(issuer->introspection_endpoint, member(at, "endpoint"), problems);
	if (is_wanted && issuer->introspection_client_id == NULL)
		problem_add_at(problems, at, "the key 'client_id' is missing");
	if (issuer->introspection_client_id != NULL &&
	    issuer->introspection_client_secret == NULL && tree_find(at, "client_secret") == NULL)
		problem_add_at(problems, at, "the key 'client_secret' is missing");
}

static void check_issuer(const struct config *config, size_t index, const struct tree *at,
			 struct config_problems *problems)
{
	const struct config_issuers *issuers = &config->auth.issuers;
	const struct config_issuer *issuer = &issuers->items[index];

	if (issuer->issuer == NULL && tree_find(at, "issuer") == NULL)
		problem_add_at(problems, at, "the key 'issuer' is missing");
	check_url(issuer->issuer, member(at, "issuer"), problems);
	check_url(issuer->jwks_uri, member(at, "jwks_uri"), problems);
	check_scheme(issuer, issuer->jwks_uri, member(at, "jwks_uri"), problems);
	check_scheme(issuer, issuer->introspection_endpoint,
		     member(member(at, "introspection"), "endpoint"), problems);
	check_introspection(issuer, member(at, "introspection"), problems);
	check_algorithms(&issuer->algorithms, member(at, "algorithms"), problems);
	for (size_t i = 0; i < issuer->required_claims.count; i++)
		if (issuer->required_claims.items[i].values.count == 0)
			problem_add_at(problems, member(at, "required_claims"),
				       "the claim '%.60s' has no value that it may have",
				       issuer->required_claims.items[i].name.p);
	for (size_t i = 0; i < index && issuer->issuer != NULL; i++)
		if (issuers->items[i].issuer != NULL &&
		    strcmp(issuers->items[i].issuer, issuer->issuer) == 0)
			problem_add_at(problems, member(at, "issuer"), "this issuer is here twice");
}

static void check_registration(const struct config *config, const struct tree *auth,
			       struct config_problems *problems)
{
	const struct tree *at = member(auth, "registration_facade");

	if (config->auth.registration_client_id == NULL &&
	    config->auth.registration_redirect_uris.count > 0)
		problem_add_at(problems, at, "the key 'client_id' is missing");
}

/* AUTH-PRM-03: identifiers are never made from what a client sends. */
static void check_public_url(const struct config *config, const struct tree *root,
			     struct config_problems *problems)
{
	if (config->public_url == NULL)
		problem_add_at(
			problems, member(root, "auth"),
			"mode oauth needs public_url, the origin that clients use: the names "
			"of the servers for issuers are made of it");
	else
		check_url(config->public_url, member(root, "public_url"), problems);
}

static void check_oauth(const struct config *config, const struct tree *root,
			struct config_problems *problems)
{
	const struct tree *auth = member(root, "auth");
	const struct tree *list = member(auth, "issuers");
	bool is_on = config->auth.mode == CONFIG_AUTH_OAUTH;

	for (size_t i = 0; i < config->auth.issuers.count; i++)
		check_issuer(config, i, item(list, i), problems);
	check_scopes(&config->auth.initial_scopes, member(auth, "initial_scopes"), problems);
	check_registration(config, auth, problems);
	if (is_on)
		check_public_url(config, root, problems);
	if (is_on && config->auth.issuers.count == 0 && list == auth)
		problem_add_at(problems, auth,
			       "mode oauth needs at least one entry in issuers, like [{issuer: "
			       "https://id.example.com}]");
	if (!is_on && config->auth.issuers.count > 0)
		problem_add_at(problems, list, "issuers are asked only with 'mode: oauth'");
}

void rules_check_auth(const struct config *config, const struct tree *root,
		      struct config_problems *problems)
{
	const struct tree *auth = member(root, "auth");

	check_tokens(config, auth, problems);
	check_deny_list(config, auth, problems);
	check_hierarchy(config, auth, problems);
	check_oauth(config, root, problems);
	check_scope_count(config, root, problems);
	for (size_t i = 0; i < config->server_count; i++)
		check_server(config, &config->servers[i], root, problems);
}
