/* SPDX-License-Identifier: Apache-2.0 */
/* What the head of a request to the MCP endpoint says, kept until its body has come. */
#ifndef MCPGATED_ENDPOINT_KEYS_H
#define MCPGATED_ENDPOINT_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "endpoint/answer.h"
#include "endpoint/events.h"
#include "endpoint/streamable.h"
#include "router/route.h"
#include "session/session.h"

#define VERSION_BYTES 32

struct keys {
	struct gate *gate;
	struct backend *backend;
	const struct guard_place *place;
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

void keys_init(struct keys *keys, const struct streamable_request *request);
void keys_fini(struct keys *keys);
/* The session id as it was sent; empty if it can be none. */
struct slice keys_session(const struct keys *keys);
/* For answers on `conn`; with a session, its id is among their fields. */
struct answer keys_answer(const struct keys *keys, struct http_conn *conn,
			  const struct session *session);

/*
 * The route of the session that the request names, with a revision that is known. NULL: it has answered with
 * an error for the request `id` (or empty). FRONT-SESS-03, -04, FRONT-VER-01 … -04.
 */
struct route *keys_find_route(const struct keys *keys, struct http_conn *conn, struct slice id);

/* Whether the caller may send what needs these scopes. False: it has answered; see challenge_permits. */
bool keys_permit(const struct keys *keys, struct http_conn *conn, const struct scope_set *needed);
bool keys_permit_call(const struct keys *keys, struct http_conn *conn,
		      const struct scope_set *needed, struct slice id);

/* Answers with an error; returns NULL. */
struct http_exchange *streamable_refuse(const struct streamable_request *request, int status,
					const char *why);
/* Whether the client takes this media type. FRONT-HTTP-03 */
bool streamable_accepts(const struct http_request *http, const char *type);

#endif
