/* SPDX-License-Identifier: Apache-2.0 */
/* An id is no credential: the session must be the caller's. */
#include "endpoint/session_lookup.h"

struct client *session_lookup(const struct caller *caller, struct slice id)
{
	struct session *session =
		session_find(&caller->frontend->router->sessions, id, caller->access.principal);

	if (session == NULL || client_session_client(session)->server != caller->endpoint->server)
		return NULL;
	CHECK(session->state == SESSION_LIVE);
	return client_session_client(session);
}

struct slice session_lookup_in_query(struct slice query)
{
	while (query.n > 0) {
		struct slice value = slice_cut(&query, '&');
		struct slice name = slice_cut(&value, '=');

		if (slice_is_equal(name, SLICE_LIT("sessionId")))
			return value;
	}
	return (struct slice){ NULL, 0 };
}
