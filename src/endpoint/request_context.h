/* SPDX-License-Identifier: Apache-2.0 */
/* What the head of a request to the MCP endpoint says, kept until its body has come. */
#ifndef MCPGATED_ENDPOINT_REQUEST_CONTEXT_H
#define MCPGATED_ENDPOINT_REQUEST_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "endpoint/admission.h"
#include "endpoint/answer.h"
#include "endpoint/caller.h"
#include "endpoint/events.h"
#include "session/session.h"

#define VERSION_BYTES 32

struct request_context {
	struct caller caller;
	bool has_session;
	bool has_version;
	bool has_event;
	size_t session_length; /* as sent; what is longer than an id is no id */
	size_t version_length;
	size_t event_length; /* as sent; what is longer than EVENT_ID_BYTES is no id */
	char session[SESSION_ID_LENGTH];
	char version[VERSION_BYTES];
	char event[EVENT_ID_BYTES];
};

void request_context_init(struct request_context *context, const struct endpoint_request *request);
void request_context_fini(struct request_context *context);
/* The session id as it was sent; empty if it can be none. */
struct slice request_context_session(const struct request_context *context);
/* For answers on `conn`; with a session, its id is among their fields. */
struct answer request_context_answer(const struct request_context *context, struct http_conn *conn,
				     const struct session *session);
/* What came on `conn` behind this head, to be admitted; borrowed from the context. */
struct admission request_context_admission(const struct request_context *context,
					   const struct http_conn *conn,
					   enum admission_intent intent);
/* Answers with why it was not. */
void request_context_refuse(const struct request_context *context, struct http_conn *conn,
			    const struct refusal *refusal);

#endif
