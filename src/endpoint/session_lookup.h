/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which session a request names. Streamable HTTP has its id in a field of the head. In HTTP+SSE the query has the id of
 * a client, who may have no session yet: http_sse.c finds him. FRONT-SESS-04, -05, AUTH-SES-01, -02, -03.
 */
#ifndef MCPGATED_ENDPOINT_SESSION_LOOKUP_H
#define MCPGATED_ENDPOINT_SESSION_LOOKUP_H

#include <stdbool.h>

#include "base/slice.h"
#include "endpoint/caller.h"
#include "router/client_session.h"
#include "router/router.h"

/* What a request names, and what there is of it. */
struct session_named {
	bool is_named;
	bool is_known;         /* it is there, and this caller's, at this endpoint */
	bool is_opening;       /* its initialize request is in flight */
	struct client *client; /* NULL: it has not begun yet, or is not known */
};

/* The client of the caller's live session of this id. NULL: there is none; another's is not there. */
struct client *session_lookup(const struct caller *caller, struct slice id);
/* The value of sessionId in a query; empty if it is missing. FRONT-OLD-03 */
struct slice session_lookup_in_query(struct slice query);

#endif
