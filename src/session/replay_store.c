/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One list per session. The streams' budgets bound the bytes, by dropping messages; this file
 * bounds the number and the age of ended streams. A stream that a connection still reads stays
 * alive until it has been read.
 */
#include "session/replay_store.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"

/* How often, per replay age, old messages of idle streams are looked for. */
#define SWEEPS_PER_AGE 4

static void store_on_sweep(struct timer *timer)
{
	struct store *store = container_of(timer, struct store, sweep);

	for (int kind = 0; kind < STREAM_KINDS; kind++) {
		LIST_FOREACH_SAFE(node, &store->budget.streams[kind])
			stream_forget_old(container_of(node, struct stream_share, link)->stream);
	}
	timer_start(store->loop, timer, store->conf->stream.replay_age_ms / SWEEPS_PER_AGE + 1);
}

void store_init(struct store *store, struct loop *loop, const struct store_conf *conf)
{
	*store = (struct store){ .loop = loop, .conf = conf };
	stream_budget_init(&store->budget, conf->total_bytes, NULL);
	ranking_init(&store->ranking);
	store->budget.callers = &store->ranking;
	timer_init(&store->sweep, store_on_sweep);
	timer_start(loop, &store->sweep, conf->stream.replay_age_ms / SWEEPS_PER_AGE + 1);
}

void store_fini(struct store *store)
{
	timer_stop(&store->sweep);
	map_fini(&store->callers);
}

struct store_caller *store_get_caller(struct store *store, uint64_t number)
{
	struct store_caller *caller = map_find(&store->callers, number);

	if (caller == NULL) {
		caller = mem_zalloc(sizeof(*caller));
		caller->store = store;
		caller->number = number;
		stream_budget_init(&caller->budget, SIZE_MAX, &store->budget);
		map_insert(&store->callers, number, caller);
	}
	caller->refs++;
	return caller;
}

void store_caller_unref(struct store_caller **caller)
{
	struct store_caller *c = *caller;

	*caller = NULL;
	CHECK(c == NULL || c->refs > 0);
	if (c == NULL || --c->refs > 0)
		return;
	CHECK(c->budget.bytes == 0 && c->budget.ranked.class == 0);
	map_remove(&c->store->callers, c->number);
	free(c);
}

void replay_store_init(struct replay_store *replay_store, struct store *store, uint64_t caller)
{
	*replay_store = (struct replay_store){ .store = store };
	replay_store->caller = store_get_caller(store, caller);
	stream_budget_init(&replay_store->budget, store->conf->session_bytes,
			   &replay_store->caller->budget);
	random_bytes(&replay_store->epoch, sizeof(replay_store->epoch));
	list_init(&replay_store->streams);
	list_init(&replay_store->expired);
}

/* What remains of an expired stream: the id of the request that will never be answered. */
struct expired_stream {
	struct list link;
	uint64_t number;
	size_t request_id_length;
	char request_id[];
};

static void replay_store_forget_expired(struct replay_store *replay_store)
{
	struct expired_stream *oldest =
		container_of(replay_store->expired.next, struct expired_stream, link);

	list_remove(&oldest->link);
	replay_store->expired_count--;
	free(oldest);
}

struct slice replay_store_find_expired(const struct replay_store *replay_store, uint64_t number)
{
	LIST_FOREACH(node, &replay_store->expired) {
		struct expired_stream *expired = container_of(node, struct expired_stream, link);

		if (expired->number == number)
			return slice_of(expired->request_id, expired->request_id_length);
	}
	return (struct slice){ NULL, 0 };
}

/* Removes the stream from the replay store, which drops its reference. */
static void stored_stream_remove(struct stored_stream *stored)
{
	struct replay_store *replay_store = stored->replay_store;

	CHECK(replay_store != NULL);
	timer_stop(&stored->expiry);
	list_remove(&stored->link);
	stored->replay_store = NULL;
	CHECK(!stream_is_ended(&stored->stream) || replay_store->finished_count > 0);
	if (stream_is_ended(&stored->stream))
		replay_store->finished_count--;
	stream_set_budget(&stored->stream, &stored->caller->budget);
	stored_stream_unref(&stored);
}

void replay_store_fini(struct replay_store *replay_store)
{
	while (!list_is_empty(&replay_store->streams))
		stored_stream_remove(
			container_of(replay_store->streams.next, struct stored_stream, link));
	while (!list_is_empty(&replay_store->expired))
		replay_store_forget_expired(replay_store);
	CHECK(replay_store->finished_count == 0 && replay_store->expired_count == 0);
	store_caller_unref(&replay_store->caller);
}

/* The client can still name the stream, but then gets an error. */
static void stored_stream_expire(struct stored_stream *stored)
{
	struct replay_store *replay_store = stored->replay_store;
	struct expired_stream *expired = mem_alloc(sizeof(*expired) + stored->request_id_length);

	expired->number = stored->number;
	expired->request_id_length = stored->request_id_length;
	memcpy(expired->request_id, stored->request_id, stored->request_id_length);
	list_append(&replay_store->expired, &expired->link);
	if (++replay_store->expired_count > REPLAY_STORE_EXPIRED_MAX)
		replay_store_forget_expired(replay_store);
	stored_stream_remove(stored);
}

static void stored_stream_on_expiry(struct timer *timer)
{
	stored_stream_expire(container_of(timer, struct stored_stream, expiry));
}

struct stored_stream *replay_store_open(struct replay_store *replay_store, struct slice request_id)
{
	struct stored_stream *stored = mem_alloc(sizeof(*stored) + request_id.n);

	stream_init(&stored->stream, replay_store->store->loop, &replay_store->store->conf->stream,
		    &replay_store->budget);
	stored->replay_store = replay_store;
	stored->caller = replay_store->caller;
	stored->caller->refs++;
	stored->refs = 2; /* the replay store's and the caller's */
	stored->number = ++replay_store->last_number;
	stored->is_known = false;
	timer_init(&stored->expiry, stored_stream_on_expiry);
	stored->request_id_length = request_id.n;
	if (request_id.n > 0)
		memcpy(stored->request_id, request_id.p, request_id.n);
	list_append(&replay_store->streams, &stored->link);
	return stored;
}

struct stored_stream *replay_store_find(const struct replay_store *replay_store, uint64_t number)
{
	LIST_FOREACH(node, &replay_store->streams) {
		struct stored_stream *stored = container_of(node, struct stored_stream, link);

		if (stored->number == number) {
			stored->refs++;
			return stored;
		}
	}
	return NULL;
}

/*
 * The stream that ended first of those without waiting messages; if all have some, the one of all
 * that ended first.
 */
static struct stored_stream *replay_store_find_least(const struct replay_store *replay_store)
{
	struct stored_stream *first = NULL;

	LIST_FOREACH(node, &replay_store->streams) {
		struct stored_stream *stored = container_of(node, struct stored_stream, link);

		if (!stream_is_ended(&stored->stream))
			continue;
		if (stored->stream.count == 0)
			return stored;
		if (first == NULL)
			first = stored;
	}
	CHECK(first != NULL);
	return first;
}

bool stored_stream_is_known(const struct stored_stream *stored)
{
	return stored->is_known || stored->stream.taken > 0;
}

void stored_stream_finish(struct stored_stream *stored, enum reason reason)
{
	struct stream *stream = &stored->stream;
	struct replay_store *replay_store = stored->replay_store;

	CHECK(!stream_is_ended(stream));
	stream_end(stream, reason);
	if (replay_store == NULL)
		return;
	replay_store->finished_count++;
	list_remove(&stored->link);
	list_append(&replay_store->streams, &stored->link);
	if (!stored_stream_is_known(stored) && stream->reader == NULL)
		stored_stream_remove(stored);
	else
		timer_start(replay_store->store->loop, &stored->expiry,
			    replay_store->store->conf->stream.replay_age_ms);
	if (replay_store->finished_count > REPLAY_STORE_STREAMS_MAX)
		stored_stream_expire(replay_store_find_least(replay_store));
}

void stored_stream_unref(struct stored_stream **stored)
{
	struct stored_stream *s = *stored;

	*stored = NULL;
	CHECK(s == NULL || s->refs > 0);
	if (s == NULL || --s->refs > 0)
		return;
	CHECK(s->replay_store == NULL); /* the replay store has a reference of its own */
	stream_fini(&s->stream);
	store_caller_unref(&s->caller);
	loop_defer_free(s->stream.loop, s);
}

struct slice stored_stream_request_id(const struct stored_stream *stored)
{
	return slice_of(stored->request_id, stored->request_id_length);
}
