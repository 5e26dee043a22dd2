/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of roles: that they are of servers and tokens that there are. And what is said in vain: patterns that nothing can
 * fit because others take it away, roles that nobody can have. SEC-56.
 */
#include <string.h>

#include "config/problem.h"
#include "config/rules.h"

#define ROLE_NAME_MAX 64

/* Where the patterns of a kind stand: those of tools of a role in the role itself. */
static const char *const sections[] = {
	[PERMISSION_TOOL] = "tools",
	[PERMISSION_PROMPT] = "prompts",
	[PERMISSION_RESOURCE] = "resources",
	[PERMISSION_TEMPLATE] = "templates",
};

static const struct tree *section_of_role(const struct tree *at, enum permission_kind kind)
{
	return kind == PERMISSION_TOOL ? at : tree_below(at, sections[kind]);
}

/* ---- what must not be ---- */

void rules_check_patterns(enum permission_kind kind, const struct slices *patterns,
			  const struct tree *at, struct config_problems *problems)
{
	for (size_t i = 0; i < patterns->count; i++) {
		struct buf folded = { 0 };
		const char *why = permission_fold(kind, patterns->items[i], &folded);

		if (why != NULL)
			problem_add_at(problems, tree_item(at, i), "the name %s", why);
		buf_fini(&folded);
	}
}

static bool has_server(const struct config *config, struct slice name)
{
	for (size_t i = 0; i < config->server_count; i++)
		if (slice_is_equal(slice_str(config->servers[i].conf.name), name))
			return true;
	return slice_is_equal(name, SLICE_LIT("*"));
}

/* Patterns by server. */
static void check_map(const struct config *config, enum permission_kind kind,
		      const struct slice_map *map, const struct tree *at,
		      struct config_problems *problems)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct named_slices *named = &map->items[i];
		const struct tree *named_at = tree_below(at, named->name.p);

		if (!has_server(config, named->name))
			problem_add_at(problems, named_at, "there is no server '%.60s'",
				       named->name.p);
		rules_check_patterns(kind, &named->values, named_at, problems);
	}
}

static bool is_name(struct slice name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_";

	return name.n > 0 && name.n <= ROLE_NAME_MAX && strspn(name.p, allowed) == name.n;
}

static void check_role(const struct config *config, const struct role *role, const struct tree *at,
		       struct config_problems *problems)
{
	if (!is_name(role->name))
		problem_add_at_key(
			problems, at,
			"the name of a role may have only letters, digits, '-' and '_', at most %d "
			"of them",
			ROLE_NAME_MAX);
	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++) {
		const struct tree *section = section_of_role(at, kind);

		check_map(config, kind, &role->kinds[kind].allow, tree_below(section, "allow"),
			  problems);
		check_map(config, kind, &role->kinds[kind].deny, tree_below(section, "deny"),
			  problems);
	}
}

static void check_token(const struct config *config, const struct static_token *token,
			const struct tree *at, struct config_problems *problems)
{
	check_map(config, PERMISSION_TOOL, &token->tools, tree_below(at, "tools"), problems);
	for (size_t i = 0; i < token->roles.count; i++)
		if (roles_find(&config->roles, token->roles.items[i]) == ROLES_MAX)
			problem_add_at(problems, tree_item(tree_below(at, "roles"), i),
				       "there is no role '%.60s'", token->roles.items[i].p);
	if (token->tools.count > 0 && token->roles.count > 0)
		problem_add_at(
			problems, at,
			"has both tools and roles; only one of them may say what it may call");
}

void rules_check_roles(const struct config *config, const struct tree *root,
		       struct config_problems *problems)
{
	const struct authorization_conf *authorization = &config->frontend.authorization;
	const struct tree *roles = tree_below(root, "roles");
	const struct tree *tokens = tree_below(tree_below(root, "auth"), "tokens");
	size_t count = config->roles.named;

	for (size_t i = 0; i < config->roles.named; i++)
		check_role(config, &config->roles.items[i],
			   tree_below(roles, config->roles.items[i].name.p), problems);
	for (size_t i = 0; i < authorization->tokens.count; i++) {
		check_token(config, &authorization->tokens.items[i], tree_item(tokens, i),
			    problems);
		count += authorization->tokens.items[i].tools.count > 0;
	}
	if (config->roles.named > 0 && authorization->mode < AUTHORIZATION_TOKEN)
		problem_add_at(
			problems, roles,
			"roles are given to tokens, but no token is required: set 'mode: token' or "
			"'mode: oauth' in auth");
	if (count > ROLES_MAX)
		problem_add_at(problems, roles,
			       "there are more than %d roles; a token with tools counts as one",
			       ROLES_MAX);
}

/* ---- what is in vain ---- */

/* A * in the pattern is taken for a character that only a * fits: then whatever it stands for fits as well. */
static bool is_covered(enum permission_kind kind, struct slice folded, const struct slices *deny)
{
	for (size_t i = 0; folded.n > 0 && i < deny->count; i++)
		if (permission_fits_deny(kind, folded, deny->items[i]))
			return true;
	return false;
}

static void warn_of_covered(enum permission_kind kind, const struct permission_rules *rules,
			    const struct slices *deny, const char *whose, const struct tree *at,
			    struct config_problems *warnings)
{
	for (size_t i = 0; i < rules->allow_folded.count; i++)
		if (is_covered(kind, rules->allow_folded.items[i], deny))
			problem_add_at(warnings, tree_item(at, i),
				       "has no effect: %s denies all that it allows", whose);
}

static void warn_of_repeated(const struct slices *folded, const struct tree *at,
			     struct config_problems *warnings)
{
	for (size_t i = 0; i < folded->count; i++)
		for (size_t j = 0; j < i; j++)
			if (folded->items[i].n > 0 &&
			    slice_is_equal(folded->items[i], folded->items[j]))
				problem_add_at(warnings, tree_item(at, i), "is listed twice");
}

static const struct tree *list_of(const struct tree *section, const char *list, struct slice server)
{
	return tree_below(tree_below(section, list), server.p);
}

/* What one role says of one server, against what the same role, and the server, deny. */
static void warn_of_given(const struct config_server *server, const struct permission_role *given,
			  const struct tree *at, struct config_problems *warnings)
{
	const struct permissions *permissions = &server->conf.permissions;

	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++) {
		const struct tree *section = section_of_role(at, kind);
		const struct tree *allow = list_of(section, "allow", given->server);
		const struct permission_rules *rules = &given->kinds[kind];

		warn_of_repeated(&rules->allow_folded, allow, warnings);
		warn_of_repeated(&rules->deny_folded, list_of(section, "deny", given->server),
				 warnings);
		warn_of_covered(kind, rules, &rules->deny_folded, "deny", allow, warnings);
		if (!slice_is_equal(given->server, SLICE_LIT("*")))
			warn_of_covered(kind, rules, &permissions->kinds[kind].deny_folded,
					"the server", allow, warnings);
		for (size_t i = 0; i < permissions->role_count; i++) {
			const struct permission_role *other = &permissions->roles[i];

			if (other != given && other->number == given->number &&
			    !slice_is_equal(given->server, SLICE_LIT("*")))
				warn_of_covered(kind, rules, &other->kinds[kind].deny_folded,
						"deny of all servers", allow, warnings);
		}
	}
}

static void warn_of_server(const struct config *config, const struct config_server *server,
			   const struct tree *root, struct config_problems *warnings)
{
	const struct permissions *permissions = &server->conf.permissions;
	const struct tree *at = tree_below(tree_below(root, "servers"), server->conf.name);

	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++) {
		const struct permission_rules *rules = &permissions->kinds[kind];
		const struct tree *section = tree_below(at, sections[kind]);
		const struct tree *allow = tree_below(section, "allow");

		warn_of_repeated(&rules->allow_folded, allow, warnings);
		warn_of_repeated(&rules->deny_folded, tree_below(section, "deny"), warnings);
		warn_of_covered(kind, rules, &rules->deny_folded, "deny", allow, warnings);
	}
	for (size_t i = 0; i < permissions->role_count; i++) {
		const struct role *role = &config->roles.items[permissions->roles[i].number];

		if (!role->is_of_token)
			warn_of_given(server, &permissions->roles[i],
				      tree_below(tree_below(root, "roles"), role->name.p),
				      warnings);
	}
}

static bool is_named_by_token(const struct static_tokens *tokens, struct slice role)
{
	for (size_t i = 0; i < tokens->count; i++)
		if (slices_has(tokens->items[i].roles, role))
			return true;
	return false;
}

/* Why no token of an issuer has it; NULL: one may have it. */
static const char *find_hindrance(const struct config *config, const struct role *role)
{
	if (role->when.count == 0)
		return "there is no 'when'";
	if (config->frontend.authorization.mode != AUTHORIZATION_OAUTH)
		return "'when' is about tokens of issuers, which need 'mode: oauth'";
	for (size_t i = 0; i < role->when.count; i++)
		if (role->when.items[i].values.count == 0)
			return "a claim in 'when' has an empty list of values";
	return NULL;
}

void rules_warn_of_roles(const struct config *config, const struct tree *root,
			 struct config_problems *warnings)
{
	const struct static_tokens *tokens = &config->frontend.authorization.tokens;
	const struct tree *list = tree_below(tree_below(root, "auth"), "tokens");

	for (size_t i = 0; i < config->server_count; i++)
		warn_of_server(config, &config->servers[i], root, warnings);
	for (size_t i = 0; i < config->roles.named; i++) {
		const struct role *role = &config->roles.items[i];
		const char *why = find_hindrance(config, role);

		if (why != NULL && !is_named_by_token(tokens, role->name))
			problem_add_at(
				warnings, tree_below(tree_below(root, "roles"), role->name.p),
				"nobody can have this role: %s, and no static token names it", why);
	}
	for (size_t i = 0; config->roles.named > 0 && i < tokens->count; i++)
		if (tokens->items[i].roles.count + tokens->items[i].tools.count == 0)
			problem_add_at(warnings, tree_item(list, i),
				       "has neither roles nor tools: it may use nothing");
}
