/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the records (servers, roles) and lets the table fill them: first the defaults of the
 * table, then `defaults:`, then what the record itself says. What follows from the options is made of
 * them as they are, good or not: the rules, which judge them, see both. Texts that others point to
 * stay where the options put them. Frees all of it as well.
 */
#include "config/load.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/listed_path.h"
#include "config/places.h"
#include "config/problem.h"
#include "config/rules.h"
#include "config/table.h"
#include "config/variables.h"
#include "endpoint/origin.h"
#include "io/peer.h"

#define CA_BYTES_MAX ((size_t)1 << 20)
#define STALL_MS (30 * 1000)
#define ENDPOINT_TIMEOUT_MS ((uint64_t)7 * 24 * 3600 * 1000) /* its servers have shorter ones */

/* ---- records ---- */

/* The map of this section; NULL: it is not there, or is no map. */
static const struct tree *find_map(const struct types_context *context, const struct tree *root,
				   const char *section)
{
	const struct tree *map = tree_find(root, section);

	if (map == NULL || map->kind == TREE_MAP)
		return map;
	if (!tree_is_null(map))
		problem_add_at(context->problems, map, "must be a map of names and %s", section);
	return NULL;
}

/* What does not follow from the options: it is no process, and its servers wait and fail themselves. */
static void load_endpoint(const struct types_context *context, const struct tree *value,
			  struct config_server *server)
{
	struct server_conf *conf = &server->conf;

	table_set_defaults(OPTIONS_SERVER, server);
	table_set_defaults(OPTIONS_ENDPOINT, server);
	server->is_endpoint = true;
	table_load(context, OPTIONS_ENDPOINT, value, server);
	conf->era = ERA_LEGACY;
	conf->reclaims = RECLAIM_NEVER;
	conf->pool_max = UINT32_MAX;
	conf->sleep_after_ms = 0;
	conf->request_timeout_ms = conf->request_timeout_max_ms = ENDPOINT_TIMEOUT_MS;
}

static void load_server(const struct types_context *context, const struct tree *value,
			const struct tree *defaults, struct config_server *server)
{
	const struct tree *usual;
	struct tree room;

	table_set_defaults(OPTIONS_SERVER, server);
	usual = table_defaults_of(value, defaults, &room);
	if (usual != NULL)
		table_load(context, OPTIONS_SERVER, usual, server);
	table_defaults_end(&room);
	table_load(context, OPTIONS_SERVER, value, server);
}

static void load_servers(const struct types_context *context, const struct tree *root,
			 struct config *config)
{
	const struct tree *maps[] = { find_map(context, root, "servers"),
				      find_map(context, root, "endpoints") };
	const struct tree *defaults = tree_find(root, "defaults");
	struct config_server unused = { 0 };
	size_t count = 0;

	/* Wrong defaults are wrong even where no server uses them. */
	if (defaults != NULL)
		table_load(context, OPTIONS_SERVER, defaults, &unused);
	table_free(OPTIONS_SERVER, &unused);
	for (size_t m = 0; m < ARRAY_LEN(maps); m++)
		count += maps[m] != NULL ? maps[m]->count : 0;
	config->servers = mem_zalloc((count + 1) * sizeof(*config->servers));
	for (size_t m = 0; m < ARRAY_LEN(maps); m++) {
		for (size_t i = 0; maps[m] != NULL && i < maps[m]->count; i++) {
			struct config_server *server = &config->servers[config->server_count++];
			const struct tree *value = maps[m]->items[i];

			CHECK(value->key != NULL && server->conf.name == NULL);
			if (m == 0)
				load_server(context, value, defaults, server);
			else
				load_endpoint(context, value, server);
			server->conf.name = mem_strdup(value->key);
		}
	}
}

static void load_roles(const struct types_context *context, const struct tree *root,
		       struct roles *roles)
{
	const struct tree *map = find_map(context, root, "roles");

	for (size_t i = 0; map != NULL && i < map->count; i++) {
		struct role role = { .name = slice_str(mem_strdup(map->items[i]->key)) };

		table_set_defaults(OPTIONS_ROLE, &role);
		table_load(context, OPTIONS_ROLE, map->items[i], &role);
		roles_add(roles, &role);
	}
}

/* The file of authorities that `ca` of a section names, which may be none. */
static void load_authority(const struct types_context *context, const struct tree *section,
			   const char *path, struct slice *ca_r)
{
	struct buf text = { 0 };
	struct error err;

	CHECK(ca_r->n == 0);
	if (path == NULL)
		return;
	if (file_read(path, &context->writers, CA_BYTES_MAX, &text, NULL, &err) != 0)
		problem_add_at(context->problems, tree_below(section, "ca"), "%s: %s", path,
			       err.text);
	else
		*ca_r = slice_of(mem_dup_slice(buf_slice(&text)), text.len);
	buf_fini(&text);
}

/* While files can be read. */
static void load_authorities(const struct types_context *context, const struct tree *root,
			     struct config *config)
{
	const struct verifier_conf *issuers = &config->frontend.authorization.issuers;
	const struct tree *list = tree_below(tree_below(root, "auth"), "issuers");
	struct collector_conf *collector = &config->traces.collector;

	for (size_t i = 0; i < issuers->count; i++)
		load_authority(context, tree_item(list, i), issuers->items[i].ca_file,
			       &issuers->items[i].ca);
	load_authority(context, tree_below(tree_below(root, "traces"), "otlp"), collector->ca_file,
		       &collector->ca);
}

/* ---- what follows from the options ---- */

/* "/a/mcp" -> "/a/LAST"; a path that ends otherwise gets one part more. mcpgated(1) */
static struct slice beside(struct slice path, const char *last)
{
	if (path.n >= 4 && memcmp(path.p + path.n - 4, "/mcp", 4) == 0)
		path.n -= 4;
	else if (path.n >= 1 && path.p[path.n - 1] == '/')
		path.n--;
	return slice_str(mem_printf("%.*s/%s", SLICE_ARG(path), last));
}

/* The names of the claims that its values of env need, each once. */
static void collect_claims(struct config_server *server)
{
	struct slices *claims = &server->conf.claims;

	CHECK(claims->count == 0);
	for (size_t i = 0; i < server->env_count; i++) {
		struct slice rest = slice_str(server->env[i].value);
		struct slice before, name;

		while (server->env[i].has_claims && claim_cut(&rest, &before, &name) > 0)
			if (!slices_has(*claims, name))
				texts_add(claims, name);
	}
}

/* A pattern that is none is left out here; the rules refuse it. */
static void finish_redact(struct config_server *server)
{
	struct error err;

	CHECK(server->conf.redact.count == 0);
	for (size_t i = 0; i < server->redact.count; i++)
		(void)!redact_add(&server->conf.redact, server->redact.items[i], &err);
}

static void finish_server(struct config *config, struct config_server *server)
{
	struct server_conf *conf = &server->conf;
	struct endpoint *endpoint = &server->endpoint;

	CHECK(conf->name != NULL && endpoint->server == NULL);
	conf->server = (uint32_t)(server - config->servers);
	conf->line_max = config->response_bytes;
	conf->queue_max = config->http.body_bytes * 2;
	conf->stall_ms = STALL_MS;
	collect_claims(server);
	finish_redact(server);
	/* Principals keep the claims that some server is told, and no others. */
	for (size_t i = 0; i < conf->claims.count; i++)
		if (!slices_has(config->claim_names, conf->claims.items[i]))
			texts_add(&config->claim_names, conf->claims.items[i]);
	if (endpoint->path.n > 1 && endpoint->path.p[endpoint->path.n - 1] == '/')
		texts_shorten(&endpoint->path, endpoint->path.n - 1);
	if (endpoint->path.n == 0)
		endpoint->path = slice_str(mem_printf("/%s/mcp", conf->name));
	endpoint->sse_path = beside(endpoint->path, "sse");
	endpoint->message_path = beside(endpoint->path, "message");
	endpoint->place.server = slice_str(conf->name);
	if (server->cwd != NULL && path_is_absolute(slice_str(server->cwd)))
		endpoint->arguments.paths.base = slice_str(server->cwd);
	argument_rules_prepare(&endpoint->arguments);
}

/* An entry that is no network is left out here; the rules refuse it. */
static void finish_trust(struct config *config)
{
	size_t count = config->trusted_proxies.count;
	struct peer_net *nets = mem_zalloc((count + 1) * sizeof(*nets));
	struct http_trust *trust = &config->http.trust;

	CHECK(trust->nets == NULL && trust->count == 0);
	trust->nets = nets;
	for (size_t i = 0; i < count; i++)
		if (peer_net_parse(config->trusted_proxies.items[i], &nets[trust->count]))
			trust->count++;
}

static void add_host(struct slices *hosts, struct slice authority)
{
	struct slice host = origin_host_of(authority);

	if (host.n > 0)
		texts_add(hosts, host);
}

/* Who we are: ourselves on this machine, the configured names, the addresses listened on. DEF-05 */
static void finish_hosts(struct config *config, struct slice public_url)
{
	struct slices *hosts = &config->frontend.hosts;
	const char *scheme_end = public_url.n > 0 ? strstr(public_url.p, "://") : NULL;

	CHECK(hosts->count == 0);
	add_host(hosts, SLICE_LIT("localhost"));
	add_host(hosts, SLICE_LIT("127.0.0.1"));
	add_host(hosts, SLICE_LIT("[::1]"));
	for (size_t i = 0; i < config->hosts.count; i++)
		add_host(hosts, config->hosts.items[i]);
	for (size_t i = 0; i < config->listen_count; i++) {
		struct slice address = slice_str(config->listen[i].address);

		if (!slice_has_prefix(address, SLICE_LIT("unix:")) &&
		    !slice_has_prefix(address, SLICE_LIT("systemd:")))
			add_host(hosts, address);
	}
	if (scheme_end != NULL) {
		struct slice rest = slice_str(scheme_end + 3);

		add_host(hosts, slice_cut(&rest, '/'));
	}
}

static void add_scopes(struct scope_table *table, struct slices names, struct scope_set *set)
{
	for (size_t i = 0; i < names.count; i++)
		scope_table_add(table, names.items[i], set);
}

/* All scopes that are named get their numbers first: only then is known what a token holds of them. */
static void finish_scopes(struct config *config, struct authorization_conf *authorization)
{
	const struct slice_map *hierarchy = &authorization->scope_hierarchy;
	struct scope_table *table = &config->scopes;
	struct scope_set all = { { 0 } };

	CHECK(authorization->scopes == NULL);
	add_scopes(table, config->scope_names, &all);
	for (size_t i = 0; i < config->server_count; i++) {
		struct protected_resource *place = &config->servers[i].endpoint.place;

		add_scopes(table, place->scopes, &place->base);
		needs_finish(&config->servers[i].conf.needs, table);
	}
	add_scopes(table, authorization->initial_scopes, &authorization->initial);
	for (size_t i = 0; i < hierarchy->count; i++) {
		const struct named_slices *list = &hierarchy->items[i];

		scope_table_add(table, list->name, &all);
		for (size_t j = 0; j < list->values.count; j++)
			scope_table_imply(table, list->name, list->values.items[j]);
	}
	authorization->scopes = table;
}

static void finish_token(const struct scope_table *table, struct static_token *token)
{
	for (size_t i = 0; i < token->scopes.count; i++)
		scope_table_find(table, token->scopes.items[i], &token->rights.scopes);
	token->rights.needs_scopes = true;
	/* One that is no hash, the rules refuse. */
	if (token->sha256 != NULL &&
	    text_from_hex(slice_str(token->sha256), token->hash, sizeof(token->hash)) < 0)
		memset(token->hash, 0, sizeof(token->hash));
}

static void give_role(struct rights *rights, size_t number)
{
	if (number < ROLES_MAX)
		role_set_add(&rights->roles, number);
}

static void give_endpoint(const struct roles *roles, struct server_conf *conf)
{
	struct slice *servers = mem_zalloc((conf->legs.count + 1) * sizeof(*servers));

	for (size_t i = 0; i < conf->legs.count; i++)
		servers[i] = conf->legs.items[i].server;
	if (conf->legs.count > 0)
		roles_give_endpoint(roles, slice_str(conf->name), servers, conf->legs.count,
				    &conf->permissions);
	free(servers);
}

/* A role that is not there, and one that there is no room for, are left out: the rules refuse both. */
static void finish_roles(struct config *config, struct authorization_conf *authorization)
{
	struct roles *roles = &config->roles;
	struct static_tokens *tokens = &authorization->tokens;

	authorization->has_roles = roles->named > 0;
	authorization->roles = roles;
	for (size_t i = 0; i < authorization->issuers.count; i++)
		authorization->issuers.items[i].roles = roles;
	for (size_t i = 0; i < tokens->count; i++) {
		struct static_token *token = &tokens->items[i];
		bool is_own = token->tools.count > 0;

		token->rights.needs_roles = is_own || authorization->has_roles;
		if (is_own)
			give_role(&token->rights,
				  roles_add_of_token(roles, i, token->name, token->tools));
		for (size_t j = 0; j < token->roles.count; j++)
			give_role(&token->rights, roles_find(roles, token->roles.items[j]));
	}
	for (size_t i = 0; i < config->server_count; i++) {
		struct server_conf *conf = &config->servers[i].conf;

		if (config->servers[i].is_endpoint)
			give_endpoint(roles, conf);
		else
			roles_give(roles, slice_str(conf->name), &conf->permissions);
		permissions_finish(&conf->permissions);
		config->servers[i].endpoint.place.permissions = &conf->permissions;
	}
}

/* The names by which issuers know it. AUTH-PRM-01, -03, AUTH-AUD-02 */
static void finish_names(const struct authorization_conf *authorization, struct endpoint *endpoint)
{
	struct protected_resource *place = &endpoint->place;
	const char *public_url = authorization->public_url.p;
	struct slice *accepted = mem_zalloc((place->audience.count + 1) * sizeof(*accepted));

	CHECK(authorization->public_url.n > 0 && place->accepted.count == 0);
	place->resource = slice_str(mem_printf("%s%s", public_url, endpoint->path.p));
	place->metadata = slice_str(mem_printf("%s/.well-known/oauth-protected-resource%s",
					       public_url, endpoint->path.p));
	accepted[0] = place->resource;
	for (size_t i = 0; i < place->audience.count; i++)
		accepted[i + 1] = place->audience.items[i];
	place->accepted = (struct slices){ accepted, place->audience.count + 1 };
}

static void finish_resources(struct config *config)
{
	struct metadata_resource *resources =
		mem_zalloc((config->server_count + 1) * sizeof(*resources));
	const struct authorization_conf *authorization = &config->frontend.authorization;
	struct metadata_conf *metadata = &config->frontend.metadata;

	CHECK(metadata->resources == NULL && metadata->resource_count == 0);
	metadata->resources = resources;
	for (size_t i = 0; i < config->server_count; i++) {
		struct endpoint *endpoint = &config->servers[i].endpoint;
		struct scope_set first = endpoint->place.base;
		struct buf text = { 0 };

		if (!config->servers[i].enabled)
			continue;
		finish_names(authorization, endpoint);
		/* What a client asks for at first, separated by spaces. */
		scope_set_join(&first, &authorization->initial);
		scope_table_append(authorization->scopes, &first, &text);
		buf_terminate(&text);
		resources[metadata->resource_count++] = (struct metadata_resource){
			.path = endpoint->path,
			.resource = endpoint->place.resource,
			.scopes = slice_of(text.data, text.len),
		};
	}
}

static void finish(struct config *config)
{
	struct authorization_conf *authorization = &config->frontend.authorization;

	config->http.stall_timeout_ms = STALL_MS;
	finish_trust(config);
	finish_hosts(config, authorization->public_url);
	for (size_t i = 0; i < config->server_count; i++) {
		finish_server(config, &config->servers[i]);
		call_limits_finish(&config->servers[i].conf.limits,
				   slice_str(config->servers[i].conf.name));
	}
	finish_roles(config, authorization);
	finish_scopes(config, authorization);
	for (size_t i = 0; i < authorization->tokens.count; i++)
		finish_token(&config->scopes, &authorization->tokens.items[i]);
	if (authorization->mode == AUTHORIZATION_OAUTH && authorization->public_url.n > 0)
		finish_resources(config);
}

/* ---- all of it ---- */

static void finish_free(struct config *config)
{
	struct metadata_resource *resources =
		(struct metadata_resource *)(uintptr_t)config->frontend.metadata.resources;

	for (size_t i = 0; i < config->server_count; i++) {
		struct endpoint *endpoint = &config->servers[i].endpoint;

		texts_free(&config->servers[i].conf.claims);
		permissions_free(&config->servers[i].conf.permissions);
		call_limits_free(&config->servers[i].conf.limits);
		needs_free(&config->servers[i].conf.needs);
		redact_free(&config->servers[i].conf.redact);
		texts_free_one(&endpoint->sse_path);
		texts_free_one(&endpoint->message_path);
		texts_free_one(&endpoint->place.resource);
		texts_free_one(&endpoint->place.metadata);
		free((void *)(uintptr_t)endpoint->place.accepted.items);
		argument_rules_fini(&endpoint->arguments);
	}
	for (size_t i = 0; i < config->frontend.metadata.resource_count; i++)
		texts_free_one(&resources[i].scopes);
	free(resources);
	texts_free(&config->claim_names);
	texts_free(&config->frontend.hosts);
	free((void *)(uintptr_t)config->http.trust.nets);
}

void config_free(struct config **config)
{
	struct config *c = *config;

	*config = NULL;
	if (c == NULL)
		return;
	finish_free(c);
	rule_places_free(&c->rule_places);
	for (size_t i = 0; i < c->server_count; i++) {
		table_free(OPTIONS_SERVER, &c->servers[i]);
		table_free(OPTIONS_ENDPOINT, &c->servers[i]);
		free((char *)(uintptr_t)c->servers[i].conf.name);
	}
	for (size_t i = 0; i < c->frontend.authorization.issuers.count; i++)
		texts_free_one(&c->frontend.authorization.issuers.items[i].ca);
	texts_free_one(&c->traces.collector.ca);
	for (size_t i = 0; i < c->roles.count; i++) {
		if (c->roles.items[i].is_of_token)
			continue; /* the token's own */
		table_free(OPTIONS_ROLE, &c->roles.items[i]);
		texts_free_one(&c->roles.items[i].name);
	}
	free(c->roles.items);
	texts_free(&c->scope_names);
	table_free(OPTIONS_TOP, c);
	free(c->servers);
	free(c);
}

/* What had a number before. */
static void keep_numbers(struct config *config, const struct config *before)
{
	roles_keep_numbers(&config->roles, &before->roles);
	for (size_t i = 0; i < before->scopes.count; i++)
		texts_add(&config->scope_names, before->scopes.names[i]);
}

/* A file that an editor has not written to its end yet must not end what runs. */
static void check_whole(const struct types_context *context, const struct tree *root)
{
	const struct config *running = context->writers.running;

	if (running != NULL && running->server_count > 0 && tree_find(root, "servers") == NULL)
		problem_add_at(context->problems, root,
			       "the key 'servers' is missing: to remove all servers, write "
			       "'servers: {}'");
}

struct config *load_draft(const struct types_context *context, const struct tree *root,
			  const struct config *before)
{
	struct config *config = mem_zalloc(sizeof(*config));

	CHECK(context->problems != NULL && context->warnings != NULL && context->resolve != NULL);
	config->is_from_file = context->is_yaml;
	table_set_defaults(OPTIONS_TOP, config);
	table_load(context, OPTIONS_TOP, root, config);
	load_servers(context, root, config);
	if (before != NULL)
		keep_numbers(config, before);
	load_roles(context, root, &config->roles);
	load_authorities(context, root, config);
	finish(config);
	config->roles.before = NULL;
	if (context->is_yaml)
		unexpanded_check(root, context->problems);
	if (!context->is_checked)
		places_collect(root, &config->rule_places);
	if (!context->is_checked) {
		check_whole(context, root);
		rules_check(config, root, context->problems, context->warnings);
	}
	return config;
}

static int resolve_nothing(const char *kind, const char *name, const struct listed_writers *writers,
			   char **value_r, struct error *err)
{
	(void)writers;
	(void)value_r;
	return error_set(err, ERROR_INVALID, "%s of %s is not read", name, kind);
}

/* Whether any server may write anywhere by what is said of its sandbox. */
static bool names_sandbox(const struct tree *root)
{
	const struct tree *map = tree_find(root, "servers");

	if (tree_find(root, "defaults") != NULL)
		return true;
	for (size_t i = 0; map != NULL && map->kind == TREE_MAP && i < map->count; i++)
		if (tree_find(map->items[i], "sandbox") != NULL)
			return true;
	return false;
}

struct config *load_survey(const struct tree *root)
{
	struct config_problems problems = { NULL, 0 }, warnings = { NULL, 0 };
	const struct types_context context = { .problems = &problems,
					       .warnings = &warnings,
					       .resolve = resolve_nothing,
					       .is_checked = true };
	struct config *config = mem_zalloc(sizeof(*config));

	if (names_sandbox(root))
		load_servers(&context, root, config);
	config_problems_fini(&problems);
	config_problems_fini(&warnings);
	return config;
}

struct config *load_tree(const struct types_context *context, const struct tree *root)
{
	struct config *config = load_draft(context, root, NULL);

	if (context->problems->count > 0)
		config_free(&config);
	return config;
}
