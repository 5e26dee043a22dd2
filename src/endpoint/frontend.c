/* SPDX-License-Identifier: Apache-2.0 */
/* What is answered without identifying the caller, the page for browsers included. */
#include "endpoint/frontend.h"

#include <stdlib.h>

#include "auth/verifier.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cluster/cluster.h"
#include "endpoint/admission.h"
#include "endpoint/answer.h"
#include "endpoint/caller.h"
#include "endpoint/http_sse.h"
#include "endpoint/origin.h"
#include "endpoint/streamable.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "obs/audit.h"
#include "obs/log.h"
#include "process/server.h"
#include "router/router.h"

/* ---- who asks, if the issuer must be asked ---- */

/*
 * A request whose token cannot be judged immediately: it waits, with its body unread, until the
 * issuer has answered. It delays no other request, and is freed if its client disconnects.
 * AUTH-KEY-07. The object for a request that may have to wait is allocated before it is known whether the
 * request must wait; if not, it serves the next request. The copied head contains the token, and is
 * overwritten as soon as there is a verdict.
 */

/* Handles a request once its caller is known, now or later. Returns as on_request does. */
typedef struct http_exchange *pending_auth_enter_fn(const struct endpoint_request *request);

struct pending_auth {
	struct http_exchange exchange;
	struct verifier_wait wait;
	struct timer turn;      /* running: its caller is known, and waits for its turn */
	struct cluster_ask ask; /* likewise, and waits for the store of the cluster */
	struct access access;   /* of that caller */
	struct endpoint_request request;
	pending_auth_enter_fn *enter;
	struct http_request http; /* of the request */
	char *text;               /* the memory of the slices of http */
	size_t text_size;
	struct peer client;
};

static void pending_auth_free(struct pending_auth *pending)
{
	CHECK(pending->request.endpoint->server->users > 0);
	pending->request.endpoint->server->users--;
	explicit_bzero(pending->text, pending->text_size);
	free(pending->text);
	loop_defer_free(pending->request.frontend->router->loop, pending);
}

static void frontend_record_refusal(const struct endpoint_request *request,
				    const struct refusal *refusal)
{
	const struct frontend *frontend = request->frontend;
	enum front front = request->role != ENDPOINT_MCP    ? FRONT_HTTP_SSE :
			   streamable_is_stateless(request) ? FRONT_STATELESS :
							      FRONT_STREAMABLE;

	const char *word = refusal_word(refusal, "");

	call_stats_note_refusal(&request->endpoint->server->stats->calls, word);
	if (frontend->router->audit != NULL)
		audit_refusal(frontend->router->audit,
			      &(struct audit_request){
				      .origin = { front_name(front, frontend),
						  http_conn_client(request->answer.conn) },
				      .server = request->endpoint->server->conf.name,
				      .places = frontend->router->rule_places,
				      .principal = refusal->who,
			      },
			      word, &refusal->rule);
}

/* The request was admitted or refused. */
static struct http_exchange *frontend_finish(struct endpoint_request *request,
					     pending_auth_enter_fn *enter,
					     enum authorization_step step,
					     struct authorization_check *check)
{
	struct http_exchange *exchange;

	CHECK(step != AUTHORIZATION_WAITING && request->access == NULL);
	if (step == AUTHORIZATION_REFUSED) {
		check->refusal.who = check->access.principal;
		frontend_record_refusal(request, &check->refusal);
		refusal_send(&check->refusal, request->frontend, request->endpoint,
			     &request->answer);
		access_fini(&check->access);
		return NULL;
	}
	request->access = &check->access;
	exchange = enter(request);
	access_fini(&check->access);
	return exchange;
}

static struct authorization_check check_of(const struct endpoint_request *request)
{
	return (struct authorization_check){
		.auth = &request->frontend->authorization,
		.place = &request->endpoint->place,
		.http = request->http,
		.conn = request->answer.conn,
	};
}

/* Whether the session that it names may be another node's. HTTP+SSE begins anew there. */
static bool must_ask_cluster(const struct endpoint_request *request)
{
	const struct cluster *cluster = request->frontend->conf.cluster;

	return cluster != NULL && request->role == ENDPOINT_MCP &&
	       !streamable_is_stateless(request) && !request->frontend->conf.is_operators &&
	       cluster_must_ask(cluster, request->http->fields[HTTP_MCP_SESSION_ID]);
}

static void ask_cluster(struct pending_auth *pending, const struct access *access);

static void pending_auth_on_verdict(struct verifier_wait *wait, const struct verdict *verdict,
				    struct grant *grant)
{
	struct pending_auth *pending = container_of(wait, struct pending_auth, wait);
	struct endpoint_request *request = &pending->request;
	struct http_conn *conn = pending->exchange.conn;
	struct authorization_check check = check_of(request);
	struct http_exchange *exchange;
	enum authorization_step step;

	CHECK(conn != NULL && conn == request->answer.conn);
	step = authorization_conclude(&check, verdict, grant);
	if (step == AUTHORIZATION_ADMITTED && must_ask_cluster(request)) {
		ask_cluster(pending, &check.access);
		return;
	}
	exchange = frontend_finish(request, pending->enter, step, &check);
	if (exchange != NULL)
		http_conn_resume(conn, exchange);
	pending_auth_free(pending);
}

static void pending_auth_on_gone(struct http_exchange *exchange, not_used enum reason reason)
{
	struct pending_auth *pending = container_of(exchange, struct pending_auth, exchange);

	verifier_cancel(&pending->wait);
	/* A caller that does not wait for the verdict counts like one that fails. AUTH-CH-11 */
	failures_note(&pending->request.frontend->authorization.failures, &pending->client);
	pending_auth_free(pending);
}

/* Never called: a held connection reads no body. */
static void pending_auth_on_body(not_used struct http_exchange *exchange,
				 not_used struct slice body)
{
	CHECK(!"the connection is held");
}

/* ---- turns ---- */

/*
 * The time of the loop is shared: while several callers are there, one whose requests take long to read
 * and judge gets half of it. Beyond that, its next request waits, its body unread. REL-53
 */

#define AHEAD_MS 100       /* that a caller may have taken before a request has to wait */
#define SHARED_FOR_MS 1000 /* after the last request of another caller */

/* How long the next request of this caller has to wait. */
static uint64_t frontend_wait_ms(struct frontend *frontend, const struct principal *principal)
{
	uint64_t now_ms = clock_now_ms();

	if (principal_is_anonymous(principal))
		return 0; /* they are all one */
	if (frontend->last != NULL && frontend->last != principal)
		frontend->shared_until_ms = now_ms + SHARED_FOR_MS;
	frontend->last = principal;
	if (now_ms >= frontend->shared_until_ms || principal->paid_at_ms < now_ms + AHEAD_MS)
		return 0;
	return principal->paid_at_ms - now_ms;
}

/* Its caller is known, and what it waited for is over. */
static void pending_auth_go_on(struct pending_auth *pending)
{
	struct http_conn *conn = pending->exchange.conn;
	struct authorization_check check = check_of(&pending->request);
	struct http_exchange *exchange;

	check.access = pending->access;
	exchange =
		frontend_finish(&pending->request, pending->enter, AUTHORIZATION_ADMITTED, &check);
	if (exchange != NULL)
		http_conn_resume(conn, exchange);
	pending_auth_free(pending);
}

static void turn_on_due(struct timer *timer)
{
	pending_auth_go_on(container_of(timer, struct pending_auth, turn));
}

static void turn_on_gone(struct http_exchange *exchange, not_used enum reason reason)
{
	struct pending_auth *pending = container_of(exchange, struct pending_auth, exchange);

	timer_stop(&pending->turn);
	cluster_ask_cancel(&pending->ask);
	access_fini(&pending->access);
	pending_auth_free(pending);
}

static const struct http_exchange_ops turn_ops = {
	.on_body = pending_auth_on_body,
	.on_gone = turn_on_gone,
};

/* ---- sessions of other nodes ---- */

#define STORE_IS_AWAY                                                                           \
	"The store of the cluster, which knows this session, cannot be reached now; try again " \
	"later"

static void on_cluster_answer(struct cluster_ask *ask, bool is_known)
{
	struct pending_auth *pending = container_of(ask, struct pending_auth, ask);

	uint64_t wait_ms =
		pending->http.method == HTTP_POST ?
			frontend_wait_ms(pending->request.frontend, pending->access.principal) :
			0;

	if (is_known && wait_ms > 0) {
		timer_start(pending->request.frontend->router->loop, &pending->turn, wait_ms);
		return;
	}
	if (is_known) {
		pending_auth_go_on(pending);
		return;
	}
	CHECK(refusal_send_head(&pending->request.answer, 503, STORE_IS_AWAY) == NULL);
	access_fini(&pending->access);
	pending_auth_free(pending);
}

/* It waits, with its body unread. CLU-SESS-02 */
static void ask_cluster(struct pending_auth *pending, const struct access *access)
{
	const struct endpoint_request *request = &pending->request;

	pending->exchange.ops = &turn_ops;
	pending->access = *access;
	timer_init(&pending->turn, turn_on_due);
	pending->ask = (struct cluster_ask){ .on_done = on_cluster_answer };
	cluster_ask_start(request->frontend->conf.cluster, &pending->ask,
			  request->http->fields[HTTP_MCP_SESSION_ID], access->principal,
			  request->endpoint->server);
}

/* ---- waiting ---- */

static const struct http_exchange_ops pending_auth_ops = {
	.on_body = pending_auth_on_body,
	.on_gone = pending_auth_on_gone,
};

/*
 * Judges the request and passes it to `enter`, refuses it, or keeps it. For on_request: returns the
 * exchange, or NULL if it was answered.
 */
static struct http_exchange *pending_auth_admit(struct endpoint_request *request,
						pending_auth_enter_fn *enter)
{
	struct authorization_check check = check_of(request);
	struct frontend *frontend = request->frontend;
	enum authorization_step step;
	struct pending_auth *pending;
	uint64_t wait_ms = 0;
	bool asks = false;

	if (frontend->spare == NULL)
		frontend->spare = mem_zalloc(sizeof(*frontend->spare));
	pending = frontend->spare;
	pending->wait = (struct verifier_wait){ .on_done = pending_auth_on_verdict };
	step = authorization_admit(&check, &pending->wait);
	if (step == AUTHORIZATION_ADMITTED)
		asks = must_ask_cluster(request);
	if (step == AUTHORIZATION_ADMITTED && !asks && request->http->method == HTTP_POST)
		wait_ms = frontend_wait_ms(frontend, check.access.principal);
	if (step != AUTHORIZATION_WAITING && wait_ms == 0 && !asks)
		return frontend_finish(request, enter, step, &check);
	CHECK(pending->text == NULL);
	frontend->spare = NULL;
	pending->exchange.ops = &pending_auth_ops;
	if (wait_ms > 0) {
		pending->exchange.ops = &turn_ops;
		pending->access = check.access;
		timer_init(&pending->turn, turn_on_due);
		timer_start(frontend->router->loop, &pending->turn, wait_ms);
	}
	pending->request = *request;
	request->endpoint->server->users++;
	pending->request.http = &pending->http;
	pending->enter = enter;
	pending->client = *http_conn_client(request->answer.conn);
	pending->text = http_request_copy(request->http, &pending->http, &pending->text_size);
	if (request->answer.origin.n > 0)
		pending->request.answer.origin = pending->http.fields[HTTP_ORIGIN];
	http_conn_hold(request->answer.conn);
	if (asks)
		ask_cluster(pending, &check.access);
	return &pending->exchange;
}

/* ---- requests ---- */

/* ---- landing ---- */

/*
 * Everything variable in the page is escaped: public_url, or the Host, which was checked to be one
 * of ours, and paths of the configuration.
 */

static bool names(struct slice accept, const char *type)
{
	size_t n = strlen(type);

	for (size_t i = 0; i + n <= accept.n; i++)
		if (slice_is_equal_nocase(slice_of(accept.p + i, n), slice_of(type, n)))
			return true;
	return false;
}

bool landing_is_wanted(const struct frontend *frontend, const struct http_request *request)
{
	struct slice accept = request->fields[HTTP_ACCEPT];

	return request->method == HTTP_GET && !frontend->conf.is_operators &&
	       names(accept, "text/html") && !names(accept, "text/event-stream");
}

static void append_escaped(struct buf *out, struct slice text)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (c == '&' || c == '<' || c == '>' || c == '"' || c == '\'' || c < ' ' ||
		    c == 0x7f)
			buf_printf(out, "&#%d;", (unsigned char)c);
		else
			buf_append_char(out, c);
	}
}

/*
 * Only to clients on this machine, if no token is needed: they could read the addresses in a
 * configuration, too.
 */
static bool may_tell_servers(const struct frontend *frontend, const struct answer *answer)
{
	return frontend->conf.authorization.mode == AUTHORIZATION_NONE &&
	       peer_is_loopback(*http_conn_client(answer->conn));
}

/* As config/forms writes it; without public_url, as the browser has reached us. */
static void append_origin(struct buf *page, const struct frontend *frontend,
			  const struct answer *answer, struct slice host)
{
	struct slice public_url = frontend->conf.authorization.public_url;

	if (public_url.n == 0 && host.n > 0)
		buf_append_str(page, http_conn_has_tls(answer->conn) ? "https://" : "http://");
	append_escaped(page, public_url.n > 0 ? public_url : host);
}

static void append_servers(struct buf *page, const struct frontend *frontend,
			   const struct answer *answer, struct slice host)
{
	buf_append_str(page, "<p>The addresses here:</p>\n<ul>\n");
	for (size_t i = 0; i < frontend->conf.endpoint_count; i++) {
		if (frontend->conf.endpoints[i].server == NULL ||
		    frontend->conf.endpoints[i].server->is_retired)
			continue;
		buf_append_str(page, "<li><code>");
		append_origin(page, frontend, answer, host);
		append_escaped(page, frontend->conf.endpoints[i].path);
		buf_append_str(page, "</code></li>\n");
	}
	buf_append_str(page, "</ul>\n");
}

/* Answers with the page, 200. */
static void landing_send(const struct frontend *frontend, const struct answer *answer,
			 const struct http_request *request)
{
	static const char head[] =
		"<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
		"<title>mcpgated</title>\n<h1>mcpgated</h1>\n"
		"<p>This is a gateway for the Model Context Protocol (MCP). It is for programs that "
		"speak MCP: there is nothing to see in a browser.</p>\n"
		"<p>To connect, give your client the address of a server here, with the transport "
		"&ldquo;http&rdquo; (Streamable HTTP):</p>\n"
		"<pre>{\"mcpServers\": {\"demo\": {\"type\": \"http\", \"url\": "
		"\"https://HOST/NAME/mcp\"}}}</pre>\n";
	at_end(buf_fini) struct buf fields = { 0 }, page = { 0 };

	buf_append_str(&page, head);
	if (may_tell_servers(frontend, answer))
		append_servers(&page, frontend, answer, request->fields[HTTP_HOST]);
	else
		buf_append_str(&page, "<p>Who runs this gateway knows its addresses, and whether a "
				      "token is needed.</p>\n");
	buf_append_str(&page, "</html>\n");
	buf_append_str(&fields,
		       "Content-Security-Policy: default-src 'none'; base-uri 'none'; "
		       "form-action 'none'; frame-ancestors 'none'\r\n"
		       "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
		       "Cache-Control: no-store\r\n");
	answer_append_fields(&fields, answer);
	http_reply(answer->conn,
		   &(struct http_reply){ .status = 200,
					 .content_type = "text/html; charset=utf-8",
					 .fields = (struct slice[]){ buf_slice(&fields) },
					 .field_count = 1,
					 .parts = (struct slice[]){ buf_slice(&page) },
					 .part_count = 1 });
}

/* ---- requests ---- */

/*
 * Browsers ask before they send. An origin that is not allowed gets no answer that allows it.
 * FRONT-HTTP-14
 */
static struct http_exchange *frontend_answer_preflight(const struct frontend *frontend,
						       const struct answer *answer,
						       const struct http_request *request,
						       const char *methods)
{
	const char *key = frontend->authorization.conf.takes_api_keys ? ", X-API-Key" : "";
	struct slice asked = request->fields[HTTP_ACCESS_CONTROL_REQUEST_HEADERS];
	at_end(buf_fini) struct buf fields = { 0 };
	struct slice name;

	buf_printf(&fields, "Allow: %s\r\n", methods);
	if (answer->origin.n > 0) {
		buf_printf(
			&fields,
			"Access-Control-Allow-Methods: %s\r\n"
			"Access-Control-Max-Age: 600\r\n"
			"Access-Control-Allow-Headers: Authorization, Content-Type, Accept, "
			"Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, "
			"DPoP, traceparent, tracestate%s",
			methods, key);
		/* Tools choose their names, and a list of names has no pattern. MOD-HDR-04 */
		while (http_next_asked_param(&asked, &name))
			buf_printf(&fields, ", %.*s", SLICE_ARG(name));
		buf_append_str(&fields, "\r\n");
	}
	answer_empty(answer, 204, buf_slice(&fields));
	return NULL;
}

static struct http_exchange *frontend_answer_health(const struct frontend *frontend,
						    const struct answer *answer,
						    const struct http_request *request,
						    struct slice path)
{
	const struct slice none = { NULL, 0 };
	bool is_ready_path = slice_is_equal(path, SLICE_LIT("/readyz"));

	if (request->method != HTTP_GET && request->method != HTTP_HEAD)
		answer_empty(answer, 405, SLICE_LIT("Allow: GET, HEAD\r\n"));
	else if (is_ready_path && (frontend->is_leaving || frontend->router->is_draining))
		answer_document(answer, 503, none, SLICE_LIT("{\"status\":\"draining\"}\n"));
	else
		answer_document(answer, 200, none, SLICE_LIT("{\"status\":\"ok\"}\n"));
	return NULL;
}

static const char *const frontend_methods[] = {
	[ENDPOINT_MCP] = "GET, POST, DELETE, OPTIONS",
	[ENDPOINT_SSE] = "GET, OPTIONS",
	[ENDPOINT_MESSAGE] = "POST, OPTIONS",
};

/* Fields that may occur at most once. FRONT-HTTP-08, SEC-30 */
#define SINGLE_FIELDS \
	(1u << HTTP_ORIGIN | 1u << HTTP_AUTHORIZATION | 1u << HTTP_DPOP | 1u << HTTP_CONTENT_TYPE)
#define SINGLE_MCP_FIELDS                                                                      \
	(1u << HTTP_MCP_SESSION_ID | 1u << HTTP_MCP_PROTOCOL_VERSION | 1u << HTTP_MCP_METHOD | \
	 1u << HTTP_MCP_NAME | 1u << HTTP_LAST_EVENT_ID)

/*
 * Repeated MCP fields of a modern request are refused later, with a code of their own:
 * modern_check.
 */
static bool is_repeating(const struct endpoint_request *request)
{
	bool is_modern = request->http->method == HTTP_POST && streamable_is_stateless(request);

	return (request->http->repeated &
		(is_modern ? SINGLE_FIELDS : SINGLE_FIELDS | SINGLE_MCP_FIELDS)) != 0;
}

/* The caller is known: the request goes to the front of its path. Returns what on_request does. */
static struct http_exchange *frontend_dispatch(const struct endpoint_request *request)
{
	const struct http_request *http = request->http;
	enum endpoint_role role = request->role;
	enum http_method method = http->method;

	CHECK(request->access != NULL);
	if (method == HTTP_POST && role != ENDPOINT_SSE) {
		/* FRONT-HTTP-06, SEC-02 */
		if (!http_is_media_type(http->fields[HTTP_CONTENT_TYPE], "application/json"))
			return refusal_send_head(
				&request->answer, 415,
				"Unsupported media type: the body must be application/json in UTF-8");
		if (http_has(http, HTTP_CONTENT_ENCODING))
			return refusal_send_head(
				&request->answer, 415,
				"Unsupported media type: the body must not be compressed");
		if (role == ENDPOINT_MESSAGE)
			return http_sse_post(request);
		return streamable_post(request);
	}
	/* FRONT-HTTP-02 */
	if (role == ENDPOINT_MCP && streamable_is_stateless(request)) {
		LOG(REQUEST_REFUSED, LOG_INT("status", 405),
		    LOG_SLICE("method", http->method_name));
		answer_not_allowed(&request->answer, "POST");
		return NULL;
	}
	if (role == ENDPOINT_MCP && method == HTTP_GET)
		return streamable_get(request);
	if (role == ENDPOINT_MCP && method == HTTP_DELETE)
		return streamable_delete(request);
	if (role == ENDPOINT_SSE && method == HTTP_GET)
		return http_sse_get(request);
	LOG(REQUEST_REFUSED, LOG_INT("status", 405), LOG_SLICE("method", http->method_name));
	answer_not_allowed(&request->answer, frontend_methods[role]);
	return NULL;
}

#define PATH_LOGGED 100
#define ADD_PROXY                                                                      \
	", and no token is needed here. Add to the configuration: `trusted_proxies: "  \
	"[127.0.0.1]` (the proxy's address) and `auth: {mode: token, tokens: [...]}` " \
	"(`mcpgatectl token new` makes one), or `auth: {mode: anonymous}` if everybody may"

/*
 * Why a request that came through a proxy unknown to the configuration is refused (403): no token
 * is required, because only this machine was meant to connect. NULL: it is no such request. SEC-69
 */
static const char *frontend_check_proxy(const struct frontend_conf *conf,
					const struct http_conn *conn,
					const struct http_request *request)
{
	if (conf->authorization.mode != AUTHORIZATION_NONE || conf->is_operators ||
	    http_conn_is_trusted(conn))
		return NULL;
	if (http_is_forwarded(request))
		return "Forbidden: a proxy has passed this on" ADD_PROXY;
	/* No MCP client speaks HTTP/1.0; nginx does if it is told nothing but proxy_pass. */
	if (request->minor_version == 0)
		return "Forbidden: a proxy has passed this on, it seems (HTTP/1.0)" ADD_PROXY;
	return NULL;
}

/* The path as it is in the table: without the prefix of public_url and without a trailing slash. */
static struct slice frontend_own_path(const struct frontend *frontend, struct slice path)
{
	path = origin_own_path(frontend->conf.authorization.public_url, path);
	if (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	return path;
}

/* To a client that looks for a sign-in: most do that when they were not let in. */
static const char *why_no_sign_in(const struct frontend *frontend)
{
	enum authorization_mode mode = frontend->conf.authorization.mode;

	if (mode == AUTHORIZATION_OAUTH)
		return "Not found: there is no such document here";
	return mode < AUTHORIZATION_TOKEN ?
		       "Not found: no sign-in here: no token is needed" :
		       "Not found: no sign-in here: this gateway takes static tokens; the one that was "
		       "sent is not known, or none was sent";
}

/* A typing error in a client's configuration, most often: the operator is asked why it does not work. */
static struct http_exchange *refuse_path(const struct frontend *frontend,
					 const struct answer *answer,
					 const struct http_request *request)
{
	const struct endpoint *endpoints = frontend->conf.endpoints;
	bool has_one = frontend->conf.endpoint_count == 1 &&
		       slice_is_equal(endpoints[0].path, SLICE_LIT("/mcp"));
	const struct peer *peer = http_conn_client(answer->conn);
	struct slice path = request->path;
	char client[PEER_TEXT_BYTES];

	if (metadata_is_guess(frontend_own_path(frontend, path)))
		return refusal_send_head(answer, 404, why_no_sign_in(frontend));
	peer_format(peer, client);
	path.n = path.n < PATH_LOGGED ? path.n : PATH_LOGGED;
	LOG_BY(PATH_UNKNOWN, holder_number(NULL, peer), LOG_STR("client", client),
	       LOG_SLICE("path", path));
	return refusal_send_head(
		answer, 404,
		has_one ? "Not found: no server has this path; there is one, at /mcp" :
			  "Not found: no server has this path; they are at /NAME/mcp");
}

/* Whether the request is for the card of a server that has one: then it has been answered. FRONT-HTTP-16 */
static bool take_card(struct frontend *frontend, struct http_conn *conn,
		      const struct http_request *http, struct slice path)
{
	static const struct slice suffix = SLICE(METADATA_CARD_SUFFIX);
	const struct endpoint *endpoint;
	enum endpoint_role role;

	if (path.n <= suffix.n || memcmp(path.p + path.n - suffix.n, suffix.p, suffix.n) != 0 ||
	    endpoint_find(frontend, path, &role) != NULL)
		return false;
	path.n -= suffix.n;
	endpoint = endpoint_find(frontend, path, &role);
	if (endpoint == NULL || role != ENDPOINT_MCP || endpoint->card.n == 0 ||
	    endpoint->server->is_retired)
		return false;
	metadata_send_card(&(struct metadata_card){ frontend->conf.authorization.public_url,
						    endpoint->path,
						    slice_str(endpoint->server->conf.name),
						    endpoint->card },
			   conn, http);
	return true;
}

static struct http_exchange *frontend_on_request(struct http_handler *handler,
						 struct http_conn *conn,
						 const struct http_request *request)
{
	struct frontend *frontend = container_of(handler, struct frontend, handler);
	struct slice path = frontend_own_path(frontend, request->path);
	struct endpoint_request to = {
		.frontend = frontend,
		.http = request,
		.answer = { .conn = conn },
		.lost_before =
			frontend->conf.cluster != NULL ? frontend->conf.cluster->lost_count : 0,
	};
	struct http_exchange *exchange;
	const char *why;
	int status;

	if (request->method == HTTP_OTHER)
		return refusal_send_head(&to.answer, 501, "Not implemented: unknown HTTP method");
	if (is_repeating(&to))
		return refusal_send_head(&to.answer, 400,
					 "Bad request: a header that may stand once stands twice");
	why = origin_check_host(&frontend->conf, request, &status);
	if (why != NULL)
		return refusal_send_field(&to.answer, status, why, request->fields[HTTP_HOST]);
	if (metadata_take(&frontend->metadata, conn, request, path, &exchange))
		return exchange;
	if (take_card(frontend, conn, request, path))
		return NULL;
	why = origin_check(&frontend->conf, request, http_conn_has_tls(conn), &to.answer.origin);
	if (why != NULL)
		return refusal_send_field(&to.answer, 403, why, request->fields[HTTP_ORIGIN]);
	if (slice_is_equal(path, SLICE_LIT("/healthz")) ||
	    slice_is_equal(path, SLICE_LIT("/readyz")))
		return frontend_answer_health(frontend, &to.answer, request, path);
	why = frontend_check_proxy(&frontend->conf, conn, request);
	if (why != NULL)
		return refusal_send_head(&to.answer, 403, why);
	if (landing_is_wanted(frontend, request)) {
		landing_send(frontend, &to.answer, request);
		return NULL;
	}
	to.endpoint = endpoint_find(frontend, path, &to.role);
	if (to.endpoint == NULL)
		return refuse_path(frontend, &to.answer, request);
	if (request->method == HTTP_OPTIONS)
		return frontend_answer_preflight(frontend, &to.answer, request,
						 frontend_methods[to.role]);
	/* The caller is identified before anything else of the request is looked at. AUTH-CH-08 */
	return pending_auth_admit(&to, frontend_dispatch);
}

static void frontend_write_error(not_used struct http_handler *handler, not_used int status,
				 const char *reason, struct buf *body)
{
	const struct slice none = { NULL, 0 };

	write_error(body, none, MCP_INVALID_REQUEST, slice_str(reason), none);
}

/* Records are sent before the answers that they are about. SEC-63 */
static void frontend_before_write(struct http_handler *handler)
{
	struct audit *audit = container_of(handler, struct frontend, handler)->router->audit;

	if (audit != NULL)
		(void)audit_flush(audit);
}

void frontend_init(struct frontend *frontend, struct router *router,
		   const struct frontend_conf *conf)
{
	CHECK(conf->endpoint_count == 0 || conf->endpoints != NULL);
	frontend->handler.on_request = frontend_on_request;
	frontend->handler.write_error = frontend_write_error;
	frontend->handler.before_write = frontend_before_write;
	frontend->conf = *conf;
	frontend->router = router;
	frontend->spare = NULL;
	frontend->is_leaving = false;
	frontend->last = NULL;
	frontend->shared_until_ms = 0;
	memset(frontend->hints, 0, sizeof(frontend->hints));
	metadata_init(&frontend->metadata, &conf->metadata, &frontend->conf.authorization);
	authorization_init(&frontend->authorization, &router->sessions, &conf->authorization);
	if (conf->cluster != NULL && !conf->is_operators)
		cluster_share(conf->cluster, CLUSTER_FAILURES,
			      &frontend->authorization.failures.shared);
	frontend->sse_clients = (struct session_table){ .by_key = { 0 } };
	if (conf->cluster != NULL)
		session_table_name(&frontend->sse_clients, conf->cluster->node);
	list_init(&frontend->sse_newcomers);
	list_init(&frontend->sse_lost);
	task_init(&frontend->sse_room, http_sse_on_room);
	catalogues_init(&frontend->catalogues);
}

void frontend_renew(struct frontend *frontend, const struct frontend_conf *conf)
{
	CHECK(conf->is_operators == frontend->conf.is_operators);
	frontend->conf = *conf;
	metadata_renew(&frontend->metadata, &conf->metadata, &frontend->conf.authorization);
	authorization_renew_conf(&frontend->authorization, &conf->authorization);
}

void frontend_fini(struct frontend *frontend)
{
	CHECK(list_is_empty(&frontend->sse_newcomers));
	task_cancel(&frontend->sse_room);
	session_table_fini(&frontend->sse_clients);
	metadata_fini(&frontend->metadata);
	authorization_fini(&frontend->authorization);
	free(frontend->spare);
}

void frontend_leave(struct frontend *frontend)
{
	frontend->is_leaving = true;
}

void frontend_drain(struct frontend *frontend)
{
	http_sse_drain(frontend);
}
