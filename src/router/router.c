/* SPDX-License-Identifier: Apache-2.0 */
/* Connects pools with what they use of the units above them; reports what upstreams and clients know. */
#include "router/router.h"

#include "base/clock.h"
#include "process/child.h"
#include "process/server_rules.h"
#include "router/bridged_call.h"
#include "router/call.h"
#include "router/client.h"
#include "router/client_request.h"
#include "router/client_session.h"
#include "router/dispatch.h"
#include "router/forward.h"
#include "router/call_check.h"
#include "router/lists.h"
#include "router/listen.h"
#include "router/modern_tasks.h"
#include "router/pool.h"
#include "router/process_slots.h"
#include "router/running_tasks.h"
#include "router/server_messages.h"
#include "router/server_request.h"
#include "router/subscriptions.h"
#include "upstream/stdio.h"

static void on_new_pool(struct pool *pool)
{
	lists_init(&pool->lists);
	subscriptions_init(&pool->subscriptions);
	notification_fanout_init(&pool->notices);
	pool->notices.rules = server_rules(pool->server);
	url_pending_init(&pool->urls);
}

static void on_pool_end(struct pool *pool)
{
	CHECK(pool->urls.count == 0 && list_is_empty(&pool->urls.waiters));
	notification_fanout_fini(&pool->notices);
	subscriptions_fini(&pool->subscriptions);
	lists_fini(&pool->lists);
}

/* The pool's lists are others now, for its processes or the rules of its server are. Members hear of it. */
static void tell_changes(struct pool *pool, bool is_other)
{
	uint64_t rules = server_rules(pool->server);

	is_other |= pool->notices.rules != rules;
	pool->notices.rules = rules;
	if (is_other)
		notification_fanout_tell_changes(pool);
}

/*
 * A new process is told what earlier ones were told; the previous one may have had other lists.
 * bridging.md §4
 */
static void on_upstream_ready(struct upstream *upstream, bool is_first, bool is_other)
{
	struct pool *pool = upstream->pool;

	if (upstream->client != NULL && upstream->client->level >= 0)
		dispatch_tell_level(upstream, upstream->client->level);
	if (upstream->client != NULL && upstream->client->kept != NULL)
		kept_session_note_process(upstream->client->kept);
	if (pool_is_shared(pool))
		kept_pool_note_process(upstream);
	listen_begin(upstream);
	lists_note_ready(pool);
	subscribe_replay(upstream);
	tell_changes(pool, !is_first && is_other);
	/* That may have ended the session. */
	if (!is_first && !pool_is_shared(pool) && pool->member_count > 0 &&
	    clock_now_ms() > pool->stopped_at_ms)
		notification_fanout_tell_updates(pool);
}

static void on_upstream_closed(struct upstream *upstream)
{
	lists_note_closed(upstream);
	listen_end(upstream);
	task_listener_lose(upstream);
	live_tasks_forget(upstream);
	url_pending_forget(&upstream->pool->urls, upstream_child_number(upstream));
}

static const struct pool_ops pool_ops = {
	.on_new = on_new_pool,
	.on_end = on_pool_end,
	.on_ready = on_upstream_ready,
	.on_leave = notification_fanout_leave,
	.on_closed = on_upstream_closed,
	.on_turn = dispatch_on_turn,
	.on_request = server_messages_take_request,
	.on_notification = server_messages_take_notification,
};

static const struct process_slots_ops slots_ops = { .grow = pool_grow,
						    .refuse = pool_fail_waiting };

static void on_upstream_gone(struct upstream *upstream)
{
	struct router *router = container_of(upstream->shared, struct router, upstreams);

	process_slots_note_gone(&router->slots, upstream);
}

void router_init(struct router *router, struct loop *loop, const struct scan_limits *limits,
		 const struct session_conf *sessions)
{
	*router = (struct router){
		.loop = loop,
		.limits = *limits,
		.upstreams = { .loop = loop, .limits = *limits, .on_gone = on_upstream_gone },
		.pool_ops = &pool_ops,
		.on_stale = forward_again,
		.on_list = call_check_on_list,
	};
	credentials_init(&router->upstreams.credentials, loop);
	prestart_init(&router->prestart, &router->upstreams);
	process_slots_init(&router->slots, loop, &slots_ops);
	lists_lru_init(&router->lists);
	pool_memories_init(&router->pool_memories);
	kept_sessions_init(&router->kept_sessions, loop);
	list_init(&router->requests);
	rate_set_init(&router->rates);
	schema_cache_init(&router->schemas);
	bridged_calls_init(&router->parked_calls);
	seal_keys_init(&router->seal_keys, NULL, 0);
	session_set_init(&router->sessions, loop, sessions);
}

static void set_seed(const unsigned char *key, const char *what, uint64_t *seed_r)
{
	at_end(buf_wipe) struct buf text = { 0 };
	struct digest digest;

	buf_append(&text, key, SEAL_KEY_BYTES);
	buf_append_str(&text, what);
	digest_bytes(buf_slice(&text), &digest);
	memcpy(seed_r, digest.bytes, sizeof(*seed_r));
}

void router_use_seal_key(struct router *router, const unsigned char *key)
{
	seal_keys_fini(&router->seal_keys);
	seal_keys_init(&router->seal_keys, key, 1);
	/* Callers have the same keys at all nodes that have the same key. CLU-RATE-01 */
	set_seed(key, "principals", &router->sessions.principals.seed);
	set_seed(key, "holders", &router->sessions.holders.seed);
}

void router_fini(struct router *router)
{
	const struct principal_set *principals = &router->sessions.principals;

	session_set_fini(&router->sessions);
	kept_sessions_fini(&router->kept_sessions);
	process_slots_fini(&router->slots);
	rate_set_fini(&router->rates);
	schema_cache_fini(&router->schemas);
	seal_keys_fini(&router->seal_keys);
	CHECK(router->calls == 0 && router->parked_calls.by_id.count == 0);
	CHECK(principals->by_key.count == 0 && principals->anonymous.refs == 1);
	credentials_fini(&router->upstreams.credentials);
	buf_fini(&router->upstreams.scratch);
}

void router_start_server(struct router *router, struct server *server)
{
	const struct server_conf *conf = &server->conf;

	if (conf->isolation == ISOLATION_SHARED && conf->pool_min > 0)
		pool_prepare(router, server);
	else if (conf->isolation != ISOLATION_SHARED && conf->warm > 0 && conf->claims.count == 0)
		prestart_keep_warm(&router->prestart, server);
	/* One that goes on with a process of the gateway before has been looked at. */
	if (conf->is_tried && conf->claims.count == 0 && !server_is_endpoint(conf) &&
	    server->count == 0)
		prestart_look(&router->prestart, server);
}

static void router_use_rules_in(struct list *pools)
{
	LIST_EACH_SAFE(struct pool, pool, pools, link) {
		pool_use_rules(pool);
		tell_changes(pool, false);
	}
}

void router_use_rules(struct router *router)
{
	router_use_rules_in(&router->slots.pools);
	router_use_rules_in(&router->slots.awake);
}

static bool has_leg(const struct server *endpoint, const struct server *server)
{
	const struct server_legs *legs = &endpoint->conf.legs;

	for (size_t i = 0; i < legs->count; i++)
		if (slice_is_equal(legs->items[i].server, slice_str(server->conf.name)))
			return true;
	return false;
}

/* What the server says of itself is in what clients of its endpoints are told as well. */
static void note_decision_in(struct list *pools, const struct server *server)
{
	LIST_EACH_SAFE(struct pool, pool, pools, link) {
		if (pool->server == server || has_leg(pool->server, server))
			pool_use_rules(pool);
		if (pool->server == server)
			tell_changes(pool, false);
	}
}

void router_note_decision(struct router *router, const struct server *server)
{
	note_decision_in(&router->slots.pools, server);
	note_decision_in(&router->slots.awake, server);
}

void router_retire_server(struct router *router, struct server *server)
{
	CHECK(!server->is_retired);
	server->is_retired = true;
	prestart_drop_warm(&router->prestart, server, REASON_RETIRED);
	client_request_drain_some(router, server);
	bridged_calls_abandon_some(router, server, REASON_RETIRED);
	pool_retire_all(router, server);
}

void router_end_sessions_of(struct router *router, const struct server *server, enum reason reason)
{
	struct list now;

	/*
	 * Ending one session may end another: those to be ended are moved to a list of their own,
	 * which they leave when they end.
	 */
	list_init(&now);
	LIST_EACH_SAFE(struct session, session, &router->sessions.sessions, link) {
		const struct client *client = client_session_client(session);
		bool is_meant = server != NULL ? client->server == server :
						 principal_is_anonymous(session->principal);

		if (is_meant)
			list_move(&now, &session->link);
	}
	LIST_DRAIN(struct session, session, &now, link)
		session_end(session, reason);
}

void router_end_anonymous(struct router *router, enum reason reason)
{
	router->anonymous_ends++;
	router_end_sessions_of(router, NULL, reason);
	kept_sessions_forget_owner(&router->kept_sessions, &router->sessions.principals.anonymous);
	client_request_drain_some(router, NULL);
	bridged_calls_abandon_some(router, NULL, reason);
}

bool router_is_asking(const struct router *router)
{
	LIST_EACH(struct session, session, &router->sessions.sessions, link)
		if (server_requests_of_calls(client_session_client(session)) > 0)
			return true;
	return false;
}

void router_hand_over(struct router *router)
{
	LIST_EACH(struct pool, pool, &router->slots.pools, link)
		LIST_EACH(struct upstream, upstream, &pool->upstreams, link) {
			listen_hand_over(upstream);
			kept_pool_hand_over(upstream);
		}
}

void router_end_waits(struct router *router, enum reason reason)
{
	prestart_hold(&router->prestart);
	client_request_drain_all(router);
	bridged_calls_abandon(router, reason);
}

void router_drain(struct router *router)
{
	router->is_draining = true;
	router_end_waits(router, REASON_DRAINING);
}

void router_end_calls(struct router *router, enum reason reason)
{
	struct list *sessions = &router->sessions.sessions;
	struct list left;

	list_init(&left);
	list_splice(&left, sessions);
	LIST_DRAIN(struct session, session, &left, link) {
		list_move(sessions, &session->link);
		client_session_end_calls(session, reason, "the gateway stops");
	}
	client_request_end_all(router, reason);
}

void router_end_sessions(struct router *router, enum reason reason)
{
	struct list *sessions = &router->sessions.sessions;

	LIST_DRAIN(struct session, session, sessions, link)
		session_end(session, reason);
	client_request_end_all(router, reason);
	bridged_calls_abandon(router, reason);
}

void router_end_processes(struct router *router, enum reason reason)
{
	prestart_end(&router->prestart, reason);
	kept_sessions_end_processes(&router->kept_sessions, reason);
	pool_end_all(router, reason);
}

/* ---- report ---- */

/* Reads what upstreams and clients know. Every process of a server belongs to an upstream. */

static size_t report_count_waiting(const struct client *client)
{
	size_t count = 0;

	LIST_EACH(struct call, call, &client->calls, link)
		count += call->state == CALL_WAITING;
	return count;
}

void report_session(struct session *session, struct session_report *report_r)
{
	const struct client *client = client_session_client(session);
	const struct upstream *own = client->pool != NULL ? pool_own_upstream(client->pool) : NULL;

	CHECK(client->session == session);
	*report_r =
		(struct session_report){ .server = client->server,
					 .revision = client->revision->name,
					 .program = slice_str(client_session_program(session)),
					 .peer = &client->peer,
					 .calls = client->call_count,
					 .is_asleep = session->state == SESSION_LIVE &&
						      !pool_is_shared(client->pool) && own == NULL,
					 .pid = own != NULL ? upstream_pid(own) : 0 };
	report_r->waiting = report_count_waiting(client);
	report_r->server_requests = client->server_requests.by_id.count;
}

void report_request(const struct client_request *request, struct request_report *report_r)
{
	const struct client *client = &request->client;

	*report_r = (struct request_report){ .server = client->server,
					     .calls = client->call_count,
					     .waiting = report_count_waiting(client) };
}

void report_child(struct child *child, struct child_report *report_r)
{
	const struct upstream *upstream = stdio_of_child(child);
	const struct client *client = upstream->client;

	*report_r = (struct child_report){ .state_number = upstream->state,
					   .is_up = upstream_is_serving(upstream) ||
						    upstream->state == UPSTREAM_WARM,
					   .calls = upstream_load(upstream),
					   .session = client != NULL ? client->session : NULL,
					   .is_leased = upstream->lease != NULL,
					   .principal = pool_principal_of(upstream) };
	if (child->state == CHILD_STOPPING)
		report_r->state_number = REPORT_CHILD_STATES - 1;
	report_r->state = report_child_state(report_r->state_number);
}

const char *report_child_state(unsigned int number)
{
	CHECK(number < REPORT_CHILD_STATES);
	return number == REPORT_CHILD_STATES - 1 ? "stopping" :
						   upstream_state_name((enum upstream_state)number);
}

size_t report_restart(struct server *server)
{
	size_t count = 0;

	server->restarts++;
	backoff_forget_failures(&server->backoff);
	LIST_EACH_SAFE(struct child, child, &server->children, link)
		if (child->state == CHILD_RUNNING)
			count += upstream_restart(stdio_of_child(child));
	return count;
}
