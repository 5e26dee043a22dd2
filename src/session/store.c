/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list for each session, and one of all ended streams for the bounds: the one that ended first goes
 * first. A stream in use by a reader or a running call is never taken away.
 */
#include "session/store.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"

void store_init(struct store *store, struct loop *loop, const struct stream_conf *conf)
{
	*store = (struct store){ .loop = loop, .conf = conf };
	random_bytes(&store->epoch, sizeof(store->epoch));
	list_init(&store->finished);
}

void shelf_init(struct shelf *shelf, struct store *store)
{
	*shelf = (struct shelf){ .store = store };
	list_init(&shelf->streams);
}

/* Off the shelf: one reference less. */
static void stored_stream_remove(struct stored_stream *stored)
{
	struct shelf *shelf = stored->shelf;

	timer_stop(&stored->expiry);
	list_remove(&stored->link);
	stored->shelf = NULL;
	if (stored->stream.is_ended) {
		shelf->finished_count--;
		shelf->store->bytes -= stored->charged;
		list_remove(&stored->finished_link);
	}
	stored_stream_unref(&stored);
}

void shelf_fini(struct shelf *shelf)
{
	while (!list_is_empty(&shelf->streams))
		stored_stream_remove(container_of(shelf->streams.next, struct stored_stream, link));
}

static void stored_stream_on_expiry(struct timer *timer)
{
	stored_stream_remove(container_of(timer, struct stored_stream, expiry));
}

struct stored_stream *shelf_open(struct shelf *shelf, struct slice request_id)
{
	struct stored_stream *stored = mem_alloc(sizeof(*stored) + request_id.n);

	stream_init(&stored->stream, shelf->store->loop, shelf->store->conf);
	list_init(&stored->finished_link);
	stored->shelf = shelf;
	stored->refs = 2; /* the shelf's and the caller's */
	stored->number = ++shelf->last_number;
	stored->charged = 0;
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

/* Makes room among the ended streams: of this session first, then of all. */
static void shelf_shed(struct shelf *shelf)
{
	LIST_FOREACH_SAFE(node, &shelf->streams) {
		struct stored_stream *stored = container_of(node, struct stored_stream, link);

		if (shelf->finished_count <= SHELF_STREAMS_MAX)
			break;
		if (stored->stream.is_ended)
			stored_stream_remove(stored);
	}
	while (shelf->store->bytes > STORE_BYTES_MAX && !list_is_empty(&shelf->store->finished))
		stored_stream_remove(container_of(shelf->store->finished.next, struct stored_stream,
						  finished_link));
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
	stored->charged = stream->bytes + stream->kept_bytes;
	shelf->store->bytes += stored->charged;
	shelf->finished_count++;
	list_append(&shelf->store->finished, &stored->finished_link);
	if (!stored_stream_is_known(stored) && stream->reader == NULL)
		stored_stream_remove(stored);
	else
		timer_start(shelf->store->loop, &stored->expiry, shelf->store->conf->replay_age_ms);
	shelf_shed(shelf);
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
