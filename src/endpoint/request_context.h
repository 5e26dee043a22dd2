/* SPDX-License-Identifier: Apache-2.0 */
/* What the header of a request to the MCP endpoint says, kept until the body has arrived. */
#ifndef MCPGATED_ENDPOINT_REQUEST_CONTEXT_H
#define MCPGATED_ENDPOINT_REQUEST_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "endpoint/admission.h"
#include "endpoint/answer.h"
#include "endpoint/caller.h"
#include "endpoint/modern.h"
#include "session/session.h"

#define VERSION_BYTES 32

struct request_context {
	struct caller caller;
	bool has_session;
	bool has_version;
	bool has_event;
	unsigned char session_length; /* 0: what was sent cannot be an id */
	unsigned char version_length;
	char session[SESSION_ID_LENGTH];
	char version[VERSION_BYTES];
	/* Slices into head_copy, if the version that it names is not a legacy one. */
	struct modern_head head;
	char *head_copy;
};

void request_context_init(struct request_context *context, const struct endpoint_request *request);
void request_context_fini(struct request_context *context);
/* For answers on `conn` in the named session, whose id is then among the header fields. */
struct answer request_context_answer(const struct request_context *context, struct http_conn *conn);
/*
 * Prepares the admission of what came on `conn` with this header; borrowed from the context. The
 * named session counts as known only if it is the caller's, at this endpoint. FRONT-SESS-04, -05,
 * AUTH-SES-01, -02, -03
 */
void request_context_admission(struct request_context *context, const struct http_conn *conn,
			       enum admission_intent intent, struct admission *admission_r);
/* Answers with the refusal. */
void request_context_refuse(const struct request_context *context, struct http_conn *conn,
			    const struct refusal *refusal);

#endif
