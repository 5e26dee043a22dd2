/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint/endpoint_table.h"

#include "base/text.h"
#include "process/server.h"

/* Whether the endpoint has this path, and in which role. */
static bool is_at(const struct endpoint *endpoint, struct slice path, enum endpoint_role *role_r)
{
	*role_r = slice_is_equal(endpoint->sse_path, path)     ? ENDPOINT_SSE :
		  slice_is_equal(endpoint->message_path, path) ? ENDPOINT_MESSAGE :
								 ENDPOINT_MCP;
	return *role_r != ENDPOINT_MCP || slice_is_equal(endpoint->path, path);
}

/* Whether this is the endpoint to find: no other that is not retired has its path. */
static bool is_it(const struct endpoint *endpoint, struct slice path, enum endpoint_role *role_r)
{
	return endpoint->server != NULL && !endpoint->server->is_retired &&
	       is_at(endpoint, path, role_r);
}

static const struct endpoint *search(const struct frontend_conf *conf, struct slice path,
				     enum endpoint_role *role_r)
{
	const struct endpoint *found = NULL;
	enum endpoint_role role;

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

const struct endpoint *endpoint_find(struct frontend *frontend, struct slice path,
				     enum endpoint_role *role_r)
{
	const struct frontend_conf *conf = &frontend->conf;
	uint32_t *hint = &frontend->hints[text_hash(0, path) % ENDPOINT_HINTS];
	const struct endpoint *found;

	CHECK(conf->endpoint_count == 0 || conf->endpoints != NULL);
	/* The hint is verified, not trusted: servers come and go. */
	if (*hint < conf->endpoint_count && is_it(&conf->endpoints[*hint], path, role_r))
		return &conf->endpoints[*hint];
	found = search(conf, path, role_r);
	if (found != NULL)
		*hint = (uint32_t)(found - conf->endpoints);
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
