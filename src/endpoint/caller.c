/* SPDX-License-Identifier: Apache-2.0 */
/* Copies what is borrowed. */
#include "endpoint/caller.h"

#include <stdlib.h>

#include "base/mem.h"
#include "endpoint/frontend.h"
#include "jsonrpc/write.h"
#include "mcp/trace_context.h"
#include "process/server.h"
#include "router/retry_after.h"

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
