/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks, and which endpoint: kept from the frontend until the body has arrived, or while a
 * stream lasts.
 */
#ifndef MCPGATED_ENDPOINT_CALLER_H
#define MCPGATED_ENDPOINT_CALLER_H

#include <stdbool.h>

#include "endpoint/answer.h"
#include "endpoint/authorization.h"
#include "endpoint/frontend.h"
#include "http/parse.h"

/* ---- which endpoint ---- */

/*
 * Maps paths to endpoints: of servers that accept new sessions, or of servers that a reload has
 * retired.
 */

/*
 * The endpoint for this path (without a trailing slash), and the path's role there; NULL: none. A
 * retired one is found only if no other has its path.
 */
const struct endpoint *endpoint_find(struct frontend *frontend, struct slice path,
				     enum endpoint_role *role_r);

/* The endpoint of the server that has this name now, and no legs; NULL: there is none. */
const struct endpoint *endpoint_of_server(const struct frontend_conf *conf, struct slice name);

/* ---- who asks ---- */

struct caller {
	struct frontend *frontend;
	const struct endpoint *endpoint; /* its server and its requirements */
	struct access access;
	char *origin; /* NULL: none */
	char *trace;  /* from trace_of_head; or NULL */
};

void caller_init(struct caller *caller, const struct endpoint_request *request);
/*
 * After a possible reload that replaced its server: binds the caller to `server`, whose session it
 * names, or (NULL) to the server that accepts new sessions. The caller was let in elsewhere, and is
 * judged again by what is required here (authorization_is_current).
 */
void caller_settle(struct caller *caller, const struct server *server);
/* Whether the caller's endpoint has the address of this one, whichever server is there now. */
bool caller_is_at(const struct caller *caller, const struct endpoint *endpoint);
void caller_fini(struct caller *caller);
/* When to retry a request refused for this reason; is_initialize: it asks for a session. */
unsigned int caller_retry_after_s(const struct caller *caller, bool is_initialize,
				  enum reason reason);
/* For answers on `conn`; borrowed from the caller. */
struct answer caller_answer(const struct caller *caller, struct http_conn *conn);

/* ---- trace ---- */

/*
 * The trace in a request's header (W3C Trace Context), in the form for _meta (trace/span).
 */

/*
 * The members of _meta for the header, as JSON text without braces: traceparent, and tracestate if
 * that is valid too. The caller frees the result. NULL: there is no valid traceparent.
 */
char *trace_of_head(const struct http_request *http);

#endif
