/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object for a request that may have to wait is made before anybody knows whether it must; if not, it serves
 * the next request. The copied head holds the token: it is overwritten as soon as the verdict is there.
 */
#include "endpoint/pending_auth.h"

#include <stdlib.h>

#include "auth/verifier.h"
#include "base/mem.h"
#include "endpoint/refusal.h"
#include "router/router.h"

struct pending_auth {
	struct http_exchange exchange;
	struct verifier_wait wait;
	struct frontend *frontend;
	struct endpoint_target target;
	pending_auth_enter_fn *enter;
	struct http_request http;
	char *text; /* what the slices of http lie in */
	size_t text_size;
	struct slice origin; /* likewise; allowed, or empty */
	struct peer client;
};

static void pending_auth_free(struct pending_auth *pending)
{
	explicit_bzero(pending->text, pending->text_size);
	free(pending->text);
	loop_defer_free(pending->frontend->router->loop, pending);
}

static void pending_auth_on_verdict(struct verifier_wait *wait, const struct verdict *verdict,
				    struct grant *grant)
{
	struct pending_auth *pending = container_of(wait, struct pending_auth, wait);
	struct http_conn *conn = pending->exchange.conn;
	struct authorization *auth = &pending->frontend->authorization;
	const struct protected_resource *place = &pending->target.endpoint->place;
	const struct authorization_check request = { place, &pending->http, conn };
	const struct answer answer = { .conn = conn, .origin = pending->origin };
	struct http_exchange *exchange;
	struct refusal refusal;
	struct access access;

	CHECK(conn != NULL);
	if (authorization_conclude(auth, &request, verdict, grant, &access, &refusal) ==
	    AUTHORIZATION_ADMITTED) {
		exchange = pending->enter(pending->frontend, &pending->target, &answer,
					  &pending->http, &access);
		access_fini(&access);
		if (exchange != NULL)
			http_conn_resume(conn, exchange);
	} else {
		refusal_send(&refusal, pending->frontend, pending->target.endpoint, &answer);
	}
	pending_auth_free(pending);
}

static void pending_auth_on_gone(struct http_exchange *exchange, enum reason reason)
{
	struct pending_auth *pending = container_of(exchange, struct pending_auth, exchange);

	(void)reason;
	verifier_cancel(&pending->wait);
	authorization_leave(&pending->frontend->authorization, &pending->client);
	pending_auth_free(pending);
}

/* Not called: a connection that is held reads no body. */
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

static struct http_exchange *keep(struct frontend *frontend, const struct endpoint_target *target,
				  const struct answer *answer, const struct http_request *http,
				  pending_auth_enter_fn *enter)
{
	struct pending_auth *pending = frontend->spare;

	CHECK(pending->text == NULL);
	frontend->spare = NULL;
	pending->exchange.ops = &pending_auth_ops;
	pending->frontend = frontend;
	pending->target = *target;
	pending->enter = enter;
	pending->client = *http_conn_client(answer->conn);
	pending->text = http_request_copy(http, &pending->http, &pending->text_size);
	if (answer->origin.n > 0)
		pending->origin = pending->http.fields[HTTP_ORIGIN];
	http_conn_hold(answer->conn);
	return &pending->exchange;
}

struct http_exchange *pending_auth_admit(struct frontend *frontend,
					 const struct endpoint_target *target,
					 const struct answer *answer,
					 const struct http_request *http,
					 pending_auth_enter_fn *enter)
{
	const struct protected_resource *place = &target->endpoint->place;
	const struct authorization_check request = { place, http, answer->conn };
	struct http_exchange *exchange = NULL;
	struct refusal refusal;
	struct access access;
	enum authorization_step step;

	if (frontend->spare == NULL)
		frontend->spare = mem_zalloc(sizeof(*frontend->spare));
	frontend->spare->wait = (struct verifier_wait){ .on_done = pending_auth_on_verdict };
	step = authorization_admit(&frontend->authorization, &request, &frontend->spare->wait,
				   &access, &refusal);
	if (step == AUTHORIZATION_ADMITTED) {
		exchange = enter(frontend, target, answer, http, &access);
		access_fini(&access);
	} else if (step == AUTHORIZATION_WAITING) {
		exchange = keep(frontend, target, answer, http, enter);
	} else {
		refusal_send(&refusal, frontend, target->endpoint, answer);
	}
	return exchange;
}
