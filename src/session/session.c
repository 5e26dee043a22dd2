/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of sessions: how many there may be, for how long, and what ends with them; their ids,
 * and how they are found by them. The streams that each keeps are in replay_store.
 */
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "obs/counters.h"
#include "obs/log.h"

/* ---- session table ---- */

/*
 * A map keyed by the last 60 bits of the ids. By guessing, one learns at most whether there is an
 * id with these bits; the whole id is then compared in constant time. This file knows nothing else
 * about sessions.
 */

/* The last 10 characters of an id hold 60 bits: enough for a key. The first ones may name a node. */
#define KEY_CHARACTERS 10

/*
 * The key of an id in a map. It is derived from the last 60 bits only, so compare the id of what
 * is found.
 */
static uint64_t session_id_key(const char *id)
{
	uint64_t key = 14695981039346656037u; /* FNV-1a */

	for (size_t i = 0; i < KEY_CHARACTERS; i++)
		key = (key ^ (unsigned char)id[SESSION_ID_LENGTH - 1 - i]) * 1099511628211u;
	return key;
}

/*
 * Writes a new id. It does not begin with '-', so that it does not look like an option on a command
 * line.
 */
static void session_id_make(struct slice node, char *id_r)
{
	unsigned char bytes[SESSION_ID_BYTES];

	do {
		random_bytes(bytes, sizeof(bytes));
		CHECK(text_base64url(bytes, sizeof(bytes), id_r) == SESSION_ID_LENGTH);
	} while (id_r[0] == '-');
	if (node.n > 0) {
		memcpy(id_r, node.p, node.n);
		id_r[node.n] = '.';
	}
}

void session_table_name(struct session_table *table, struct slice node)
{
	CHECK(node.n <= SESSION_NODE_MAX);
	table->node = node;
}

struct slice session_id_node(struct slice id)
{
	const char *end =
		id.n == SESSION_ID_LENGTH ? memchr(id.p, '.', SESSION_NODE_MAX + 1) : NULL;

	return slice_of(id.p, end != NULL ? (size_t)(end - id.p) : 0);
}

void session_table_add(struct session_table *table, struct session_entry *entry)
{
	do {
		session_id_make(table->node, entry->id);
		entry->key = session_id_key(entry->id);
	} while (map_find(&table->by_key, entry->key) != NULL);
	map_insert(&table->by_key, entry->key, entry);
}

/*
 * Likewise with this id, which has SESSION_ID_LENGTH bytes. Returns false if an id with the same key
 * is there.
 */
static bool session_table_add_known(struct session_table *table, struct session_entry *entry,
				    struct slice id)
{
	uint64_t key;

	CHECK(id.n == SESSION_ID_LENGTH);
	key = session_id_key(id.p);
	if (map_find(&table->by_key, key) != NULL)
		return false;
	memcpy(entry->id, id.p, SESSION_ID_LENGTH);
	entry->key = key;
	map_insert(&table->by_key, key, entry);
	return true;
}

void session_table_remove(struct session_table *table, const struct session_entry *entry)
{
	CHECK(map_remove(&table->by_key, entry->key) == entry);
}

struct session_entry *session_table_find(const struct session_table *table, struct slice id)
{
	struct session_entry *entry;

	if (id.n != SESSION_ID_LENGTH)
		return NULL;
	entry = map_find(&table->by_key, session_id_key(id.p));
	if (entry == NULL || !text_is_equal_secret(slice_of(entry->id, SESSION_ID_LENGTH), id))
		return NULL;
	return entry;
}

void session_table_fini(struct session_table *table)
{
	CHECK(table->by_key.count == 0);
	map_fini(&table->by_key);
}

/* ---- sessions ---- */

/* A client that has received its session's id says so at once, with notifications/initialized. */
#define DOUBT_MS (60 * 1000)
#define IDLE_LEAST_MS 2000 /* clients often pause for a moment between two requests */
#define ADDRESS_LEAST 8    /* an address may have this many, however small max_sessions is */
#define TO(state) (1u << SESSION_##state)
static const struct state_row states[] = {
	[SESSION_NEW] = { "new", TO(LIVE) | TO(ENDED) },
	[SESSION_LIVE] = { "live", TO(ENDED) },
	[SESSION_ENDED] = { "ended", 0 },
};
#undef TO

/* Also counts the sessions in each state. */
static void session_set_state(struct session *session, enum session_state state)
{
	struct session_set *set = session->set;
	size_t *counter = session->state == SESSION_NEW ? &set->reserved : &set->count;

	CHECK(states[session->state].next & 1u << state);
	LOG(SESSION_STATE, LOG_SLICE("session", session_shown_id(session)),
	    LOG_STR("from", states[session->state].name), LOG_STR("to", states[state].name));
	session->state = state;
	if (session->is_part)
		return;
	CHECK(*counter > 0);
	(*counter)--;
	if (state == SESSION_LIVE)
		set->count++;
}

void session_set_init(struct session_set *set, struct loop *loop, const struct session_conf *conf)
{
	*set = (struct session_set){ .loop = loop, .conf = *conf };
	list_init(&set->sessions);
	list_init(&set->idle);
	principal_set_init(&set->principals);
	holder_set_init(&set->holders);
	deny_list_init(&set->deny_list);
	store_init(&set->store, loop, &set->conf.store);
}

void session_set_fini(struct session_set *set)
{
	LIST_DRAIN(struct session, session, &set->sessions, link)
		session_end(session, REASON_DRAINING);
	CHECK(set->count == 0 && set->reserved == 0);
	deny_list_fini(&set->deny_list);
	session_table_fini(&set->table);
	store_fini(&set->store);
}

static void session_on_idle(struct timer *timer)
{
	session_end(container_of(timer, struct session, idle), REASON_EXPIRED);
}

static void session_on_age(struct timer *timer)
{
	session_end(container_of(timer, struct session, age), REASON_EXPIRED);
}

static void session_show(const struct deny_watcher *watcher, struct denial_marks *marks_r)
{
	*marks_r = *container_of(watcher, struct session, deny_watcher)->marks;
}

static void session_on_denied(struct deny_watcher *watcher)
{
	session_end(container_of(watcher, struct session, deny_watcher), REASON_DENIED);
}

static const struct deny_watcher_ops session_watcher_ops = {
	.show = session_show,
	.on_denied = session_on_denied,
};

/* ---- room for another one ---- */

static bool session_is_full(const struct session_set *set)
{
	return set->count + set->reserved >= set->conf.max_sessions;
}

/*
 * Whether one more session would be too many for this caller. An anonymous caller is an address:
 * once half of all sessions are taken, it may have a quarter at most, unless the address may stand
 * for many callers. FRONT-SESS-08
 */
static bool is_over_own_limit(const struct session_set *set, const struct holder *holder)
{
	uint64_t quarter = set->conf.max_sessions / 4;

	if (!principal_is_anonymous(holder->principal))
		return holder->count >= set->conf.max_per_principal;
	if (holder->is_crowd || set->count + set->reserved < set->conf.max_sessions / 2)
		return false;
	return holder->count >= (quarter > ADDRESS_LEAST ? quarter : ADDRESS_LEAST);
}

static struct session *first_idle(const struct session_set *set)
{
	return list_is_empty(&set->idle) ? NULL :
					   container_of(set->idle.next, struct session, idle_link);
}

static struct session *first_idle_of(const struct holder *holder)
{
	return list_is_empty(&holder->idle) ?
		       NULL :
		       container_of(holder->idle.next, struct session, own_idle_link);
}

/* The time until the session may be ended for another one; UINT64_MAX if session is NULL. */
static uint64_t ends_in_ms(const struct session *session)
{
	uint64_t idle_ms;

	if (session == NULL)
		return UINT64_MAX;
	idle_ms = clock_now_ms() - session->rested_at_ms;
	return idle_ms < IDLE_LEAST_MS ? IDLE_LEAST_MS - idle_ms : 0;
}

/*
 * The session to end for a new one of this caller: of the caller who has most sessions, the one
 * that has been idle for longest. A caller with at least two sessions more than this one is not
 * granted IDLE_LEAST_MS: it might use each of thousands of sessions every other second. NULL: there
 * is none.
 */
static struct session *session_find_idle(const struct session_set *set, const struct holder *holder)
{
	struct session *found = NULL;

	LIST_EACH(struct session, session, &set->idle, idle_link) {
		if (ends_in_ms(session) > 0 && session->holder->count < holder->count + 2)
			continue;
		if (found == NULL || session->holder->count > found->holder->count)
			found = session;
	}
	return found;
}

static void session_reclaim(struct session *session)
{
	counter_add(COUNTER_SESSIONS_RECLAIMED);
	LOG(SESSION_RECLAIMED, LOG_SLICE("session", session_shown_id(session)),
	    LOG_INT("idle_ms", clock_now_ms() - session->rested_at_ms));
	session_end(session, REASON_RECLAIMED);
}

/* Whether there is room for another session of this caller; may end an idle session for it. */
static bool session_make_room(const struct session_set *set, const struct holder *holder)
{
	bool is_own = is_over_own_limit(set, holder);
	struct session *idle;

	if (!is_own && !session_is_full(set))
		return true;
	idle = is_own ? first_idle_of(holder) : session_find_idle(set, holder);
	if (idle == NULL || (is_own && ends_in_ms(idle) > 0))
		return false;
	session_reclaim(idle);
	return !session_is_full(set);
}

uint64_t session_set_wait_ms(const struct session_set *set, const struct principal *principal)
{
	static const struct peer nowhere; /* it matters only for anonymous callers */
	const struct holder *holder = principal_is_anonymous(principal) ?
					      NULL :
					      holder_find(&set->holders, set, principal, &nowhere);

	if (holder != NULL && is_over_own_limit(set, holder))
		return ends_in_ms(first_idle_of(holder));
	return session_is_full(set) ? ends_in_ms(first_idle(set)) : 0;
}

/* Takes over the reference to the holder. */
static void session_prepare(struct session *session, struct session_set *set,
			    struct principal *principal, struct holder *holder,
			    const struct peer *peer, const struct session_ops *ops)
{
	CHECK(ops->on_end != NULL);
	*session = (struct session){
		.ops = ops,
		.set = set,
		.principal = principal_ref(principal),
		.holder = holder,
	};
	principal->sessions++;
	list_append(&set->sessions, &session->link);
	list_init(&session->idle_link);
	list_init(&session->own_idle_link);
	deny_watcher_init(&session->deny_watcher, &session_watcher_ops);
	timer_init(&session->idle, session_on_idle);
	timer_init(&session->age, session_on_age);
	replay_store_init(&session->replay_store, &set->store, holder_number(principal, peer));
	stream_init(&session->standalone, set->loop, &set->conf.store.stream,
		    &session->replay_store.budget);
}

int session_init(struct session *session, struct session_set *set, struct principal *principal,
		 const struct peer *peer, const struct session_ops *ops)
{
	struct holder *holder = holder_get(&set->holders, set, principal, peer);

	if (!session_make_room(set, holder)) {
		holder_unref(&holder);
		return -1;
	}
	session_prepare(session, set, principal, holder, peer, ops);
	set->reserved++;
	holder->count++;
	return 0;
}

void session_init_part(struct session *session, struct session_set *set,
		       struct principal *principal, const struct peer *peer,
		       const struct session_ops *ops)
{
	session_prepare(session, set, principal, holder_get(&set->holders, set, principal, peer),
			peer, ops);
	session->is_part = true;
	session->holds = 1; /* never released */
}

void session_keep_marks(struct session *session, const struct denial_marks *marks)
{
	CHECK(session->marks == NULL && session->state == SESSION_LIVE);
	session->marks = denial_marks_copy(marks);
	deny_list_watch(&session->set->deny_list, &session->deny_watcher);
}

void session_forget_marks(struct session *session)
{
	deny_list_unwatch(&session->deny_watcher);
	free(session->marks);
	session->marks = NULL;
}

static uint64_t session_patience_ms(const struct session *session)
{
	uint64_t idle_ms = session->set->conf.idle_ms;

	return session->is_doubtful && idle_ms > DOUBT_MS ? DOUBT_MS : idle_ms;
}

static void session_stop_resting(struct session *session)
{
	list_remove(&session->idle_link);
	list_remove(&session->own_idle_link);
	timer_stop(&session->idle);
}

/* Starts the idle time, unless the session is held. */
static void session_rest(struct session *session)
{
	if (session->holds > 0 || session->state != SESSION_LIVE)
		return;
	session_stop_resting(session);
	session->rested_at_ms = clock_now_ms();
	list_append(&session->set->idle, &session->idle_link);
	list_append(&session->holder->idle, &session->own_idle_link);
	timer_start(session->set->loop, &session->idle, session_patience_ms(session));
}

void session_doubt(struct session *session)
{
	CHECK(session->state == SESSION_LIVE);
	session->is_doubtful = true;
	session_rest(session);
}

static bool has_id(const struct session *session)
{
	return session->entry.id[0] != '\0';
}

struct slice session_promise_id(struct session *session)
{
	CHECK(session->state == SESSION_NEW);
	if (!has_id(session))
		session_table_add(&session->set->table, &session->entry);
	return session_id(session);
}

static void session_begin_at(struct session *session, uint64_t age_ms)
{
	session_set_state(session, SESSION_LIVE);
	session->began_at_ms =
		clock_now_ms() - age_ms; /* wraps if that is before the clock's zero */
	if (session->is_part)
		return;
	timer_continue(session->set->loop, &session->age, session->set->conf.max_age_ms, age_ms);
	counter_add(COUNTER_SESSIONS);
	session_rest(session);
}

void session_begin(struct session *session)
{
	CHECK(session->state == SESSION_NEW);
	session_promise_id(session);
	session_begin_at(session, 0);
}

bool session_begin_again(struct session *session, struct slice id, uint64_t age_ms)
{
	CHECK(session->state == SESSION_NEW && !has_id(session) &&
	      age_ms < session->set->conf.max_age_ms);
	if (!session_table_add_known(&session->set->table, &session->entry, id))
		return false;
	session->is_continued = true;
	session_begin_at(session, age_ms);
	return true;
}

void session_set_renew(struct session_set *set, const struct session_conf *conf)
{
	uint64_t was_replay_age_ms = set->conf.store.stream.replay_age_ms;

	set->conf = *conf;
	LIST_EACH(struct session, session, &set->sessions, link) {
		if (timer_is_running(&session->age))
			timer_continue(set->loop, &session->age, conf->max_age_ms,
				       session_age_ms(session));
		if (timer_is_running(&session->idle))
			timer_continue(set->loop, &session->idle, session_patience_ms(session),
				       session_idle_ms(session));
	}
	store_renew(&set->store, was_replay_age_ms);
}

struct session *session_find(const struct session_set *set, struct slice id,
			     const struct principal *principal)
{
	struct session_entry *entry = session_table_find(&set->table, id);
	struct session *session;

	if (entry == NULL)
		return NULL;
	session = container_of(entry, struct session, entry);
	return session->principal == principal && session->state == SESSION_LIVE ? session : NULL;
}

struct slice session_id(const struct session *session)
{
	return slice_of(session->entry.id, SESSION_ID_LENGTH);
}

struct slice session_shown_id(const struct session *session)
{
	const char *id = session->entry.id;
	struct slice node = session_id_node(slice_of(id, SESSION_ID_LENGTH));

	return slice_of(id, id[0] == '\0' ? 0 :
			    node.n > 0    ? node.n + 1 + SESSION_ID_SHOWN :
					    SESSION_ID_SHOWN);
}

uint64_t session_age_ms(const struct session *session)
{
	CHECK(session->state == SESSION_LIVE);
	return clock_now_ms() - session->began_at_ms;
}

uint64_t session_idle_ms(const struct session *session)
{
	CHECK(session->state == SESSION_LIVE);
	return session->holds > 0 ? 0 : clock_now_ms() - session->rested_at_ms;
}

uint64_t session_left_ms(const struct session *session)
{
	uint64_t now_ms = clock_now_ms();

	if (session->holds > 0 || session->state != SESSION_LIVE)
		return UINT64_MAX;
	return session->idle.due_ms > now_ms ? session->idle.due_ms - now_ms : 0;
}

void session_hold(struct session *session)
{
	session->is_doubtful = false;
	if (session->holds++ == 0)
		session_stop_resting(session);
}

void session_release(struct session *session)
{
	CHECK(session->holds > 0);
	session->holds--;
	session_rest(session);
}

void session_end(struct session *session, enum reason reason)
{
	struct session_set *set = session->set;

	if (session->state == SESSION_ENDED)
		return;
	CHECK(reason != REASON_NONE && session->principal->sessions > 0);
	if (has_id(session))
		session_table_remove(&set->table, &session->entry);
	list_remove(&session->link);
	session_set_state(session, SESSION_ENDED);
	session_stop_resting(session);
	timer_stop(&session->age);
	deny_list_unwatch(&session->deny_watcher); /* the marks themselves may yet be written */
	session->ops->on_end(session, reason);
	session_forget_marks(session);
	stream_end(&session->standalone, reason);
	stream_fini(&session->standalone);
	replay_store_fini(&session->replay_store);
	session->principal->sessions--;
	session->holder->count -= !session->is_part;
	holder_unref(&session->holder);
	principal_unref(&session->principal);
	if (session->owner != NULL)
		session->owner->ops->on_end(session->owner);
}
