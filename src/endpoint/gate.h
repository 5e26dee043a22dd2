/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that comes before MCP: path, Host, Origin, preflight, method. Refusals cost nothing but the
 * answer: no session, no child, no body is read. FRONT-SEC-01, -02, SEC-01.
 */
#ifndef MCPGATED_ENDPOINT_GATE_H
#define MCPGATED_ENDPOINT_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "endpoint/answer.h"
#include "endpoint/guard.h"
#include "endpoint/metadata.h"
#include "http/conn.h"
#include "router/route.h"

/* Whether a POST is answered with JSON or events, where the client leaves the choice. */
enum gate_response { GATE_RESPONSE_AUTO, GATE_RESPONSE_JSON, GATE_RESPONSE_SSE };

struct gate_endpoint {
	struct slice path;
	struct slice sse_path; /* HTTP+SSE: its stream, and where its messages go */
	struct slice message_path;
	struct backend *backend;
	struct guard_place place;
};

struct gate_conf {
	const struct gate_endpoint *endpoints; /* all borrowed for the gate's life */
	size_t endpoint_count;
	const struct slice *hosts; /* names without port, lower case, IPv6 in brackets */
	size_t host_count;
	const struct slice *origins; /* scheme://host[:port] */
	size_t origin_count;
	struct guard_conf guard;
	const struct metadata_conf *metadata; /* NULL: nothing is published */
	enum gate_response response;
	uint64_t grace_ms;              /* a call that takes longer gets an event stream */
	uint64_t keepalive_ms;          /* of event streams */
	uint64_t retry_ms;              /* when clients shall come back to one */
	uint64_t max_connection_age_ms; /* of a connection with one; 0: any */
};

/* What a path of an endpoint is for. */
enum gate_place { GATE_MCP, GATE_SSE, GATE_MESSAGE };

/* Where a request goes. */
struct gate_visit {
	const struct gate_endpoint *endpoint;
	enum gate_place place;
};

struct waiting;

struct gate {
	struct http_handler handler;
	struct gate_conf conf;
	struct router *router;
	struct guard guard;
	struct metadata metadata;
	struct waiting *spare;     /* for the next request that may have to wait */
	struct map sse_clients;    /* of HTTP+SSE, by the key of their ids */
	struct list sse_newcomers; /* those that have no session yet */
};

void gate_init(struct gate *gate, struct router *router, const struct gate_conf *conf);
/* No connection may be left. */
void gate_fini(struct gate *gate);
/* The gateway is about to stop: what has not begun is ended. */
void gate_drain(struct gate *gate);

/* The caller is known: hands the request on. Returns as on_request does. */
struct http_exchange *gate_dispatch(struct gate *gate, const struct gate_visit *visit,
				    const struct answer *answer, const struct http_request *request,
				    const struct access *access);

/* The host part of an authority: without port. Empty if it is none. */
struct slice gate_host_of(struct slice authority);

#endif
