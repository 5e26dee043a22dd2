/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of who may call: tokens, scopes, and what belongs to which mode. AUTH-CFG-01. */
#include <string.h>

#include "config/problem.h"
#include "config/rules.h"

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

static void check_scopes(const struct config_texts *scopes, const struct tree *at,
			 struct config_problems *problems)
{
	for (size_t i = 0; i < scopes->count; i++)
		check_scope(scopes->items[i], item(at, i), problems);
}

/* The list of this name; lists->count: none. */
static size_t find_list(const struct config_lists *lists, const char *name)
{
	size_t i = 0;

	while (i < lists->count && strcmp(lists->items[i].name, name) != 0)
		i++;
	return i;
}

/* Whether `wanted` is in the list, or in one that it leads to; each is looked into once. */
static bool is_held(const struct config_lists *lists, size_t index, const char *wanted, bool *seen)
{
	const struct config_texts *held = &lists->items[index].texts;

	seen[index] = true;
	for (size_t i = 0; i < held->count; i++) {
		size_t next = find_list(lists, held->items[i]);

		if (strcmp(held->items[i], wanted) == 0)
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
	const struct config_lists *lists = &config->auth.scope_hierarchy;
	const struct tree *at = member(auth, "scope_hierarchy");

	if (lists->count > CONFIG_SCOPES_MAX)
		return; /* it is said that there are too many */
	for (size_t i = 0; i < lists->count; i++) {
		const struct config_list *list = &lists->items[i];
		const struct tree *list_at = member(at, list->name);
		bool seen[CONFIG_SCOPES_MAX] = { false };

		check_scope(list->name, list_at, problems);
		check_scopes(&list->texts, list_at, problems);
		if (is_held(lists, i, list->name, seen))
			problem_add_at(problems, list_at, "the scope '%.60s' would hold itself",
				       list->name);
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

static void count_names(struct scope_names *all, const struct config_texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		count_name(all, texts->items[i]);
}

static void count_lists(struct scope_names *all, const struct config_lists *lists)
{
	for (size_t i = 0; i < lists->count; i++)
		count_names(all, &lists->items[i].texts);
}

/* What is left out of a decision would be allowed to everybody. */
static void check_scope_count(const struct config *config, const struct tree *root,
			      struct config_problems *problems)
{
	struct scope_names all = { .count = 0 };

	for (size_t i = 0; i < config->server_count; i++) {
		count_names(&all, &config->servers[i].scopes);
		count_lists(&all, &config->servers[i].tool_scopes);
	}
	for (size_t i = 0; i < config->auth.scope_hierarchy.count; i++)
		count_name(&all, config->auth.scope_hierarchy.items[i].name);
	count_lists(&all, &config->auth.scope_hierarchy);
	if (all.count > CONFIG_SCOPES_MAX)
		problem_add_at(problems, root, "there are more than %d different scopes",
			       CONFIG_SCOPES_MAX);
}

/* ---- static tokens ---- */

static bool has_server(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->server_count; i++)
		if (strcmp(config->servers[i].name, name) == 0)
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
		if (!has_server(config, token->servers.items[i]))
			problem_add_at(problems, item(member(at, "servers"), i),
				       "there is no server '%.60s'", token->servers.items[i]);
}

static void check_tokens(const struct config *config, const struct tree *auth,
			 struct config_problems *problems)
{
	const struct tree *list = member(auth, "tokens");
	bool takes_tokens = config->auth.mode == CONFIG_AUTH_TOKEN;

	for (size_t i = 0; i < config->auth.tokens.count; i++)
		check_token(config, &config->auth.tokens.items[i], item(list, i), problems);
	if (takes_tokens && config->auth.tokens.count == 0 && list == auth)
		problem_add_at(problems, auth,
			       "mode token needs at least one entry in tokens, like "
			       "[{name: NAME, sha256: HASH}]");
	if (!takes_tokens && config->auth.tokens.count > 0)
		problem_add_at(problems, list, "tokens are asked for only with 'mode: token'");
}

static void check_server(const struct config *config, const struct config_server *server,
			 const struct tree *root, struct config_problems *problems)
{
	const struct tree *at = member(member(root, "servers"), server->name);
	const struct tree *tools = member(member(at, "tools"), "scopes");

	check_scopes(&server->scopes, member(at, "scopes"), problems);
	for (size_t i = 0; i < server->tool_scopes.count; i++)
		check_scopes(&server->tool_scopes.items[i].texts,
			     member(tools, server->tool_scopes.items[i].name), problems);
	if (config->auth.mode != CONFIG_AUTH_TOKEN &&
	    server->scopes.count + server->tool_scopes.count > 0)
		problem_add_at(problems, at,
			       "scopes are needed here, but nobody is asked for a token: set "
			       "auth.mode");
}

void rules_check_auth(const struct config *config, const struct tree *root,
		      struct config_problems *problems)
{
	const struct tree *auth = member(root, "auth");

	check_tokens(config, auth, problems);
	check_hierarchy(config, auth, problems);
	check_scope_count(config, root, problems);
	for (size_t i = 0; i < config->server_count; i++)
		check_server(config, &config->servers[i], root, problems);
}
