/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of paths, hosts and origins; comparing is all that happens here. Names are compared, never
 * resolved: a page that rebinds its own name to this address still sends its own name.
 */
#include "endpoint/gate.h"

#include <stdlib.h>

#include "base/text.h"
#include "endpoint/answer.h"
#include "endpoint/http_sse.h"
#include "endpoint/streamable.h"
#include "endpoint/waiting.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "obs/log.h"

struct slice gate_host_of(struct slice authority)
{
	const char *end;

	if (authority.n > 0 && authority.p[0] == '[') {
		end = memchr(authority.p, ']', authority.n);
		return end != NULL ? slice_between(authority.p, end + 1) :
				     (struct slice){ NULL, 0 };
	}
	return slice_cut(&authority, ':');
}

/* name[:port], with a port that exists. SEC-23 */
static bool gate_is_authority(struct slice authority)
{
	struct slice host = gate_host_of(authority);
	struct slice rest = slice_of(authority.p + host.n, authority.n - host.n);
	uint64_t port;

	if (host.n == 0)
		return false;
	if (rest.n == 0)
		return true;
	return rest.p[0] == ':' && text_parse_u64(slice_of(rest.p + 1, rest.n - 1), &port) == 0 &&
	       port <= 65535;
}

static bool gate_knows_host(const struct gate *gate, struct slice host)
{
	for (size_t i = 0; i < gate->conf.host_count; i++) {
		if (slice_is_equal_nocase(gate->conf.hosts[i], host))
			return true;
	}
	return false;
}

/* One of the configured origins, or a page of a host that we are ourselves. */
static bool gate_allows_origin(const struct gate *gate, struct slice origin)
{
	static const struct slice schemes[] = { SLICE("http://"), SLICE("https://") };

	for (size_t i = 0; i < gate->conf.origin_count; i++) {
		if (slice_is_equal_nocase(gate->conf.origins[i], origin))
			return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		struct slice rest;

		if (!slice_has_prefix(origin, schemes[i]))
			continue;
		rest = slice_of(origin.p + schemes[i].n, origin.n - schemes[i].n);
		return gate_is_authority(rest) && gate_knows_host(gate, gate_host_of(rest));
	}
	return false;
}

static struct http_exchange *gate_refuse(const struct answer *answer, int status, const char *why)
{
	LOG(REQUEST_REFUSED, LOG_INT("status", status), LOG_STR("reason", why));
	answer_error(answer, status, (struct slice){ NULL, 0 }, MCP_INVALID_REQUEST, slice_str(why),
		     (struct slice){ NULL, 0 });
	return NULL;
}

/* Browsers ask before they send. Whoever may not, gets no answer that allows it. FRONT-HTTP-14 */
static struct http_exchange *gate_answer_preflight(const struct gate *gate,
						   const struct answer *answer, const char *methods)
{
	const char *key = gate->guard.conf.takes_api_keys ? ", X-API-Key" : "";
	struct buf fields = { 0 };

	buf_printf(&fields, "Allow: %s\r\n", methods);
	if (answer->origin.n > 0)
		buf_printf(
			&fields,
			"Access-Control-Allow-Methods: %s\r\n"
			"Access-Control-Allow-Headers: Authorization, Content-Type, Accept, "
			"Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, "
			"DPoP%s\r\n"
			"Access-Control-Max-Age: 600\r\n",
			methods, key);
	answer_empty(answer, 204, buf_slice(&fields));
	buf_fini(&fields);
	return NULL;
}

static struct http_exchange *gate_answer_health(const struct gate *gate,
						const struct answer *answer,
						const struct http_request *request)
{
	static const struct slice ok = SLICE("{\"status\":\"ok\"}\n");
	static const struct slice draining = SLICE("{\"status\":\"draining\"}\n");
	bool is_ready_path = slice_is_equal(request->path, SLICE_LIT("/readyz"));

	if (request->method != HTTP_GET && request->method != HTTP_HEAD) {
		answer_empty(answer, 405, SLICE_LIT("Allow: GET, HEAD\r\n"));
		return NULL;
	}
	if (is_ready_path && gate->router->is_draining)
		answer_json(answer, 503, &draining, 1);
	else
		answer_json(answer, 200, &ok, 1);
	return NULL;
}

static const char *const gate_methods[] = {
	[GATE_MCP] = "GET, POST, DELETE, OPTIONS",
	[GATE_SSE] = "GET, OPTIONS",
	[GATE_MESSAGE] = "POST, OPTIONS",
};

static const struct gate_endpoint *gate_find_endpoint(const struct gate *gate, struct slice path,
						      enum gate_place *place_r)
{
	for (size_t i = 0; i < gate->conf.endpoint_count; i++) {
		const struct gate_endpoint *endpoint = &gate->conf.endpoints[i];

		*place_r = slice_is_equal(endpoint->sse_path, path)     ? GATE_SSE :
			   slice_is_equal(endpoint->message_path, path) ? GATE_MESSAGE :
									  GATE_MCP;
		if (*place_r != GATE_MCP || slice_is_equal(endpoint->path, path))
			return endpoint;
	}
	return NULL;
}

/* Fields that may stand only once, if they are there at all. FRONT-HTTP-08, SEC-30 */
static bool gate_has_repeated_field(const struct http_request *request)
{
	static const uint32_t single = 1u << HTTP_ORIGIN | 1u << HTTP_AUTHORIZATION |
				       1u << HTTP_DPOP | 1u << HTTP_CONTENT_TYPE |
				       1u << HTTP_MCP_SESSION_ID | 1u << HTTP_MCP_PROTOCOL_VERSION |
				       1u << HTTP_MCP_METHOD | 1u << HTTP_MCP_NAME |
				       1u << HTTP_LAST_EVENT_ID;

	return (request->repeated & single) != 0;
}

struct http_exchange *gate_dispatch(struct gate *gate, const struct gate_visit *visit,
				    const struct answer *answer, const struct http_request *request,
				    const struct access *access)
{
	const struct gate_endpoint *endpoint = visit->endpoint;
	enum gate_place place = visit->place;
	enum http_method method = request->method;
	const struct streamable_request streamable = {
		.gate = gate,
		.backend = endpoint->backend,
		.place = &endpoint->place,
		.access = access,
		.conn = answer->conn,
		.http = request,
		.origin = answer->origin,
	};

	if (place == GATE_MCP && method == HTTP_POST)
		return streamable_post(&streamable);
	if (place == GATE_MCP && method == HTTP_GET)
		return streamable_get(&streamable);
	if (place == GATE_MCP && method == HTTP_DELETE)
		return streamable_delete(&streamable);
	if (place == GATE_SSE && method == HTTP_GET)
		return http_sse_get(&streamable, endpoint->message_path);
	if (place == GATE_MESSAGE && method == HTTP_POST)
		return http_sse_post(&streamable);
	LOG(REQUEST_REFUSED, LOG_INT("status", 405), LOG_SLICE("method", request->method_name));
	answer_not_allowed(answer, gate_methods[place]);
	return NULL;
}

/* Who it is, before anything else of the request is looked at. AUTH-CH-08 */
static struct http_exchange *gate_admit(struct gate *gate, const struct answer *answer,
					const struct http_request *request)
{
	struct gate_visit visit;

	visit.endpoint = gate_find_endpoint(gate, request->path, &visit.place);
	if (visit.endpoint == NULL)
		return gate_refuse(answer, 404, "Not found: no server has this path");
	if (request->method == HTTP_OPTIONS)
		return gate_answer_preflight(gate, answer, gate_methods[visit.place]);
	return waiting_admit(gate, &visit, answer, request);
}

static struct http_exchange *gate_on_request(struct http_handler *handler, struct http_conn *conn,
					     const struct http_request *request)
{
	struct gate *gate = container_of(handler, struct gate, handler);
	struct answer answer = { .conn = conn };
	struct http_exchange *exchange;

	if (request->method == HTTP_OTHER)
		return gate_refuse(&answer, 501, "Not implemented: unknown HTTP method");
	if (gate_has_repeated_field(request))
		return gate_refuse(&answer, 400,
				   "Bad request: a header that may stand once stands twice");
	if (http_has(request, HTTP_HOST) && !gate_is_authority(request->fields[HTTP_HOST]))
		return gate_refuse(&answer, 400,
				   "Bad request: the Host header is no host and port");
	if (http_has(request, HTTP_HOST) &&
	    !gate_knows_host(gate, gate_host_of(request->fields[HTTP_HOST])))
		return gate_refuse(
			&answer, 403,
			"Forbidden: this Host is not served here (see the hosts option)");
	if (metadata_take(&gate->metadata, conn, request, &exchange))
		return exchange;
	if (http_has(request, HTTP_ORIGIN)) {
		if (!gate_allows_origin(gate, request->fields[HTTP_ORIGIN]))
			return gate_refuse(
				&answer, 403,
				"Forbidden: this Origin is not allowed (see the origins option)");
		answer.origin = request->fields[HTTP_ORIGIN];
	}
	if (slice_is_equal(request->path, SLICE_LIT("/healthz")) ||
	    slice_is_equal(request->path, SLICE_LIT("/readyz")))
		return gate_answer_health(gate, &answer, request);
	return gate_admit(gate, &answer, request);
}

static void gate_write_error(struct http_handler *handler, int status, const char *reason,
			     struct buf *body)
{
	(void)handler;
	(void)status;
	write_error(body, (struct slice){ NULL, 0 }, MCP_INVALID_REQUEST, slice_str(reason),
		    (struct slice){ NULL, 0 });
}

void gate_init(struct gate *gate, struct router *router, const struct gate_conf *conf)
{
	gate->handler.on_request = gate_on_request;
	gate->handler.write_error = gate_write_error;
	gate->conf = *conf;
	gate->router = router;
	gate->spare = NULL;
	gate->metadata = (struct metadata){ .documents = NULL };
	if (conf->metadata != NULL)
		metadata_init(&gate->metadata, conf->metadata);
	guard_init(&gate->guard, &router->sessions, &conf->guard);
	gate->sse_clients = (struct map){ 0 };
	list_init(&gate->sse_newcomers);
}

void gate_fini(struct gate *gate)
{
	map_fini(&gate->sse_clients);
	metadata_fini(&gate->metadata);
	guard_fini(&gate->guard);
	free(gate->spare);
}

void gate_drain(struct gate *gate)
{
	http_sse_drain(gate);
}
