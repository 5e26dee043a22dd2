/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes what the options say as it is, good or not: the rules, which judge it, see both. Texts that others
 * point to stay where the options put them.
 */
#include "config/finish.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "config/claim.h"
#include "config/texts.h"
#include "endpoint/origin.h"
#include "endpoint/tool_name.h"
#include "io/peer.h"

#define STALL_MS (30 * 1000)

/* "/a/mcp" -> "/a/LAST"; a path that ends otherwise gets one part more. product.md §3 */
static struct slice beside(struct slice path, const char *last)
{
	if (path.n >= 4 && memcmp(path.p + path.n - 4, "/mcp", 4) == 0)
		path.n -= 4;
	else if (path.n >= 1 && path.p[path.n - 1] == '/')
		path.n--;
	return slice_str(mem_printf("%.*s/%s", SLICE_ARG(path), last));
}

static void finish_server(const struct config *config, struct config_server *server)
{
	struct server_conf *conf = &server->conf;
	struct endpoint *endpoint = &server->endpoint;

	CHECK(conf->name != NULL && endpoint->server == NULL);
	conf->server = (uint32_t)(server - config->servers);
	conf->line_max = config->response_bytes;
	conf->queue_max = config->http.body_bytes * 2;
	conf->stall_ms = STALL_MS;
	claim_collect(server);
	if (endpoint->path.n == 0)
		endpoint->path = slice_str(mem_printf("/%s/mcp", conf->name));
	endpoint->sse_path = beside(endpoint->path, "sse");
	endpoint->message_path = beside(endpoint->path, "message");
	endpoint->place.server = slice_str(conf->name);
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

/* What servers are told of their principals, each name once: principals keep that and nothing else. */
static void finish_claims(struct config *config)
{
	struct slices *names = &config->claim_names;

	CHECK(names->count == 0);
	for (size_t i = 0; i < config->server_count; i++) {
		const struct slices *claims = &config->servers[i].conf.claims;

		for (size_t j = 0; j < claims->count; j++)
			if (!slices_has(*names, claims->items[j]))
				texts_add(names, claims->items[j]);
	}
}

/* ---- scopes ---- */

static void add_scopes(struct scope_table *table, struct slices names, struct scope_set *set)
{
	for (size_t i = 0; i < names.count; i++)
		scope_table_add(table, names.items[i], set);
}

/* Empty for what is no name; the rules refuse that. */
static struct slice fold(struct slice name)
{
	struct buf folded = { 0 };
	const char *why = tool_name_fold(name, &folded);

	CHECK((why == NULL) == (folded.len > 0));
	buf_terminate(&folded);
	return slice_of(folded.data, folded.len);
}

static void finish_needs(struct scope_table *table, struct protected_resource *place)
{
	size_t count = place->tool_scopes.count;
	struct tool_needs *needs = mem_zalloc((count + 1) * sizeof(*needs));

	CHECK(place->tool_needs == NULL);
	add_scopes(table, place->scopes, &place->base);
	for (size_t i = 0; i < count; i++) {
		needs[i].folded = fold(place->tool_scopes.items[i].name);
		add_scopes(table, place->tool_scopes.items[i].values, &needs[i].scopes);
	}
	place->tool_needs = needs;
}

static void finish_hierarchy(struct scope_table *table, const struct slice_map *hierarchy)
{
	struct scope_set all = { { 0 } };

	for (size_t i = 0; i < hierarchy->count; i++) {
		const struct named_slices *list = &hierarchy->items[i];

		scope_table_add(table, list->name, &all);
		for (size_t j = 0; j < list->values.count; j++)
			scope_table_imply(table, list->name, list->values.items[j]);
	}
}

/* All scopes that are named get their numbers first: only then is known what a token holds of them. */
static void finish_scopes(struct config *config, struct authorization_conf *authorization)
{
	struct scope_table *table = &config->scopes;

	for (size_t i = 0; i < config->server_count; i++)
		finish_needs(table, &config->servers[i].endpoint.place);
	add_scopes(table, authorization->initial_scopes, &authorization->initial);
	finish_hierarchy(table, &authorization->scope_hierarchy);
	authorization->scopes = table;
}

static void finish_token(const struct scope_table *table, struct static_token *token)
{
	for (size_t i = 0; i < token->scopes.count; i++)
		scope_table_find(table, token->scopes.items[i], &token->held);
	/* One that is no hash, the rules refuse. */
	if (token->sha256 != NULL &&
	    text_from_hex(slice_str(token->sha256), token->hash, sizeof(token->hash)) < 0)
		memset(token->hash, 0, sizeof(token->hash));
}

/* ---- names for issuers ---- */

/* What a client asks for at first, separated by spaces. */
static struct slice first_scopes(const struct authorization_conf *authorization,
				 const struct protected_resource *place)
{
	struct scope_set first = place->base;
	struct buf text = { 0 };

	scope_set_join(&first, &authorization->initial);
	scope_table_append(authorization->scopes, &first, &text);
	buf_terminate(&text);
	return slice_of(text.data, text.len);
}

/* The names by which issuers know it. AUTH-PRM-01, -03, AUTH-AUD-02 */
static void finish_names(const struct authorization_conf *authorization, struct endpoint *endpoint)
{
	struct protected_resource *place = &endpoint->place;
	const char *origin = authorization->origin.p;
	struct slice *accepted = mem_zalloc((place->audience.count + 1) * sizeof(*accepted));

	CHECK(authorization->origin.n > 0 && place->accepted.count == 0);
	place->resource = slice_str(mem_printf("%s%s", origin, endpoint->path.p));
	place->metadata = slice_str(
		mem_printf("%s/.well-known/oauth-protected-resource%s", origin, endpoint->path.p));
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

		if (!config->servers[i].enabled)
			continue;
		finish_names(authorization, endpoint);
		resources[metadata->resource_count++] = (struct metadata_resource){
			.path = endpoint->path,
			.resource = endpoint->place.resource,
			.scopes = first_scopes(authorization, &endpoint->place),
		};
	}
}

void finish_config(struct config *config)
{
	struct authorization_conf *authorization = &config->frontend.authorization;

	CHECK(authorization->scopes == NULL);
	config->http.stall_timeout_ms = STALL_MS;
	finish_trust(config);
	finish_hosts(config, authorization->origin);
	for (size_t i = 0; i < config->server_count; i++)
		finish_server(config, &config->servers[i]);
	finish_claims(config);
	finish_scopes(config, authorization);
	for (size_t i = 0; i < authorization->tokens.count; i++)
		finish_token(&config->scopes, &authorization->tokens.items[i]);
	if (authorization->mode == AUTHORIZATION_OAUTH && authorization->origin.n > 0)
		finish_resources(config);
}

static void free_needs(struct protected_resource *place)
{
	struct tool_needs *needs = (struct tool_needs *)(uintptr_t)place->tool_needs;

	for (size_t i = 0; needs != NULL && i < place->tool_scopes.count; i++)
		texts_free_one(&needs[i].folded);
	free(needs);
}

void finish_free(struct config *config)
{
	struct metadata_resource *resources =
		(struct metadata_resource *)(uintptr_t)config->frontend.metadata.resources;

	for (size_t i = 0; i < config->server_count; i++) {
		struct endpoint *endpoint = &config->servers[i].endpoint;

		texts_free(&config->servers[i].conf.claims);
		texts_free_one(&endpoint->sse_path);
		texts_free_one(&endpoint->message_path);
		texts_free_one(&endpoint->place.resource);
		texts_free_one(&endpoint->place.metadata);
		free((void *)(uintptr_t)endpoint->place.accepted.items);
		free_needs(&endpoint->place);
	}
	for (size_t i = 0; i < config->frontend.metadata.resource_count; i++)
		texts_free_one(&resources[i].scopes);
	free(resources);
	texts_free(&config->claim_names);
	texts_free(&config->frontend.hosts);
	free((void *)(uintptr_t)config->http.trust.nets);
}
