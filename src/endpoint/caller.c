/* SPDX-License-Identifier: Apache-2.0 */
/* Which endpoint a path names, and who asks there. Copies what is borrowed. */
#include "endpoint/caller.h"

#include <stdlib.h>
#include <string.h>

#include "auth/grant.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "endpoint/frontend.h"
#include "http/conn.h"
#include "io/peer.h"
#include "jsonrpc/write.h"
#include "mcp/trace_context.h"
#include "obs/log.h"
#include "process/server.h"
#include "router/process_slots.h"
#include "router/router.h"

/* ---- which endpoint ---- */

/* Whether the endpoint has this path, and in which role. */
static bool is_at(const struct endpoint *endpoint, struct slice path, enum endpoint_role *role_r)
{
	*role_r = slice_is_equal(endpoint->sse_path, path)     ? ENDPOINT_SSE :
		  slice_is_equal(endpoint->message_path, path) ? ENDPOINT_MESSAGE :
								 ENDPOINT_MCP;
	return *role_r != ENDPOINT_MCP || slice_is_equal(endpoint->path, path);
}

/* Whether this is the endpoint to find: no other that is not retired has its path. */
static bool is_it(const struct endpoint *endpoint, struct slice path, enum endpoint_role *role_r)
{
	return endpoint->server != NULL && !endpoint->server->is_retired &&
	       is_at(endpoint, path, role_r);
}

static const struct endpoint *search(const struct frontend_conf *conf, struct slice path,
				     enum endpoint_role *role_r)
{
	const struct endpoint *found = NULL;
	enum endpoint_role role;

	for (size_t i = 0; i < conf->endpoint_count; i++) {
		const struct endpoint *endpoint = &conf->endpoints[i];

		if (endpoint->server == NULL || !is_at(endpoint, path, &role))
			continue;
		found = endpoint;
		*role_r = role;
		if (!endpoint->server->is_retired)
			return endpoint;
	}
	return found;
}

const struct endpoint *endpoint_find(struct frontend *frontend, struct slice path,
				     enum endpoint_role *role_r)
{
	const struct frontend_conf *conf = &frontend->conf;
	uint32_t *hint = &frontend->hints[text_hash(0, path) % ENDPOINT_HINTS];
	const struct endpoint *found;

	CHECK(conf->endpoint_count == 0 || conf->endpoints != NULL);
	/* The hint is verified, not trusted: servers come and go. */
	if (*hint < conf->endpoint_count && is_it(&conf->endpoints[*hint], path, role_r))
		return &conf->endpoints[*hint];
	found = search(conf, path, role_r);
	if (found != NULL)
		*hint = (uint32_t)(found - conf->endpoints);
	return found;
}

const struct endpoint *endpoint_of_server(const struct frontend_conf *conf, struct slice name)
{
	for (size_t i = 0; i < conf->endpoint_count; i++) {
		const struct server *server = conf->endpoints[i].server;

		if (server != NULL && !server->is_retired && !server_is_endpoint(&server->conf) &&
		    slice_is_equal(slice_str(server->conf.name), name))
			return &conf->endpoints[i];
	}
	return NULL;
}

size_t endpoint_place(const struct frontend_conf *conf, const struct server *server)
{
	size_t place = 0;

	while (place < conf->endpoint_count && conf->endpoints[place].server != server)
		place++;
	return place;
}

/*
 * The endpoint with the same path as this one, for this server; server NULL: one that is not
 * retired. Falls back to `endpoint` itself.
 */
static const struct endpoint *endpoint_find_other(const struct frontend_conf *conf,
						  const struct endpoint *endpoint,
						  const struct server *server)
{
	for (size_t i = 0; i < conf->endpoint_count; i++) {
		const struct endpoint *other = &conf->endpoints[i];

		if (other->server != NULL && slice_is_equal(other->path, endpoint->path) &&
		    (server != NULL ? other->server == server : !other->server->is_retired))
			return other;
	}
	return endpoint;
}

/* ---- who asks ---- */

void caller_init(struct caller *caller, const struct endpoint_request *request)
{
	struct slice origin = request->answer.origin;

	CHECK(request->access->principal != NULL && request->endpoint->server != NULL);
	*caller = (struct caller){
		.frontend = request->frontend,
		.endpoint = request->endpoint,
		.access = access_copy(request->access),
		.origin = origin.n > 0 ? mem_dup_slice(origin) : NULL,
		.trace = trace_of_head(request->http),
	};
	caller->endpoint->server->users++;
}

uint64_t caller_number(const struct caller *caller, const struct http_conn *conn)
{
	const struct principal *principal = caller->access.principal;

	return principal_is_anonymous(principal) ? peer_key(http_conn_client(conn), 0) :
						   (uintptr_t)principal;
}

bool caller_is_at(const struct caller *caller, const struct endpoint *endpoint)
{
	return caller->endpoint == endpoint ||
	       slice_is_equal(caller->endpoint->path, endpoint->path);
}

void caller_settle(struct caller *caller, const struct server *server)
{
	const struct endpoint *endpoint = caller->endpoint;

	if (server != NULL ? endpoint->server == server : !endpoint->server->is_retired)
		return;
	caller->endpoint = endpoint_find_other(&caller->frontend->conf, endpoint, server);
	if (caller->endpoint == endpoint)
		return;
	caller->access.configuration = 0;
	caller->endpoint->server->users++;
	endpoint->server->users--;
}

void caller_fini(struct caller *caller)
{
	CHECK(caller->endpoint->server->users > 0);
	caller->endpoint->server->users--;
	free(caller->origin);
	free(caller->trace);
	access_fini(&caller->access);
}

unsigned int caller_retry_after_s(const struct caller *caller, bool is_initialize,
				  enum reason reason)
{
	return retry_after_s(caller->frontend->router, caller->endpoint->server,
			     is_initialize ? caller->access.principal : NULL, reason);
}

struct answer caller_answer(const struct caller *caller, struct http_conn *conn)
{
	struct answer answer = { .conn = conn };

	CHECK(caller->access.principal != NULL);
	if (caller->origin != NULL)
		answer.origin = slice_str(caller->origin);
	return answer;
}

/* ---- trace ---- */

static bool has_once(const struct http_request *http, enum http_field field)
{
	return http_has(http, field) && (http->repeated & 1u << field) == 0;
}

char *trace_of_head(const struct http_request *http)
{
	struct slice parent = http->fields[HTTP_TRACEPARENT], state = http->fields[HTTP_TRACESTATE];
	at_end(buf_fini) struct buf members = { 0 };
	struct trace_parent read;

	if (!has_once(http, HTTP_TRACEPARENT) || !trace_parent_read(parent, &read))
		return NULL;
	buf_append_str(&members, "\"traceparent\":");
	write_string(&members, parent);
	if (has_once(http, HTTP_TRACESTATE) && trace_state_is_valid(state)) {
		buf_append_str(&members, ",\"tracestate\":");
		write_string(&members, state);
	}
	return mem_strdup(buf_terminate(&members));
}

/* ---- the token of an open stream ---- */

/*
 * One timer for what comes first, the end of the token or the next question to its issuer; and a
 * watcher of the denials. The token's text is kept only if there is an issuer to ask, and wiped.
 */

/* The time until an issuer that did not answer is asked again. */
#define AGAIN_MS (VERIFIER_RETRY_AFTER_S * 1000)

/* After this, no callback is called. */
static void token_watch_stop(struct token_watch *watch)
{
	timer_stop(&watch->timer);
	list_remove(&watch->link);
	deny_list_unwatch(&watch->deny_watcher);
	verifier_cancel(&watch->wait);
	if (watch->token != NULL)
		explicit_bzero(watch->token, watch->token_size);
	free(watch->token);
	watch->token = NULL;
}

static void token_watch_over(struct token_watch *watch, enum reason reason)
{
	CHECK(watch->access.principal != NULL && watch->ops != NULL);
	LOG_BY(STREAM_OVER, watch->access.principal->by_key.key,
	       LOG_SLICE("server", watch->place->server),
	       LOG_SLICE("principal", watch->access.principal->identity.subject),
	       LOG_STR("reason", reason_get(reason)->text));
	token_watch_stop(watch);
	watch->ops->on_over(watch->owner, reason);
}

/* ---- time ---- */

static uint64_t left_of(uint64_t end_ms, uint64_t now_ms)
{
	if (end_ms == UINT64_MAX)
		return UINT64_MAX;
	return end_ms > now_ms ? end_ms - now_ms : 0;
}

static bool is_asking(const struct token_watch *watch)
{
	return watch->wait.job != NULL;
}

/*
 * The loop keeps a queue for each duration forever, so there must be few; and none may be long,
 * because the wall clock may be set, and advances while the machine sleeps.
 */
static void token_watch_wait(struct token_watch *watch)
{
	static const uint64_t steps_ms[] = { 60000, 10000, 1000, 100 };
	uint64_t left_ms = left_of(watch->access.ends_at_ms, clock_wall_ms());
	uint64_t next_ms = is_asking(watch) ? watch->trust_until_ms : watch->ask_at_ms;
	size_t i = 0;

	CHECK(watch->access.principal != NULL);
	next_ms = left_of(next_ms, clock_now_ms());
	if (next_ms < left_ms)
		left_ms = next_ms;
	if (left_ms == UINT64_MAX) /* nothing will happen */
		return;
	while (i < ARRAY_LEN(steps_ms) - 1 && steps_ms[i] > left_ms)
		i++;
	timer_start(watch->loop, &watch->timer, steps_ms[i]);
}

/* ---- asking ---- */

static void token_watch_set_times(struct token_watch *watch)
{
	const struct grant *grant = watch->access.grant;

	CHECK(watch->token == NULL || grant != NULL);
	watch->ask_at_ms = watch->token != NULL ? grant->ask_again_at_ms : UINT64_MAX;
	watch->trust_until_ms = watch->token != NULL ? grant->trust_until_ms : UINT64_MAX;
}

static void ask_later(struct token_watch *watch)
{
	CHECK(watch->token != NULL);
	watch->ask_at_ms = clock_now_ms() + AGAIN_MS;
	token_watch_wait(watch);
}

static void token_watch_on_verdict(struct verifier_wait *wait, const struct verdict *verdict,
				   struct grant *grant)
{
	struct token_watch *watch = container_of(wait, struct token_watch, wait);

	CHECK(watch->token != NULL && !is_asking(watch));
	if (grant == NULL && verdict_get(verdict->kind)->outcome == VERDICT_UNAVAILABLE) {
		ask_later(watch);
	} else if (grant != NULL &&
		   authorization_renew(watch->authorization, watch->place, &watch->access, grant)) {
		token_watch_set_times(watch);
		token_watch_wait(watch);
	} else {
		token_watch_over(watch, REASON_REVOKED);
	}
}

static void token_watch_ask(struct token_watch *watch)
{
	struct verifier *verifier = watch->authorization->conf.verifier;
	struct slice token = slice_of(watch->token, watch->token_size);
	struct grant *grant = NULL;
	struct verdict verdict;

	CHECK(watch->token != NULL && !is_asking(watch));
	if (verifier == NULL) /* a reload came between the request's head and its body */
		ask_later(watch);
	else if (verifier_check(verifier, token, &watch->place->accepted, &watch->wait, &verdict,
				&grant))
		token_watch_on_verdict(&watch->wait, &verdict, grant);
	else
		token_watch_wait(watch);
}

static void token_watch_on_timer(struct timer *timer)
{
	struct token_watch *watch = container_of(timer, struct token_watch, timer);

	if (left_of(watch->access.ends_at_ms, clock_wall_ms()) == 0)
		token_watch_over(watch, REASON_EXPIRED);
	else if (left_of(watch->trust_until_ms, clock_now_ms()) == 0)
		token_watch_over(watch, REASON_UNCONFIRMED);
	else if (!is_asking(watch) && left_of(watch->ask_at_ms, clock_now_ms()) == 0)
		token_watch_ask(watch);
	else
		token_watch_wait(watch);
}

/* ---- denials ---- */

static void token_watch_show(const struct deny_watcher *watcher, struct denial_marks *marks_r)
{
	access_show(&container_of(watcher, struct token_watch, deny_watcher)->access, marks_r);
}

static void token_watch_on_denied(struct deny_watcher *watcher)
{
	token_watch_over(container_of(watcher, struct token_watch, deny_watcher), REASON_DENIED);
}

static const struct deny_watcher_ops token_watch_watcher_ops = {
	.show = token_watch_show,
	.on_denied = token_watch_on_denied,
};

/* ---- the life of a token watch ---- */

struct token_watch *token_watch_new(const struct endpoint_request *request,
				    const struct token_watch_ops *ops, void *owner)
{
	const struct grant *grant = request->access->grant;
	struct slice token = authorization_token(request->http);
	struct token_watch *watch;

	if (principal_is_anonymous(request->access->principal))
		return NULL;
	watch = mem_alloc(sizeof(*watch));
	*watch = (struct token_watch){
		.loop = request->frontend->router->loop,
		.authorization = &request->frontend->authorization,
		.wait = { .on_done = token_watch_on_verdict },
		.owner = owner,
		.ops = ops,
	};
	if (grant != NULL && grant->ask_again_at_ms != UINT64_MAX) {
		watch->token = mem_dup_slice(token);
		watch->token_size = token.n;
	}
	list_init(&watch->link);
	timer_init(&watch->timer, token_watch_on_timer);
	deny_watcher_init(&watch->deny_watcher, &token_watch_watcher_ops);
	return watch;
}

static void token_watch_set_endpoint(struct token_watch *watch, const struct endpoint *endpoint)
{
	if (endpoint != NULL)
		endpoint->server->users++;
	if (watch->server != NULL)
		watch->server->users--;
	watch->server = endpoint != NULL ? endpoint->server : NULL;
	watch->place = endpoint != NULL ? &endpoint->place : NULL;
}

void token_watch_begin(struct token_watch *watch, const struct caller *caller)
{
	if (watch == NULL)
		return;
	CHECK(watch->access.principal == NULL && caller->access.principal != NULL);
	token_watch_set_endpoint(watch, caller->endpoint);
	watch->access = access_copy(&caller->access);
	deny_list_watch(watch->authorization->deny_list, &watch->deny_watcher);
	list_append(&watch->authorization->watches, &watch->link);
	token_watch_set_times(watch);
	token_watch_wait(watch);
}

void token_watch_move(struct token_watch *watch, const struct caller *caller)
{
	if (watch != NULL)
		token_watch_set_endpoint(watch, caller->endpoint);
}

/* A watch that ends may end others, which then leave whichever list they are in. */
void token_watch_judge_all(struct authorization *auth)
{
	struct list due;

	list_init(&due);
	list_splice(&due, &auth->watches);
	LIST_DRAIN(struct token_watch, watch, &due, link) {
		struct refusal refusal;

		list_move(&auth->watches, &watch->link);
		if (!authorization_judge_again(auth, watch->place, &watch->access, &refusal)) {
			token_watch_over(watch, REASON_REVOKED);
			continue;
		}
		token_watch_set_times(watch);
		token_watch_wait(watch);
		watch->ops->on_rights(watch->owner, &watch->access.rights);
	}
}

void token_watch_end(struct token_watch **watch)
{
	if (*watch == NULL)
		return;
	token_watch_stop(*watch);
	token_watch_set_endpoint(*watch, NULL);
	access_fini(&(*watch)->access);
	loop_defer_free((*watch)->loop, *watch); /* it may be on the stack */
	*watch = NULL;
}
