/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object for a request that may have to wait is allocated before it is known whether the
 * request must wait; if not, it serves the next request. The copied head contains the token, and is
 * overwritten as soon as there is a verdict.
 */
#include "endpoint/pending_auth.h"

#include <stdlib.h>

#include "auth/verifier.h"
#include "base/mem.h"
#include "endpoint/admission.h"
#include "endpoint/refusal.h"
#include "endpoint/stateless.h"
#include "process/server.h"
#include "router/router.h"

struct pending_auth {
	struct http_exchange exchange;
	struct verifier_wait wait;
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

static void record_refusal(const struct endpoint_request *request, const struct refusal *refusal)
{
	const struct frontend *frontend = request->frontend;
	enum front front = request->role != ENDPOINT_MCP ? FRONT_HTTP_SSE :
			   stateless_is_named(request)   ? FRONT_STATELESS :
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
static struct http_exchange *finish(struct endpoint_request *request, pending_auth_enter_fn *enter,
				    enum authorization_step step, struct authorization_check *check)
{
	struct http_exchange *exchange;

	CHECK(step != AUTHORIZATION_WAITING && request->access == NULL);
	if (step == AUTHORIZATION_REFUSED) {
		check->refusal.who = check->access.principal;
		record_refusal(request, &check->refusal);
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
	exchange = finish(request, pending->enter, step, &check);
	if (exchange != NULL)
		http_conn_resume(conn, exchange);
	pending_auth_free(pending);
}

static void pending_auth_on_gone(struct http_exchange *exchange, enum reason reason)
{
	struct pending_auth *pending = container_of(exchange, struct pending_auth, exchange);

	(void)reason;
	verifier_cancel(&pending->wait);
	/* A caller that does not wait for the verdict counts like one that fails. AUTH-CH-11 */
	failures_note(&pending->request.frontend->authorization.failures, &pending->client);
	pending_auth_free(pending);
}

/* Never called: a held connection reads no body. */
static void pending_auth_on_body(struct http_exchange *exchange, struct slice body)
{
	(void)exchange;
	(void)body;
	CHECK(!"the connection is held");
}

static const struct http_exchange_ops pending_auth_ops = {
	.on_body = pending_auth_on_body,
	.on_room = answer_ignore_room,
	.on_gone = pending_auth_on_gone,
};

struct http_exchange *pending_auth_admit(struct endpoint_request *request,
					 pending_auth_enter_fn *enter)
{
	struct authorization_check check = check_of(request);
	struct frontend *frontend = request->frontend;
	enum authorization_step step;
	struct pending_auth *pending;

	if (frontend->spare == NULL)
		frontend->spare = mem_zalloc(sizeof(*frontend->spare));
	pending = frontend->spare;
	pending->wait = (struct verifier_wait){ .on_done = pending_auth_on_verdict };
	step = authorization_admit(&check, &pending->wait);
	if (step != AUTHORIZATION_WAITING)
		return finish(request, enter, step, &check);
	CHECK(pending->text == NULL);
	frontend->spare = NULL;
	pending->exchange.ops = &pending_auth_ops;
	pending->request = *request;
	request->endpoint->server->users++;
	pending->request.http = &pending->http;
	pending->enter = enter;
	pending->client = *http_conn_client(request->answer.conn);
	pending->text = http_request_copy(request->http, &pending->http, &pending->text_size);
	if (request->answer.origin.n > 0)
		pending->request.answer.origin = pending->http.fields[HTTP_ORIGIN];
	http_conn_hold(request->answer.conn);
	return &pending->exchange;
}
