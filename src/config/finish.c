/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes what the options say as it is, good or not: the rules, which judge it, see both. Texts that others
 * point to stay where the options put them.
 */
#include "config/finish.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "config/claim.h"
#include "config/texts.h"
#include "io/peer.h"

#define STALL_MS (30 * 1000)

/* "/a/mcp" -> "/a/LAST"; a path that ends otherwise gets one part more. product.md §3 */
static char *beside(const char *path, const char *last)
{
	size_t length = strlen(path);

	if (length >= 4 && strcmp(path + length - 4, "/mcp") == 0)
		length -= 4;
	else if (length >= 1 && path[length - 1] == '/')
		length--;
	return mem_printf("%.*s/%s", (int)length, path, last);
}

static uint64_t find_tool_timeout(const struct server_conf *conf, struct slice tool)
{
	for (size_t i = 0; i < conf->tool_timeouts.count; i++)
		if (slice_is_equal(conf->tool_timeouts.items[i].tool, tool))
			return conf->tool_timeouts.items[i].timeout_ms;
	return 0;
}

static void finish_server(const struct config *config, struct config_server *server)
{
	struct server_conf *conf = &server->conf;

	conf->server = (uint32_t)(server - config->servers);
	conf->line_max = config->response_bytes;
	conf->queue_max = config->http.body_bytes * 2;
	conf->stall_ms = STALL_MS;
	conf->tool_timeout_ms = conf->tool_timeouts.count > 0 ? find_tool_timeout : NULL;
	claim_collect(server);
	if (server->path == NULL)
		server->path = mem_printf("/%s/mcp", conf->name);
	server->sse_path = beside(server->path, "sse");
	server->message_path = beside(server->path, "message");
}

/* What is none is the rules' business. */
static void finish_trust(struct config *config)
{
	size_t count = config->trusted_proxies.count;
	struct peer_net *nets = mem_zalloc((count + 1) * sizeof(*nets));
	struct http_trust *trust = &config->http.trust;

	trust->nets = nets;
	for (size_t i = 0; i < count; i++)
		if (peer_net_parse(config->trusted_proxies.items[i], &nets[trust->count]))
			trust->count++;
}

void finish_config(struct config *config)
{
	config->http.stall_timeout_ms = STALL_MS;
	finish_trust(config);
	for (size_t i = 0; i < config->server_count; i++)
		finish_server(config, &config->servers[i]);
}

void finish_free(struct config *config)
{
	free((struct peer_net *)(uintptr_t)config->http.trust.nets);
	for (size_t i = 0; i < config->server_count; i++) {
		struct config_server *server = &config->servers[i];
		struct slices claims = { server->conf.claims, server->conf.claim_count };

		texts_free(&claims);
		free(server->sse_path);
		free(server->message_path);
	}
}
