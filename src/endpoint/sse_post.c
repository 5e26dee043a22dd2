/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POSTs of HTTP+SSE. One that is accepted is answered with a status only; responses to its requests
 * go to the client's stream.
 */
#include "base/mem.h"
#include "endpoint/admission.h"
#include "endpoint/answer.h"
#include "endpoint/caller.h"
#include "endpoint/http_sse.h"
#include "endpoint/refusal.h"
#include "endpoint/sse_client.h"
#include "router/router.h"

struct sse_post {
	struct http_exchange exchange;
	struct caller caller;
	bool names_client;
	char id[SESSION_ID_LENGTH]; /* all zeros: what was sent cannot be an id */
};

static void post_end(struct sse_post *post)
{
	caller_fini(&post->caller);
	loop_defer_free(post->caller.frontend->router->loop, post);
}

/* Requests are refused on the client's stream. */
static void post_refuse_requests(struct sse_post *post, const struct admission *admission)
{
	for (size_t i = 0; i < admission->count; i++) {
		const struct envelope *env = &admission->messages[i];
		struct sse_client *client = sse_client_find(&post->caller, post->id);
		struct buf text = { 0 };

		if (client == NULL || env->kind != ENVELOPE_REQUEST)
			continue;
		refusal_append(&admission->refusal, post->caller.endpoint, env->id.text, &text);
		sse_client_tell(client, (struct slice[]){ buf_slice(&text) }, 1);
		buf_fini(&text);
	}
}

/* client: NULL if no client has this id. */
static bool post_admit(struct sse_post *post, const struct sse_client *client,
		       struct admission *admission, struct slice body, struct http_conn *conn)
{
	*admission = (struct admission){
		.front = FRONT_HTTP_SSE,
		.intent = ADMISSION_SEND,
		.caller = &post->caller,
		.peer = http_conn_client(conn),
		.session = { .is_named = post->names_client },
		.body = body,
	};
	if (client != NULL)
		sse_client_show(client, admission);
	return admission_admit(admission);
}

static void post_on_body(struct http_exchange *exchange, struct slice body)
{
	struct sse_post *post = container_of(exchange, struct sse_post, exchange);
	struct caller *caller = &post->caller;
	struct answer answer = caller_answer(caller, exchange->conn);
	struct sse_client *client = sse_client_find(caller, post->id);
	const struct envelope *env;
	struct admission admission;
	bool is_admitted = post_admit(post, client, &admission, body, exchange->conn);

	if (!is_admitted && admission.goes_on) {
		CHECK(client != NULL);
		admission_fini(&admission);
		sse_client_go_on(client);
		client = sse_client_find(caller, post->id); /* it may have ended meanwhile */
		is_admitted = post_admit(post, client, &admission, body, exchange->conn);
	}
	if (is_admitted) {
		/* Any of the messages may end the client. */
		while ((env = admitted_next(admission.admitted)) != NULL &&
		       (client = sse_client_find(caller, post->id)) != NULL)
			sse_client_forward(client, &admission, env);
		answer_empty(&answer, 202, slice_of(NULL, 0));
	} else if (admission.refusal.is_in_band) {
		post_refuse_requests(post, &admission);
		answer_empty(&answer, 202, slice_of(NULL, 0));
	} else {
		refusal_send(&admission.refusal, caller->frontend, caller->endpoint, &answer);
	}
	admission_fini(&admission);
	post_end(post);
}

static void post_on_gone(struct http_exchange *exchange, enum reason reason)
{
	(void)reason;
	post_end(container_of(exchange, struct sse_post, exchange));
}

static const struct http_exchange_ops post_ops = {
	.on_body = post_on_body,
	.on_room = answer_ignore_room,
	.on_gone = post_on_gone,
};

struct http_exchange *http_sse_post(const struct endpoint_request *request)
{
	struct sse_post *post = mem_zalloc(sizeof(*post));
	struct slice id = { NULL, 0 };

	post->exchange.ops = &post_ops;
	caller_init(&post->caller, request);
	/* FRONT-OLD-03 */
	post->names_client =
		http_query_find(request->http->query, SLICE_LIT("sessionId"), &id) && id.n > 0;
	if (id.n == SESSION_ID_LENGTH)
		memcpy(post->id, id.p, SESSION_ID_LENGTH);
	return &post->exchange;
}
