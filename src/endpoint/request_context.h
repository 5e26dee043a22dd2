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
#include "endpoint/modern.h"
#include "session/session.h"

#define VERSION_BYTES 32

struct request_context {
	struct caller caller;
	bool has_session;
	bool has_version;
	bool has_event;
	size_t session_length; /* 0: what was sent can be no id */
	size_t version_length;
	size_t event_length; /* likewise */
	char session[SESSION_ID_LENGTH];
	char version[VERSION_BYTES];
	char event[EVENT_ID_BYTES];
	struct modern_head
		head; /* slices into head_copy, if the version that it names is no legacy one */
	char *head_copy;
};

void request_context_init(struct request_context *context, const struct endpoint_request *request);
void request_context_fini(struct request_context *context);
/* For answers on `conn` in the session that is named: its id is among their fields. */
struct answer request_context_answer(const struct request_context *context, struct http_conn *conn);
/*
 * What came on `conn` behind this head, to be admitted; borrowed from the context. The session that it names is known if
 * it is the caller's, at this endpoint. FRONT-SESS-04, -05, AUTH-SES-01, -02, -03
 */
void request_context_admission(struct request_context *context, const struct http_conn *conn,
			       enum admission_intent intent, struct admission *admission_r);
/* Answers with why it was not. */
void request_context_refuse(const struct request_context *context, struct http_conn *conn,
			    const struct refusal *refusal);

#endif
