/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything before MCP: Host and Origin (origin.h), path, preflight, method. A refusal costs only
 * the answer: no session, no child, and the body is not read. FRONT-SEC-01, -02, SEC-01.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "endpoint/answer.h"
#include "endpoint/authorization.h"
#include "endpoint/catalogue.h"
#include "endpoint/metadata.h"
#include "http/conn.h"
#include "policy/arguments.h"
#include "session/session.h"

struct cluster;

/* Whether a POST is answered with JSON or events, if the client accepts both. */
enum frontend_response { FRONTEND_RESPONSE_AUTO, FRONTEND_RESPONSE_JSON, FRONTEND_RESPONSE_SSE };

struct endpoint {
	struct slice path;     /* none of the three ends in '/', except "/" itself */
	struct slice sse_path; /* HTTP+SSE: its stream, and where messages are posted */
	struct slice message_path;
	struct server *server;
	struct slice
		card; /* what the operator says of it publicly, a JSON object; empty: nothing */
	struct protected_resource place;
	struct argument_rules arguments; /* for its tools and prompts */
};

/* All borrowed for the life of the frontend, or until frontend_renew. */
struct frontend_conf {
	/*
	 * Entries without a server are unused. An entry whose server is retired serves its
	 * remaining sessions; another one may have the same path. An entry keeps its position as
	 * long as its server has users.
	 */
	const struct endpoint *endpoints;
	size_t endpoint_count;
	struct slices hosts;   /* names without port, in lower case, IPv6 in brackets */
	struct slices origins; /* scheme://host[:port] */
	struct authorization_conf authorization;
	struct metadata_conf metadata;
	struct cluster *cluster; /* whose sessions may be asked for; NULL: there is none */
	bool is_operators;       /* of the admin socket */
	enum frontend_response response;
	uint64_t grace_ms;     /* AUTO: a longer call gets an event stream */
	uint64_t keepalive_ms; /* of event streams */
	uint64_t retry_ms;     /* reconnection time for clients of event streams */
	uint64_t reconnect_ms; /* how long an HTTP+SSE client may take to return; 0: it may not */
	uint64_t max_connection_age_ms; /* of a connection with an event stream; 0: unlimited */
};

/* The roles of an endpoint's paths. */
enum endpoint_role { ENDPOINT_MCP, ENDPOINT_SSE, ENDPOINT_MESSAGE };

/* A request to an endpoint. All borrowed. */
struct endpoint_request {
	struct frontend *frontend;
	const struct endpoint *endpoint;
	enum endpoint_role role;
	const struct access *access; /* of the sender; set once admitted by the header */
	const struct http_request *http;
	struct answer answer; /* how to answer it */
	uint16_t
		lost_before; /* of the cluster, if there is one: its lost_count when the head came */
};

struct pending_auth;
struct router;
struct server;

#define ENDPOINT_HINTS 256 /* further endpoints are found by linear search */

struct frontend {
	struct http_handler handler;
	struct frontend_conf conf;
	struct router *router;
	struct authorization authorization;
	struct metadata metadata;
	uint32_t hints[ENDPOINT_HINTS];   /* by a hash of the path: where it was last found */
	struct pending_auth *spare;       /* preallocated for the next request that has to wait */
	struct session_table sse_clients; /* of HTTP+SSE */
	struct list sse_newcomers;        /* those without a session */
	bool is_leaving;                  /* not ready any more */
	const struct principal *last;     /* who sent the last request; only compared */
	uint64_t shared_until_ms;         /* until then callers have to share the loop */
	struct list sse_lost;             /* those without a connection */
	struct task sse_room;             /* ends some of sse_lost */
	struct catalogues catalogues;     /* of the endpoints over several servers */
};

void frontend_init(struct frontend *frontend, struct router *router,
		   const struct frontend_conf *conf);
/* Switches to another configuration; `is_operators` must not change. */
void frontend_renew(struct frontend *frontend, const struct frontend_conf *conf);
/* No connections may be left. */
void frontend_fini(struct frontend *frontend);
/* The gateway will stop soon: /readyz fails from now on. */
void frontend_leave(struct frontend *frontend);
/* The gateway is about to stop: ends what has not begun. */
void frontend_drain(struct frontend *frontend);

/* ---- landing ---- */

/*
 * The page for a person whose browser was pointed here: what this is, and how clients connect. It
 * is the same at every path, so it reveals no servers, except to this machine's own user where no
 * token is required. It loads nothing, runs nothing, and cannot be framed.
 *
 * Whether it is wanted: it is a browser's navigation, a GET that accepts text/html by name and no
 * event stream. MCP clients differ.
 */
bool landing_is_wanted(const struct frontend *frontend, const struct http_request *request);
