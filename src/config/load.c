/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the records (listeners, servers) and lets the table fill them: first the defaults of the
 * table, then `defaults:`, then what the record itself says. Frees them as well.
 */
#include "config/load.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "config/file.h"
#include "config/finish.h"
#include "config/problem.h"
#include "config/table.h"
#include "config/texts.h"

#define CA_BYTES_MAX ((size_t)1 << 20)

/* A list's number of items; an absent or commented-out one has one record, made of defaults. */
static size_t count_listen(const struct types_context *context, const struct tree *list)
{
	if (list == NULL || tree_is_null(list))
		return 1;
	if (list->kind != TREE_LIST || list->count == 0)
		problem_add_at(context->problems, list,
			       "must be a list of listeners, like [{address: 127.0.0.1:8808}]");
	return list->kind == TREE_LIST ? list->count : 0;
}

/* One map, or a list of them. */
static void load_tls(const struct types_context *context, const struct tree *value,
		     struct config_listen *listen)
{
	size_t count = value != NULL && value->kind == TREE_LIST ? value->count : 1;

	CHECK(listen->tls == NULL && listen->tls_count == 0);
	if (value == NULL || tree_is_null(value))
		return;
	if (value->kind == TREE_TEXT || count == 0) {
		problem_add_at(context->problems, value,
			       "must be a map like {certificate: FILE, key: FILE}, or a list of "
			       "such maps");
		return;
	}
	listen->tls = mem_zalloc(count * sizeof(*listen->tls));
	listen->tls_count = count;
	for (size_t i = 0; i < count; i++) {
		table_set_defaults(OPTIONS_TLS, &listen->tls[i]);
		table_load(context, OPTIONS_TLS, tree_item(value, i), &listen->tls[i]);
	}
}

static void load_listen(const struct types_context *context, const struct tree *root,
			struct config *config)
{
	const struct tree *list = tree_find(root, "listen");
	size_t count = count_listen(context, list);

	config->listen = mem_zalloc((count + 1) * sizeof(*config->listen));
	config->listen_count = count;
	for (size_t i = 0; i < count; i++) {
		table_set_defaults(OPTIONS_LISTEN, &config->listen[i]);
		if (list == NULL || list->kind != TREE_LIST)
			continue;
		table_load(context, OPTIONS_LISTEN, list->items[i], &config->listen[i]);
		load_tls(context, tree_find(list->items[i], "tls"), &config->listen[i]);
	}
}

static void load_server(const struct types_context *context, const struct tree *defaults,
			const struct tree *value, struct config_server *server)
{
	CHECK(value->key != NULL && server->conf.name == NULL);
	table_set_defaults(OPTIONS_SERVER, server);
	if (defaults != NULL)
		table_load(context, OPTIONS_SERVER, defaults, server);
	table_load(context, OPTIONS_SERVER, value, server);
	server->conf.name = mem_strdup(value->key);
}

static void load_servers(const struct types_context *context, const struct tree *root,
			 struct config *config)
{
	const struct tree *map = tree_find(root, "servers");
	const struct tree *defaults = tree_find(root, "defaults");
	struct config_server unused = { 0 };

	/* Wrong defaults are wrong even where no server uses them. */
	if (defaults != NULL)
		table_load(context, OPTIONS_SERVER, defaults, &unused);
	table_free(OPTIONS_SERVER, &unused);
	if (map == NULL || tree_is_null(map))
		return;
	if (map->kind != TREE_MAP) {
		problem_add_at(context->problems, map, "must be a map of names and servers");
		return;
	}
	config->servers = mem_zalloc((map->count + 1) * sizeof(*config->servers));
	config->server_count = map->count;
	for (size_t i = 0; i < map->count; i++)
		load_server(context, defaults, map->items[i], &config->servers[i]);
}

/* The files that issuers name, while files can be read. */
static void load_authorities(const struct types_context *context, const struct tree *root,
			     const struct verifier_conf *issuers)
{
	for (size_t i = 0; i < issuers->count; i++) {
		const char *path = issuers->items[i].ca_file;
		struct buf text = { 0 };
		struct error err;

		CHECK(issuers->items[i].ca.n == 0);
		if (path == NULL)
			continue;
		if (file_read(path, CA_BYTES_MAX, &text, NULL, &err) != 0)
			problem_add_at(context->problems, tree_find(root, "auth"),
				       "issuers[%zu].ca: %s: %s", i, path, err.text);
		else
			issuers->items[i].ca = slice_of(mem_dup_slice(buf_slice(&text)), text.len);
		buf_fini(&text);
	}
}

void config_free(struct config **config)
{
	struct config *c = *config;

	*config = NULL;
	if (c == NULL)
		return;
	finish_free(c);
	for (size_t i = 0; i < c->listen_count; i++) {
		table_free(OPTIONS_LISTEN, &c->listen[i]);
		for (size_t j = 0; j < c->listen[i].tls_count; j++)
			table_free(OPTIONS_TLS, &c->listen[i].tls[j]);
		free(c->listen[i].tls);
	}
	for (size_t i = 0; i < c->server_count; i++) {
		table_free(OPTIONS_SERVER, &c->servers[i]);
		free((char *)(uintptr_t)c->servers[i].conf.name);
	}
	for (size_t i = 0; i < c->frontend.authorization.issuers.count; i++)
		texts_free_one(&c->frontend.authorization.issuers.items[i].ca);
	table_free(OPTIONS_TOP, c);
	config_problems_fini(&c->warnings);
	free(c->listen);
	free(c->servers);
	free(c);
}

struct config *load_tree(const struct types_context *context, const struct tree *root)
{
	struct config *config = mem_zalloc(sizeof(*config));

	CHECK(context->problems != NULL && context->warnings != NULL && context->resolve != NULL);
	table_set_defaults(OPTIONS_TOP, config);
	table_load(context, OPTIONS_TOP, root, config);
	load_listen(context, root, config);
	load_servers(context, root, config);
	load_authorities(context, root, &config->frontend.authorization.issuers);
	finish_config(config);
	if (context->problems->count > 0)
		config_free(&config);
	return config;
}
