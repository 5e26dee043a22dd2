/* SPDX-License-Identifier: Apache-2.0 */
/* Copies what is needed of a head, and finds the session that it names. */
#include "endpoint/request_context.h"

#include <stdlib.h>

#include "base/mem.h"
#include "endpoint/challenge.h"
#include "endpoint/session_lookup.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "obs/log.h"

void request_context_init(struct request_context *context, const struct streamable_request *request)
{
	struct slice session = request->http->fields[HTTP_MCP_SESSION_ID];
	struct slice version = request->http->fields[HTTP_MCP_PROTOCOL_VERSION];
	struct slice event = request->http->fields[HTTP_LAST_EVENT_ID];

	context->frontend = request->frontend;
	context->server = request->server;
	context->place = request->place;
	context->access = access_copy(request->access);
	context->origin = request->origin.n > 0 ? mem_dup_slice(request->origin) : NULL;
	context->has_session = http_has(request->http, HTTP_MCP_SESSION_ID);
	context->has_version = http_has(request->http, HTTP_MCP_PROTOCOL_VERSION);
	context->session_length = context->has_session ? session.n : 0;
	context->version_length =
		context->has_version ? (version.n < VERSION_BYTES ? version.n : VERSION_BYTES) : 0;
	context->event_length = http_has(request->http, HTTP_LAST_EVENT_ID) ? event.n : 0;
	context->has_event = http_has(request->http, HTTP_LAST_EVENT_ID);
	if (context->event_length > 0 && context->event_length <= EVENT_ID_BYTES)
		memcpy(context->event, event.p, event.n);
	if (context->session_length > 0 && context->session_length <= SESSION_ID_LENGTH)
		memcpy(context->session, session.p, session.n);
	if (context->version_length > 0)
		memcpy(context->version, version.p, context->version_length);
}

void request_context_fini(struct request_context *context)
{
	free(context->origin);
	access_fini(&context->access);
}

struct slice request_context_session(const struct request_context *context)
{
	return slice_of(context->session,
			context->session_length <= SESSION_ID_LENGTH ? context->session_length : 0);
}

struct answer request_context_answer(const struct request_context *context, struct http_conn *conn,
				     const struct session *session)
{
	struct answer answer = { .conn = conn };

	if (context->origin != NULL)
		answer.origin = slice_str(context->origin);
	if (session != NULL)
		answer.session = session_id(session);
	return answer;
}

/* FRONT-VER-01 … -04. Returns false if it has answered. */
static bool request_context_check_version(const struct request_context *context,
					  struct http_conn *conn, const struct route *route,
					  struct slice id)
{
	struct answer answer = request_context_answer(context, conn, NULL);
	const struct revision *revision =
		revision_find(slice_of(context->version, context->version_length));
	struct buf quoted = { 0 };
	struct buf data = { 0 };

	if (!context->has_version)
		return true;
	if (revision != NULL) {
		if (route != NULL && revision != route->revision)
			LOG(SESSION_VERSION, LOG_SLICE("header", revision->name),
			    LOG_SLICE("session", route->revision->name));
		return true;
	}
	write_string(&quoted, slice_of(context->version, context->version_length));
	revision_append_supported(&data, buf_slice(&quoted));
	answer_error(&answer, 400, id, MCP_UNSUPPORTED_VERSION,
		     SLICE_LIT("Unsupported protocol version"), buf_slice(&data));
	buf_fini(&quoted);
	buf_fini(&data);
	return false;
}

/* The route of the session that the request names, or NULL if it has answered. FRONT-SESS-03, -04 */
struct route *request_context_find_route(const struct request_context *context,
					 struct http_conn *conn, struct slice id)
{
	struct answer answer = request_context_answer(context, conn, NULL);
	struct route *route;

	if (!context->has_session) {
		if (request_context_check_version(context, conn, NULL, id))
			answer_error(&answer, 400, id, MCP_INVALID_REQUEST,
				     SLICE_LIT("Bad request: the Mcp-Session-Id header is missing"),
				     (struct slice){ NULL, 0 });
		return NULL;
	}
	route = session_lookup(context->frontend->router, context->server,
			       context->access.principal, request_context_session(context));
	if (route == NULL) {
		answer_error(&answer, 404, id, MCP_SESSION_NOT_FOUND,
			     SLICE_LIT("Session not found"), (struct slice){ NULL, 0 });
		return NULL;
	}
	return request_context_check_version(context, conn, route, id) ? route : NULL;
}

bool request_context_permit(const struct request_context *context, struct http_conn *conn,
			    const struct scope_set *needed)
{
	return request_context_permit_call(context, conn, needed, (struct slice){ NULL, 0 });
}

bool request_context_permit_call(const struct request_context *context, struct http_conn *conn,
				 const struct scope_set *needed, struct slice id)
{
	struct answer answer = request_context_answer(context, conn, NULL);

	return challenge_permits_call(&context->frontend->authorization, context->place,
				      &context->access, needed, &answer, id);
}

struct http_exchange *streamable_refuse(const struct streamable_request *request, int status,
					const char *why)
{
	struct answer answer = { .conn = request->conn, .origin = request->origin };

	LOG(REQUEST_REFUSED, LOG_INT("status", status), LOG_STR("reason", why));
	answer_error(&answer, status, (struct slice){ NULL, 0 }, MCP_INVALID_REQUEST,
		     slice_str(why), (struct slice){ NULL, 0 });
	return NULL;
}

/* Without Accept, or with one that is spread over several fields, anything is taken. FRONT-HTTP-03 */
bool streamable_accepts(const struct http_request *http, const char *type)
{
	if (!http_has(http, HTTP_ACCEPT) || http->repeated & 1u << HTTP_ACCEPT)
		return true;
	return http_accepts(http->fields[HTTP_ACCEPT], type);
}
