/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which session a request names. Streamable HTTP has its id in a field of the head. In HTTP+SSE the query has the id of
 * a client, who may have no session yet: http_sse.c finds him. FRONT-SESS-04, -05, AUTH-SES-01, -02, -03.
 */
#ifndef MCPGATED_ENDPOINT_SESSION_LOOKUP_H
#define MCPGATED_ENDPOINT_SESSION_LOOKUP_H

#include "base/slice.h"
#include "router/route.h"

/*
 * The route of the live session of this id. NULL: there is none, or it is another principal's or another server's,
 * which looks the same. The time since its last request begins anew.
 */
struct route *session_lookup(struct router *router, const struct server *server,
			     const struct principal *principal, struct slice id);
/* The value of sessionId in a query; empty if it is missing. FRONT-OLD-03 */
struct slice session_lookup_in_query(struct slice query);

#endif
