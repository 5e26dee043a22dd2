/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a process fails, its calls in flight fail with it, but not the session: many clients never
 * initialize again. After RESTARTS_MAX restarts within RESTARTS_WINDOW_MS the session ends all the
 * same.
 */
#include "router/client_session.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "jsonrpc/write.h"
#include "mcp/revision.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/client.h"
#include "router/kept_sessions.h"
#include "router/pool.h"
#include "router/process_slots.h"
#include "router/result.h"
#include "router/router.h"
#include "router/running_tasks.h"
#include "router/server_request.h"
#include "router/subscriptions.h"
#include "session/principal.h"

#define CACHE_LINE_BYTES 64 /* of most processors; only speed depends on it */
#define RESTARTS_MAX 3
#define RESTARTS_WINDOW_MS (5 * 60 * 1000)
#define PARAMS_MAX 4096 /* bytes, while sessions are not kept: most have some 200 */

static struct client_session *of_session(struct session *session)
{
	return container_of(session, struct client_session, session);
}

static struct client_session *of_member(struct pool_member *member)
{
	return container_of(member, struct client_session, member);
}

const char *client_session_program(struct session *session)
{
	return of_session(session)->program;
}

struct client *client_session_client(struct session *session)
{
	return &of_session(session)->client;
}

void client_session_warm(const struct session *session)
{
	const char *begin = (const char *)session - offsetof(struct client_session, session);

	for (size_t i = 0; i < sizeof(struct client_session); i += CACHE_LINE_BYTES)
		__builtin_prefetch(begin + i);
}

/* ---- the end ---- */

static void client_session_free(struct client_session *cs)
{
	CHECK(cs->client.kept == NULL);
	msg_unref(&cs->params);
	client_fini(&cs->client);
	loop_defer_free(cs->client.router->loop, cs);
}

static void fail_calls(struct client_session *cs, enum reason reason)
{
	LIST_DRAIN(struct call, call, &cs->client.calls, link)
		call_fail(call, reason);
}

void client_session_end_calls(struct session *session, enum reason reason, const char *why)
{
	struct client_session *cs = of_session(session);

	server_request_end_all(&cs->client, why);
	LIST_EACH(struct call, call, &cs->client.calls, link)
		call_give_up(call, why);
	fail_calls(cs, reason);
}

static void on_session_end(struct session *session, enum reason reason)
{
	struct client_session *cs = of_session(session);

	CHECK(cs->client.session == session);
	if (cs->has_begun)
		LOG_BY(SESSION_END, holder_number(cs->client.principal, &cs->client.peer),
		       LOG_STR("server", cs->client.server->conf.name),
		       LOG_SLICE("principal", cs->client.principal->identity.subject),
		       LOG_STR("reason", reason_get(reason)->text));
	client_session_end_calls(session, reason, "the session has ended");
	kept_session_end(&cs->client.kept, reason);
	subscribe_forget(&cs->client);
	running_tasks_forget(&cs->client);
	if (cs->client.pool != NULL)
		pool_leave(&cs->member, REASON_SESSION_END);
	client_session_free(cs);
}

static const struct session_ops session_ops = { .on_end = on_session_end };

/* ---- what the pool reports ---- */

/* The initialize request's call; NULL: it has been answered. */
static struct call *opening_call(const struct client_session *cs)
{
	if (wait_queue_is_empty(&cs->opening))
		return NULL;
	return call_of_waiter(wait_queue_first(&cs->opening));
}

static void on_ready(struct pool_member *member, const struct envelope *response)
{
	struct client_session *cs = of_member(member);
	const struct upstream *own = pool_own_upstream(cs->client.pool);
	const struct principal *principal = cs->client.principal;
	struct call *call = opening_call(cs);
	char client[PEER_TEXT_BYTES];

	CHECK(call != NULL && principal != NULL);
	session_begin(&cs->session);
	cs->has_begun = true;
	peer_format(&cs->client.peer, client);
	LOG_BY(SESSION_START, holder_number(cs->client.principal, &cs->client.peer),
	       LOG_STR("server", cs->client.server->conf.name), LOG_STR("client", client),
	       LOG_SLICE("principal", principal->identity.subject),
	       LOG_SLICE("revision", cs->client.revision->name),
	       LOG_INT("pid", own != NULL ? upstream_pid(own) : 0),
	       LOG_INT("sessions", cs->client.router->sessions.count));
	result_send_initialize(call, cs->client.pool->agreed, response);
	/* That may have ended the session, whose memory stays for this turn. */
	if (cs->params != NULL && (!cs->may_be_kept || cs->params->text.n > PARAMS_MAX))
		msg_unref(&cs->params);
}

static void on_refused(struct pool_member *member, const struct envelope *response)
{
	struct client_session *cs = of_member(member);

	CHECK(opening_call(cs) != NULL && response->kind == ENVELOPE_ERROR);
	result_send(opening_call(cs), response);
	session_end(&cs->session, REASON_HANDSHAKE_REFUSED);
}

static void on_failed(struct pool_member *member, enum reason reason)
{
	session_end(&of_member(member)->session, reason);
}

static bool may_restart(struct client_session *cs)
{
	uint64_t now_ms = clock_now_ms();

	if (now_ms - cs->restarts_since_ms > RESTARTS_WINDOW_MS) {
		cs->restarts = 0;
		cs->restarts_since_ms = now_ms;
	}
	return ++cs->restarts <= RESTARTS_MAX;
}

static void on_lost(struct pool_member *member, enum reason reason)
{
	struct client_session *cs = of_member(member);
	bool is_opening = opening_call(cs) != NULL;

	CHECK(!pool_is_shared(cs->client.pool));
	server_request_end_all(&cs->client, NULL);
	session_hold(&cs->session); /* the fronts that are told may end it */
	fail_calls(cs, reason);
	session_release(&cs->session);
	if (cs->session.state == SESSION_ENDED)
		return;
	if (is_opening || (reason != REASON_RESTARTED && !may_restart(cs)))
		session_end(&cs->session, reason);
}

static void on_respawn(struct pool_member *member)
{
	const struct client_session *cs = of_member(member);

	LOG_BY(SESSION_RESPAWN, holder_number(cs->client.principal, &cs->client.peer),
	       LOG_STR("server", cs->client.server->conf.name), LOG_INT("restarts", cs->restarts));
}

static void on_notification(struct pool_member *member, uint64_t key, struct msg *msg)
{
	CHECK(of_member(member)->session.state == SESSION_LIVE);
	stream_push(&of_member(member)->session.standalone, STREAM_NOTIFICATION, key, msg);
}

static const struct pool_member_ops member_ops = {
	.on_ready = on_ready,
	.on_refused = on_refused,
	.on_failed = on_failed,
	.on_lost = on_lost,
	.on_respawn = on_respawn,
	.on_notification = on_notification,
};

/* ---- the beginning ---- */

/* While a process is being started, the call waits as long as that takes. */
static void on_opening_timeout(struct wait_queue *queue, struct waiter *waiter)
{
	struct client_session *cs = container_of(queue, struct client_session, opening);

	if (pool_is_coming(cs->client.pool))
		call_wait(call_of_waiter(waiter), cs->client.server->conf.queue_timeout_ms);
	else
		session_end(&cs->session, REASON_OVER_LIMIT);
}

static const struct wait_queue_ops opening_ops = { .on_timeout = on_opening_timeout };

/* Keeps the beginning of the name, in whole characters; nothing of a name with an escape. */
static void keep_program(struct client_session *cs, struct slice params)
{
	static const char *const way[] = { "clientInfo", "name" };
	struct slice name = scan_plain_string(scan_path(params, way, ARRAY_LEN(way)));
	size_t length = 0;

	while (length < name.n) {
		size_t n = text_utf8_length(slice_of(name.p + length, name.n - length));

		if (n == 0 || length + n >= sizeof(cs->program))
			break;
		length += n;
	}
	memcpy(cs->program, length > 0 ? name.p : "", length);
	cs->program[length] = '\0';
}

static struct client_session *client_session_new(struct router *router, struct server *server,
						 const struct peer *peer,
						 const struct envelope *env)
{
	static const char *const roots[] = { "capabilities", "roots", "listChanged" };
	struct client_session *cs = mem_zalloc(sizeof(*cs));
	struct slice params = env->params.text;
	struct json version = scan_member(params, SLICE_LIT("protocolVersion"));
	const struct revision *revision = revision_find(scan_plain_string(version));

	client_init(&cs->client, router, server, peer,
		    revision != NULL ? revision : revision_newest());
	cs->client.tells_roots = scan_path(params, roots, ARRAY_LEN(roots)).type == JSON_TRUE;
	keep_program(cs, params);
	cs->member.ops = &member_ops;
	cs->member.client = &cs->client;
	list_init(&cs->member.link);
	wait_queue_init(&cs->opening, &opening_ops);
	return cs;
}

static void join_session(struct client_session *cs)
{
	cs->client.principal = cs->session.principal;
	cs->client.session = &cs->session;
	cs->client.holder = cs->session.holder;
}

static enum reason init_session(struct client_session *cs, struct principal *principal,
				const struct peer *peer, bool is_part)
{
	struct session_set *set = &cs->client.router->sessions;

	if (is_part)
		session_init_part(&cs->session, set, principal, peer, &session_ops);
	else if (session_init(&cs->session, set, principal, peer, &session_ops) < 0)
		return REASON_OVER_LIMIT;
	return REASON_NONE;
}

void client_session_open(struct router *router, struct server *server, struct principal *principal,
			 const struct peer *peer, struct call *call, struct admitted *admitted,
			 bool is_part)
{
	const struct envelope *env = admitted_take(admitted, NULL);
	struct client_session *cs = client_session_new(router, server, peer, env);
	enum reason reason = REASON_NONE;

	if (!call_record(call, &cs->client, principal, env, admitted_origin(admitted)))
		reason = REASON_UNRECORDED;
	else
		reason = init_session(cs, principal, peer, is_part);
	if (reason != REASON_NONE) {
		call_refuse(call, router->loop, reason);
		client_session_free(cs);
		return;
	}
	join_session(cs);
	if (!is_part)
		cs->params = msg_new(env->params.text);
	cs->client.rights = call->rights = *admitted_rights(admitted);
	call_link(call, &cs->client);
	wait_queue_append(&cs->opening, &call->waiter, 0);
	reason = router->is_draining ? REASON_DRAINING : pool_join(&cs->member, env);
	if (reason != REASON_NONE)
		session_end(&cs->session, reason);
	else if (opening_call(cs) != NULL)
		call_wait(call, server->conf.queue_timeout_ms);
}

/* ---- in a later gateway ---- */

void client_session_keep(struct session *session)
{
	struct client_session *cs = of_session(session);

	cs->may_be_kept = true;
	if (cs->params != NULL && cs->client.kept == NULL)
		cs->client.kept =
			kept_session_new(&cs->client, session_id(session), cs->params->text);
	if (cs->client.kept != NULL)
		msg_unref(&cs->params); /* it is in the session's line */
}

void client_session_keep_all(struct router *router, bool is_on)
{
	LIST_EACH(struct session, session, &router->sessions.sessions, link) {
		struct client_session *cs = of_session(session);

		CHECK(cs->client.kept == NULL || cs->params == NULL);
		if (!is_on && cs->client.kept != NULL && !cs->session.is_part)
			cs->params = msg_new(kept_session_params(cs->client.kept));
	}
	kept_sessions_use(&router->kept_sessions, is_on);
	LIST_EACH(struct session, each, &router->sessions.sessions, link) {
		struct client_session *cs = of_session(each);

		if (is_on && cs->may_be_kept && cs->session.state == SESSION_LIVE)
			client_session_keep(&cs->session);
	}
}

/* Takes what was kept, and goes on as if its process slept. Returns REASON_NONE, or why it cannot. */
static enum reason go_on(struct client_session *cs, struct kept_session *one, struct slice id,
			 const struct kept_state *state, const struct envelope *env)
{
	struct router *router = cs->client.router;
	enum reason reason;

	if (cs->session.is_part)
		session_begin(&cs->session);
	else if (!session_begin_again(&cs->session, id, state->age_ms))
		return REASON_OVER_LIMIT;
	reason = pool_join_again(&cs->member, env, state);
	if (reason != REASON_NONE)
		return reason;
	kept_session_wake(one, &cs->client, id);
	cs->client.kept = one;
	cs->may_be_kept = !cs->session.is_part;
	cs->client.is_ready_to_be_asked = true;
	/* A late answer to a question of the gateway before must not be one to a question of ours. */
	cs->client.server_requests.last_id = clock_wall_ms();
	cs->has_begun = true;
	counter_add(COUNTER_SESSIONS_CONTINUED);
	LOG_BY(SESSION_CONTINUED, holder_number(cs->client.principal, &cs->client.peer),
	       LOG_STR("server", cs->client.server->conf.name),
	       LOG_SLICE("principal", cs->client.principal->identity.subject),
	       LOG_SLICE("revision", cs->client.revision->name), LOG_INT("age_ms", state->age_ms),
	       LOG_INT("sessions", router->sessions.count));
	subscribe_again(&cs->client);
	notification_fanout_tell_member(&cs->member);
	return REASON_NONE;
}

static enum reason wake(struct router *router, struct server *server, struct principal *principal,
			const struct peer *peer, struct slice id, struct kept_session *one,
			const struct kept_state *state, bool is_part, struct session **session_r)
{
	at_end(buf_fini) struct buf text = { 0 };
	struct client_session *cs;
	struct envelope env;
	enum reason reason;

	write_call(&text, SLICE_LIT("0"), SLICE_LIT("initialize"), state->params);
	if (scan_envelope(buf_slice(&text), &scan_limits_none, 0, &env, NULL) < 0) {
		kept_session_forget(&router->kept_sessions, one);
		return REASON_NONE;
	}
	cs = client_session_new(router, server, peer, &env);
	reason = init_session(cs, principal, peer, is_part);
	if (reason != REASON_NONE) {
		client_session_free(cs);
		return reason;
	}
	join_session(cs);
	reason = go_on(cs, one, id, state, &env);
	if (reason == REASON_NONE)
		*session_r = &cs->session;
	else
		session_end(&cs->session, reason);
	return reason;
}

struct session *client_session_wake(struct router *router, struct server *server,
				    struct principal *principal, const struct peer *peer,
				    struct slice id, enum reason *reason_r)
{
	struct session *session = NULL;
	struct kept_session *one;
	struct kept_state state;

	*reason_r = REASON_NONE;
	if (server->is_retired || id.n != SESSION_ID_LENGTH)
		return NULL;
	one = kept_sessions_find(&router->kept_sessions, id, principal, server, &state);
	if (one == NULL || state.age_ms >= router->sessions.conf.max_age_ms)
		return NULL;
	if (router->is_draining)
		*reason_r = REASON_DRAINING;
	else
		*reason_r = wake(router, server, principal, peer, id, one, &state, false, &session);
	return session;
}

struct session *client_session_wake_part(struct router *router, struct server *server,
					 struct principal *principal, const struct peer *peer,
					 struct slice id,
					 struct server_capabilities *capabilities_r)
{
	struct session *session = NULL;
	struct kept_session *one;
	struct kept_state state;

	if (server->is_retired || router->is_draining)
		return NULL;
	one = kept_sessions_find(&router->kept_sessions, id, principal, server, &state);
	if (one != NULL)
		(void)wake(router, server, principal, peer, id, one, &state, true, &session);
	if (session != NULL)
		*capabilities_r = state.capabilities;
	return session;
}
