/* SPDX-License-Identifier: Apache-2.0 */
/* What is not the caller's is not there. */
#include "endpoint/session_lookup.h"

struct route *session_lookup(struct router *router, const struct server *server,
			     const struct principal *principal, struct slice id)
{
	struct session *session = session_find(&router->sessions, id, principal);

	if (session == NULL || route_of(session)->server != server)
		return NULL;
	session_hold(session); /* begins the idle time anew */
	session_release(session);
	return route_of(session);
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
