/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All scopes that the configuration names get their numbers first: only then is known what a token holds of
 * them. Texts stay where the configuration has them.
 */
#include "authorization.h"

#include <stdlib.h>

#include "base/mem.h"

static void add_scopes(struct scope_table *table, const struct config_texts *texts,
		       struct scope_set *set)
{
	for (size_t i = 0; i < texts->count; i++)
		scope_table_add(table, slice_str(texts->items[i]), set);
}

static void number_scopes(struct scope_table *table, const struct config *config)
{
	struct scope_set all = { { 0 } };

	for (size_t i = 0; i < config->server_count; i++) {
		const struct config_server *server = &config->servers[i];

		add_scopes(table, &server->scopes, &all);
		for (size_t j = 0; j < server->tool_scopes.count; j++)
			add_scopes(table, &server->tool_scopes.items[j].texts, &all);
	}
	for (size_t i = 0; i < config->auth.scope_hierarchy.count; i++) {
		const struct config_list *list = &config->auth.scope_hierarchy.items[i];

		for (size_t j = 0; j < list->texts.count; j++)
			scope_table_imply(table, slice_str(list->name),
					  slice_str(list->texts.items[j]));
	}
}

static unsigned char digit_of(char c)
{
	return (unsigned char)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

static void read_hash(const char *digits, unsigned char hash_r[GUARD_HASH_BYTES])
{
	for (size_t i = 0; i < GUARD_HASH_BYTES; i++)
		hash_r[i] =
			(unsigned char)(digit_of(digits[2 * i]) << 4 | digit_of(digits[2 * i + 1]));
}

static struct slice *slices_of(const struct config_texts *texts)
{
	struct slice *slices = mem_zalloc((texts->count + 1) * sizeof(*slices));

	for (size_t i = 0; i < texts->count; i++)
		slices[i] = slice_str(texts->items[i]);
	return slices;
}

static void make_tokens(struct authorization *a, const struct config *config)
{
	size_t count = config->auth.tokens.count;

	a->tokens = mem_zalloc((count + 1) * sizeof(*a->tokens));
	a->servers = mem_zalloc((count + 1) * sizeof(*a->servers));
	for (size_t i = 0; i < count; i++) {
		const struct config_token *from = &config->auth.tokens.items[i];
		struct guard_token *token = &a->tokens[i];

		a->servers[i] = slices_of(&from->servers);
		*token = (struct guard_token){
			.name = slice_str(from->name),
			.servers = a->servers[i],
			.server_count = from->servers.count,
			.ends_at_ms = from->expires_ms > 0 ? from->expires_ms : UINT64_MAX,
		};
		read_hash(from->sha256, token->sha256);
		for (size_t j = 0; j < from->scopes.count; j++)
			scope_table_find(&a->scopes, slice_str(from->scopes.items[j]),
					 &token->scopes);
	}
}

void authorization_init(struct authorization *a, const struct config *config)
{
	static const enum guard_mode modes[] = {
		[CONFIG_AUTH_NONE] = GUARD_OPEN,
		[CONFIG_AUTH_TOKEN] = GUARD_TOKEN,
		[CONFIG_AUTH_ANONYMOUS] = GUARD_OPEN,
	};

	*a = (struct authorization){ .place_count = 0 };
	number_scopes(&a->scopes, config);
	make_tokens(a, config);
	a->tools = mem_zalloc((config->server_count + 1) * sizeof(*a->tools));
	a->guard = (struct guard_conf){
		.mode = modes[config->auth.mode],
		.scopes = &a->scopes,
		.tokens = a->tokens,
		.token_count = config->auth.tokens.count,
		.names_held = config->auth.challenge_held,
	};
}

struct guard_place authorization_make_place(struct authorization *a,
					    const struct config_server *server)
{
	size_t count = server->tool_scopes.count;
	struct guard_tool *tools = mem_zalloc((count + 1) * sizeof(*tools));
	struct guard_place place = {
		.server = slice_str(server->name),
		.tools = tools,
		.tool_count = count,
	};

	add_scopes(&a->scopes, &server->scopes, &place.base);
	for (size_t i = 0; i < count; i++) {
		tools[i].pattern = slice_str(server->tool_scopes.items[i].name);
		add_scopes(&a->scopes, &server->tool_scopes.items[i].texts, &tools[i].needed);
	}
	a->tools[a->place_count++] = tools;
	return place;
}

void authorization_fini(struct authorization *a)
{
	for (size_t i = 0; i < a->guard.token_count; i++)
		free(a->servers[i]);
	for (size_t i = 0; i < a->place_count; i++)
		free(a->tools[i]);
	free(a->servers);
	free(a->tools);
	free(a->tokens);
}
