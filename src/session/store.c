/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list for each session. Bytes are bounded by the streams' budgets, which take away messages; here
 * the number of ended streams is, and their age. What a connection still reads lives on until it is read.
 */
#include "session/store.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"

/* Old messages of streams on which nothing happens: looked for so many times in an age. */
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
	timer_init(&store->sweep, store_on_sweep);
	timer_start(loop, &store->sweep, conf->stream.replay_age_ms / SWEEPS_PER_AGE + 1);
}

void store_fini(struct store *store)
{
	timer_stop(&store->sweep);
}

void shelf_init(struct shelf *shelf, struct store *store)
{
	*shelf = (struct shelf){ .store = store };
	stream_budget_init(&shelf->budget, store->conf->session_bytes, &store->budget);
	random_bytes(&shelf->epoch, sizeof(shelf->epoch));
	list_init(&shelf->streams);
	list_init(&shelf->expired);
}

/* What is left of an expired stream: the name of the request that will never be answered. */
struct expired_stream {
	struct list link;
	uint64_t number;
	size_t request_id_length;
	char request_id[];
};

static void shelf_forget_expired(struct shelf *shelf)
{
	struct expired_stream *oldest =
		container_of(shelf->expired.next, struct expired_stream, link);

	list_remove(&oldest->link);
	shelf->expired_count--;
	free(oldest);
}

static void shelf_note_expired(struct shelf *shelf, const struct stored_stream *stored)
{
	struct expired_stream *expired = mem_alloc(sizeof(*expired) + stored->request_id_length);

	expired->number = stored->number;
	expired->request_id_length = stored->request_id_length;
	memcpy(expired->request_id, stored->request_id, stored->request_id_length);
	list_append(&shelf->expired, &expired->link);
	if (++shelf->expired_count > SHELF_EXPIRED_MAX)
		shelf_forget_expired(shelf);
}

struct slice shelf_find_expired(const struct shelf *shelf, uint64_t number)
{
	LIST_FOREACH(node, &shelf->expired) {
		struct expired_stream *expired = container_of(node, struct expired_stream, link);

		if (expired->number == number)
			return slice_of(expired->request_id, expired->request_id_length);
	}
	return (struct slice){ NULL, 0 };
}

/* Off the shelf: one reference less. */
static void stored_stream_remove(struct stored_stream *stored)
{
	struct shelf *shelf = stored->shelf;

	timer_stop(&stored->expiry);
	list_remove(&stored->link);
	stored->shelf = NULL;
	if (stored->stream.is_ended)
		shelf->finished_count--;
	stream_set_budget(&stored->stream, &shelf->store->budget);
	stored_stream_unref(&stored);
}

void shelf_fini(struct shelf *shelf)
{
	while (!list_is_empty(&shelf->streams))
		stored_stream_remove(container_of(shelf->streams.next, struct stored_stream, link));
	while (!list_is_empty(&shelf->expired))
		shelf_forget_expired(shelf);
}

/* Its client can still name it, but gets an error. */
static void stored_stream_expire(struct stored_stream *stored)
{
	shelf_note_expired(stored->shelf, stored);
	stored_stream_remove(stored);
}

static void stored_stream_on_expiry(struct timer *timer)
{
	stored_stream_expire(container_of(timer, struct stored_stream, expiry));
}

struct stored_stream *shelf_open(struct shelf *shelf, struct slice request_id)
{
	struct stored_stream *stored = mem_alloc(sizeof(*stored) + request_id.n);

	stream_init(&stored->stream, shelf->store->loop, &shelf->store->conf->stream,
		    &shelf->budget);
	stored->shelf = shelf;
	stored->refs = 2; /* the shelf's and the caller's */
	stored->number = ++shelf->last_number;
	stored->is_known = false;
	timer_init(&stored->expiry, stored_stream_on_expiry);
	stored->request_id_length = request_id.n;
	if (request_id.n > 0)
		memcpy(stored->request_id, request_id.p, request_id.n);
	list_append(&shelf->streams, &stored->link);
	return stored;
}

struct stored_stream *shelf_find(const struct shelf *shelf, uint64_t number)
{
	LIST_FOREACH(node, &shelf->streams) {
		struct stored_stream *stored = container_of(node, struct stored_stream, link);

		if (stored->number == number) {
			stored->refs++;
			return stored;
		}
	}
	return NULL;
}

/* Of the ended streams the one that ended first, of which nothing waits to be seen; if there is none, the first. */
static struct stored_stream *shelf_find_least(const struct shelf *shelf)
{
	struct stored_stream *first = NULL;

	LIST_FOREACH(node, &shelf->streams) {
		struct stored_stream *stored = container_of(node, struct stored_stream, link);

		if (!stored->stream.is_ended)
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
	struct shelf *shelf = stored->shelf;

	stream_end(stream, reason);
	if (shelf == NULL)
		return;
	shelf->finished_count++;
	list_remove(&stored->link);
	list_append(&shelf->streams, &stored->link);
	if (!stored_stream_is_known(stored) && stream->reader == NULL)
		stored_stream_remove(stored);
	else
		timer_start(shelf->store->loop, &stored->expiry,
			    shelf->store->conf->stream.replay_age_ms);
	if (shelf->finished_count > SHELF_STREAMS_MAX)
		stored_stream_expire(shelf_find_least(shelf));
}

void stored_stream_unref(struct stored_stream **stored)
{
	struct stored_stream *s = *stored;

	*stored = NULL;
	if (s == NULL || --s->refs > 0)
		return;
	stream_fini(&s->stream);
	loop_defer_free(s->stream.loop, s);
}

struct slice stored_stream_request_id(const struct stored_stream *stored)
{
	return slice_of(stored->request_id, stored->request_id_length);
}
