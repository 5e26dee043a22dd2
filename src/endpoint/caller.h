/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks, and which endpoint: kept from the frontend until the body has arrived, or while a
 * stream lasts.
 */
#pragma once

#include <stdbool.h>

#include "auth/verifier.h"
#include "endpoint/answer.h"
#include "endpoint/authorization.h"
#include "endpoint/frontend.h"
#include "http/parse.h"
#include "io/loop.h"
#include "obs/reason.h"
#include "session/deny_list.h"

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

/* Which of the configuration's endpoints the server has; their count: none. */
size_t endpoint_place(const struct frontend_conf *conf, const struct server *server);

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
/* Another one for each caller; anonymous ones are distinguished by their address. For http_exchange_ops. */
uint64_t caller_number(const struct caller *caller, const struct http_conn *conn);
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

/* ---- the token of an open stream ---- */

/*
 * Watches the token of an open stream, whose client sends nothing that could be judged. The stream
 * ends when the token expires, when a deny list entry names it, when a new configuration would not
 * admit it and, where the issuer is asked about tokens, when the issuer says that it is invalid or
 * has not answered for too long. AUTH-SES-06, -07, AUTH-OPQ-08.
 */

/* `owner` as in token_watch_new. */
struct token_watch_ops {
	/* The stream must end now, cleanly, so that its client reconnects and learns the reason. */
	void (*on_over)(void *owner, enum reason reason);
	/*
	 * A new configuration gives the token these rights. NULL: the next request will pick them
	 * up.
	 */
	void (*on_rights)(void *owner, const struct rights *rights);
};

struct token_watch {
	struct deny_watcher deny_watcher;
	struct list link; /* of auth->watches */
	struct loop *loop;
	struct authorization *authorization;
	struct server *server; /* of `place` */
	const struct protected_resource *place;
	struct access access; /* of whoever opened the stream; set by token_watch_begin */
	struct timer timer;
	struct verifier_wait wait;
	char *token; /* NULL: the issuer is not asked */
	size_t token_size;
	uint64_t ask_at_ms;      /* clock_now_ms */
	uint64_t trust_until_ms; /* likewise: ends then, unless the issuer confirms it */
	void *owner;
	const struct token_watch_ops *ops;
};

/*
 * For the request that opens the stream; what is needed of it is copied. NULL if there is nothing
 * to watch because the client is anonymous; the other functions accept that. Ended by
 * token_watch_end.
 */
struct token_watch *token_watch_new(const struct endpoint_request *request,
				    const struct token_watch_ops *ops, void *owner);
/*
 * The stream has begun, for a token that was just admitted where the caller is. No callback comes
 * before the next turn.
 */
void token_watch_begin(struct token_watch *watch, const struct caller *caller);
/* The caller is at another endpoint now: the token is judged by what that one requires. */
void token_watch_move(struct token_watch *watch, const struct caller *caller);
/*
 * A new configuration is in use: ends the streams whose tokens it would not admit, as far as that
 * is known without the issuer; gives the owners of the others their rights.
 */
void token_watch_judge_all(struct authorization *auth);
/* The stream has ended, or will not begin. Sets the owner's pointer to NULL. */
void token_watch_end(struct token_watch **watch);
