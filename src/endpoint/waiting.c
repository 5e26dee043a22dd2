/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object for a request that may have to wait is made before anybody knows whether it must; if not, it serves
 * the next request. The copied head holds the token: it is overwritten as soon as the verdict is there.
 */
#include "endpoint/waiting.h"

#include <stdlib.h>

#include "auth/verifier.h"
#include "base/mem.h"
#include "endpoint/challenge.h"

struct waiting {
	struct http_exchange exchange;
	struct verifier_wait wait;
	struct gate *gate;
	struct gate_visit visit;
	struct http_request http;
	char *text; /* what the slices of http lie in */
	size_t text_size;
	struct slice origin; /* likewise; allowed, or empty */
	struct peer client;
};

static void waiting_free(struct waiting *waiting)
{
	explicit_bzero(waiting->text, waiting->text_size);
	free(waiting->text);
	loop_defer_free(waiting->gate->router->loop, waiting);
}

static struct http_exchange *enter(struct gate *gate, const struct gate_visit *visit,
				   const struct answer *answer, const struct http_request *http,
				   struct access *access)
{
	struct http_exchange *exchange = gate_dispatch(gate, visit, answer, http, access);

	access_fini(access);
	return exchange;
}

static void waiting_on_verdict(struct verifier_wait *wait, const struct verdict *verdict,
			       struct grant *grant)
{
	struct waiting *waiting = container_of(wait, struct waiting, wait);
	struct http_conn *conn = waiting->exchange.conn;
	struct guard *guard = &waiting->gate->guard;
	const struct guard_place *place = &waiting->visit.endpoint->place;
	const struct guard_request request = { place, &waiting->http, conn };
	const struct answer answer = { .conn = conn, .origin = waiting->origin };
	struct http_exchange *exchange;
	struct refusal refusal;
	struct access access;

	if (guard_conclude(guard, &request, verdict, grant, &access, &refusal) == GUARD_ADMITTED) {
		exchange = enter(waiting->gate, &waiting->visit, &answer, &waiting->http, &access);
		if (exchange != NULL)
			http_conn_resume(conn, exchange);
	} else {
		challenge_send(guard, place, &answer, &refusal);
	}
	waiting_free(waiting);
}

static void waiting_on_gone(struct http_exchange *exchange, enum reason reason)
{
	struct waiting *waiting = container_of(exchange, struct waiting, exchange);

	(void)reason;
	verifier_cancel(&waiting->wait);
	guard_leave(&waiting->gate->guard, &waiting->client);
	waiting_free(waiting);
}

/* Neither happens while the connection is held. */
static void waiting_on_body(struct http_exchange *exchange, struct slice body)
{
	(void)exchange;
	CHECK(body.n > SIZE_MAX);
}

static void waiting_on_room(struct http_exchange *exchange)
{
	(void)exchange;
}

static const struct http_exchange_ops waiting_ops = {
	.on_body = waiting_on_body,
	.on_room = waiting_on_room,
	.on_gone = waiting_on_gone,
};

static struct http_exchange *keep(struct gate *gate, const struct gate_visit *visit,
				  const struct answer *answer, const struct http_request *http)
{
	struct waiting *waiting = gate->spare;

	gate->spare = NULL;
	waiting->exchange.ops = &waiting_ops;
	waiting->gate = gate;
	waiting->visit = *visit;
	waiting->client = *http_conn_client(answer->conn);
	waiting->text = http_request_copy(http, &waiting->http, &waiting->text_size);
	if (answer->origin.n > 0)
		waiting->origin = waiting->http.fields[HTTP_ORIGIN];
	http_conn_hold(answer->conn);
	return &waiting->exchange;
}

struct http_exchange *waiting_admit(struct gate *gate, const struct gate_visit *visit,
				    const struct answer *answer, const struct http_request *http)
{
	const struct guard_place *place = &visit->endpoint->place;
	const struct guard_request request = { place, http, answer->conn };
	struct refusal refusal;
	struct access access;
	enum guard_step step;

	if (gate->spare == NULL)
		gate->spare = mem_zalloc(sizeof(*gate->spare));
	gate->spare->wait = (struct verifier_wait){ .on_done = waiting_on_verdict };
	step = guard_admit(&gate->guard, &request, &gate->spare->wait, &access, &refusal);
	if (step == GUARD_ADMITTED)
		return enter(gate, visit, answer, http, &access);
	if (step == GUARD_WAITING)
		return keep(gate, visit, answer, http);
	challenge_send(&gate->guard, place, answer, &refusal);
	return NULL;
}
