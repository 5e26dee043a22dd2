/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools, their upstreams and members. A call goes to the upstream with the fewest calls; when all
 * have as many as they may, another one is started; if there may not be another, calls wait.
 *
 * Invariant: while calls or members wait, an upstream starts or works, or the wait is limited.
 */
#include "router/pool.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "jsonrpc/scan.h"
#include "obs/log.h"
#include "router/call.h"
#include "router/client.h"
#include "router/era.h"
#include "router/kept_sessions.h"
#include "router/listing.h"
#include "router/process_slots.h"
#include "router/router.h"
#include "router/server_request.h"
#include "session/principal.h"
#include "upstream/prestart.h"
#include "upstream/send.h"
#include "upstream/stdio.h"
#include "upstream/upstream.h"
#include "upstream/upstream_ops.h"

static struct pool_member *pool_member_at(struct list *node)
{
	return container_of(node, struct pool_member, link);
}

/* ---- pool class ---- */

/*
 * A principal with this many pools of a server gets no further ones for capabilities that clients
 * may name as they like. bridging.md §1.2
 */
#define RETRY_MS 1000
#define CLASSES_MAX 8

/*
 * Finds the pool; NULL: there is none. *count_r: the number of pools the principal has at the
 * server, without those that exist only for their memory (pool_memory.h).
 */
static struct pool *pool_class_find(const struct router *router, const struct server *server,
				    const struct principal *principal, struct slice claims,
				    struct slice class, size_t *count_r)
{
	*count_r = 0;
	LIST_EACH(struct pool, pool, &router->slots.pools, link) {
		if (pool->server != server || pool->principal != principal || pool->is_outdated)
			continue;
		*count_r += pool->member_count > 0 || pool->upstream_count > 0;
		if (slice_is_equal(buf_slice(&pool->setup.claims), claims) &&
		    slice_is_equal(slice_str(pool->class), class))
			return pool;
	}
	return NULL;
}

/*
 * Appends a client's capability class, reduced if it would need one pool too many for its
 * principal.
 */
static void pool_class_append(struct buf *out, const struct client *client,
			      const struct principal *principal, struct slice claims,
			      struct slice capabilities)
{
	size_t count;

	capability_class_append(out, capabilities, true);
	if (principal == NULL ||
	    pool_class_find(client->router, client->server, principal, claims, buf_slice(out),
			    &count) != NULL ||
	    count < CLASSES_MAX)
		return;
	out->len = 0;
	capability_class_append(out, capabilities, false);
}

/* ---- pool era ---- */

/*
 * For a legacy client, a server is sent initialize at once: most servers know it, and nobody has to
 * wait for a probe that legacy servers do not know. A server is probed only if it has failed or
 * refused to initialize, or is to serve a modern client.
 */

static void pool_ask(struct pool *pool, struct trial_waiter *waiter)
{
	if (!trial_waiter_is_waiting(waiter))
		prestart_probe(&pool->router->prestart, pool->server, &pool->setup, waiter);
}

static void on_verdict(struct trial_waiter *waiter)
{
	struct pool *pool = container_of(waiter, struct pool, verdict);

	if (waiter->lacks_credential) {
		pool->refused_until_ms = clock_now_ms() + RETRY_MS;
		pool_fail_waiting(pool, REASON_CREDENTIAL_MISSING);
	}
	pool_wake(pool);
}

/* A pool uses one era only: processes of the other one finish their calls. */
static void pool_retire_others(struct pool *pool, bool is_modern)
{
	LIST_EACH_SAFE(struct upstream, upstream, &pool->upstreams, link)
		if (upstream->state == UPSTREAM_READY && upstream_is_modern(upstream) != is_modern)
			upstream_retire(upstream);
}

static void on_verdict_aside(struct trial_waiter *waiter)
{
	struct pool *pool = container_of(waiter, struct pool, aside);

	if (era_of(pool->server) == ERA_MODERN)
		pool_retire_others(pool, true);
	pool_wake(pool);
}

static bool pool_is_for_modern(const struct pool *pool)
{
	return !list_is_empty(&pool->joining) &&
	       pool_member_at(pool->joining.next)->client->revision->is_modern;
}

static bool pool_is_going_on(const struct pool *pool)
{
	LIST_EACH(struct upstream, upstream, &pool->upstreams, link)
		if (upstream->is_inherited)
			return true;
	return false;
}

/* Whether nothing may be started before the server's era is known; the pool is then woken. */
static bool pool_era_is_awaited(struct pool *pool)
{
	struct server *server = pool->server;

	if (pool_is_going_on(pool))
		return era_of(server) == ERA_UNKNOWN; /* a process of the gateway before shows it */
	if (!trial_waiter_is_waiting(&pool->verdict) &&
	    prestart_wait(&pool->router->prestart, server, &pool->verdict))
		return true;
	/* A server whose starts are refused is not probed either: callers are refused at once. */
	if ((pool_is_for_modern(pool) || era_is_doubtful(server)) && era_may_probe(server) &&
	    !backoff_has_given_up(&server->backoff))
		pool_ask(pool, &pool->verdict);
	return trial_waiter_is_waiting(&pool->verdict);
}

/*
 * A modern client has joined a pool that already serves as legacy. If the server may be modern, it
 * is probed on the side, and on success the pool becomes modern.
 */
static void pool_era_ask_aside(struct pool *pool)
{
	if (era_may_probe(pool->server) && !backoff_has_given_up(&pool->server->backoff))
		pool_ask(pool, &pool->aside);
}

/*
 * An upstream is ready, which shows its server's era. Upstreams of the other era get no more
 * requests.
 */
static void pool_era_note_ready(const struct upstream *upstream)
{
	struct pool *pool = upstream->pool;
	bool is_modern = upstream_is_modern(upstream);

	if (is_modern)
		era_note(pool->server, ERA_MODERN);
	else
		era_note_answered(pool->server);
	pool_retire_others(pool, is_modern);
}

/*
 * An upstream has failed. If it was never ready, the known era may be wrong, and the next client
 * triggers a new probe.
 */
static void pool_era_note_lost(const struct upstream *upstream)
{
	if (upstream->era == NULL || upstream->ready_at_ms > 0)
		return;
	if (upstream_is_modern(upstream))
		era_note(upstream->server, ERA_UNKNOWN);
	else
		era_note_unanswered(upstream->server);
}

/*
 * An upstream answered the handshake with an error. Returns whether its server may be of the other
 * era: then another process must be started, now or once the era is known.
 */
static bool pool_era_reconsider(const struct upstream *upstream, const struct envelope *response)
{
	struct pool *pool = upstream->pool;

	if (upstream_is_modern(upstream))
		return false; /* it is a failure, and is reported as one */
	if (pool->server->conf.era == ERA_UNKNOWN && modern_is_named(response->error.text))
		era_note(pool->server, ERA_MODERN);
	else if (era_may_probe(pool->server))
		pool_ask(pool, &pool->verdict);
	else
		return false;
	return true;
}

/* ---- pool retire ---- */

/* Stops the idle processes of a retired shared pool without members. Else a no-op. */
static void pool_close_idle(struct pool *pool)
{
	if (!pool_is_retired(pool) || !pool_is_shared(pool) || pool->member_count > 0)
		return;
	LIST_EACH_SAFE(struct upstream, upstream, &pool->upstreams, link)
		if (pool_can_spare(upstream))
			upstream_close(upstream, REASON_RETIRED);
}

void pool_use_rules(struct pool *pool)
{
	LIST_EACH(struct upstream, upstream, &pool->upstreams, link)
		if (upstream->ops->use_rules != NULL)
			upstream->ops->use_rules(upstream);
	if (pool_is_shared(pool) && server_is_endpoint(&pool->server->conf)) {
		pool->is_outdated = true;
		pool_wake(pool);
	} else {
		pool_memory_use_rules(pool);
	}
}

void pool_retire_all(struct router *router, const struct server *server)
{
	CHECK(server->is_retired);
	LIST_EACH(struct pool, pool, &router->slots.pools, link)
		if (pool->server == server)
			pool_wake(pool);
}

/* ---- pools ---- */

#define SLEEP_RETRY_MS 10000 /* while a question or a task is open */

/* Whether waiting makes sense: shared processes come and go, and sessions may give theirs away. */
static bool may_wait_for(const struct pool *pool, enum reason reason)
{
	return reason == REASON_NONE ||
	       (reason == REASON_OVER_LIMIT && (pool_is_shared(pool) || pool->is_waiting));
}

/* ---- upstreams: their requests ---- */

/* The client that had the process to itself no longer gets its requests. */
static void pool_end_lease(struct upstream *upstream)
{
	struct client *client = upstream->client;

	CHECK(upstream->lease != NULL && client != NULL);
	server_request_withdraw_all(client, upstream,
				    "the request that this was asked for is over");
	upstream->lease = NULL;
	upstream->client = NULL;
}

void pool_lease(struct upstream *upstream, struct call *call)
{
	CHECK(pool_is_shared(upstream->pool) && upstream->lease == NULL);
	upstream->lease = call;
	upstream->client = call->client;
}

/* What is left of a time of which `passed_ms` have passed; UINT64_MAX of 0, which stands for none. */
static uint64_t pool_left_ms(uint64_t whole_ms, uint64_t passed_ms)
{
	if (whole_ms == 0)
		return UINT64_MAX;
	return whole_ms > passed_ms ? whole_ms - passed_ms : 0;
}

/*
 * When to look whether a process at rest is to be stopped, in milliseconds: 0: now; UINT64_MAX: never. A
 * session's client that has closed its stream is taken to be gone; while it is there, or has not had
 * one yet, we look again.
 */
static uint64_t pool_rests_for(const struct upstream *upstream)
{
	const struct server_conf *conf = &upstream->server->conf;
	uint64_t idle_ms = clock_now_ms() - upstream->rested_at_ms;
	uint64_t gone_ms, until_sleep_ms, until_gone_ms;

	if (pool_is_shared(upstream->pool))
		return pool_left_ms(conf->idle_ms, idle_ms);
	gone_ms = stream_unread_ms(&upstream->client->session->standalone);
	until_sleep_ms = pool_left_ms(conf->sleep_after_ms, idle_ms);
	until_gone_ms = pool_left_ms(conf->sleep_gone_ms, gone_ms < idle_ms ? gone_ms : idle_ms);
	return until_gone_ms < until_sleep_ms ? until_gone_ms : until_sleep_ms;
}

static void pool_start_idle(struct upstream *upstream)
{
	uint64_t wait_ms = pool_rests_for(upstream);

	if (wait_ms < UINT64_MAX)
		upstream_start_idle(upstream, wait_ms);
}

/* The upstream may be one too many. */
static void pool_on_rest(struct upstream *upstream)
{
	struct pool *pool = upstream->pool;

	CHECK(upstream_load(upstream) == 0 && upstream->lease == NULL);
	upstream->rested_at_ms = clock_now_ms();
	if (!pool_is_shared(pool)) {
		process_slots_note_idle(&pool->router->slots);
		if (upstream->state == UPSTREAM_READY)
			pool_start_idle(upstream);
	} else if (pool_is_over(upstream)) {
		if (upstream->donated_at_ms > 0)
			process_slots_note_leaving(upstream);
		upstream_close(upstream, REASON_IDLE_TIMEOUT);
	} else {
		pool_start_idle(upstream);
		/* Otherwise it gets another call at once: other pools would look for it in vain. */
		if (!pool_is_waited_for(pool))
			process_slots_note_idle(&pool->router->slots);
	}
}

static void pool_on_request_end(struct upstream *upstream, struct upstream_request *request,
				bool is_answered)
{
	bool is_lease = upstream->lease != NULL && &upstream->lease->request == request;

	if (upstream->logged == request)
		upstream->logged = NULL;
	if (is_lease)
		pool_end_lease(upstream);
	/* It may work on, and ask: the next call must not get that. bridging.md §2.3.3 */
	if (is_lease && !is_answered)
		upstream_settle(upstream, request->id, pool_is_leased(upstream->pool));
	if (pool_is_waited_for(upstream->pool))
		pool_wake(upstream->pool);
}

static void pool_on_settled(struct upstream *upstream)
{
	pool_wake(upstream->pool);
}

static void pool_on_idle(struct upstream *upstream)
{
	bool is_shared = pool_is_shared(upstream->pool);
	bool is_spare = pool_can_spare(upstream);

	if (pool_rests_for(upstream) > 0)
		pool_start_idle(upstream);
	else if (is_shared && (is_spare || pool_is_over(upstream)))
		upstream_close(upstream, REASON_IDLE_TIMEOUT);
	else if (is_shared)
		upstream_start_idle(upstream, upstream->server->conf.idle_ms);
	else if (is_spare && process_slots_is_resting(upstream))
		process_slots_put_to_sleep(upstream, REASON_IDLE_TIMEOUT);
	else
		upstream_start_idle(upstream, SLEEP_RETRY_MS);
}

static void pool_on_request(struct upstream *upstream, const struct envelope *env)
{
	upstream->pool->router->pool_ops->on_request(upstream, env);
}

static void pool_on_notification(struct upstream *upstream, const struct envelope *env)
{
	upstream->pool->router->pool_ops->on_notification(upstream, env);
}

/* ---- upstreams: their beginning and end ---- */

static void pool_admit_member(struct pool_member *member, const struct envelope *response)
{
	struct pool *pool = member->client->pool;

	CHECK(pool->agreed != NULL);
	list_move(&pool->members, &member->link);
	member->ops->on_ready(member, response);
}

/* All members get the same, whichever upstream is ready. */
static void pool_admit_to_shared(struct pool *pool)
{
	at_end(msg_unref) struct msg *msg = msg_ref(pool->initialize_result);
	struct envelope env;

	LIST_DRAIN(struct pool_member, member, &pool->joining, link) {
		if (scan_envelope(msg->text, &scan_limits_none, SCAN_LENIENT, &env, NULL) == 0)
			pool_admit_member(member, &env);
		else /* cannot happen: we wrote it */
			member->ops->on_failed(member, REASON_CHILD_PROTOCOL_ERROR);
	}
}

static void pool_on_pump(struct task *task);

/* The session's client knows already what the server has said of itself. */
static void pool_on_own_inherited(struct upstream *upstream)
{
	struct pool *pool = upstream->pool;

	CHECK(!pool_is_shared(pool) && pool->agreed != NULL && pool->starting > 0);
	pool->starting--;
	pool_on_rest(upstream);
	pool_era_note_ready(upstream);
	pool->router->pool_ops->on_ready(upstream, false, false);
	if (pool->member_count > 0)
		pool_on_pump(&pool->pump);
}

static void pool_on_ready(struct upstream *upstream, const struct envelope *response,
			  struct slice described)
{
	struct pool *pool = upstream->pool;
	at_end(convert_fini) struct convert pinned = { 0 };
	const struct envelope *shown = pinning_take_server(&pinned, pool->server, response);
	struct slice result = shown->result.text;
	bool is_first = pool->agreed == NULL, is_other = true;

	CHECK(pool->starting > 0);
	pool->starting--;
	pool_memory_end(pool);
	pool_on_rest(upstream);
	pool_era_note_ready(upstream);
	pool->agreed = upstream->revision;
	if (pool_is_shared(pool)) {
		is_other = pool_memory_describe(pool, result, described);
		result = scan_member(pool->initialize_result->text, SLICE_LIT("result")).text;
	}
	server_capabilities_read(&pool->capabilities, result, upstream_is_modern(upstream));
	if (upstream->era == &upstream_era_legacy)
		send_initialized(upstream);
	pool->router->pool_ops->on_ready(upstream, is_first, is_other);
	if (pool_is_shared(pool))
		pool_admit_to_shared(pool);
	else if (!list_is_empty(&pool->joining))
		pool_admit_member(pool_member_at(pool->joining.next), shown);
	/* The callback may have ended the session and, with it, this pool if that was its own. */
	if (pool_is_shared(pool) || pool->member_count > 0)
		pool_on_pump(&pool->pump);
}

/* Its server has described itself to the gateway before. */
static void pool_on_inherited(struct upstream *upstream)
{
	struct pool *pool = upstream->pool;
	struct slice text = pool->inherited_result->text;
	at_end(msg_unref) struct msg *now = intake_again(pool->server, &scan_limits_none, text);

	/* As when it was written: whoever left it is believed no more than a server. */
	if (now != NULL && now->env->kind == ENVELOPE_RESULT &&
	    upstream_era_legacy.read_result(upstream, now->env->result.text, NULL) ==
		    upstream->revision) {
		pool_on_ready(upstream, now->env, scan_member(text, SLICE_LIT("result")).text);
		return;
	}
	pool->starting--; /* it has answered */
	upstream_close(upstream, REASON_CHILD_PROTOCOL_ERROR);
	pool_wake(pool);
}

static void pool_on_answer(struct upstream *upstream, const struct envelope *response,
			   struct slice described)
{
	if (upstream->era != &upstream_era_inherited)
		pool_on_ready(upstream, response, described);
	else if (pool_is_shared(upstream->pool))
		pool_on_inherited(upstream);
	else
		pool_on_own_inherited(upstream);
}

static void pool_on_refused(struct upstream *upstream, const struct envelope *response)
{
	struct pool *pool = upstream->pool;
	bool was_asked = !list_is_empty(&pool->joining) && !upstream_is_modern(upstream);

	/* Its session goes on with another one, as if it had slept. */
	if (upstream->is_inherited) {
		upstream_close(upstream, REASON_CHILD_HUNG);
		pool_wake(pool);
		return;
	}
	pool_memory_end(pool);
	if (pool_era_reconsider(upstream, response)) {
		upstream_close(upstream, REASON_HANDSHAKE_REFUSED);
		pool_wake(pool);
		return;
	}
	upstream_era_note_refusal(upstream, response);
	while (was_asked && !list_is_empty(&pool->joining)) {
		struct pool_member *member = pool_member_at(pool->joining.next);

		member->ops->on_refused(member, response);
	}
	if (upstream->state == UPSTREAM_CLOSED)
		return;
	if (was_asked)
		upstream_close(upstream, REASON_HANDSHAKE_REFUSED);
	else
		upstream_refuse(upstream); /* the same request was fine before */
}

static void pool_on_closed(struct upstream *upstream)
{
	struct pool *pool = upstream->pool;

	CHECK(pool->upstream_count > 0);
	pool->router->pool_ops->on_closed(upstream);
	if (!upstream_is_serving(upstream))
		pool->starting--;
	if (upstream->lease != NULL)
		pool_end_lease(upstream);
	if (pool->holder != NULL) {
		CHECK(pool->holder->count > 0);
		pool->holder->count--;
	}
	pool->stopped_at_ms = clock_now_ms();
	process_slots_note_stopped(upstream);
	upstream->client = NULL;
	list_remove(&upstream->link);
	pool->upstream_count--;
	if (!pool_is_shared(pool))
		return;
	if (pool->upstream_count == 0)
		kept_pool_end(pool);
	if (upstream_is_serving(upstream) && pool->upstream_count == 0)
		pool_memory_begin(pool);
	pool_wake(pool);
}

void pool_fail_waiting(struct pool *pool, enum reason reason)
{
	LIST_DRAIN(struct pool_member, member, &pool->joining, link)
		member->ops->on_failed(member, reason);
	while (!fair_queue_is_empty(&pool->queue))
		call_fail(call_of_waiter(fair_queue_first(&pool->queue)), reason);
	LIST_DRAIN(struct pool_job, job, &pool->jobs, link) {
		pool_remove_job(job);
		job->ops->on_failed(job, reason);
	}
}

static void pool_on_lost(struct upstream *upstream, enum reason reason)
{
	struct pool *pool = upstream->pool;

	if (upstream->is_inherited) {
		pool_wake(pool);
		return;
	}
	pool_era_note_lost(upstream);
	if (!pool_is_shared(pool)) {
		struct pool_member *member = pool_only_member(pool);

		member->ops->on_lost(member, reason);
		upstream_lose_requests(upstream, reason); /* for lists; its calls have ended */
		/* That may have ended the session, and this pool. */
		if (pool->member_count > 0)
			pool_wake(pool);
		return;
	}
	pool_memory_note_lost(pool);
	/* That counts as no failure of the server, which would make the next start wait. */
	if (reason == REASON_CREDENTIAL_MISSING)
		pool->refused_until_ms = clock_now_ms() + RETRY_MS;
	upstream_lose_requests(upstream, reason);
	/* It could not be started, and there are no others. */
	if (pool->upstream_count == 0 && reason_get(reason)->http_status >= 400)
		pool_fail_waiting(pool, reason);
	pool_wake(pool);
}

static const struct upstream_owner_ops owner_ops = {
	.on_ready = pool_on_answer,
	.on_refused = pool_on_refused,
	.on_request = pool_on_request,
	.on_notification = pool_on_notification,
	.on_request_end = pool_on_request_end,
	.on_settled = pool_on_settled,
	.on_rest = pool_on_rest,
	.on_idle = pool_on_idle,
	.on_closed = pool_on_closed,
	.on_lost = pool_on_lost,
};

static void pool_set_era(struct pool *pool, struct upstream *upstream)
{
	bool is_modern = upstream->is_inherited ? upstream->revision->is_modern :
						  era_of(pool->server) == ERA_MODERN;

	pool->setup.era = is_modern              ? &upstream_era_modern :
			  upstream->is_inherited ? &upstream_era_inherited :
						   &upstream_era_legacy;
}

static enum reason pool_start_upstream(struct pool *pool)
{
	struct router *router = pool->router;
	struct pool_member *only = pool_is_shared(pool) ? NULL : pool_only_member(pool);
	struct upstream *warm = only != NULL ? kept_session_take_process(only->client) :
					       kept_pool_take_process(pool);
	struct upstream *upstream;
	uint64_t wait_ms = 0;

	if (warm == NULL)
		warm = prestart_take(&router->prestart, pool->server);
	upstream = warm;
	if (warm == NULL) {
		enum reason reason = server_admit(pool->server, &wait_ms);

		if (reason == REASON_OVER_LIMIT) {
			if (!server_has_room(pool->server) &&
			    !process_slots_has_leaving(pool->server))
				kept_sessions_give_way(&router->kept_sessions, pool->server);
			process_slots_seek(pool);
		}
		if (reason != REASON_NONE)
			return reason;
		if (server_is_endpoint(&pool->server->conf))
			upstream = router->aggregate_new(&router->upstreams, pool->server);
		else
			upstream = stdio_new(&router->upstreams, pool->server);
	}
	if (only != NULL && list_is_empty(&pool->joining) && !upstream->is_inherited)
		only->ops->on_respawn(only);
	pool_set_era(pool, upstream);
	upstream->pool = pool;
	upstream->client = only != NULL ? only->client : NULL;
	list_append(&pool->upstreams, &upstream->link);
	pool->upstream_count++;
	pool->starting++;
	pool->is_awoken = false;
	if (pool->holder != NULL)
		pool->holder->count++;
	process_slots_note_started(pool);
	if (warm != NULL)
		upstream_adopt(upstream, &owner_ops, &pool->setup);
	else
		upstream_begin(upstream, &owner_ops, &pool->setup, wait_ms);
	return REASON_NONE;
}

/* ---- waiting ---- */

static bool pool_has_held(const struct pool *pool)
{
	return pool_is_shared(pool) ? kept_pool_has_processes(pool) :
				      kept_session_has_process(pool_only_member(pool)->client);
}

enum reason pool_grow(struct pool *pool)
{
	enum reason reason = REASON_NONE;
	size_t needed;

	if (!pool_is_shared(pool) && pool->upstream_count > 0)
		return REASON_NONE;
	if (clock_now_ms() < pool->refused_until_ms)
		reason = REASON_CREDENTIAL_MISSING;
	needed = pool_upstreams_needed(pool);
	while (reason == REASON_NONE && needed > 0 && pool_has_held(pool))
		reason = pool_start_upstream(pool);
	if (reason == REASON_NONE && pool_era_is_awaited(pool))
		return REASON_NONE;
	needed = pool_upstreams_needed(pool);
	while (reason == REASON_NONE && pool->starting < needed)
		reason = pool_start_upstream(pool);
	if (reason != REASON_NONE && !timer_is_running(&pool->retry) && !pool->is_waiting &&
	    (pool->upstream_count < pool_least_upstreams(pool) || pool_is_starved(pool) ||
	     (pool->principal != NULL && pool_is_waited_for(pool))))
		timer_start(pool->router->loop, &pool->retry, RETRY_MS);
	return reason;
}

static void pool_on_retry(struct timer *timer)
{
	struct pool *pool = container_of(timer, struct pool, retry);

	if (pool_grow(pool) == REASON_OVER_LIMIT)
		process_slots_claim(pool);
	pool_wake(pool);
}

struct upstream *pool_find_room(struct pool *pool, size_t size, bool is_list)
{
	uint64_t max_age_ms = pool_is_shared(pool) ? pool->server->conf.max_age_ms : 0;

	if (max_age_ms == 0)
		return pool_choose(pool, size, is_list);
	LIST_EACH_SAFE(struct upstream, upstream, &pool->upstreams, link)
		if (upstream->state == UPSTREAM_READY &&
		    clock_now_ms() - upstream->ready_at_ms >= max_age_ms)
			upstream_retire(upstream);
	return pool_choose(pool, size, is_list);
}

static bool serve_call(struct pool *pool)
{
	struct upstream *upstream;

	if (fair_queue_is_empty(&pool->queue))
		return false;
	upstream = pool_find_room(pool, fair_queue_first(&pool->queue)->bytes, false);
	if (upstream == NULL)
		return false;
	pool->router->pool_ops->on_turn(upstream, call_of_waiter(fair_queue_take(&pool->queue)));
	return true;
}

static bool serve_job(struct pool *pool)
{
	struct upstream *upstream;
	struct pool_job *job;

	if (list_is_empty(&pool->jobs))
		return false;
	upstream = pool_find_room(pool, 0, true);
	if (upstream == NULL)
		return false;
	job = container_of(pool->jobs.next, struct pool_job, link);
	pool_remove_job(job);
	job->ops->on_turn(job, upstream);
	return true;
}

/* Calls and jobs take turns, so that neither keeps the other from its upstream. */
static bool serve_one(struct pool *pool)
{
	bool is_jobs_turn = pool->is_jobs_turn;

	if (is_jobs_turn ? serve_job(pool) : serve_call(pool)) {
		pool->is_jobs_turn = !is_jobs_turn;
		return true;
	}
	return is_jobs_turn ? serve_call(pool) : serve_job(pool);
}

static bool is_next_stale(const struct pool *pool)
{
	return !fair_queue_is_empty(&pool->queue) &&
	       call_is_stale(call_of_waiter(fair_queue_first(&pool->queue)));
}

/* To judge a call again may take long, and takes no room if it is refused: one at a time. */
static void serve_all(struct pool *pool)
{
	bool is_stale, is_served;

	do {
		is_stale = is_next_stale(pool);
		is_served = serve_one(pool);
	} while (is_served && !is_stale);
	if (is_served)
		pool_wake(pool);
}

static void pool_free(struct pool *pool);

static void pool_on_pump(struct task *task)
{
	struct pool *pool = container_of(task, struct pool, pump);
	enum reason reason;

	pool_close_idle(pool);
	if (pool_is_shared(pool) && pool->member_count == 0 && pool->upstream_count == 0 &&
	    !pool_memory_keep(pool) && (pool->principal != NULL || pool_is_retired(pool))) {
		pool_free(pool);
		return;
	}
	serve_all(pool);
	reason = pool_grow(pool);
	if (pool->upstream_count == 0 && !may_wait_for(pool, reason))
		pool_fail_waiting(pool, reason);
}

enum reason pool_note_wanted(struct pool *pool)
{
	enum reason reason = pool_grow(pool);

	return pool->upstream_count > 0 || may_wait_for(pool, reason) ? REASON_NONE : reason;
}

enum reason pool_add_job(struct pool *pool, struct pool_job *job)
{
	CHECK(job->ops != NULL);
	list_append(&pool->jobs, &job->link);
	if (fair_queue_is_empty(&pool->queue) && serve_job(pool))
		return REASON_NONE;
	return pool_note_wanted(pool);
}

void pool_remove_job(struct pool_job *job)
{
	list_remove(&job->link);
}

bool pool_is_coming(const struct pool *pool)
{
	return pool->starting > 0 || pool->awaited != NULL ||
	       trial_waiter_is_waiting(&pool->verdict);
}

/* While a process is being started, the call waits as long as that takes. */
static void pool_on_queue_timeout(struct fair_queue *queue, struct waiter *waiter)
{
	struct pool *pool = container_of(queue, struct pool, queue);

	if (pool_is_coming(pool))
		call_wait(call_of_waiter(waiter), pool->server->conf.queue_timeout_ms);
	else
		call_fail(call_of_waiter(waiter), REASON_OVER_LIMIT);
}

static const struct fair_queue_ops queue_ops = { .on_timeout = pool_on_queue_timeout };

/* ---- the life of a pool ---- */

/* Takes ownership of the setup. */
static struct pool *pool_new(struct router *router, struct server *server,
			     const struct upstream_setup *setup)
{
	struct pool *pool = mem_zalloc(sizeof(*pool));

	pool->router = router;
	pool->server = server;
	server->users++;
	pool->setup = *setup;
	list_init(&pool->link);
	list_init(&pool->joining);
	list_init(&pool->members);
	list_init(&pool->upstreams);
	list_init(&pool->jobs);
	list_init(&pool->verdict.link);
	pool->verdict.on_verdict = on_verdict;
	list_init(&pool->aside.link);
	pool->aside.on_verdict = on_verdict_aside;
	pool_memory_init(pool);
	fair_queue_init(&pool->queue, &queue_ops);
	task_init(&pool->pump, pool_on_pump);
	timer_init(&pool->retry, pool_on_retry);
	router->pool_ops->on_new(pool);
	return pool;
}

static void pool_free(struct pool *pool)
{
	CHECK(pool->member_count == 0 && pool->upstream_count == 0 && pool->starting == 0);
	CHECK(fair_queue_is_empty(&pool->queue));
	pool->server->users--;
	process_slots_leave(pool);
	holder_unref(&pool->holder);
	list_remove(&pool->link);
	task_cancel(&pool->pump);
	timer_stop(&pool->retry);
	trial_waiter_leave(&pool->verdict);
	trial_waiter_leave(&pool->aside);
	pool_memory_fini(pool);
	CHECK(pool->kept == NULL);
	pool->router->pool_ops->on_end(pool);
	msg_unref(&pool->inherited_result);
	msg_unref(&pool->setup.initialize);
	buf_fini(&pool->setup.claims);
	principal_unref(&pool->setup.principal);
	buf_fini(&pool->setup.capabilities);
	msg_unref(&pool->initialize_result);
	principal_unref(&pool->principal);
	free(pool->class);
	loop_defer_free(pool->router->loop, pool);
}

static struct pool *pool_for_class(struct router *router, struct server *server,
				   struct principal *principal, struct slice claims,
				   struct slice class)
{
	static const struct peer anywhere; /* all anonymous callers are one principal */
	struct upstream_setup setup = { .revision = revision_newest() };
	size_t count;
	struct pool *pool = pool_class_find(router, server, principal, claims, class, &count);

	if (pool != NULL) {
		pool_memory_use(pool);
		return pool;
	}
	setup.initialize = capability_class_initialize(setup.revision, class);
	buf_append_slice(&setup.claims, claims);
	buf_append_slice(&setup.capabilities, class);
	if (principal != NULL && server->conf.for_caller)
		setup.principal = principal_ref(principal);
	pool = pool_new(router, server, &setup);
	pool->class = mem_dup_slice(class);
	if (principal != NULL) {
		pool->principal = principal_ref(principal);
		pool->holder = holder_get(&router->sessions.holders, server, principal, &anywhere);
	}
	list_append(&router->slots.pools, &pool->link);
	return pool;
}

/* Of one session. */
static struct pool *pool_of_its_own(struct client *client, const struct envelope *initialize,
				    struct slice claims, struct slice class)
{
	struct upstream_setup setup = { .initialize = msg_new(initialize->text),
					.revision = client->revision };
	struct pool *pool;

	buf_append_slice(&setup.claims, claims);
	buf_append_slice(&setup.capabilities, class);
	if (client->server->conf.for_caller)
		setup.principal = principal_ref(client->principal);
	pool = pool_new(client->router, client->server, &setup);
	pool->holder = holder_get(&client->router->sessions.holders, client->server,
				  client->principal, &client->peer);
	return pool;
}

/*
 * What the pool's processes get of its principal. An endpoint over several servers shows each caller
 * what its rights allow, so that callers with other rights need another one.
 */
static int append_claims(struct buf *out, const struct client *client)
{
	const struct rights *rights = &client->rights;

	if (server_is_endpoint(&client->server->conf)) {
		buf_append(out, &rights->needs_roles, sizeof(rights->needs_roles));
		buf_append(out, &rights->needs_scopes, sizeof(rights->needs_scopes));
		buf_append(out, &rights->roles, sizeof(rights->roles));
		buf_append(out, &rights->scopes, sizeof(rights->scopes));
		buf_append(out, &rights->token, sizeof(rights->token));
	}
	return claims_append(out, &client->server->conf, client->principal);
}

/*
 * Finds the client's pool. The pool's processes get the claims that the token has now, for their whole
 * life. initialize: NULL for a request without a session, which never has a pool of its own.
 */
static enum reason choose_pool(struct client *client, struct slice capabilities,
			       const struct envelope *initialize)
{
	const struct server_conf *conf = &client->server->conf;
	bool is_for_all = conf->isolation == ISOLATION_SHARED;
	bool is_own = conf->isolation == ISOLATION_SESSION && initialize != NULL;
	struct principal *principal = is_for_all || is_own ? NULL : client->principal;
	at_end(buf_fini) struct buf claims = { 0 }, class = { 0 };

	CHECK(client->pool == NULL);
	if (append_claims(&claims, client) < 0)
		return REASON_CLAIM_MISSING;
	pool_class_append(&class, client, principal, buf_slice(&claims), capabilities);
	/* A modern server is told with each request what the client can be asked during it. */
	if (is_for_all && conf->era != ERA_LEGACY)
		client->capabilities = mem_dup_slice(buf_slice(&class));
	if (is_own)
		client->pool =
			pool_of_its_own(client, initialize, buf_slice(&claims), buf_slice(&class));
	else
		client->pool = pool_for_class(client->router, client->server, principal,
					      buf_slice(&claims),
					      is_for_all || conf->never_asks ? SLICE_LIT("{}") :
									       buf_slice(&class));
	return REASON_NONE;
}

static enum reason choose_pool_of_session(struct client *client, const struct envelope *env)
{
	unsigned int lacks = revision_lacks(client->revision, revision_newest());
	at_end(convert_fini) struct convert convert = { .text = { 0 } };

	env = convert_initialize(&convert, lacks, env);
	return choose_pool(client, scan_member(env->params.text, SLICE_LIT("capabilities")).text,
			   env);
}

void pool_prepare(struct router *router, struct server *server)
{
	pool_wake(pool_for_class(router, server, NULL, slice_of(NULL, 0), SLICE_LIT("{}")));
}

void pool_end_all(struct router *router, enum reason reason)
{
	LIST_EACH_SAFE(struct pool, pool, &router->slots.pools, link) {
		LIST_DRAIN(struct upstream, upstream, &pool->upstreams, link)
			upstream_close(upstream, reason);
		pool_free(pool);
	}
}

/* ---- members ---- */

/* Starts another process for every so many sessions, ahead of their calls. */
static void pool_spread(struct pool *pool)
{
	size_t each = pool->server->conf.sessions_per_process;

	if (!pool_is_leased(pool) && pool->upstream_count > 0 && pool->starting == 0 &&
	    pool->member_count > pool->upstream_count * each && server_has_room(pool->server))
		(void)pool_start_upstream(pool);
}

static enum reason pool_add_joining(struct pool *pool, struct pool_member *member)
{
	enum reason reason = REASON_NONE;

	list_append(&pool->joining, &member->link);
	pool->member_count++;
	if (pool->upstream_count == 0)
		reason = pool_grow(pool);
	if (pool->principal != NULL && reason == REASON_OVER_LIMIT &&
	    !process_slots_find_place(pool))
		return reason;
	return may_wait_for(pool, reason) ? REASON_NONE : reason;
}

enum reason pool_join_again(struct pool_member *member, const struct envelope *env,
			    const struct kept_state *state)
{
	enum reason reason = choose_pool_of_session(member->client, env);
	struct pool *pool = member->client->pool;

	if (reason != REASON_NONE)
		return reason;
	CHECK(member->ops != NULL && state->agreed != NULL);
	if (pool->agreed == NULL) {
		pool->agreed = state->agreed;
		pool->capabilities = state->capabilities;
	}
	list_append(&pool->members, &member->link);
	pool->member_count++;
	pool->is_awoken = !pool_is_shared(pool);
	pool_wake(pool);
	return REASON_NONE;
}

enum reason pool_join(struct pool_member *member, const struct envelope *env)
{
	enum reason reason = choose_pool_of_session(member->client, env);
	struct pool *pool = member->client->pool;

	CHECK(member->ops != NULL);
	if (reason != REASON_NONE)
		return reason;
	if (pool->initialize_result == NULL)
		return pool_add_joining(pool, member);
	list_append(&pool->joining, &member->link);
	pool->member_count++;
	pool_spread(pool);
	pool_admit_to_shared(pool);
	return REASON_NONE;
}

enum reason pool_join_request(struct pool_member *member, struct slice capabilities,
			      bool *is_ready_r)
{
	enum reason reason = choose_pool(member->client, capabilities, NULL);
	struct pool *pool = member->client->pool;

	CHECK(member->ops != NULL);
	*is_ready_r = reason == REASON_NONE && pool->initialize_result != NULL;
	if (reason != REASON_NONE)
		return reason;
	if (!*is_ready_r)
		return pool_add_joining(pool, member);
	pool_era_ask_aside(pool);
	pool_join_as(member, pool);
	return REASON_NONE;
}

void pool_join_as(struct pool_member *member, struct pool *pool)
{
	CHECK(pool_is_shared(pool) && pool->initialize_result != NULL);
	member->client->pool = pool;
	list_init(&member->link);
	list_append(&pool->members, &member->link);
	pool->member_count++;
}

void pool_leave(struct pool_member *member, enum reason reason)
{
	struct pool *pool = member->client->pool;

	CHECK(pool->member_count > 0);
	pool->router->pool_ops->on_leave(member);
	list_remove(&member->link);
	pool->member_count--;
	member->client->pool = NULL;
	if (pool_is_shared(pool)) {
		pool_wake(pool);
		return;
	}
	if (!list_is_empty(&pool->upstreams))
		upstream_close(pool_own_upstream(pool), reason);
	pool_free(pool);
}
