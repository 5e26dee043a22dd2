/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that comes before MCP: Host and Origin (origin.h), path, preflight, method. Refusals cost nothing but the
 * answer: no session, no child, no body is read. FRONT-SEC-01, -02, SEC-01.
 */
#ifndef MCPGATED_ENDPOINT_FRONTEND_H
#define MCPGATED_ENDPOINT_FRONTEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "endpoint/answer.h"
#include "endpoint/authorization.h"
#include "endpoint/metadata.h"
#include "http/conn.h"
#include "policy/argument_rules.h"
#include "session/session.h"

/* Whether a POST is answered with JSON or events, where the client leaves the choice. */
enum frontend_response { FRONTEND_RESPONSE_AUTO, FRONTEND_RESPONSE_JSON, FRONTEND_RESPONSE_SSE };

struct endpoint {
	struct slice path;     /* none of the three ends in '/', but "/" itself */
	struct slice sse_path; /* HTTP+SSE: its stream, and where its messages go */
	struct slice message_path;
	struct server *server;
	struct protected_resource place;
	struct argument_rules arguments; /* of its tools and prompts */
};

/* All borrowed for the frontend's life, or until frontend_renew. */
struct frontend_conf {
	/*
	 * Those without a server are none. One whose server is retired is there for the sessions that it has; another one
	 * may have its path. An entry stays where it is for as long as its server has users.
	 */
	const struct endpoint *endpoints;
	size_t endpoint_count;
	struct slices hosts;   /* names without port, lower case, IPv6 in brackets */
	struct slices origins; /* scheme://host[:port] */
	struct authorization_conf authorization;
	struct metadata_conf metadata;
	bool is_operators; /* the admin socket */
	enum frontend_response response;
	uint64_t grace_ms;     /* a call that takes longer gets an event stream, with AUTO */
	uint64_t keepalive_ms; /* of event streams */
	uint64_t retry_ms;     /* when clients shall come back to one */
	uint64_t reconnect_ms; /* how long one of HTTP+SSE may take to; 0: it may not */
	uint64_t max_connection_age_ms; /* of a connection with one; 0: any */
};

/* What a path of an endpoint is for. */
enum endpoint_role { ENDPOINT_MCP, ENDPOINT_SSE, ENDPOINT_MESSAGE };

/* A request for an endpoint. All borrowed. */
struct endpoint_request {
	struct frontend *frontend;
	const struct endpoint *endpoint;
	enum endpoint_role role;
	const struct access *access; /* of whoever asks; set once it was let in by its head */
	const struct http_request *http;
	struct answer answer; /* where it is answered */
};

struct pending_auth;
struct router;
struct server;

#define ENDPOINT_HINTS 256 /* more endpoints than these are found by looking at each */

struct frontend {
	struct http_handler handler;
	struct frontend_conf conf;
	struct router *router;
	struct authorization authorization;
	struct metadata metadata;
	uint32_t hints[ENDPOINT_HINTS];   /* by a hash of the path: where it was found last */
	struct pending_auth *spare;       /* for the next request that may have to wait */
	struct session_table sse_clients; /* of HTTP+SSE */
	struct list sse_newcomers;        /* those that have no session yet */
	bool is_leaving;                  /* not ready any more */
	struct list sse_lost;             /* those that have no connection */
	struct task sse_room;             /* ends some of these */
};

void frontend_init(struct frontend *frontend, struct router *router,
		   const struct frontend_conf *conf);
/* Another configuration; `is_operators` does not change. */
void frontend_renew(struct frontend *frontend, const struct frontend_conf *conf);
/* No connection may be left. */
void frontend_fini(struct frontend *frontend);
/* The gateway will stop soon: /readyz says so. */
void frontend_leave(struct frontend *frontend);
/* The gateway is about to stop: what has not begun is ended. */
void frontend_drain(struct frontend *frontend);

#endif
