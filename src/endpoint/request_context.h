/* SPDX-License-Identifier: Apache-2.0 */
/* What the head of a request to the MCP endpoint says, kept until its body has come. */
#ifndef MCPGATED_ENDPOINT_REQUEST_CONTEXT_H
#define MCPGATED_ENDPOINT_REQUEST_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "endpoint/answer.h"
#include "endpoint/events.h"
#include "endpoint/streamable.h"
#include "jsonrpc/scan.h"
#include "router/client_session.h"
#include "router/router.h"
#include "session/session.h"

#define VERSION_BYTES 32

struct request_context {
	struct frontend *frontend;
	struct server *server;
	const struct protected_resource *place;
	struct access access; /* of whoever asks */
	char *origin;         /* NULL: none */
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

void request_context_init(struct request_context *context,
			  const struct streamable_request *request);
void request_context_fini(struct request_context *context);
/* The session id as it was sent; empty if it can be none. */
struct slice request_context_session(const struct request_context *context);
/* For answers on `conn`; with a session, its id is among their fields. */
struct answer request_context_answer(const struct request_context *context, struct http_conn *conn,
				     const struct session *session);

/*
 * The client of the session that the request names, with a revision that is served. `env` is its message; NULL if
 * there is none, or a batch. NULL: it has answered with an error. FRONT-SESS-03, -04, FRONT-VER-01 … -04, -06.
 */
struct client *request_context_find_client(const struct request_context *context,
					   struct http_conn *conn, const struct envelope *env);

/* Whether the caller may send what needs these scopes. False: it has answered; see challenge_permits. */
bool request_context_permit(const struct request_context *context, struct http_conn *conn,
			    const struct scope_set *needed);
bool request_context_permit_call(const struct request_context *context, struct http_conn *conn,
				 const struct scope_set *needed, struct slice id);

/* Answers with an error; returns NULL. */
struct http_exchange *streamable_refuse(const struct streamable_request *request, int status,
					const char *why);
/* Whether the client takes this media type. FRONT-HTTP-03 */
bool streamable_accepts(const struct http_request *http, const char *type);

#endif
