/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start, handshake, requests in flight, end. An upstream has an owner until it is closed; after
 * that it only waits for its process to be gone.
 */
#include "upstream/upstream.h"

#include "base/clock.h"
#include "io/aside.h"
#include "io/ipc.h"
#include "jsonrpc/scan.h"
#include "jsonrpc/write.h"
#include "mcp/error.h"
#include "mcp/revision.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "policy/sanitize.h"
#include "process/child.h"
#include "process/server.h"
#include "upstream/send.h"
#include "upstream/upstream_ops.h"

#define PROBE_MS 5000
#define SLOW_MS 10000
#define FIRST_SLOW_MS 3000 /* of a server that nobody has seen start yet */
#define FIRST_STARTS 2     /* the first may only find out the era */
#define ANSWER_LOGGED 300
#define WARM_PROVEN_MS 60000
#define ID_MAX INT32_MAX           /* many servers store ids in 32 bits */
#define ID_LATE (ID_MAX - 1000000) /* leaves ids for our own requests */

#define TO(state) (1u << UPSTREAM_##state)
static const struct state_row states[] = {
	[UPSTREAM_DELAYED] = { "delayed", TO(STARTING) | TO(CLOSED) },
	[UPSTREAM_STARTING] = { "starting", TO(WARM) | TO(HANDSHAKE) | TO(CLOSED) },
	[UPSTREAM_WARM] = { "warm", TO(HANDSHAKE) | TO(CLOSED) },
	[UPSTREAM_HANDSHAKE] = { "handshake", TO(READY) | TO(CLOSED) },
	[UPSTREAM_READY] = { "ready", TO(SETTLING) | TO(RETIRING) | TO(CLOSED) },
	[UPSTREAM_SETTLING] = { "settling", TO(READY) | TO(RETIRING) | TO(CLOSED) },
	[UPSTREAM_RETIRING] = { "retiring", TO(CLOSED) },
	[UPSTREAM_CLOSED] = { "closed", 0 },
};
#undef TO

static void upstream_set_state(struct upstream *upstream, enum upstream_state state)
{
	CHECK(states[upstream->state].next & 1u << state);
	LOG(UPSTREAM_STATE, LOG_STR("server", upstream->server->conf.name),
	    LOG_INT("pid", upstream_pid(upstream)), LOG_STR("from", states[upstream->state].name),
	    LOG_STR("to", states[state].name));
	upstream->state = state;
}

const char *upstream_state_name(enum upstream_state state)
{
	CHECK(state < ARRAY_LEN(states));
	return states[state].name;
}

bool upstream_is_modern(const struct upstream *upstream)
{
	return upstream->era != NULL && upstream->era->is_modern;
}

bool upstream_is_serving(const struct upstream *upstream)
{
	return upstream->state == UPSTREAM_READY || upstream->state == UPSTREAM_SETTLING ||
	       upstream->state == UPSTREAM_RETIRING;
}

uint64_t upstream_child_number(const struct upstream *upstream)
{
	return upstream->child != NULL ? upstream->child->spawned.id : 0;
}

int upstream_pid(const struct upstream *upstream)
{
	return upstream->child != NULL ? upstream->child->pid : 0;
}

bool upstream_has_room(const struct upstream *upstream, size_t size)
{
	return upstream->ops->has_room(upstream, size);
}

/* ---- the end ---- */

static void upstream_stop_start_timers(struct upstream *upstream)
{
	timer_stop(&upstream->start);
	timer_stop(&upstream->slow);
}

/* The owner unlinks it in on_closed. */
static void upstream_detach(struct upstream *upstream)
{
	if (upstream->state == UPSTREAM_DELAYED) {
		server_release(upstream->server);
		backoff_return_turn(&upstream->server->backoff);
	}
	upstream->owner->on_closed(upstream);
	upstream_set_state(upstream, UPSTREAM_CLOSED);
	upstream_stop_start_timers(upstream);
	timer_stop(&upstream->probe);
	timer_stop(&upstream->idle);
	upstream->setup = NULL;
}

/* The owner has forgotten it. */
static void upstream_disown(struct upstream *upstream)
{
	upstream->owner = NULL;
	upstream->pool = NULL;
	upstream->warm_set = NULL;
	upstream->client = NULL;
	upstream->lease = NULL;
}

/* For the back-off of the next start, and for the log line of this failure. */
static void upstream_note_failed_try(struct upstream *upstream, bool is_start)
{
	struct backoff *backoff = &upstream->server->backoff;
	unsigned int before = backoff->failures;

	CHECK(!upstream->is_disposable);
	if (is_start)
		backoff_note_failed(backoff);
	else
		backoff_note_crashed(backoff, upstream->ready_at_ms);
	if (upstream->child != NULL && (is_start || backoff->failures > before))
		upstream->child->failed_try = backoff->failures;
}

/* The process has failed, or was given up. */
static void upstream_lose(struct upstream *upstream, enum reason reason)
{
	const struct upstream_owner_ops *owner = upstream->owner;
	/* A process that was warm for long has started well: nothing more was asked of it. */
	bool is_start = !upstream_is_serving(upstream) && !upstream->is_disposable &&
			!upstream->is_inherited &&
			(upstream->state != UPSTREAM_WARM ||
			 clock_now_ms() - upstream->child->started_at_ms < WARM_PROVEN_MS);

	CHECK(upstream->state != UPSTREAM_CLOSED);
	upstream_detach(upstream);
	if (reason == REASON_CREDENTIAL_MISSING)
		backoff_return_turn(&upstream->server->backoff);
	else if (is_start ||
		 (!upstream->was_used && !upstream->is_disposable && reason != REASON_RESTARTED))
		upstream_note_failed_try(upstream, is_start);
	if (is_start && reason == REASON_CHILD_EXITED)
		reason = REASON_START_FAILED;
	if (owner->on_lost != NULL)
		owner->on_lost(upstream, reason);
	upstream_disown(upstream);
}

static void upstream_give_up(struct upstream *upstream, enum reason reason, const char *error)
{
	upstream->ops->note_failure(upstream, error);
	upstream->ops->stop(upstream, reason, true);
	upstream_lose(upstream, reason);
}

void upstream_close(struct upstream *upstream, enum reason reason)
{
	upstream_detach(upstream);
	upstream_disown(upstream);
	upstream->ops->stop(upstream, reason, false);
}

void upstream_refuse(struct upstream *upstream)
{
	upstream_give_up(upstream, REASON_HANDSHAKE_REFUSED,
			 upstream_is_modern(upstream) ?
				 "the server did not accept server/discover" :
				 "the server did not accept initialize");
}

bool upstream_restart(struct upstream *upstream)
{
	if (!upstream_is_serving(upstream) && upstream->state != UPSTREAM_WARM &&
	    !upstream->is_inherited)
		return false;
	if (upstream->state == UPSTREAM_WARM) {
		upstream_close(upstream, REASON_RESTARTED);
	} else {
		upstream->ops->stop(upstream, REASON_RESTARTED, false);
		upstream_lose(upstream, REASON_RESTARTED);
	}
	return true;
}

void upstream_on_lost(struct upstream *upstream, enum reason reason)
{
	if (upstream->state != UPSTREAM_CLOSED)
		upstream_lose(upstream, reason);
}

static void end_leftover(struct upstream_leftover *leftover)
{
	list_remove(&leftover->link);
	leftover->on_over(leftover);
}

void upstream_on_gone(struct upstream *upstream)
{
	upstream_on_lost(upstream, REASON_CHILD_EXITED);
	LIST_DRAIN(struct upstream_leftover, leftover, &upstream->leftovers, link)
		end_leftover(leftover);
	upstream->shared->on_gone(upstream);
	map_fini(&upstream->requests);
}

/* ---- the beginning ---- */

static void upstream_start_timers(struct upstream *upstream)
{
	const struct server *server = upstream->server;
	uint64_t timeout_ms = server->conf.start_timeout_ms;
	uint64_t slow_ms = server->stats->starts <= FIRST_STARTS ? FIRST_SLOW_MS : SLOW_MS;

	timer_start(upstream->shared->loop, &upstream->start, timeout_ms);
	/* A disposable process, which is only there to be probed, may well never answer. */
	if (!upstream->is_disposable && !upstream->is_inherited)
		timer_start(upstream->shared->loop, &upstream->slow,
			    timeout_ms / 2 < slow_ms ? timeout_ms / 2 : slow_ms);
}

static void upstream_start(struct upstream *upstream)
{
	/* A warm process belongs to nobody yet; servers with claims have no warm processes. */
	struct slice claims =
		upstream->setup != NULL ? buf_slice(&upstream->setup->claims) : slice_of(NULL, 0);

	upstream_set_state(upstream, UPSTREAM_STARTING);
	upstream->ops->start(upstream, claims);
	upstream_start_timers(upstream);
}

static void upstream_begin_handshake(struct upstream *upstream)
{
	upstream->era = upstream->setup->era != NULL ? upstream->setup->era : &upstream_era_legacy;
	upstream_set_state(upstream, UPSTREAM_HANDSHAKE);
	upstream->handshake_id = upstream_next_id(upstream);
	if (upstream->era->send_handshake(upstream, upstream->handshake_id) < 0)
		upstream_refuse(upstream); /* cannot happen: the request was valid when accepted */
}

void upstream_on_started(struct upstream *upstream)
{
	if (upstream->setup != NULL) {
		upstream_begin_handshake(upstream);
	} else {
		upstream_set_state(upstream, UPSTREAM_WARM);
		upstream_stop_start_timers(upstream);
	}
}

void upstream_begin(struct upstream *upstream, const struct upstream_owner_ops *owner,
		    const struct upstream_setup *setup, uint64_t wait_ms)
{
	CHECK(upstream->owner == NULL && upstream->state == UPSTREAM_DELAYED);
	upstream->owner = owner;
	upstream->setup = setup;
	if (wait_ms == 0) {
		upstream_start(upstream);
		return;
	}
	server_reserve(upstream->server);
	timer_start(upstream->shared->loop, &upstream->start, wait_ms);
}

void upstream_begin_inherited(struct upstream *upstream, const struct upstream_owner_ops *owner,
			      uint64_t last_id)
{
	CHECK(upstream->owner == NULL && upstream->child != NULL);
	upstream->owner = owner;
	upstream->last_id = last_id;
	upstream->is_inherited = upstream->was_used = true;
	upstream_set_state(upstream, UPSTREAM_STARTING);
	upstream_set_state(upstream, UPSTREAM_WARM);
}

void upstream_adopt(struct upstream *upstream, const struct upstream_owner_ops *owner,
		    const struct upstream_setup *setup)
{
	CHECK(upstream->setup == NULL && upstream->state <= UPSTREAM_WARM);
	upstream->owner = owner;
	upstream->setup = setup;
	if (upstream->state != UPSTREAM_WARM)
		return; /* its handshake begins when it has started */
	upstream_start_timers(upstream);
	upstream_begin_handshake(upstream);
}

/* The owner always receives an InitializeResult, whatever the server's own result is. */
static void upstream_tell_ready(struct upstream *upstream, const struct envelope *env,
				struct slice initialize_result, struct slice described)
{
	at_end(buf_fini) struct buf text = { 0 };
	struct envelope written;

	if (initialize_result.n == 0) {
		upstream->owner->on_ready(upstream, env, described);
		return;
	}
	write_result(&text, env->id.text, initialize_result);
	if (scan_envelope(buf_slice(&text), &upstream->shared->limits, SCAN_LENIENT, &written,
			  NULL) == 0)
		upstream->owner->on_ready(upstream, &written, described);
	else /* cannot happen: the result was accepted before */
		upstream_refuse(upstream);
}

static void upstream_note_unknown(struct upstream *upstream, struct slice result)
{
	at_end(buf_fini) struct buf text = { 0 };

	if (result.n > ANSWER_LOGGED)
		result.n = ANSWER_LOGGED;
	buf_printf(&text, "its answer to the handshake names no revision that we know: %.*s",
		   SLICE_ARG(result));
	upstream->ops->note_failure(upstream, buf_terminate(&text));
}

static void upstream_on_handshake_result(struct upstream *upstream, const struct envelope *env,
					 struct slice written)
{
	at_end(buf_fini) struct buf initialize_result = { 0 }, described = { 0 };
	bool is_readable = upstream->era->read_result(upstream, written, &described) != NULL;

	upstream->revision =
		upstream->era->read_result(upstream, env->result.text, &initialize_result);
	if (is_readable && described.len > 0)
		written = buf_slice(&described);
	else if (!is_readable) /* sanitized, it is another message */
		written = initialize_result.len > 0 ? buf_slice(&initialize_result) :
						      env->result.text;
	if (upstream->revision == NULL) {
		upstream_note_unknown(upstream, env->result.text);
		upstream_refuse(upstream);
		return;
	}
	upstream_set_state(upstream, UPSTREAM_READY);
	upstream->ready_at_ms = clock_now_ms();
	upstream_stop_start_timers(upstream);
	if (upstream->is_inherited)
		LOG(PROCESS_INHERITED, LOG_STR("server", upstream->server->conf.name),
		    LOG_INT("pid", upstream_pid(upstream)));
	else if (upstream->child != NULL)
		child_note_ready(upstream->child);
	upstream->is_inherited = false;
	if (!upstream->is_disposable)
		backoff_note_started(&upstream->server->backoff);
	upstream_tell_ready(upstream, env, buf_slice(&initialize_result), written);
}

/* ---- timers ---- */

static void upstream_on_start_timer(struct timer *timer)
{
	struct upstream *upstream = container_of(timer, struct upstream, start);

	if (upstream->state == UPSTREAM_DELAYED) {
		server_release(upstream->server);
		upstream_start(upstream);
	} else if (upstream->is_inherited) {
		upstream->owner->on_refused(upstream, NULL);
	} else {
		upstream_give_up(upstream, REASON_START_TIMEOUT,
				 "no answer to the handshake within start.timeout");
	}
}

static void upstream_on_slow_timer(struct timer *timer)
{
	const struct upstream *upstream = container_of(timer, struct upstream, slow);

	const struct child *child = upstream->child;
	struct slice words = child != NULL ? child_last_words(child) : slice_of(NULL, 0);
	struct slice awaited = upstream->era != NULL ? upstream->era->handshake :
						       SLICE_LIT("the start of its process");
	struct slice garbage = child != NULL ? buf_slice(&child->garbage) : slice_of(NULL, 0);
	uint64_t waited_ms = child != NULL ? clock_now_ms() - child->started_at_ms : 0;

	CHECK(!upstream_is_serving(upstream) && upstream->state != UPSTREAM_CLOSED);
	LOG_BY(START_SLOW, (uintptr_t)upstream->server,
	       LOG_STR("server", upstream->server->conf.name),
	       LOG_INT("pid", upstream_pid(upstream)), LOG_SLICE("waits_for", awaited),
	       LOG_INT("waited_ms", waited_ms),
	       LOG_INT("timeout_ms", upstream->server->conf.start_timeout_ms),
	       LOG_SLICE("stderr", words), LOG_SLICE("stdout", garbage),
	       LOG_STR("hint", garbage.n > 0 ?
				       "its stdout has lines that are no messages, of which stdout "
				       "here is the first; text belongs on stderr" :
			       words.n > 0 ? "its last words are in stderr" :
					     "it has written nothing; npx, uvx and the like may be "
					     "downloading, or have no network"));
}

static void upstream_on_probe_timer(struct timer *timer)
{
	struct upstream *upstream = container_of(timer, struct upstream, probe);

	CHECK(upstream_is_serving(upstream));
	if (upstream->child != NULL && aside_is_pending(&upstream->child->taking))
		timer_start(upstream->shared->loop, timer, PROBE_MS); /* it has said something */
	else if (upstream->probe_id == 0)
		upstream_retire(upstream); /* it is alive, but what it works on is unknown */
	else
		upstream_give_up(upstream, REASON_CHILD_HUNG,
				 "neither a call nor a ping was answered in time");
}

static void upstream_on_idle_timer(struct timer *timer)
{
	struct upstream *upstream = container_of(timer, struct upstream, idle);

	if (upstream->state == UPSTREAM_READY && upstream_load(upstream) == 0)
		upstream->owner->on_idle(upstream);
}

void upstream_init(struct upstream *upstream, const struct upstream_ops *ops,
		   struct upstream_shared *shared, struct server *server)
{
	upstream->ops = ops;
	upstream->shared = shared;
	upstream->server = server;
	upstream->level = -1;
	list_init(&upstream->link);
	list_init(&upstream->leftovers);
	list_init(&upstream->task_listeners);
	timer_init(&upstream->start, upstream_on_start_timer);
	timer_init(&upstream->slow, upstream_on_slow_timer);
	timer_init(&upstream->probe, upstream_on_probe_timer);
	timer_init(&upstream->idle, upstream_on_idle_timer);
}

void upstream_start_idle(struct upstream *upstream, uint64_t idle_ms)
{
	CHECK(upstream_is_serving(upstream) && upstream_load(upstream) == 0);
	if (!timer_is_running(&upstream->idle) || upstream->idle.due_ms > clock_now_ms() + idle_ms)
		timer_start(upstream->shared->loop, &upstream->idle, idle_ms);
}

/* ---- whether it lives ---- */

void upstream_probe(struct upstream *upstream)
{
	if (!upstream_is_serving(upstream) || upstream->probe_id != 0)
		return;
	upstream->probe_id = upstream_next_id(upstream);
	send_request(upstream, upstream->probe_id, upstream->era->ping, (struct slice){ NULL, 0 });
	timer_start(upstream->shared->loop, &upstream->probe, PROBE_MS);
}

static void upstream_end_probe(struct upstream *upstream)
{
	upstream->probe_id = 0;
	timer_stop(&upstream->probe);
}

void upstream_on_sign_of_life(struct upstream *upstream)
{
	if (upstream->state != UPSTREAM_SETTLING)
		upstream_end_probe(upstream);
}

void upstream_settle(struct upstream *upstream, uint64_t id, bool by_answer)
{
	CHECK(upstream->lease == NULL);
	if (upstream->state != UPSTREAM_READY)
		return;
	upstream_probe(upstream);
	upstream->settling_id = id;
	upstream->settles_by_answer = by_answer;
	upstream_set_state(upstream, UPSTREAM_SETTLING);
}

/* The owner may close it. */
static void upstream_note_rest(struct upstream *upstream)
{
	if (upstream->state != UPSTREAM_CLOSED && upstream_load(upstream) == 0 &&
	    upstream->owner->on_rest != NULL)
		upstream->owner->on_rest(upstream);
}

void upstream_retire(struct upstream *upstream)
{
	upstream_set_state(upstream, UPSTREAM_RETIRING);
	upstream_note_rest(upstream);
}

/* ---- requests in flight ---- */

/* After two billion requests the ids begin anew: a process's state is worth more than fresh ids. */
uint64_t upstream_next_id(struct upstream *upstream)
{
	do {
		upstream->last_id = upstream->last_id % ID_MAX + 1;
	} while (map_find(&upstream->requests, upstream->last_id) != NULL);
	return upstream->last_id;
}

bool upstream_is_worn(const struct upstream *upstream)
{
	return upstream->last_id >= ID_LATE;
}

void upstream_add_request(struct upstream *upstream, struct upstream_request *request, uint64_t id)
{
	CHECK(upstream_is_serving(upstream) && id != 0 && request->ops != NULL);
	request->upstream = upstream;
	request->id = id;
	map_insert(&upstream->requests, id, request);
	upstream->lasting += request->is_lasting;
	upstream->was_used |= !request->is_lasting;
}

void upstream_renumber_request(struct upstream_request *request, uint64_t id)
{
	struct map *requests = &request->upstream->requests;
	void *removed = map_take(requests, request->id);

	CHECK(removed == request && id != 0);
	request->id = id;
	map_insert(requests, id, request);
}

void upstream_end_request(struct upstream_request *request, bool is_answered)
{
	struct upstream *upstream = request->upstream;

	void *removed = map_take(&upstream->requests, request->id);

	CHECK(removed == request && upstream->lasting >= request->is_lasting);
	upstream->lasting -= request->is_lasting;
	if (upstream->state == UPSTREAM_CLOSED || request->is_lasting)
		return;
	if (upstream->owner->on_request_end != NULL)
		upstream->owner->on_request_end(upstream, request, is_answered);
	upstream_note_rest(upstream);
}

static struct upstream_request *any_request(const struct upstream *upstream)
{
	for (size_t i = 0; i < upstream->requests.size; i++) {
		struct upstream_request *request = upstream->requests.slots[i].value;

		if (request != NULL && !request->is_lasting)
			return request;
	}
	return NULL;
}

void upstream_lose_requests(struct upstream *upstream, enum reason reason)
{
	struct upstream_request *request;

	CHECK(upstream->state == UPSTREAM_CLOSED);
	while ((request = any_request(upstream)) != NULL)
		request->ops->on_lost(request, reason);
}

struct upstream_request *upstream_only_request(const struct upstream *upstream)
{
	return upstream_load(upstream) == 1 ? any_request(upstream) : NULL;
}

struct upstream_request *upstream_find_request(const struct upstream *upstream, struct json id)
{
	return map_find(&upstream->requests, value_own_id(id));
}

size_t upstream_load(const struct upstream *upstream)
{
	return upstream->requests.count - upstream->lasting;
}

/* ---- what comes from the server ---- */

void upstream_note_stray(struct upstream *upstream, enum counter counter,
			 const struct envelope *env)
{
	counter_add(counter);
	LOG(CHILD_STRAY, LOG_STR("server", upstream->server->conf.name),
	    LOG_INT("pid", upstream_pid(upstream)), LOG_SLICE("method", env->method),
	    LOG_SLICE("id", env->id.text));
}

/* Whether it is for our handshake, the only request in flight at that time. */
static bool is_of_handshake(const struct upstream *upstream, struct json id)
{
	return upstream->state == UPSTREAM_HANDSHAKE &&
	       ((id.type == JSON_ABSENT && !upstream->is_inherited) ||
		value_own_id(id) == upstream->handshake_id);
}

/* The request has been answered: also one that was given up, or because of its answer. */
static void upstream_end_leftover(struct upstream *upstream, uint64_t number)
{
	if (number == 0)
		return;
	LIST_EACH_SAFE(struct upstream_leftover, leftover, &upstream->leftovers, link)
		if (leftover->id == number)
			end_leftover(leftover);
}

/* A response to no request in flight; a settling upstream may be waiting for it. */
static void upstream_on_stray_response(struct upstream *upstream, const struct envelope *env)
{
	uint64_t id = value_own_id(env->id);

	upstream_note_stray(upstream, COUNTER_CHILD_STRAY_RESPONSES, env);
	upstream_end_leftover(upstream, id);
	if (id == 0 || upstream->state != UPSTREAM_SETTLING ||
	    (id != upstream->settling_id && id != upstream->probe_id))
		return;
	if (id == upstream->probe_id && upstream->settles_by_answer) {
		upstream->probe_id = 0; /* the timer goes on, for the answer */
		return;
	}
	upstream_end_probe(upstream);
	upstream_set_state(upstream, UPSTREAM_READY);
	upstream->owner->on_settled(upstream);
	upstream_note_rest(upstream);
}

/*
 * Whether it is an error without an id that answers a notification, as some servers do: that
 * concerns nobody. Servers read in order: who has answered a later request has passed the
 * notification. What could not be parsed is no notification of ours. BACK-FRAME-05
 */
static bool is_of_notification(struct upstream *upstream, const struct envelope *env)
{
	long long code;

	if (upstream->notifications > 0 && value_own_id(env->id) > upstream->notified_after_id)
		upstream->notifications = 0;
	if (env->kind != ENVELOPE_ERROR || env->id.type != JSON_ABSENT ||
	    upstream->notifications == 0 ||
	    (value_read_integer(scan_member(env->error.text, SLICE_LIT("code")), &code) == 0 &&
	     code == MCP_PARSE_ERROR))
		return false;
	upstream->notifications--;
	return true;
}

static void upstream_on_response(struct upstream *upstream, const struct envelope *env,
				 const struct envelope *written)
{
	struct upstream_request *request = upstream_find_request(upstream, env->id);
	bool is_expected = !is_of_notification(upstream, env);
	uint64_t id;

	if (is_of_handshake(upstream, env->id)) {
		/* Whatever it answers to our ping: it has read what was before. */
		if (env->kind == ENVELOPE_RESULT || upstream->era == &upstream_era_inherited)
			upstream_on_handshake_result(upstream, env, written->result.text);
		else
			upstream->owner->on_refused(upstream, env);
		return;
	}
	/*
	 * An error without an id belongs to the only request, if no other can be meant.
	 * BACK-FRAME-05
	 */
	if (request == NULL && env->id.type == JSON_ABSENT && is_expected)
		request = upstream->client != NULL ? upstream_only_request(upstream) : NULL;
	if (request == NULL) {
		upstream_on_stray_response(upstream, env);
		return;
	}
	id = request->id;
	request->ops->on_response(request, env);
	upstream_end_leftover(upstream, id);
}

/* written: the message before intake. */
static void upstream_take(struct upstream *upstream, const struct envelope *env,
			  const struct envelope *written)
{
	if (env->kind == ENVELOPE_RESULT || env->kind == ENVELOPE_ERROR)
		upstream_on_response(upstream, env, written);
	else if (env->kind == ENVELOPE_REQUEST && upstream->era->may_ask)
		upstream->owner->on_request(upstream, env);
	else if (env->kind == ENVELOPE_REQUEST)
		upstream_note_stray(upstream, COUNTER_CHILD_DROPPED, env); /* BACK-MSG-02 */
	else if (!upstream_is_serving(upstream) && !upstream->is_inherited)
		upstream_note_stray(upstream, COUNTER_CHILD_DROPPED, env); /* too early */
	else if (upstream->owner->on_notification != NULL)
		upstream->owner->on_notification(upstream, env);
}

void upstream_refuse_request(struct upstream *upstream, struct json id, const char *why)
{
	at_end(buf_fini) struct buf text = { 0 };

	CHECK(id.text.n > 0);
	if (!upstream_is_serving(upstream) || !upstream->era->may_ask ||
	    !upstream_has_room(upstream, id.text.n))
		return;
	buf_printf(&text, "Invalid request: %s", why);
	send_error(upstream, id.text, MCP_INVALID_REQUEST, buf_slice(&text));
}

void upstream_on_malformed(struct upstream *upstream, struct json id, enum reason reason)
{
	struct upstream_request *request;

	if (id.type == JSON_ABSENT)
		return;
	request = upstream_find_request(upstream, id);
	if (is_of_handshake(upstream, id))
		upstream_refuse(upstream);
	else if (request != NULL)
		request->ops->on_malformed(request, reason);
	upstream_end_leftover(upstream, value_own_id(id));
}

void upstream_on_message(struct upstream *upstream, const struct envelope *env)
{
	at_end(intake_fini) struct intake intake = { .text = { 0 } };
	const struct envelope *taken;

	CHECK(upstream->owner != NULL && upstream->state != UPSTREAM_CLOSED);
	if (upstream->gives_way)
		aside_open();
	taken = intake_take(&intake, upstream->server, &upstream->shared->limits,
			    upstream_is_serving(upstream) || upstream->is_inherited, env);
	aside_close();
	if (upstream->state == UPSTREAM_CLOSED)
		return;
	if (taken != NULL)
		upstream_take(upstream, taken, env);
	else if (env->kind == ENVELOPE_RESULT || env->kind == ENVELOPE_ERROR)
		upstream_on_malformed(upstream, env->id, REASON_CHILD_PROTOCOL_ERROR);
	else
		upstream_note_stray(upstream, COUNTER_CHILD_DROPPED, env);
}

/* ---- upstream era ---- */

/*
 * The legacy era begins with initialize. The modern one has no handshake: server/discover takes its
 * place, so that older clients can be told what the server offers. BACK-INIT-01, -02; bridging.md
 * §2.2.
 */

#define REFUSAL_LOGGED 300

static const struct revision *read_initialize_result(not_used const struct upstream *upstream,
						     struct slice result,
						     not_used struct buf *initialize_result)
{
	struct json version = scan_member(result, SLICE_LIT("protocolVersion"));

	/* The result is one already. */
	return revision_find(scan_plain_string(version));
}

const struct upstream_era upstream_era_legacy = {
	.handshake = SLICE("initialize"),
	.ping = SLICE("ping"),
	.may_ask = true,
	.send_handshake = send_initialize,
	.read_result = read_initialize_result,
};

static int send_first_ping(struct upstream *upstream, uint64_t id)
{
	send_request(upstream, id, upstream_era_inherited.ping, (struct slice){ NULL, 0 });
	return 0;
}

static const struct revision *read_first_pong(const struct upstream *upstream,
					      not_used struct slice result,
					      not_used struct buf *initialize_result)
{
	/* Whoever initialized it has told. */
	return upstream->revision;
}

const struct upstream_era upstream_era_inherited = {
	.handshake = SLICE("ping"),
	.ping = SLICE("ping"),
	.may_ask = true,
	.send_handshake = send_first_ping,
	.read_result = read_first_pong,
};

static int send_discover(struct upstream *upstream, uint64_t id)
{
	send_request(upstream, id, upstream_era_modern.handshake, (struct slice){ NULL, 0 });
	return 0;
}

static const struct revision *read_discover_result(const struct upstream *upstream,
						   struct slice result,
						   struct buf *initialize_result)
{
	const char *name = upstream->server->conf.name;

	return modern_read_discovery(result, name, initialize_result) == 0 ? &revision_modern :
									     NULL;
}

const struct upstream_era upstream_era_modern = {
	.is_modern = true,
	.handshake = SLICE("server/discover"),
	.ping = SLICE("server/discover"),
	.send_handshake = send_discover,
	.read_result = read_discover_result,
};

void upstream_era_note_refusal(struct upstream *upstream, const struct envelope *response)
{
	struct slice error = response->error.text;
	at_end(buf_fini) struct buf text = { 0 };

	if (error.n > REFUSAL_LOGGED)
		error.n = REFUSAL_LOGGED;
	buf_printf(&text, "the server answered %.*s with an error: %.*s",
		   SLICE_ARG(upstream->era->handshake), SLICE_ARG(error));
	upstream->ops->note_failure(upstream, buf_terminate(&text));
}

/* ---- intake ---- */

/*
 * Messages are sanitized first, then redacted: invisible characters must not hide a secret from the
 * patterns.
 */

/*
 * Takes ownership of `text`, the next form of the message. Returns NULL if it is not a valid
 * message.
 */
static const struct envelope *go_on(struct intake *intake, struct buf *text,
				    const struct scan_limits *limits)
{
	buf_fini(&intake->text);
	intake->text = *text;
	*text = (struct buf){ 0 };
	return scan_envelope(buf_slice(&intake->text), limits, SCAN_LENIENT, &intake->env, NULL) ==
			       0 ?
		       &intake->env :
		       NULL;
}

/* Replaces one part of the message by `with`. */
static const struct envelope *put(struct intake *intake, const struct envelope *env,
				  struct slice span, struct slice with,
				  const struct scan_limits *limits)
{
	const struct splice_edit edit = { span, with };
	struct buf text = { 0 };

	splice_append(&text, env->text, &edit, 1, 0);
	return go_on(intake, &text, limits);
}

static const struct envelope *sanitize(struct intake *intake, struct server *server,
				       const struct scan_limits *limits, const struct envelope *env)
{
	struct buf text = { 0 };
	const struct envelope *clean;

	if (!sanitize_text(&server->conf.sanitize, env->text, &text, &server->stats->sanitized))
		return env;
	clean = go_on(intake, &text, limits);
	/* The id must stay as the server wrote it, or it would not recognize the response. */
	if (clean != NULL && clean->id.type != JSON_ABSENT && env->id.type != JSON_ABSENT &&
	    !slice_is_equal(clean->id.text, env->id.text))
		clean = put(intake, clean, clean->id.text, env->id.text, limits);
	return clean;
}

static const struct envelope *redact(struct intake *intake, struct server *server,
				     const struct scan_limits *limits, const struct envelope *env)
{
	const struct redact_rules *rules = &server->conf.redact;
	struct slice kept[] = { env->method, env->id.text, { NULL, 0 } };
	struct buf text = { 0 };

	if (rules->count == 0 || env->kind == ENVELOPE_REQUEST)
		return env;
	kept[2] = scan_member(env->text, SLICE_LIT("jsonrpc")).text;
	server->stats->redact_pace.now_ms = clock_now_ms();
	if (!redact_text(rules, env->text, (struct slices){ kept, ARRAY_LEN(kept) },
			 &server->stats->redact_pace, &text, &server->stats->redacted))
		return env;
	return go_on(intake, &text, limits);
}

const struct envelope *intake_take(struct intake *intake, struct server *server,
				   const struct scan_limits *limits, bool redacts,
				   const struct envelope *env)
{
	env = sanitize(intake, server, limits, env);
	return env != NULL && redacts ? redact(intake, server, limits, env) : env;
}

void intake_fini(struct intake *intake)
{
	buf_fini(&intake->text);
}

struct msg *intake_again(struct server *server, const struct scan_limits *limits, struct slice text)
{
	at_end(intake_fini) struct intake intake = { .text = { 0 } };
	const struct envelope *taken = NULL;
	struct msg *msg = NULL;
	struct envelope env;

	if (scan_envelope(text, limits, SCAN_LENIENT, &env, NULL) == 0)
		taken = intake_take(&intake, server, limits, false, &env);
	if (taken != NULL)
		msg = msg_new_scanned(taken);
	return msg;
}
