/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table `steps` is that of bridging.md §2.3.3: an event without an entry has no effect.
 *
 * Invariants: a call has a request of the client exactly while RUNNING or GATHERING, and each such
 * request is answered once; a call is kept exactly while PARKED, SETTLED or LOST; each request of
 * the server is answered once, unless the server cancels it or is gone. A state is left before an
 * operation is called, so whatever the operation brings about at once finds the new state.
 */
#include "router/parked_call.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "jsonrpc/write.h"
#include "mcp/method.h"
#include "obs/log.h"

#define REQUESTS_MAX 32                     /* of one call, unanswered */
#define REQUEST_BYTES_MAX (4 * 1024 * 1024) /* of these together; a single one may be larger */

#define TO(state) (1u << PARKED_##state)
static const struct state_row states[PARKED_STATES] = {
	[PARKED_RUNNING] = { "running", TO(GATHERING) | TO(ENDED) },
	[PARKED_GATHERING] = { "gathering", TO(RUNNING) | TO(PARKED) | TO(ENDED) },
	[PARKED_PARKED] = { "parked",
			    TO(RUNNING) | TO(GATHERING) | TO(SETTLED) | TO(LOST) | TO(ENDED) },
	[PARKED_SETTLED] = { "settled", TO(ENDED) },
	[PARKED_LOST] = { "lost", TO(ENDED) },
	[PARKED_ENDED] = { "ended", 0 },
};
#undef TO

enum event_kind { ASKED, TAKEN_BACK, RESPONSE, EXITED, RETRIED, DEADLINE, ABANDONED, EVENTS };

struct event {
	uint64_t now_ms;
	const struct method *method; /* ASKED */
	struct msg *msg;             /* ASKED, RESPONSE */
	struct slice id;             /* ASKED, TAKEN_BACK */
	struct call *call;           /* RETRIED */
	enum reason reason;          /* EXITED, ABANDONED */
};

/* ---- all parked calls ---- */

static uint64_t map_key(const unsigned char *id)
{
	uint64_t key;

	memcpy(&key, id, sizeof(key));
	return key;
}

void parked_calls_init(struct parked_calls *table, const struct parked_calls_conf *conf)
{
	*table = (struct parked_calls){ .conf = *conf };
	list_init(&table->kept);
}

struct parked_call *parked_calls_find(const struct parked_calls *table,
				      const unsigned char id[SEAL_CALL_BYTES])
{
	struct parked_call *parked = map_find(&table->by_id, map_key(id));

	return parked != NULL && memcmp(parked->id, id, sizeof(parked->id)) == 0 ? parked : NULL;
}

/* ---- the state ---- */

static bool is_kept(enum parked_state state)
{
	return state == PARKED_PARKED || state == PARKED_SETTLED || state == PARKED_LOST;
}

/*
 * When the state times out; 0: never. A call that was kept already waits no longer than it would
 * have.
 */
static uint64_t next_deadline(const struct parked_call *parked, enum parked_state state,
			      uint64_t now_ms)
{
	const struct parked_calls_conf *conf = &parked->table->conf;
	uint64_t until_ms = now_ms + conf->park_ttl_ms;

	if (state == PARKED_GATHERING)
		return now_ms + conf->gather_ms;
	if (state == PARKED_PARKED)
		return until_ms < parked->call_until_ms ? until_ms : parked->call_until_ms;
	return is_kept(state) ? parked->deadline_ms : 0;
}

static void set_state(struct parked_call *parked, enum parked_state state, uint64_t now_ms)
{
	uint64_t deadline_ms = next_deadline(parked, state, now_ms);

	CHECK(states[parked->state].next & 1u << state);
	LOG(PARKED_STATE, LOG_STR("from", states[parked->state].name),
	    LOG_STR("to", states[state].name), LOG_INT("round", parked->round));
	if (is_kept(parked->state) && !is_kept(state))
		list_remove(&parked->kept);
	if (!is_kept(parked->state) && is_kept(state))
		list_append(&parked->table->kept, &parked->kept);
	parked->state = state;
	if (deadline_ms != parked->deadline_ms) {
		parked->deadline_ms = deadline_ms;
		parked->ops->set_deadline(parked, deadline_ms);
	}
}

static struct call *take_call(struct parked_call *parked)
{
	struct call *call = parked->call;

	parked->call = NULL;
	return call;
}

/* The call has ended: nothing is left of it. */
static void finish(struct parked_call *parked)
{
	CHECK(parked->state == PARKED_ENDED && list_is_empty(&parked->requests));
	CHECK(parked->call == NULL);
	CHECK(map_remove(&parked->table->by_id, map_key(parked->id)) == parked);
	msg_unref(&parked->response);
	parked->ops->on_end(parked);
}

void parked_call_init(struct parked_call *parked, struct parked_calls *table, struct call *call,
		      uint64_t now_ms)
{
	CHECK(call != NULL);
	parked->table = table;
	parked->call = call;
	parked->call_until_ms = now_ms + table->conf.call_max_ms;
	list_init(&parked->requests);
	list_init(&parked->kept);
	do
		random_bytes(parked->id, sizeof(parked->id));
	while (map_find(&table->by_id, map_key(parked->id)) != NULL);
	map_insert(&table->by_id, map_key(parked->id), parked);
}

/* ---- requests of the server ---- */

static void drop_request(struct parked_call *parked, struct parked_request *request)
{
	list_remove(&request->link);
	parked->request_count--;
	parked->request_bytes -= request->msg->text.n;
	msg_unref(&request->msg);
	free(request);
}

static void answer(struct parked_call *parked, struct parked_request *request, struct slice result)
{
	parked->ops->answer(parked, request, result);
	drop_request(parked, request);
}

/* Refuses all requests of the server: nobody will answer them. */
static void refuse_all(struct parked_call *parked)
{
	LIST_DRAIN(struct parked_request, request, &parked->requests, link)
		answer(parked, request, (struct slice){ NULL, 0 });
}

/* Drops all requests of the server: there is nobody to respond to. */
static void drop_all(struct parked_call *parked)
{
	LIST_DRAIN(struct parked_request, request, &parked->requests, link)
		drop_request(parked, request);
}

static void add_request(struct parked_call *parked, const struct event *event)
{
	struct parked_request *request = mem_zalloc(sizeof(*request));

	request->key = ++parked->last_key;
	request->method = event->method;
	request->msg = msg_ref(event->msg);
	request->id = event->id;
	list_append(&parked->requests, &request->link);
	parked->request_count++;
	parked->request_bytes += event->msg->text.n;
	if (parked->state == PARKED_RUNNING)
		set_state(parked, PARKED_GATHERING, event->now_ms);
}

static void take_back(struct parked_call *parked, const struct event *event)
{
	LIST_EACH(struct parked_request, request, &parked->requests, link) {
		if (!slice_is_equal(request->id, event->id))
			continue;
		drop_request(parked, request);
		break;
	}
	if (parked->state == PARKED_GATHERING && list_is_empty(&parked->requests))
		set_state(parked, PARKED_RUNNING, event->now_ms);
}

size_t parked_request_key(const struct parked_request *request, char *out)
{
	out[0] = 'r';
	return 1 + text_format_u64(request->key, out + 1);
}

/* ---- ends ---- */

/*
 * The server's work is no longer wanted; the request that waits for it, if any, fails with the
 * reason.
 */
static void abandon(struct parked_call *parked, const struct event *event)
{
	struct call *call = take_call(parked);

	set_state(parked, PARKED_ENDED, event->now_ms);
	refuse_all(parked);
	parked->ops->cancel(parked);
	if (call != NULL)
		parked->ops->fail(parked, call, event->reason);
	finish(parked);
}

static void abandon_for(struct parked_call *parked, enum reason reason, uint64_t now_ms)
{
	struct event event = { .now_ms = now_ms, .reason = reason };

	abandon(parked, &event);
}

static void deliver(struct parked_call *parked, const struct event *event)
{
	struct call *call = take_call(parked);

	set_state(parked, PARKED_ENDED, event->now_ms);
	refuse_all(parked);
	parked->ops->release(parked);
	parked->ops->deliver(parked, call, event->msg);
	finish(parked);
}

static void fail_exited(struct parked_call *parked, const struct event *event)
{
	struct call *call = take_call(parked);

	set_state(parked, PARKED_ENDED, event->now_ms);
	drop_all(parked);
	parked->ops->fail(parked, call, event->reason);
	finish(parked);
}

/* The server is done with the call, and the client has not come back. */
static void drop(struct parked_call *parked, const struct event *event)
{
	set_state(parked, PARKED_ENDED, event->now_ms);
	finish(parked);
}

/* ---- being parked ---- */

static void ask(struct parked_call *parked, const struct event *event)
{
	if (parked->round >= parked->table->conf.rounds_max) {
		abandon_for(parked, REASON_TOO_MANY_ROUNDS, event->now_ms);
		return;
	}
	parked->round++;
	set_state(parked, PARKED_PARKED, event->now_ms);
	parked->ops->ask(parked, take_call(parked));
}

static size_t count_of(const struct parked_call *of)
{
	size_t count = 0;

	LIST_EACH(struct parked_call, other, &of->table->kept, kept)
		count += other->server == of->server && other->owner == of->owner;
	return count;
}

/*
 * The call kept for longest of the owner that has most at this server, if that is still more than
 * this owner with one more would have; else NULL. The bound of a server is small.
 */
static struct parked_call *find_excess(const struct parked_call *parked)
{
	size_t most = count_of(parked) + 1;
	struct parked_call *found = NULL;

	LIST_EACH(struct parked_call, other, &parked->table->kept, kept) {
		size_t count = other->server == parked->server ? count_of(other) : 0;

		if (count > most) {
			most = count;
			found = other;
		}
	}
	return found;
}

/*
 * Returns whether one more call of this owner may be kept. If there are too many at the server, the
 * owner that has most of them gives one up; otherwise the owner's call that has been kept for
 * longest is abandoned.
 */
static bool make_room(const struct parked_call *parked, uint64_t now_ms)
{
	const struct parked_calls_conf *conf = &parked->table->conf;
	struct parked_call *oldest = NULL;
	struct parked_call *here = NULL;
	size_t owners = 0;
	size_t servers = 0;

	LIST_EACH(struct parked_call, other, &parked->table->kept, kept) {
		bool is_owners = other->owner == parked->owner;
		bool is_servers = other->server == parked->server;

		owners += is_owners;
		servers += is_servers;
		if (is_owners && oldest == NULL)
			oldest = other;
		if (is_owners && is_servers && here == NULL)
			here = other;
	}
	if (servers >= conf->per_server || servers >= parked->server_max) {
		struct parked_call *excess = find_excess(parked);
		bool is_own = excess == NULL;

		if (is_own && here == NULL)
			return false;
		parked_call_abandon(is_own ? here : excess, REASON_PARKED_OVER_LIMIT, now_ms);
		if (is_own)
			return true;
	}
	if (!parked->is_of_crowd && owners >= conf->per_owner)
		parked_call_abandon(oldest, REASON_PARKED_OVER_LIMIT, now_ms);
	return true;
}

static void park(struct parked_call *parked, const struct event *event)
{
	if (make_room(parked, event->now_ms))
		ask(parked, event);
	else
		abandon_for(parked, REASON_PARKED_OVER_LIMIT, event->now_ms);
}

static void expire(struct parked_call *parked, const struct event *event)
{
	abandon_for(parked, REASON_EXPIRED, event->now_ms);
}

static void settle(struct parked_call *parked, const struct event *event)
{
	parked->response = msg_ref(event->msg);
	set_state(parked, PARKED_SETTLED, event->now_ms);
	refuse_all(parked);
	parked->ops->release(parked);
}

static void lose(struct parked_call *parked, const struct event *event)
{
	set_state(parked, PARKED_LOST, event->now_ms);
	drop_all(parked);
}

/* ---- trying again ---- */

/*
 * The requests that are left are asked again, without waiting for more. The call has just given up
 * a place, so there is room to keep it.
 */
static void resume(struct parked_call *parked, const struct event *event)
{
	bool is_complete = true;

	LIST_EACH(struct parked_request, request, &parked->requests, link)
		is_complete = is_complete && request->answer.n > 0;
	parked->call = event->call;
	set_state(parked, is_complete ? PARKED_RUNNING : PARKED_GATHERING, event->now_ms);
	LIST_EACH_SAFE(struct parked_request, each, &parked->requests, link)
		if (each->answer.n > 0)
			answer(parked, each, each->answer);
	if (!is_complete)
		ask(parked, event);
}

static void deliver_stored(struct parked_call *parked, const struct event *event)
{
	set_state(parked, PARKED_ENDED, event->now_ms);
	parked->ops->deliver(parked, event->call, parked->response);
	finish(parked);
}

static void fail_lost(struct parked_call *parked, const struct event *event)
{
	set_state(parked, PARKED_ENDED, event->now_ms);
	parked->ops->fail(parked, event->call, REASON_PARKED_LOST);
	finish(parked);
}

static bool is_action(struct json value)
{
	static const struct slice actions[] = { SLICE("accept"), SLICE("decline"),
						SLICE("cancel") };

	return slices_has((struct slices){ actions, ARRAY_LEN(actions) }, scan_plain_string(value));
}

/* Whether `answer` has what an answer to such a request must have. */
static bool is_answer(const struct method *method, struct json answer)
{
	enum json_type content = scan_member(answer.text, SLICE_LIT("content")).type;

	if (answer.type != JSON_OBJECT)
		return false;
	if (method->id == METHOD_ELICITATION)
		return is_action(scan_member(answer.text, SLICE_LIT("action")));
	if (method->id == METHOD_ROOTS_LIST)
		return scan_member(answer.text, SLICE_LIT("roots")).type == JSON_ARRAY;
	return scan_member(answer.text, SLICE_LIT("role")).type == JSON_STRING &&
	       scan_member(answer.text, SLICE_LIT("model")).type == JSON_STRING &&
	       (content == JSON_OBJECT || content == JSON_ARRAY);
}

static struct parked_request *find_request(struct parked_call *parked, struct slice name)
{
	uint64_t key;

	if (name.n < 2 || name.p[0] != 'r' || name.p[1] == '0' ||
	    text_parse_u64(slice_of(name.p + 1, name.n - 1), &key) < 0)
		return NULL;
	LIST_EACH(struct parked_request, request, &parked->requests, link)
		if (request->key == key)
			return request;
	return NULL;
}

/* Stores each answer with its request. Returns -1 if one is malformed, or a request has two. */
static int read_responses(struct parked_call *parked, struct json responses)
{
	if (responses.type == JSON_ABSENT)
		return 0;
	if (responses.type != JSON_OBJECT)
		return -1;
	SCAN_MEMBERS(member, responses.text) {
		struct parked_request *request = find_request(parked, member.name);

		if (request == NULL)
			continue;
		if (request->answer.n > 0 || !is_answer(request->method, member.value))
			return -1;
		request->answer = member.value.text;
	}
	return 0;
}

/* ---- the table ---- */

typedef void step_fn(struct parked_call *parked, const struct event *event);

static step_fn *const steps[PARKED_STATES][EVENTS] = {
	[PARKED_RUNNING] = {
		[ASKED] = add_request,
		[RESPONSE] = deliver,
		[EXITED] = fail_exited,
		[ABANDONED] = abandon,
	},
	[PARKED_GATHERING] = {
		[ASKED] = add_request,
		[TAKEN_BACK] = take_back,
		[RESPONSE] = deliver,
		[EXITED] = fail_exited,
		[DEADLINE] = park,
		[ABANDONED] = abandon,
	},
	[PARKED_PARKED] = {
		[ASKED] = add_request,
		[TAKEN_BACK] = take_back,
		[RESPONSE] = settle,
		[EXITED] = lose,
		[RETRIED] = resume,
		[DEADLINE] = expire,
		[ABANDONED] = abandon,
	},
	[PARKED_SETTLED] = {
		[RETRIED] = deliver_stored,
		[DEADLINE] = drop,
		[ABANDONED] = drop,
	},
	[PARKED_LOST] = {
		[RETRIED] = fail_lost,
		[DEADLINE] = drop,
		[ABANDONED] = drop,
	},
};

static bool has_step(const struct parked_call *parked, enum event_kind kind)
{
	return steps[parked->state][kind] != NULL;
}

static void happen(struct parked_call *parked, enum event_kind kind, const struct event *event)
{
	if (has_step(parked, kind))
		steps[parked->state][kind](parked, event);
}

bool parked_call_on_request(struct parked_call *parked, const struct method *method,
			    struct msg *msg, struct slice id, uint64_t now_ms)
{
	struct event event = { .now_ms = now_ms, .method = method, .msg = msg, .id = id };

	if (!has_step(parked, ASKED) || parked->request_count >= REQUESTS_MAX ||
	    (parked->request_count > 0 && parked->request_bytes + msg->text.n > REQUEST_BYTES_MAX))
		return false;
	happen(parked, ASKED, &event);
	return true;
}

void parked_call_on_request_cancelled(struct parked_call *parked, struct slice id, uint64_t now_ms)
{
	struct event event = { .now_ms = now_ms, .id = id };

	happen(parked, TAKEN_BACK, &event);
}

void parked_call_on_response(struct parked_call *parked, struct msg *response, uint64_t now_ms)
{
	struct event event = { .now_ms = now_ms, .msg = response };

	happen(parked, RESPONSE, &event);
}

void parked_call_on_exit(struct parked_call *parked, enum reason reason, uint64_t now_ms)
{
	struct event event = { .now_ms = now_ms, .reason = reason };

	happen(parked, EXITED, &event);
}

void parked_call_on_disconnect(struct parked_call *parked, const struct call *call, uint64_t now_ms)
{
	if (call == NULL || call != parked->call)
		return;
	parked->call = NULL;
	parked_call_abandon(parked, REASON_CANCELLED, now_ms);
}

enum parked_retry parked_call_on_retry(struct parked_call *parked, struct call *call,
				       uint32_t round, struct json responses, uint64_t now_ms)
{
	struct event event = { .now_ms = now_ms, .call = call };
	int read;

	CHECK(call != NULL);
	if (!has_step(parked, RETRIED) || round != parked->round)
		return PARKED_RETRY_STALE;
	read = read_responses(parked, responses);
	if (read == 0)
		happen(parked, RETRIED, &event);
	if (read < 0) {
		LIST_EACH(struct parked_request, request, &parked->requests, link)
			request->answer = (struct slice){ NULL, 0 };
		return PARKED_RETRY_MALFORMED;
	}
	return PARKED_RETRY_TAKEN;
}

void parked_call_on_deadline(struct parked_call *parked, uint64_t now_ms)
{
	struct event event = { .now_ms = now_ms };

	if (now_ms >= parked->deadline_ms) /* who has none takes no notice */
		happen(parked, DEADLINE, &event);
}

void parked_call_abandon(struct parked_call *parked, enum reason reason, uint64_t now_ms)
{
	struct event event = { .now_ms = now_ms, .reason = reason };

	happen(parked, ABANDONED, &event);
}
