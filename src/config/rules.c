/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the table of options cannot say: names, addresses and whatever depends on more than one other
 * option; at the end, what is said in vain, and time that is over. One function per rule. threats.md DEF-01, DEF-02, DEF-04, SEC-54 to SEC-56; mcpgated(1);
 * AUTH-CFG-01.
 */
#include "config/load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "auth/client_auth.h"
#include "auth/jwt.h"
#include "auth/signing_key.h"
#include "auth/url.h"
#include "auth/verifier.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "cluster/store_url.h"
#include "config/forms.h"
#include "config/table.h"
#include "config/tree.h"
#include "config/variables.h"
#include "session/principal.h"

#define SERVER_NAME_MAX 64
#define ROLE_NAME_MAX 64

static const struct tree *server_place(const struct tree *root, const struct config_server *server)
{
	return tree_below(tree_below(root, config_section_of(server)), server->conf.name);
}

/* ---- listeners ---- */

/* A listener that other machines reach says twice that this is meant. What to write is what there is to change. */
static void check_exposure(const struct config *config, const struct config_listen *listen,
			   const struct tree *at, struct config_problems *problems)
{
	bool is_plain = !listen->plaintext && listen->tls_count == 0;
	bool is_open = config->frontend.authorization.mode == AUTHORIZATION_NONE;

	if (is_plain && at->line > 0)
		problem_add_at(
			problems, at,
			"other machines may reach %s, and it has no TLS. In the configuration "
			"file, add to this entry of listen the line 'tls: {certificate: FILE, "
			"key: FILE}'; or, if a proxy in front has TLS, the line 'plaintext: true'",
			listen->address);
	else if (is_plain)
		problem_add_at(problems, at,
			       "other machines may reach %s, and it has no TLS; add --tls "
			       "CERTIFICATE,KEY%s; or, if a proxy in front has TLS, --plaintext",
			       listen->address,
			       config->is_from_file ? "" : ", or --tls self, which makes them");
	if (is_open && config->is_from_file)
		problem_add_at(
			problems, at,
			"other machines may reach %s, and no token is required. In the "
			"configuration file, add at the top level the line 'auth: {mode: token, "
			"tokens: [{name: NAME, sha256: HASH}]}'; or, if everybody who can connect "
			"may use the servers, the line 'auth: {mode: anonymous}'",
			listen->address);
	else if (is_open)
		problem_add_at(
			problems, at,
			"other machines may reach %s, and no token is required; add --token-file "
			"FILE (mcpgatectl token new makes a token)",
			listen->address);
}

/* What belongs to the whole address. */
static void check_tls(const struct config_listen *listen, const struct tree *item,
		      struct config_problems *problems)
{
	for (size_t i = 1; i < listen->tls_count; i++) {
		const struct tree *at = tree_item(tree_find(item, "tls"), i);

		if (listen->tls[i].client_ca != NULL || tree_find(at, "min_version") != NULL)
			problem_add_at(
				problems, at,
				"client_ca and min_version apply to the whole address: set them in "
				"the first entry of tls");
	}
}

static void check_listen(const struct config *config, const struct tree *root,
			 struct config_problems *problems)
{
	for (size_t i = 0; i < config->listen_count; i++) {
		const struct config_listen *listen = &config->listen[i];
		const struct tree *item = tree_item(tree_below(root, "listen"), i);
		const struct tree *at = tree_below(item, "address");
		const char *port = strrchr(listen->address, ':');
		bool has_several = strncmp(listen->address, "systemd:", 8) == 0 ||
				   (port != NULL && strcmp(port, ":0") == 0);
		struct address address;

		if (address_parse(listen->address, &address, NULL) == 0 && !address.is_local)
			check_exposure(config, listen, at, problems);
		check_tls(listen, item, problems);
		/* A port that the kernel chooses is another one each time, and so is a socket of systemd. */
		for (size_t j = 0; j < i && !has_several; j++)
			if (strcmp(config->listen[j].address, listen->address) == 0)
				problem_add_at(problems, at, "the address %s is listed twice",
					       listen->address);
	}
}

/* ---- traces ---- */

/* As the program that fetches takes it; NULL: it is good. SEC-70 */
static const char *judge_endpoint(const struct collector_conf *conf)
{
	struct url url;

	if (url_parse(slice_str(conf->endpoint), &url) < 0 || !url_is_http(&url))
		return "must be an https or http URL without a user name, like "
		       "https://otel.example.com/v1/traces";
	if (url.tail.n > 0 && memchr(url.tail.p, '#', url.tail.n) != NULL)
		return "must have no fragment";
	if (url.tail.n == 0 || slice_is_equal(url.tail, SLICE_LIT("/")))
		return "must include the path, which usually is /v1/traces";
	if (url_is_exposed(&url) && !conf->plaintext)
		return "goes to another machine without TLS: use https, or set 'plaintext: true'";
	return NULL;
}

static void check_traces(const struct collector_conf *collector, const struct tree *root,
			 struct config_problems *problems)
{
	const struct tree *otlp = tree_find_way(root, "traces.otlp");
	const char *problem;

	if (otlp == NULL || tree_is_null(otlp))
		return;
	problem = collector->endpoint != NULL ? judge_endpoint(collector) : NULL;
	if (problem != NULL)
		problem_add_at(problems, tree_below(otlp, "endpoint"), "%s", problem);
}

/* ---- cluster ---- */

static void check_cluster(const struct config *config, const struct tree *root,
			  struct config_problems *problems)
{
	const struct cluster_conf *cluster = &config->cluster;
	const struct tree *at = tree_find_way(root, "cluster.store");
	struct store_url url;

	if (cluster->store == NULL || store_url_parse(cluster->store, &url, NULL) < 0)
		return;
	if (!config->keeps_sessions)
		problem_add_at(problems, at,
			       "needs 'persist: true' in sessions: what it has is what is kept");
	if (store_url_is_exposed(&url) && !cluster->plaintext)
		problem_add_at(problems, at,
			       "goes to another machine without TLS: use valkeys, or set "
			       "'plaintext: true'");
}

/* ---- tokens ---- */

/* AUTH-SCP-04 */
static void check_hierarchy(const struct config *config, const struct tree *auth,
			    struct config_problems *problems)
{
	const struct slice_map *lists = &config->frontend.authorization.scope_hierarchy;
	const struct tree *at = tree_below(auth, "scope_hierarchy");

	for (size_t i = 0; i < lists->count; i++) {
		const struct named_slices *list = &lists->items[i];
		const struct tree *list_at = tree_below(at, list->name.p);

		if (scope_table_implies(&config->scopes, list->name, list->name))
			problem_add_at(problems, list_at, "the scope '%.60s' would include itself",
				       list->name.p);
	}
}

/* With the server that may have been meant. */
static void add_no_server(const struct config *config, const char *name, const struct tree *at,
			  struct config_problems *problems)
{
	const char *nearest = NULL;
	size_t distance = SIZE_MAX;

	/* Of names of one or two letters, any is near. */
	for (size_t i = 0; i < config->server_count && strlen(name) > 2; i++)
		if (text_is_nearer(slice_str(name), slice_str(config->servers[i].conf.name),
				   &distance))
			nearest = config->servers[i].conf.name;
	problem_add_at(problems, at, "there is no server '%.60s'%s%.60s%s", name,
		       nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
		       nearest != NULL ? "'?" : "");
}

/* Patterns by server; * stands for all servers. */
static void check_servers_of(const struct config *config, const struct slice_map *map,
			     const struct tree *at, struct config_problems *problems)
{
	for (size_t i = 0; i < map->count; i++) {
		struct slice name = map->items[i].name;

		size_t found = config_find_server(config, name.p);

		if (found == config->server_count && !slice_is_equal(name, SLICE_LIT("*")))
			add_no_server(config, name.p, tree_below(at, name.p), problems);
		else if (found < config->server_count && config->servers[found].is_endpoint)
			problem_add_at(problems, tree_below(at, name.p),
				       "is an endpoint: name its servers, whose rules apply there");
	}
}

static void check_token(const struct config *config, size_t index, const struct tree *at,
			struct config_problems *problems)
{
	const struct static_tokens *tokens = &config->frontend.authorization.tokens;
	const struct static_token *token = &tokens->items[index];

	for (size_t i = 0; i < token->servers.count; i++)
		if (config_find_server(config, token->servers.items[i].p) == config->server_count)
			add_no_server(config, token->servers.items[i].p,
				      tree_item(tree_below(at, "servers"), i), problems);
	check_servers_of(config, &token->tools, tree_below(at, "tools"), problems);
	for (size_t i = 0; i < token->roles.count; i++)
		if (roles_find(&config->roles, token->roles.items[i]) == ROLES_MAX)
			problem_add_at(problems, tree_item(tree_below(at, "roles"), i),
				       "there is no role '%.60s'", token->roles.items[i].p);
	/* If it stood there twice, whose would it be? */
	for (size_t i = 0; i < index && token->sha256 != NULL; i++)
		if (tokens->items[i].sha256 != NULL &&
		    strcasecmp(tokens->items[i].sha256, token->sha256) == 0)
			problem_add_at(problems, tree_below(at, "sha256"),
				       "this token is listed twice");
}

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

/* What has TLS is not asked without. */
static void check_scheme(bool has_tls, const char *url, const struct tree *at,
			 struct config_problems *problems)
{
	if (has_tls && url != NULL && strncasecmp(url, "http:", 5) == 0)
		problem_add_at(problems, at, "must begin with https://, like the issuer");
}

/* Who we are at an issuer. */
static void check_client(const struct verifier_issuer_conf *issuer, const struct tree *at,
			 struct config_problems *problems)
{
	bool signs = issuer->auth_method == CLIENT_PRIVATE_KEY_JWT;
	const char *own = signs ? issuer->client_key : issuer->client_secret;
	const char *unused = signs ? issuer->client_secret : issuer->client_key;
	const char *needed = signs ? "client_key" : "client_secret";
	const char *other = signs ? "client_secret" : "client_key";
	struct error err;

	if (issuer->client_id != NULL && own == NULL && tree_find(at, needed) == NULL)
		problem_add_at(problems, at, "the key '%s' is missing", needed);
	if (issuer->client_id != NULL && (unused != NULL || tree_find(at, other) != NULL))
		problem_add_at(problems, tree_below(at, other),
			       "is not used with this auth_method; set '%s' instead", needed);
	if (signs && issuer->client_key != NULL && signing_key_check(issuer->client_key, &err) < 0)
		problem_add_at(problems, tree_below(at, "client_key"), "%s", err.text);
}

static void check_issuer(const struct verifier_conf *issuers, size_t index, const struct tree *at,
			 struct config_problems *problems)
{
	const struct verifier_issuer_conf *issuer = &issuers->items[index];
	const struct tree *issuer_at = tree_below(at, "issuer");
	const struct tree *introspection_at = tree_below(at, "introspection");
	bool has_tls = issuer->issuer != NULL && strncasecmp(issuer->issuer, "https:", 6) == 0;

	check_scheme(has_tls, issuer->jwks_uri, tree_below(at, "jwks_uri"), problems);
	check_scheme(has_tls, issuer->introspection_endpoint,
		     tree_below(introspection_at, "endpoint"), problems);
	check_client(issuer, introspection_at, problems);
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

static void check_auth(const struct config *config, const struct tree *root,
		       struct config_problems *problems)
{
	const struct authorization_conf *authorization = &config->frontend.authorization;
	const struct tree *auth = tree_below(root, "auth");
	struct slice public_url = authorization->public_url;
	struct error err;

	for (size_t i = 0; i < authorization->tokens.count; i++)
		check_token(config, i, tree_item(tree_below(auth, "tokens"), i), problems);
	for (size_t i = 0; i < config->deny.count; i++)
		check_denial(authorization, &config->deny.items[i].marks,
			     tree_item(tree_below(auth, "deny"), i), problems);
	check_hierarchy(config, auth, problems);
	for (size_t i = 0; i < authorization->issuers.count; i++)
		check_issuer(&authorization->issuers, i, tree_item(tree_below(auth, "issuers"), i),
			     problems);
	if (authorization->mode == AUTHORIZATION_OAUTH && public_url.n > 0 &&
	    url_check_ours(public_url, &err) < 0)
		problem_add_at(problems, tree_below(root, "public_url"), "%s", err.text);
	/* What is left out of a decision would be allowed to everybody. */
	if (config->scopes.lacks_some)
		problem_add_at(problems, root, "there are more than %d different scopes",
			       SCOPES_MAX);
}

/* ---- roles ---- */

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

static void check_roles(const struct config *config, const struct tree *root,
			struct config_problems *problems)
{
	const struct static_tokens *tokens = &config->frontend.authorization.tokens;
	const struct tree *roles = tree_below(root, "roles");
	size_t count = config->roles.named;

	for (size_t i = 0; i < config->roles.named; i++) {
		const struct role *role = &config->roles.items[i];
		const struct tree *at = tree_below(roles, role->name.p);

		if (!slice_is_name(role->name, "-_") || role->name.n > ROLE_NAME_MAX)
			problem_add_at_key(
				problems, at,
				"the name of a role may have only letters, digits, '-' and '_', at "
				"most %d of them",
				ROLE_NAME_MAX);
		for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++) {
			const struct tree *section = section_of_role(at, kind);

			check_servers_of(config, &role->kinds[kind].allow,
					 tree_below(section, "allow"), problems);
			check_servers_of(config, &role->kinds[kind].deny,
					 tree_below(section, "deny"), problems);
		}
	}
	for (size_t i = 0; i < tokens->count; i++)
		count += tokens->items[i].tools.count > 0;
	if (count > ROLES_MAX)
		problem_add_at(problems, roles,
			       "there are more than %d roles; a token with tools counts as one",
			       ROLES_MAX);
}

/* ---- servers ---- */

static void check_name(const struct config_server *server, const struct tree *at,
		       struct config_problems *problems)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
	const char *name = server->conf.name;
	size_t length = strlen(name);

	bool is_good = length > 0 && length <= SERVER_NAME_MAX && strspn(name, letters) == length &&
		       name[0] != '_' && name[0] != '-';

	if (!is_good)
		problem_add_at_key(
			problems, at,
			"the server name '%.60s' must have 1 to 64 lowercase letters, digits, '-' "
			"and '_', and begin with a letter or digit",
			name);
}

struct path_taken {
	struct map_link link; /* by the hash of the path */
	struct slice path;
	const struct config_server *by;
};

static const struct config_server *find_path(const struct map *taken, struct slice path)
{
	MAP_EACH(struct path_taken, one, taken, text_hash(0, path), link)
		if (slice_is_equal(one->path, path))
			return one->by;
	return NULL;
}

/* AUTH-AUD-03, AUTH-CFG-01 */
static void check_paths_are_unique(const struct config *config, const struct tree *root,
				   struct config_problems *problems)
{
	at_end(mem_free) struct path_taken *entries =
		mem_zalloc((config->server_count * 3 + 1) * sizeof(*entries));
	struct path_taken *next = entries;
	at_end(map_fini) struct map taken = { 0 };

	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i], *other = NULL;
		const struct endpoint *own = &server->endpoint;
		struct slice paths[] = { own->path, own->sse_path, own->message_path };

		for (size_t p = 0; p < ARRAY_LEN(paths) && server->enabled && other == NULL; p++) {
			other = find_path(&taken, paths[p]);
			if (other != NULL)
				problem_add_at(
					problems, tree_below(server_place(root, server), "path"),
					"the path '%.100s' is already used by the server '%s'",
					paths[p].p, other->conf.name);
		}
		for (size_t p = 0; p < ARRAY_LEN(paths) && server->enabled; p++, next++) {
			*next = (struct path_taken){ .path = paths[p], .by = server };
			map_insert_link(&taken, text_hash(0, paths[p]), &next->link);
		}
	}
}

static void check_timeouts(const struct config_server *server, const struct tree *at,
			   struct config_problems *problems)
{
	const struct tool_timeouts *timeouts = &server->conf.tool_timeouts;

	for (size_t i = 0; i < timeouts->count; i++)
		if (timeouts->items[i].timeout_ms > server->conf.request_timeout_max_ms)
			problem_add_at(problems, problem_place(at, "tool_timeout"),
				       "the timeout of the tool '%.60s' must not be longer than "
				       "request_timeout_max",
				       timeouts->items[i].tool.p);
}

static void check_tool_limits(const struct config_server *server, const struct tree *at,
			      struct config_problems *problems)
{
	const struct tool_limits *limits = &server->conf.limits.tools;

	for (size_t i = 0; i < limits->count; i++)
		if (limits->items[i].limit.rate.calls == 0 &&
		    limits->items[i].limit.concurrency == 0)
			problem_add_at(problems, tree_item(problem_place(at, "tools.limits"), i),
				       "limits nothing: it has neither 'calls' nor 'concurrency'");
}

/* What is shown of tools and prompts has names of its own. */
static void check_shown_names(const struct config_server *server, const struct tree *at,
			      struct config_problems *problems)
{
	for (enum permission_kind kind = PERMISSION_TOOL; kind <= PERMISSION_PROMPT; kind++) {
		const struct slice_map *names = &server->conf.shown.kinds[kind].names;
		char key[32];

		snprintf(key, sizeof(key), "%s.rename", sections[kind]);
		for (size_t i = 1; i < names->count; i++)
			for (size_t j = 0; j < i; j++)
				if (slice_is_equal(names->items[i].values.items[0],
						   names->items[j].values.items[0]))
					problem_add_at(problems, problem_place(at, key),
						       "'%.60s' and '%.60s' must not have one name",
						       names->items[j].name.p,
						       names->items[i].name.p);
	}
}

/* What its schema wants of it. SEP-2127 */
static void check_card(const struct config_server *server, const struct tree *at,
		       struct config_problems *problems)
{
	static const struct {
		const char *key;
		size_t most; /* bytes */
		bool is_required;
	} texts[] = { { "description", 100, true },
		      { "version", 255, true },
		      { "title", 100, false } };
	const struct tree *card = tree_find(at, "card");

	for (size_t i = 0; server->endpoint.card.n > 0 && i < ARRAY_LEN(texts); i++) {
		const struct tree *text = tree_find(card, texts[i].key);

		if (text == NULL && texts[i].is_required)
			problem_add_at(problems, problem_place(at, "card"), "needs a %s",
				       texts[i].key);
		else if (text != NULL && text->kind == TREE_TEXT &&
			 (text->text[0] == '\0' || strlen(text->text) > texts[i].most))
			problem_add_at(problems, text, "must have 1 to %zu bytes", texts[i].most);
	}
}

/* Of an endpoint: its servers are there, each once, and are servers. */
static void check_legs(const struct config *config, const struct config_server *server,
		       const struct tree *at, struct config_problems *problems)
{
	const struct server_legs *legs = &server->conf.legs;
	const struct tree *list = tree_below(at, "servers");

	if (server->is_endpoint &&
	    &config->servers[config_find_server(config, server->conf.name)] != server)
		problem_add_at_key(problems, at,
				   "there is a server '%.60s' already: endpoints "
				   "and servers need different names",
				   server->conf.name);
	if (server->is_endpoint && legs->count == 0 && list->kind == TREE_MAP && list->count == 0)
		problem_add_at(problems, list, "must not be empty");
	for (size_t i = 0; i < legs->count; i++) {
		const char *name = legs->items[i].server.p;
		const struct tree *item =
			list->kind == TREE_LIST ? tree_item(list, i) : tree_below(list, name);
		size_t found = config_find_server(config, name);

		if (found == config->server_count)
			add_no_server(config, name, item, problems);
		else if (config->servers[found].is_endpoint)
			problem_add_at(problems, item, "'%.60s' is an endpoint: name its servers",
				       name);
		for (size_t j = 0; j < i; j++)
			if (slice_is_equal(legs->items[j].server, legs->items[i].server))
				problem_add_at(problems, item, "'%.60s' is in the list twice",
					       name);
	}
}

/* A secret would be read by who is between. */
static void check_url(const struct config_server *server, const struct tree *at,
		      struct config_problems *problems)
{
	struct slice text = server->url != NULL ? slice_str(server->url) : slice_of(NULL, 0);
	bool is_socket = slice_has_prefix(text, SLICE_LIT(URL_OF_SOCKET));
	struct url url, proxy;
	bool is_plain =
		!is_socket && text.n > 0 && url_parse(text, &url) == 0 && !url_is_https(&url);
	bool is_open = is_plain && !server->allow_private;

	if ((server->certificate_file == NULL) != (server->key_file == NULL))
		problem_add_at(problems,
			       tree_below(at, server->key_file == NULL ? "certificate" : "key"),
			       "needs %s as well",
			       server->key_file == NULL ? "key" : "certificate");
	if (server->certificate_file != NULL && (is_plain || is_socket))
		problem_add_at(problems, tree_below(at, "certificate"), "is for https alone");
	if (is_open && server->proxy != NULL && url_parse(slice_str(server->proxy), &proxy) == 0 &&
	    url_is_exposed(&proxy))
		problem_add_at(
			problems, tree_below(at, "proxy"),
			"gets all that goes to the server without TLS: use https, or, within "
			"a private network, set 'allow_private: true'");
	if (is_socket && server->proxy != NULL)
		problem_add_at(problems, tree_below(at, "proxy"), "leads to no unix socket");
	if (is_plain && server->credential.grant != CREDENTIAL_NONE && url_is_exposed(&url))
		problem_add_at(problems, tree_below(at, "url"),
			       "must be https: the token that is got would go there in the clear");
	if (is_open && url_is_exposed(&url))
		problem_add_at(problems, tree_below(at, "url"),
			       "goes to another machine without TLS: use https, or, within a "
			       "private network, set 'allow_private: true'");
}

/* A process that many share, or callers who show no token, have no one whose claims these could be. AUTH-DWN-02 */
static void check_claims(const struct config *config, const struct config_server *server,
			 const struct tree *root, struct config_problems *problems)
{
	const struct tree *at =
		problem_place(server_place(root, server), server->url != NULL ? "headers" : "env");
	enum authorization_mode mode = config->frontend.authorization.mode;
	const struct slices *claims = &server->conf.claims;

	if (claims->count == 0)
		return;
	if (claims->count > CLAIMS_MAX)
		problem_add_at(problems, at, "there are more than %d different claims", CLAIMS_MAX);
	if (server->conf.isolation == ISOLATION_SHARED)
		problem_add_at(problems, at,
			       "claims of the caller (${claim:%.60s}) need isolation session or "
			       "principal: with shared, one process serves everybody",
			       claims->items[0].p);
	if (mode < AUTHORIZATION_TOKEN)
		problem_add_at(
			problems, at,
			"claims of the caller (${claim:%.60s}) need callers with a token: %s",
			claims->items[0].p,
			config->is_from_file ? "set auth.mode" : "add --token-file FILE");
	for (size_t i = 0; mode == AUTHORIZATION_TOKEN && i < claims->count; i++)
		if (!slice_is_equal(claims->items[i], SLICE_LIT("sub")))
			problem_add_at(
				problems, at,
				"a static token has only the claim sub, which is its name; it has "
				"no '%.60s'",
				claims->items[i].p);
}

/* From whom a token for the server is got. */
static void check_token_source(const struct credential_conf *credential, const struct tree *at,
			       struct config_problems *problems)
{
	const struct verifier_issuer_conf *issuer = &credential->at;
	bool has_tls = issuer->issuer != NULL && strncasecmp(issuer->issuer, "https:", 6) == 0;

	if (issuer->issuer == NULL)
		problem_add_at(problems, at, "the key 'issuer' is missing");
	if (issuer->client_id == NULL)
		problem_add_at(problems, at, "the key 'client_id' is missing");
	check_client(issuer, at, problems);
	check_scheme(has_tls, credential->token_endpoint, tree_below(at, "token_endpoint"),
		     problems);
}

/* One that we sign ourselves is got from nobody. */
static void check_assertion(const struct config_server *server, const struct tree *at,
			    struct config_problems *problems)
{
	const struct credential_conf *credential = &server->credential;
	const struct {
		const char *key;
		bool is_given;
	} unused[] = { { "issuer", credential->at.issuer != NULL },
		       { "token_endpoint", credential->token_endpoint != NULL },
		       { "client_id", credential->at.client_id != NULL },
		       { "scopes", credential->scopes.count > 0 },
		       { "resource", credential->resource != NULL },
		       { "ca", credential->at.ca_file != NULL } };

	if (credential->audience == NULL && (server->url != NULL || server->command != NULL))
		problem_add_at(problems, at, "the key 'audience' is missing");
	for (size_t i = 0; i < ARRAY_LEN(unused); i++)
		if (unused[i].is_given)
			problem_add_at(problems, tree_below(at, unused[i].key),
				       "is not used with grant assertion: the gateway signs the "
				       "token itself, and 'audience' says whom it is for");
}

/* A token for each caller, by what he has shown last. */
static void check_callers(const struct config *config, const struct config_server *server,
			  const struct tree *grant, struct config_problems *problems)
{
	const struct authorization_conf *auth = &config->frontend.authorization;
	bool is_exchanged = server->credential.grant == CREDENTIAL_EXCHANGE;
	const char *name = is_exchanged ? "token_exchange" : "assertion";

	if (is_exchanged && auth->mode != AUTHORIZATION_OAUTH)
		problem_add_at(problems, grant,
			       "token_exchange needs callers with tokens of an issuer: set "
			       "auth.mode to oauth");
	if (auth->mode < AUTHORIZATION_TOKEN && !is_exchanged)
		problem_add_at(problems, grant,
			       "assertion needs callers with tokens, which say who they are: set "
			       "auth.mode to token or oauth");
	if (!auth->binds_client)
		problem_add_at(problems, grant,
			       "%s needs auth.bind_client: a token that one client has "
			       "would be used for another one's calls",
			       name);
	if (server->conf.isolation == ISOLATION_SHARED)
		problem_add_at(problems, grant,
			       "%s needs isolation session or principal: with shared, "
			       "one process serves everybody",
			       name);
}

/* A token for the server: from where, and for whom. BACK-URL-10, BACK-URL-11 */
static void check_credential(const struct config *config, const struct config_server *server,
			     const struct tree *own, struct config_problems *problems)
{
	const struct credential_conf *credential = &server->credential;
	const struct tree *at = tree_below(own, "auth"), *grant = tree_below(at, "grant");

	if (credential->grant == CREDENTIAL_NONE)
		return;
	if (credential->grant == CREDENTIAL_ASSERTION)
		check_assertion(server, at, problems);
	else
		check_token_source(credential, at, problems);
	if (server->conf.for_caller)
		check_callers(config, server, grant, problems);
	for (size_t i = 0; i < server->env_count && server->url != NULL; i++)
		if (strcasecmp(server->env[i].name, "Authorization") == 0)
			problem_add_at(problems, grant,
				       "cannot stand beside an Authorization in headers: the token "
				       "that is got goes there");
}

/* 0: it is none of TCP, or the kernel chooses it. */
static uint16_t port_of(const char *text)
{
	struct sockaddr_in in;
	struct address address;

	if (text == NULL || address_parse(text, &address, NULL) != 0 || address.kind != ADDRESS_TCP)
		return 0;
	/* The port is at the same place in both families. */
	memcpy(&in, &address.socket, sizeof(in));
	return ntohs(in.sin_port);
}

static bool is_own_port(const struct config *config, uint16_t port)
{
	bool is_own = port_of(config->admin_metrics) == port || port_of(config->admin_page) == port;

	for (size_t i = 0; i < config->listen_count; i++)
		is_own = is_own || port_of(config->listen[i].address) == port;
	return is_own;
}

/* The kernel knows ports, not machines: who may call 8808 elsewhere may call it here. SEC-17 */
static void check_ports(const struct config *config, const struct config_server *server,
			const struct tree *at, struct config_problems *problems)
{
	const struct config_ports *ports = &server->sandbox_connect;

	if (server->sandbox == CONFIG_SANDBOX_OFF || server->sandbox_gateway)
		return;
	for (size_t i = 0; i < ports->count; i++) {
		if (is_own_port(config, ports->items[i]))
			problem_add_at(
				problems, tree_item(problem_place(at, "sandbox.connect"), i),
				"%d is a port of this gateway, on which the server could call "
				"other servers; set 'gateway: true' to allow that, or listen on "
				"another port",
				ports->items[i]);
	}
}

/* An entry of `sandbox` that says what may be reached. */
static bool lists_anything(const struct tree *sandbox)
{
	for (size_t i = 0; sandbox != NULL && i < sandbox->count; i++)
		if (sandbox->items[i]->key != NULL && strcmp(sandbox->items[i]->key, "mode") != 0)
			return true;
	return false;
}

/* Who lists what may be reached and does not say `mode` believes that there is a sandbox. */
static void check_mode(const struct config_server *server, const struct tree *root,
		       const struct tree *at, struct config_problems *problems)
{
	const struct tree *own = tree_find(at, "sandbox");
	const struct tree *usual = tree_find(tree_find(root, "defaults"), "sandbox");
	bool has_mode = tree_find(own, "mode") != NULL || tree_find(usual, "mode") != NULL;

	if (server->sandbox == CONFIG_SANDBOX_OFF && !has_mode &&
	    (lists_anything(own) || lists_anything(usual)))
		problem_add_at(
			problems, lists_anything(own) ? own : usual,
			"without 'mode' there is no sandbox, and nothing is refused: add 'mode: "
			"landlock', or 'mode: off' if you want none");
}

/*
 * ---- in vain: told, and no reason not to start ----
 *
 * What stands under `defaults` is meant for several servers, and not told.
 */

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

static void warn_of_roles(const struct config *config, const struct tree *root,
			  struct config_problems *warnings)
{
	const struct static_tokens *tokens = &config->frontend.authorization.tokens;
	const struct tree *list = tree_below(tree_below(root, "auth"), "tokens");

	for (size_t i = 0; i < config->server_count; i++)
		warn_of_server(config, &config->servers[i], root, warnings);
	for (size_t i = 0; i < config->roles.named; i++) {
		const struct role *role = &config->roles.items[i];
		const char *why = find_hindrance(config, role);
		bool is_named = false;

		for (size_t j = 0; j < tokens->count; j++)
			is_named |= slices_has(tokens->items[j].roles, role->name);
		if (why != NULL && !is_named)
			problem_add_at(
				warnings, tree_below(tree_below(root, "roles"), role->name.p),
				"nobody can have this role: %s, and no static token names it", why);
	}
	for (size_t i = 0; config->roles.named > 0 && i < tokens->count; i++)
		if (tokens->items[i].roles.count + tokens->items[i].tools.count == 0)
			problem_add_at(warnings, tree_item(list, i),
				       "has neither roles nor tools: it may use nothing");
}

/* Whether entries above this one are for all of its tools. */
static bool is_for_none(const struct tool_limits *limits, size_t index)
{
	const struct names *names = &limits->items[index].tools;

	for (size_t i = 0; i < names->written.count; i++) {
		size_t above = 0;

		while (above < index && !names_fit(&limits->items[above].tools, names->folded[i]))
			above++;
		if (above == index)
			return false;
	}
	return true;
}

static void warn_of_limits(const struct config_server *server, const struct tree *at,
			   struct config_problems *warnings)
{
	const struct tool_limits *limits = &server->conf.limits.tools;
	const struct tree *list = tree_find_way(at, "tools.limits");

	for (size_t i = 0; list != NULL && i < limits->count; i++)
		if (is_for_none(limits, i))
			problem_add_at(warnings, tree_item(list, i),
				       "has no effect here: entries above it already match all of "
				       "its tools, and the first match counts");
}

static void warn_of_hide(const struct config_server *server, const struct tree *at,
			 struct config_problems *warnings)
{
	const struct needs *needs = &server->conf.needs;
	const struct tree *hide = tree_find(at, "hide");
	bool has_any = false;

	for (enum permission_kind kind = 0; kind < PERMISSION_KINDS; kind++)
		has_any |= needs->by_name[kind].count > 0;
	if (hide != NULL && needs->hides && !has_any)
		problem_add_at(warnings, hide,
			       "has no effect here: it is about scopes of tools, prompts and "
			       "resources, and none are set");
}

/* What one caller's process shows would be withheld from another. */
static void warn_of_pin(const struct config_server *server, const struct tree *at,
			struct config_problems *warnings)
{
	if (server->conf.claims.count > 0 && server->conf.pin == PIN_ENFORCE)
		problem_add_at(
			warnings, tree_below(at, "pin"),
			"%s has claims: if the definitions differ between callers, those of the "
			"first are approved and the others' are withheld",
			server->url != NULL ? "headers" : "env");
}

/* Each issuer names its users as it likes. */
static void warn_of_files_of_callers(const struct config *config,
				     const struct config_server *server, const struct tree *at,
				     struct config_problems *warnings)
{
	for (size_t i = 0; i < server->env_count; i++) {
		if (!server->env[i].names_file || config->frontend.authorization.issuers.count < 2)
			continue;
		problem_add_at(warnings, tree_below(at, server->url != NULL ? "headers" : "env"),
			       "a file is named by claims, and there are several issuers: users "
			       "with the same claim at different issuers get the same file; name "
			       "it by a claim that differs between them");
		return;
	}
}

/* The same: a server that looks at sub alone takes two people for one. */
static void warn_of_names(const struct config *config, const struct config_server *server,
			  const struct tree *at, struct config_problems *warnings)
{
	const struct authorization_conf *auth = &config->frontend.authorization;

	if (server->credential.grant == CREDENTIAL_ASSERTION &&
	    auth->issuers.count + (auth->tokens.count > 0) > 1)
		problem_add_at(
			warnings, tree_below(tree_below(at, "auth"), "grant"),
			"there are several issuers (auth.tokens is one), and two of them may "
			"use the same name: the server must look at sub_id, not at sub alone");
}

/* A token in env that says when it ends: who is shown it would refuse the server. */
static void warn_of_expired(const struct config_server *server, const struct tree *at,
			    struct config_problems *warnings)
{
	uint64_t now_s = clock_wall_ms() / 1000;

	for (size_t i = 0; i < server->env_count; i++) {
		const struct config_pair *pair = &server->env[i];
		char text[QUANTITY_TEXT_MAX];
		struct verdict verdict;
		at_end(jwt_fini) struct jwt jwt = { .header = NULL };
		json_int_t end_s;

		if (jwt_parse(slice_str(pair->value), &jwt, &verdict) < 0)
			continue;
		end_s = json_integer_value(json_object_get(jwt.claims, "exp"));
		if (end_s <= 0 || (uint64_t)end_s > now_s)
			continue;
		quantity_format_date((uint64_t)end_s * 1000, text);
		problem_add_at(warnings,
			       tree_below(tree_below(at, server->url != NULL ? "headers" : "env"),
					  pair->name),
			       "is a token (JWT) that expired on %s", text);
	}
}

/* Who names roots wants them to be kept, and only a sandbox keeps links from leading out of them. */
static void warn_of_arguments(const struct config_server *server, const struct tree *at,
			      struct config_problems *warnings)
{
	if (server->endpoint.arguments.paths.roots.count > 0 &&
	    server->sandbox != CONFIG_SANDBOX_LANDLOCK)
		problem_add_at(
			warnings, problem_place(at, "tools.arguments.paths"),
			"paths are checked only by name, and links may lead out of the roots: to "
			"keep the server inside, use a sandbox (sandbox.mode)");
}

/* SEC-69 */
static void warn_of_proxy(const struct config *config, const struct tree *root,
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

/* At every address of the machine, and none of them is a Host that is served. DEF-05 */
static void warn_of_hosts(const struct config *config, const struct tree *root,
			  struct config_problems *warnings)
{
	if (config->hosts.count > 0 || config->frontend.authorization.public_url.n > 0)
		return;
	for (size_t i = 0; i < config->listen_count; i++) {
		const struct tree *item = tree_item(tree_below(root, "listen"), i);

		if (address_is_any(config->listen[i].address))
			problem_add_at(warnings, tree_below(item, "address"),
				       "clients on other machines will be refused, for the name or "
				       "address that they use (Host) is not known; %s",
				       config->is_from_file ? "add it to 'hosts'" :
							      "add it with --host NAME");
	}
}

/* Clients would get its path twice, and issuers would know no such resource. */
static void warn_of_public_path(const struct config *config, const struct tree *root,
				struct config_problems *warnings)
{
	struct slice url = config->frontend.authorization.public_url;

	for (size_t i = 0; url.n > 0 && i < config->server_count; i++) {
		struct slice path = config->servers[i].endpoint.path;

		if (path.n == 0 || path.n >= url.n ||
		    !slice_is_equal(slice_of(url.p + url.n - path.n, path.n), path))
			continue;
		problem_add_at(
			warnings, tree_below(root, "public_url"),
			"ends with the path of %s, which is added to it: clients get %.*s%.*s. "
			"Write %.*s",
			config->servers[i].conf.name, SLICE_ARG(url), SLICE_ARG(path),
			(int)(url.n - path.n), url.p);
		return;
	}
}

/* As a package installs it, and nothing to stop for: the first server comes with a reload. */
static void warn_of_no_server(const struct config *config, const struct tree *root,
			      struct config_problems *warnings)
{
	for (size_t i = 0; i < config->server_count; i++)
		if (config->servers[i].enabled)
			return;
	problem_add_at(warnings, tree_below(root, "servers"),
		       "there is no server yet; add one under 'servers' and reload");
}

static void warn(const struct config *config, const struct tree *root,
		 struct config_problems *warnings)
{
	const struct static_tokens *tokens = &config->frontend.authorization.tokens;
	const struct tree *list = tree_find_way(root, "auth.tokens");

	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];
		const struct tree *at = server_place(root, server);
		const struct tree *own =
			tree_find(tree_find(root, config_section_of(server)), server->conf.name);

		warn_of_limits(server, own, warnings);
		warn_of_hide(server, own, warnings);
		warn_of_pin(server, at, warnings);
		warn_of_files_of_callers(config, server, at, warnings);
		warn_of_names(config, server, at, warnings);
		warn_of_expired(server, at, warnings);
		warn_of_arguments(server, at, warnings);
	}
	warn_of_no_server(config, root, warnings);
	warn_of_roles(config, root, warnings);
	warn_of_proxy(config, root, warnings);
	warn_of_hosts(config, root, warnings);
	warn_of_public_path(config, root, warnings);
	for (size_t i = 0; list != NULL && i < tokens->count; i++) {
		uint64_t ends_at_ms = tokens->items[i].ends_at_ms;

		if (ends_at_ms > 0 && ends_at_ms <= clock_wall_ms())
			problem_add_at(warnings, tree_below(tree_item(list, i), "expires"),
				       "is in the past: this token can no longer be used");
	}
}

void rules_check(const struct config *config, const struct tree *root,
		 struct config_problems *problems, struct config_problems *warnings)
{
	/* What follows from the options is judged as well. */
	CHECK(config->frontend.authorization.scopes == &config->scopes);
	relations_check(config, root, problems, warnings);
	check_listen(config, root, problems);
	check_auth(config, root, problems);
	check_roles(config, root, problems);
	check_traces(&config->traces.collector, root, problems);
	check_cluster(config, root, problems);
	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];
		const struct tree *at = server_place(root, server);

		check_name(server, at, problems);
		check_legs(config, server, at, problems);
		check_url(server, at, problems);
		check_timeouts(server, at, problems);
		check_tool_limits(server, at, problems);
		check_shown_names(server, at, problems);
		check_card(server, at, problems);
		check_claims(config, server, root, problems);
		check_credential(config, server, at, problems);
		check_mode(server, root, at, problems);
		check_ports(config, server, at, problems);
	}
	check_paths_are_unique(config, root, problems);
	warn(config, root, warnings);
}
