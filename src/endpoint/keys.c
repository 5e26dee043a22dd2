/* SPDX-License-Identifier: Apache-2.0 */
/* Copies what is needed of a head, and finds the session that it names. */
#include "endpoint/keys.h"

#include <stdlib.h>

#include "base/mem.h"
#include "endpoint/challenge.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "obs/log.h"

void keys_init(struct keys *keys, const struct streamable_request *request)
{
	struct slice session = request->http->fields[HTTP_MCP_SESSION_ID];
	struct slice version = request->http->fields[HTTP_MCP_PROTOCOL_VERSION];
	struct slice event = request->http->fields[HTTP_LAST_EVENT_ID];

	keys->gate = request->gate;
	keys->backend = request->backend;
	keys->place = request->place;
	keys->access = access_copy(request->access);
	keys->origin = request->origin.n > 0 ? mem_dup_slice(request->origin) : NULL;
	keys->has_session = http_has(request->http, HTTP_MCP_SESSION_ID);
	keys->has_version = http_has(request->http, HTTP_MCP_PROTOCOL_VERSION);
	keys->session_length = keys->has_session ? session.n : 0;
	keys->version_length =
		keys->has_version ? (version.n < VERSION_BYTES ? version.n : VERSION_BYTES) : 0;
	keys->event_length = http_has(request->http, HTTP_LAST_EVENT_ID) ? event.n : 0;
	keys->has_event = http_has(request->http, HTTP_LAST_EVENT_ID);
	if (keys->event_length > 0 && keys->event_length <= EVENT_ID_BYTES)
		memcpy(keys->event, event.p, event.n);
	if (keys->session_length > 0 && keys->session_length <= SESSION_ID_LENGTH)
		memcpy(keys->session, session.p, session.n);
	if (keys->version_length > 0)
		memcpy(keys->version, version.p, keys->version_length);
}

void keys_fini(struct keys *keys)
{
	free(keys->origin);
	access_fini(&keys->access);
}

struct slice keys_session(const struct keys *keys)
{
	return slice_of(keys->session,
			keys->session_length <= SESSION_ID_LENGTH ? keys->session_length : 0);
}

struct answer keys_answer(const struct keys *keys, struct http_conn *conn,
			  const struct session *session)
{
	struct answer answer = { .conn = conn };

	if (keys->origin != NULL)
		answer.origin = slice_str(keys->origin);
	if (session != NULL)
		answer.session = session_id(session);
	return answer;
}

/* FRONT-VER-01 … -04. Returns false if it has answered. */
static bool keys_check_version(const struct keys *keys, struct http_conn *conn,
			       const struct route *route, struct slice id)
{
	struct answer answer = keys_answer(keys, conn, NULL);
	const struct revision *revision =
		revision_find(slice_of(keys->version, keys->version_length));
	struct buf quoted = { 0 };
	struct buf data = { 0 };

	if (!keys->has_version)
		return true;
	if (revision != NULL) {
		if (route != NULL && revision != route->revision)
			LOG(SESSION_VERSION, LOG_SLICE("header", revision->name),
			    LOG_SLICE("session", route->revision->name));
		return true;
	}
	write_string(&quoted, slice_of(keys->version, keys->version_length));
	revision_append_supported(&data, buf_slice(&quoted));
	answer_error(&answer, 400, id, MCP_UNSUPPORTED_VERSION,
		     SLICE_LIT("Unsupported protocol version"), buf_slice(&data));
	buf_fini(&quoted);
	buf_fini(&data);
	return false;
}

/* The route of the session that the request names, or NULL if it has answered. FRONT-SESS-03, -04 */
struct route *keys_find_route(const struct keys *keys, struct http_conn *conn, struct slice id)
{
	struct answer answer = keys_answer(keys, conn, NULL);
	struct session *session;

	if (!keys->has_session) {
		if (keys_check_version(keys, conn, NULL, id))
			answer_error(&answer, 400, id, MCP_INVALID_REQUEST,
				     SLICE_LIT("Bad request: the Mcp-Session-Id header is missing"),
				     (struct slice){ NULL, 0 });
		return NULL;
	}
	session = session_find(&keys->gate->router->sessions, keys_session(keys),
			       keys->access.principal);
	if (session == NULL || route_of(session)->backend != keys->backend) {
		answer_error(&answer, 404, id, MCP_SESSION_NOT_FOUND,
			     SLICE_LIT("Session not found"), (struct slice){ NULL, 0 });
		return NULL;
	}
	if (!keys_check_version(keys, conn, route_of(session), id))
		return NULL;
	session_hold(session); /* the time since the last request begins anew */
	session_release(session);
	return route_of(session);
}

bool keys_permit(const struct keys *keys, struct http_conn *conn, const struct scope_set *needed)
{
	return keys_permit_call(keys, conn, needed, (struct slice){ NULL, 0 });
}

bool keys_permit_call(const struct keys *keys, struct http_conn *conn,
		      const struct scope_set *needed, struct slice id)
{
	struct answer answer = keys_answer(keys, conn, NULL);

	return challenge_permits_call(&keys->gate->guard, keys->place, &keys->access, needed,
				      &answer, id);
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
