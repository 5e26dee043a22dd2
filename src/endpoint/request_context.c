/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies what is needed from a head. A session's id is no credential: the session must belong to
 * the caller.
 */
#include "endpoint/request_context.h"

#include <limits.h>
#include <stdlib.h>

#include "mcp/revision.h"
#include "router/client_session.h"
#include "router/router.h"

/* Returns its length; 0: there is no such field, or it is too long to be one of ours. */
static unsigned char keep(struct slice field, char *place, size_t max)
{
	CHECK(max <= UCHAR_MAX);
	if (field.n == 0 || field.n > max)
		return 0;
	memcpy(place, field.p, field.n);
	return (unsigned char)field.n;
}

void request_context_init(struct request_context *context, const struct endpoint_request *request)
{
	const struct http_request *http = request->http;
	struct slice version = http->fields[HTTP_MCP_PROTOCOL_VERSION];

	caller_init(&context->caller, request);
	context->has_session = http_has(http, HTTP_MCP_SESSION_ID);
	context->has_version = http_has(http, HTTP_MCP_PROTOCOL_VERSION);
	context->has_event = http_has(http, HTTP_LAST_EVENT_ID);
	if (version.n > VERSION_BYTES)
		version.n = VERSION_BYTES;
	context->version_length = keep(version, context->version, VERSION_BYTES);
	context->session_length =
		keep(http->fields[HTTP_MCP_SESSION_ID], context->session, SESSION_ID_LENGTH);
	context->head = (struct modern_head){ .version = version };
	context->head_copy = NULL;
	if (context->has_version && revision_find(version) == NULL) {
		struct modern_head head;

		modern_head_read(http, &head);
		context->head_copy = modern_head_copy(&head, &context->head);
	} else {
		context->head.version = slice_of(context->version, context->version_length);
	}
}

void request_context_fini(struct request_context *context)
{
	caller_fini(&context->caller);
	free(context->head_copy);
}

struct answer request_context_answer(const struct request_context *context, struct http_conn *conn)
{
	struct answer answer = caller_answer(&context->caller, conn);

	answer.session = slice_of(context->session, context->session_length);
	return answer;
}

void request_context_admission(struct request_context *context, const struct http_conn *conn,
			       enum admission_intent intent, struct admission *admission_r)
{
	struct caller *caller = &context->caller;
	struct session *session = NULL;

	admission_init(admission_r);
	admission_r->front = FRONT_STREAMABLE;
	admission_r->intent = intent;
	admission_r->caller = caller;
	admission_r->peer = http_conn_client(conn);
	admission_r->is_resuming = context->has_event;
	admission_r->names_version = context->has_version;
	admission_r->version = slice_of(context->version, context->version_length);
	admission_r->head = &context->head;
	admission_r->session.is_named = context->has_session;
	admission_r->session.id = slice_of(context->session, context->session_length);
	if (context->has_session)
		session = session_find(&caller->frontend->router->sessions, admission_r->session.id,
				       caller->access.principal);
	if (session != NULL)
		client_session_warm(session);
	caller_settle(&context->caller,
		      session != NULL ? client_session_client(session)->server : NULL);
	if (session != NULL && client_session_client(session)->server == caller->endpoint->server) {
		CHECK(session->state == SESSION_LIVE);
		admission_r->session.is_known = true;
		admission_r->session.client = client_session_client(session);
	}
}

void request_context_refuse(const struct request_context *context, struct http_conn *conn,
			    const struct refusal *refusal)
{
	struct answer answer = caller_answer(&context->caller, conn);

	refusal_send(refusal, context->caller.frontend, context->caller.endpoint, &answer);
}
