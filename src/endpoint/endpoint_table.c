/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint/endpoint_table.h"

#include "process/server.h"

/* Whether the endpoint has this path, and for what. */
static bool is_at(const struct endpoint *endpoint, struct slice path, enum endpoint_role *role_r)
{
	*role_r = slice_is_equal(endpoint->sse_path, path)     ? ENDPOINT_SSE :
		  slice_is_equal(endpoint->message_path, path) ? ENDPOINT_MESSAGE :
								 ENDPOINT_MCP;
	return *role_r != ENDPOINT_MCP || slice_is_equal(endpoint->path, path);
}

const struct endpoint *endpoint_find(const struct frontend_conf *conf, struct slice path,
				     enum endpoint_role *role_r)
{
	const struct endpoint *found = NULL;
	enum endpoint_role role;

	CHECK(conf->endpoint_count == 0 || conf->endpoints != NULL);
	for (size_t i = 0; i < conf->endpoint_count; i++) {
		const struct endpoint *endpoint = &conf->endpoints[i];

		if (endpoint->server == NULL || !is_at(endpoint, path, &role))
			continue;
		found = endpoint;
		*role_r = role;
		if (!endpoint->server->is_retired)
			return endpoint;
	}
	return found;
}

const struct endpoint *endpoint_find_other(const struct frontend_conf *conf,
					   const struct endpoint *endpoint,
					   const struct server *server)
{
	for (size_t i = 0; i < conf->endpoint_count; i++) {
		const struct endpoint *other = &conf->endpoints[i];

		if (other->server != NULL && slice_is_equal(other->path, endpoint->path) &&
		    (server != NULL ? other->server == server : !other->server->is_retired))
			return other;
	}
	return endpoint;
}
