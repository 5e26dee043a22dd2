/* SPDX-License-Identifier: Apache-2.0 */
/* Which endpoint a path names, and who asks there. Copies what is borrowed. */
#include "endpoint/caller.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "endpoint/frontend.h"
#include "jsonrpc/write.h"
#include "mcp/trace_context.h"
#include "process/server.h"
#include "router/process_slots.h"

/* ---- which endpoint ---- */

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

const struct endpoint *endpoint_of_server(const struct frontend_conf *conf, struct slice name)
{
	for (size_t i = 0; i < conf->endpoint_count; i++) {
		const struct server *server = conf->endpoints[i].server;

		if (server != NULL && !server->is_retired && server->conf.legs.count == 0 &&
		    slice_is_equal(slice_str(server->conf.name), name))
			return &conf->endpoints[i];
	}
	return NULL;
}

/*
 * The endpoint with the same path as this one, for this server; server NULL: one that is not
 * retired. Falls back to `endpoint` itself.
 */
static const struct endpoint *endpoint_find_other(const struct frontend_conf *conf,
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

/* ---- who asks ---- */

void caller_init(struct caller *caller, const struct endpoint_request *request)
{
	struct slice origin = request->answer.origin;

	CHECK(request->access->principal != NULL && request->endpoint->server != NULL);
	*caller = (struct caller){
		.frontend = request->frontend,
		.endpoint = request->endpoint,
		.access = access_copy(request->access),
		.origin = origin.n > 0 ? mem_dup_slice(origin) : NULL,
		.trace = trace_of_head(request->http),
	};
	caller->endpoint->server->users++;
}

bool caller_is_at(const struct caller *caller, const struct endpoint *endpoint)
{
	return caller->endpoint == endpoint ||
	       slice_is_equal(caller->endpoint->path, endpoint->path);
}

void caller_settle(struct caller *caller, const struct server *server)
{
	const struct endpoint *endpoint = caller->endpoint;

	if (server != NULL ? endpoint->server == server : !endpoint->server->is_retired)
		return;
	caller->endpoint = endpoint_find_other(&caller->frontend->conf, endpoint, server);
	if (caller->endpoint == endpoint)
		return;
	caller->access.configuration = 0;
	caller->endpoint->server->users++;
	endpoint->server->users--;
}

void caller_fini(struct caller *caller)
{
	CHECK(caller->endpoint->server->users > 0);
	caller->endpoint->server->users--;
	free(caller->origin);
	free(caller->trace);
	access_fini(&caller->access);
}

unsigned int caller_retry_after_s(const struct caller *caller, bool is_initialize,
				  enum reason reason)
{
	return retry_after_s(caller->frontend->router, caller->endpoint->server,
			     is_initialize ? caller->access.principal : NULL, reason);
}

struct answer caller_answer(const struct caller *caller, struct http_conn *conn)
{
	struct answer answer = { .conn = conn };

	CHECK(caller->access.principal != NULL);
	if (caller->origin != NULL)
		answer.origin = slice_str(caller->origin);
	return answer;
}

/* ---- trace ---- */

static bool has_once(const struct http_request *http, enum http_field field)
{
	return http_has(http, field) && (http->repeated & 1u << field) == 0;
}

char *trace_of_head(const struct http_request *http)
{
	struct slice parent = http->fields[HTTP_TRACEPARENT], state = http->fields[HTTP_TRACESTATE];
	struct buf members = { 0 };
	struct trace_parent read;
	char *text;

	if (!has_once(http, HTTP_TRACEPARENT) || !trace_parent_read(parent, &read))
		return NULL;
	buf_append_str(&members, "\"traceparent\":");
	write_string(&members, parent);
	if (has_once(http, HTTP_TRACESTATE) && trace_state_is_valid(state)) {
		buf_append_str(&members, ",\"tracestate\":");
		write_string(&members, state);
	}
	text = mem_strdup(buf_terminate(&members));
	buf_fini(&members);
	return text;
}
