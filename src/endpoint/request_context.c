/* SPDX-License-Identifier: Apache-2.0 */
/* Copies what is needed of a head. */
#include "endpoint/request_context.h"

void request_context_init(struct request_context *context, const struct endpoint_request *request)
{
	struct slice session = request->http->fields[HTTP_MCP_SESSION_ID];
	struct slice version = request->http->fields[HTTP_MCP_PROTOCOL_VERSION];
	struct slice event = request->http->fields[HTTP_LAST_EVENT_ID];

	caller_init(&context->caller, request);
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
	caller_fini(&context->caller);
}

struct slice request_context_session(const struct request_context *context)
{
	return slice_of(context->session,
			context->session_length <= SESSION_ID_LENGTH ? context->session_length : 0);
}

struct answer request_context_answer(const struct request_context *context, struct http_conn *conn,
				     const struct session *session)
{
	struct answer answer = caller_answer(&context->caller, conn);

	if (session != NULL)
		answer.session = session_id(session);
	return answer;
}

struct admission request_context_admission(const struct request_context *context,
					   const struct http_conn *conn,
					   enum admission_intent intent)
{
	struct admission admission = {
		.front = FRONT_STREAMABLE,
		.intent = intent,
		.caller = &context->caller,
		.peer = http_conn_client(conn),
		.names_version = context->has_version,
		.version = slice_of(context->version, context->version_length),
		.session.is_named = context->has_session,
	};

	if (context->has_session)
		admission.session.client =
			session_lookup(&context->caller, request_context_session(context));
	admission.session.is_known = admission.session.client != NULL;
	return admission;
}

void request_context_refuse(const struct request_context *context, struct http_conn *conn,
			    const struct refusal *refusal)
{
	struct answer answer = caller_answer(&context->caller, conn);

	refusal_send(refusal, context->caller.frontend, context->caller.endpoint, &answer);
}
