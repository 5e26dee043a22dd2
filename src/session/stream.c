/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References to messages, in one list per kind, so that what has to go first when the stream is full is found at once. Each step costs
 * the same, however many messages wait: one client's flood must not slow down the others.
 */
#include "session/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "obs/counters.h"
#include "obs/log.h"

#define TELL_EVERY_MS 1000

struct stream_event {
	struct list link;
	uint64_t number;
	enum stream_kind kind;
	uint64_t key;
	uint64_t taken_at_ms;
	struct msg *msg;
};

/* The memory that a message costs, not only its text: a flood of short messages is bounded, too. */
static size_t stream_weight(const struct msg *msg)
{
	return msg->text.n + sizeof(struct stream_event) + sizeof(*msg);
}

static struct stream_event *stream_first(const struct stream *stream, enum stream_kind kind)
{
	const struct list *events = &stream->events[kind];

	return list_is_empty(events) ? NULL : container_of(events->next, struct stream_event, link);
}

static struct stream_event *stream_find_oldest(const struct stream *stream)
{
	struct stream_event *oldest = NULL;

	for (int kind = 0; kind < STREAM_KINDS; kind++) {
		struct stream_event *event = stream_first(stream, kind);

		if (event != NULL && (oldest == NULL || event->number < oldest->number))
			oldest = event;
	}
	CHECK(oldest != NULL);
	return oldest;
}

/* ---- budgets ---- */

/* Callers are ranked only while they have something to give up. */
static void budget_update_rank(struct stream_budget *budget)
{
	bool can_give_up = false;

	if (budget->parent == NULL || budget->parent->callers == NULL)
		return;
	for (int kind = 0; kind < STREAM_KINDS; kind++)
		can_give_up = can_give_up || !list_is_empty(&budget->streams[kind]);
	ranking_set(budget->parent->callers, &budget->ranked, can_give_up ? budget->bytes : 0);
}

static void stream_count_bytes(struct stream *stream, ptrdiff_t bytes)
{
	for (struct stream_budget *budget = stream->budget; budget != NULL;
	     budget = budget->parent) {
		CHECK(bytes >= 0 || budget->bytes >= (size_t)-bytes);
		budget->bytes += (size_t)bytes;
		budget_update_rank(budget);
	}
}

/* A number for the caller whose budget the stream uses. */
static uint64_t stream_caller(const struct stream *stream)
{
	const struct stream_budget *budget = stream->budget;

	while (budget->parent != NULL && budget->parent->callers == NULL)
		budget = budget->parent;
	return (uintptr_t)budget;
}

/* The least important kind of which the stream can give up a message. Kept messages go oldest first. */
static enum stream_kind stream_find_rank(const struct stream *stream)
{
	enum stream_kind rank = STREAM_KINDS;

	if (stream->kept_count > 0)
		rank = container_of(stream->kept.next, struct stream_event, link)->kind;
	else if (stream_is_ended(stream) && stream->count > 0 && stream->reader == NULL)
		rank = STREAM_RESPONSE;
	for (int kind = STREAM_PROGRESS; kind <= STREAM_NOTIFICATION && kind < (int)rank; kind++)
		if (stream_first(stream, kind) != NULL)
			return kind;
	return rank;
}

/* To be called after each change of what the stream holds. */
static void stream_update_rank(struct stream *stream)
{
	enum stream_kind rank = stream_find_rank(stream);
	struct stream_budget *budget = stream->budget;

	if (rank == stream->rank)
		return;
	for (int i = 0; budget != NULL; i++, budget = budget->parent) {
		list_remove(&stream->shares[i].link);
		if (rank != STREAM_KINDS)
			list_append(&budget->streams[rank], &stream->shares[i].link);
		budget_update_rank(budget);
	}
	stream->rank = rank;
}

/* parent is borrowed for its life, or NULL. If it has callers, this is the budget of one. */
static void stream_budget_init(struct stream_budget *budget, size_t max_bytes,
			       struct stream_budget *parent)
{
	*budget = (struct stream_budget){ .max_bytes = max_bytes, .parent = parent };
	for (int kind = 0; kind < STREAM_KINDS; kind++)
		list_init(&budget->streams[kind]);
	ranked_init(&budget->ranked);
}

static void stream_leave_budget(struct stream *stream)
{
	stream_count_bytes(stream, -(ptrdiff_t)(stream->bytes + stream->kept_bytes));
	for (int i = 0; i < STREAM_BUDGETS; i++)
		list_remove(&stream->shares[i].link);
	stream->rank = STREAM_KINDS;
	for (struct stream_budget *budget = stream->budget; budget != NULL; budget = budget->parent)
		budget_update_rank(budget);
}

/* Moves the stream to another budget. */
static void stream_set_budget(struct stream *stream, struct stream_budget *budget)
{
	CHECK(budget != NULL);
	stream_leave_budget(stream);
	stream->budget = budget;
	stream_count_bytes(stream, (ptrdiff_t)(stream->bytes + stream->kept_bytes));
	stream_update_rank(stream);
}

/* ---- the log ---- */

/*
 *	of SESSION EPOCH NUMBER KNOWN REQUEST	the first line: of which stream
 *	first N					so many were taken, and are forgotten
 *	kept KIND WALL_MS MESSAGE		was taken then
 *	waits SEQUENCE KIND MESSAGE
 *	taken SEQUENCE WALL_MS			the first that waits
 *	gone SEQUENCE				waits no longer
 *	ended
 */

static const struct slice no_text;
#define AHEAD_MS (24 * 3600 * UINT64_C(1000)) /* of a clock of another node */
#define REQUEST_ID_MAX 1024
#define LOG_SLACK_BYTES 4096 /* a log may have so much more than twice what it says */

static void write_kept(const struct stream *stream, struct buf *out)
{
	const uint64_t now_ms = clock_now_ms(), wall_ms = clock_wall_ms();

	LIST_EACH(const struct stream_event, event, &stream->kept, link)
		stream_log_write(out, "kept", event->kind, wall_ms - (now_ms - event->taken_at_ms),
				 event->msg->text);
}

/* In the order in which they came. */
static void write_waiting(const struct stream *stream, struct buf *out)
{
	const struct list *at[STREAM_KINDS];

	for (int kind = 0; kind < STREAM_KINDS; kind++)
		at[kind] = stream->events[kind].next;
	for (;;) {
		const struct stream_event *first = NULL;

		for (int kind = 0; kind < STREAM_KINDS; kind++) {
			const struct stream_event *event =
				container_of(at[kind], const struct stream_event, link);

			if (at[kind] != &stream->events[kind] &&
			    (first == NULL || event->number < first->number))
				first = event;
		}
		if (first == NULL)
			return;
		at[first->kind] = first->link.next;
		stream_log_write(out, "waits", first->number, first->kind, first->msg->text);
	}
}

/* All but the first line. */
static void stream_write(const struct stream *stream, struct buf *out)
{
	CHECK(stream->taken >= stream->kept_count);
	stream_log_write(out, "first", stream->taken - stream->kept_count, STREAM_LOG_NONE,
			 no_text);
	write_kept(stream, out);
	write_waiting(stream, out);
	if (stream_is_ended(stream))
		buf_append_str(out, "ended\n");
}

/* What is over is left out, if it is too much. */
static void stream_limit_log(struct stream *stream)
{
	at_end(buf_fini) struct buf text = { 0 };

	if (stream->log == NULL ||
	    stream->log->size <= LOG_SLACK_BYTES + 2 * (stream->bytes + stream->kept_bytes))
		return;
	stream_log_read(stream->log, &text);
	CHECK(stream->log_head > 0 && stream->log_head <= text.len);
	text.len = stream->log_head;
	stream_write(stream, &text);
	stream_log_replace(&stream->log, buf_slice(&text));
}

/* What it has, and all that follows, is in a log from now on. */
static void stream_start_log(struct stream *stream, const struct replay_store *replay_store,
			     uint64_t number, bool is_known, struct slice request_id)
{
	at_end(buf_fini) struct buf text = { 0 };

	CHECK(stream->log == NULL && replay_store->name_length > 0);
	stream->logged_by = NULL;
	stream_log_new(replay_store->store->logs, &replay_store->caller->logs, &stream->log);
	if (stream->log == NULL)
		return;
	buf_append_str(&text, "of ");
	buf_append(&text, replay_store->name, replay_store->name_length);
	buf_append_char(&text, ' ');
	buf_append_u64(&text, replay_store->epoch);
	buf_append_char(&text, ' ');
	buf_append_u64(&text, number);
	buf_append_str(&text, is_known ? " 1 " : " 0 ");
	buf_append_slice(&text, request_id);
	buf_append_char(&text, '\n');
	stream->log_head = text.len;
	stream_write(stream, &text);
	stream_log_append(&stream->log, slice_of(text.data, text.len - 1), no_text);
}

static void stream_note(struct stream *stream, const char *word, uint64_t first, uint64_t second,
			struct slice text)
{
	if (stream->log != NULL)
		stream_log_note(&stream->log, word, first, second, text);
	else if (stream->logged_by != NULL)
		stream_start_log(stream, stream->logged_by, 0, true, no_text);
	stream_limit_log(stream);
}

/* Removes the event from those that wait. */
static void stream_unlink(struct stream *stream, struct stream_event *event)
{
	CHECK(stream->count > 0 && stream->bytes >= stream_weight(event->msg));
	list_remove(&event->link);
	if (event->key != 0)
		map_remove(&stream->by_key, event->key);
	stream->bytes -= stream_weight(event->msg);
	stream->count--;
}

static void stream_remove(struct stream *stream, struct stream_event *event)
{
	stream_unlink(stream, event);
	stream_note(stream, "gone", event->number, STREAM_LOG_NONE, no_text);
	stream_count_bytes(stream, -(ptrdiff_t)stream_weight(event->msg));
	msg_unref(&event->msg);
	free(event);
}

/* The only place where a stream gets a reader or, with NULL, loses it. */
static void stream_set_reader(struct stream *stream, struct stream_reader *reader)
{
	CHECK((stream->reader == NULL) != (reader == NULL));
	if (reader == NULL)
		stream->reader->stream = NULL;
	else
		reader->stream = stream;
	LOG(STREAM_STATE, LOG_STR("from", reader == NULL ? "read" : "unread"),
	    LOG_STR("to", reader == NULL ? "unread" : "read"), LOG_INT("waiting", stream->count),
	    LOG_INT("taken", stream->taken));
	stream->reader = reader;
	stream->left_at_ms = reader == NULL ? clock_now_ms() : 0;
	stream_update_rank(stream);
}

static void stream_detach_reader(struct stream *stream, enum reason reason)
{
	struct stream_reader *reader = stream->reader;

	stream_set_reader(stream, NULL);
	reader->ops->on_detached(reader, reason);
}

/* Serves the reader now instead of at the end of the turn. */
static void stream_flush(struct stream *stream)
{
	if (stream->reader != NULL)
		stream->reader->ops->on_wake(stream->reader);
}

static void stream_on_wake(struct task *task)
{
	stream_flush(container_of(task, struct stream, wake));
}

void stream_init(struct stream *stream, struct loop *loop, const struct stream_conf *conf,
		 struct stream_budget *budget)
{
	*stream = (struct stream){
		.loop = loop, .conf = conf, .budget = budget, .rank = STREAM_KINDS
	};
	for (int i = 0; i < STREAM_BUDGETS; i++) {
		stream->shares[i].stream = stream;
		list_init(&stream->shares[i].link);
	}
	for (int kind = 0; kind < STREAM_KINDS; kind++)
		list_init(&stream->events[kind]);
	list_init(&stream->kept);
	task_init(&stream->wake, stream_on_wake);
}

/* ---- messages that were taken ---- */

static void stream_forget_oldest(struct stream *stream)
{
	struct stream_event *event = container_of(stream->kept.next, struct stream_event, link);

	CHECK(stream->kept_count > 0);
	if (stream->reader != NULL && stream->reader->cursor == &event->link)
		stream->reader->cursor = &stream->kept;
	list_remove(&event->link);
	stream->kept_count--;
	stream->kept_bytes -= stream_weight(event->msg);
	stream_count_bytes(stream, -(ptrdiff_t)stream_weight(event->msg));
	msg_unref(&event->msg);
	free(event);
}

/* So many were taken, and none of them is kept. */
static void stream_forget_to(struct stream *stream, uint64_t number)
{
	while (stream->kept_count > 0)
		stream_forget_oldest(stream);
	stream->taken = number;
	stream_note(stream, "first", number, STREAM_LOG_NONE, no_text);
}

/* What can be resumed keeps its last message, which may be the response; and what its reader has yet to get stays. */
static void stream_trim(struct stream *stream)
{
	const struct stream_conf *conf = stream->conf;
	size_t least = stream->keeps_nothing ? 0 : 1;

	while (stream->kept_count > least) {
		const struct stream_event *oldest =
			container_of(stream->kept.next, struct stream_event, link);
		bool is_too_much = stream->keeps_nothing || stream->kept_bytes > conf->max_bytes ||
				   stream->kept_count > conf->replay_events ||
				   clock_now_ms() - oldest->taken_at_ms > conf->replay_age_ms;
		uint64_t number = stream->taken - stream->kept_count + 1;

		if (!is_too_much || (stream->reader != NULL && stream->reader->position < number))
			return;
		stream_forget_oldest(stream);
	}
}

/* The first of those that wait is taken. */
static void stream_keep(struct stream *stream, struct stream_event *event, uint64_t at_ms)
{
	stream_unlink(stream, event);
	event->taken_at_ms = at_ms;
	list_append(&stream->kept, &event->link);
	stream->kept_count++;
	stream->kept_bytes += stream_weight(event->msg);
	stream->taken++;
	stream_note(stream, "taken", event->number, clock_wall_ms(), no_text);
}

/* Forgets messages that were kept for longer than replay_age_ms. */
static void stream_forget_old(struct stream *stream)
{
	stream_trim(stream);
	stream_update_rank(stream);
	stream_limit_log(stream);
}

void stream_fini(struct stream *stream)
{
	struct stream_event *event;

	if (stream_is_ended(stream))
		stream_flush(stream);
	if (stream->reader != NULL)
		stream_detach_reader(stream, stream->end_reason);
	stream_log_free(&stream->log);
	task_cancel(&stream->wake);
	for (int kind = 0; kind < STREAM_KINDS; kind++)
		while ((event = stream_first(stream, kind)) != NULL)
			stream_remove(stream, event);
	while (stream->kept_count > 0)
		stream_forget_oldest(stream);
	stream_leave_budget(stream);
	CHECK(stream->count == 0 && stream->bytes == 0 && stream->kept_bytes == 0);
	map_fini(&stream->by_key);
}

/* At most once a second: a flood of messages must not become a flood of log lines. */
static void stream_tell_dropped(struct stream *stream)
{
	uint64_t now_ms = clock_now_ms();

	if (stream->dropped == 0 ||
	    (stream->told_at_ms != 0 && now_ms - stream->told_at_ms < TELL_EVERY_MS))
		return;
	LOG_BY(STREAM_OVERFLOW, stream_caller(stream), LOG_INT("messages", stream->dropped),
	       LOG_INT("bytes", stream->bytes));
	stream->dropped = 0;
	stream->told_at_ms = now_ms;
}

/* A single message may be larger than the bound, or it could never pass. */
static bool stream_holds_too_much(const struct stream *stream)
{
	return stream->bytes > stream->conf->max_bytes && stream->count > 1;
}

/* Drops the oldest messages of the least important kinds until the rest fits. */
static void stream_shed(struct stream *stream)
{
	for (int kind = STREAM_PROGRESS; kind <= STREAM_NOTIFICATION; kind++) {
		struct stream_event *event;

		while (stream->bytes > stream->conf->max_bytes &&
		       (event = stream_first(stream, kind)) != NULL) {
			stream_remove(stream, event);
			counter_add(COUNTER_STREAM_DROPPED);
			stream->dropped++;
		}
	}
	stream_update_rank(stream);
	stream_tell_dropped(stream);
	if (stream_holds_too_much(stream) && stream->reader != NULL)
		stream_detach_reader(stream, REASON_SLOW_READER);
}

/* Serves the reader, which may end the stream. Returns whether it took something or was detached. */
static bool stream_let_read(struct stream *stream)
{
	uint64_t before = stream->reader != NULL ? stream->reader->position : 0;

	if (stream->reader == NULL)
		return false;
	stream_flush(stream);
	return stream->reader == NULL || stream->reader->position != before;
}

static void stream_forget_kept(struct stream *stream)
{
	uint64_t oldest = stream->taken - stream->kept_count + 1;

	if (stream->reader != NULL && stream->reader->position < oldest) {
		if (!stream_let_read(stream))
			stream_detach_reader(stream, REASON_SLOW_READER); /* it needs the message */
		return; /* the callback may have ended the stream */
	}
	stream_forget_oldest(stream);
	stream_update_rank(stream);
	counter_add(COUNTER_STREAM_EVICTED);
}

/* Gives up a message of its rank, or the reader that still needs it. What waits goes only if the reader does not take it now. */
static void stream_give_up(struct stream *stream)
{
	struct list *oldest = stream->kept.next;

	CHECK(stream->rank < STREAM_KINDS);
	if (stream->kept_count > 0 &&
	    container_of(oldest, struct stream_event, link)->kind == stream->rank) {
		stream_forget_kept(stream);
		return;
	}
	if (stream->rank > STREAM_NOTIFICATION) {
		stream_remove(stream, stream_find_oldest(stream));
		/* So that a reader that asks for it is told that it is gone. */
		stream_forget_to(stream, stream->taken + 1);
		counter_add(COUNTER_STREAM_EVICTED);
	} else if (stream_let_read(stream)) {
		return;
	} else {
		stream_remove(stream, stream_first(stream, stream->rank));
		counter_add(COUNTER_STREAM_DROPPED);
		stream->dropped++;
		stream_tell_dropped(stream);
	}
	stream_update_rank(stream);
}

/* Whose turn it is: of the caller that has most, the stream that has been first with the least important kind. NULL: none can. */
static struct stream *stream_budget_first(const struct stream_budget *budget)
{
	if (budget->callers != NULL) {
		struct ranked *most = ranking_first(budget->callers);

		if (most != NULL)
			budget = container_of(most, struct stream_budget, ranked);
	}
	for (int kind = 0; kind < STREAM_KINDS; kind++)
		if (!list_is_empty(&budget->streams[kind]))
			return container_of(budget->streams[kind].next, struct stream_share, link)
				->stream;
	return NULL;
}

static void stream_budget_shed(struct stream_budget *budget)
{
	struct stream *stream;

	while (budget->bytes > budget->max_bytes && (stream = stream_budget_first(budget)) != NULL)
		stream_give_up(stream);
}

void stream_push(struct stream *stream, enum stream_kind kind, uint64_t key, struct msg *msg)
{
	struct stream_budget *budget = stream->budget;
	struct stream_event *event;

	CHECK(kind < STREAM_KINDS);
	if (stream_is_ended(stream))
		return;
	if (key != 0)
		stream_drop(stream, key);
	event = mem_alloc(sizeof(*event));
	event->number = ++stream->last_number;
	event->kind = kind;
	event->key = key;
	event->msg = msg_ref(msg);
	list_append(&stream->events[kind], &event->link);
	if (key != 0)
		map_insert(&stream->by_key, key, event);
	stream->bytes += stream_weight(msg);
	stream->count++;
	stream_count_bytes(stream, (ptrdiff_t)stream_weight(msg));
	stream_update_rank(stream);
	stream_note(stream, "waits", event->number, kind, msg->text);
	if (stream->reader != NULL)
		task_schedule(stream->loop, &stream->wake);
	/* Much may arrive in one turn: the reader is served before anything counts as too much. */
	if (stream_holds_too_much(stream))
		stream_flush(stream);
	if (stream_holds_too_much(stream))
		stream_shed(stream);
	for (; budget != NULL; budget = budget->parent)
		stream_budget_shed(budget);
}

bool stream_drop(struct stream *stream, uint64_t key)
{
	struct stream_event *event = map_find(&stream->by_key, key);

	if (event == NULL)
		return false;
	stream_remove(stream, event);
	stream_update_rank(stream);
	return true;
}

void stream_end(struct stream *stream, enum reason reason)
{
	if (stream_is_ended(stream))
		return;
	CHECK(stream->end_reason == REASON_NONE);
	LOG(STREAM_STATE, LOG_STR("from", "open"), LOG_STR("to", "ended"),
	    LOG_STR("reason", reason_get(reason)->text), LOG_INT("waiting", stream->count),
	    LOG_INT("taken", stream->taken));
	stream->state = STREAM_ENDED;
	stream->end_reason = reason;
	stream_note(stream, "ended", STREAM_LOG_NONE, STREAM_LOG_NONE, no_text);
	stream_update_rank(stream);
	if (stream->reader != NULL)
		task_schedule(stream->loop, &stream->wake);
}

void stream_keep_nothing(struct stream *stream)
{
	stream->keeps_nothing = true;
}

void stream_skip_to(struct stream *stream, uint64_t after)
{
	if (after <= stream->taken || after - stream->taken > UINT32_MAX)
		return;
	if (stream->reader != NULL)
		stream_detach_reader(stream, REASON_TAKEN_OVER);
	while (stream->taken < after && stream->count > 0) {
		struct stream_event *event = stream_find_oldest(stream);

		if (event->kind == STREAM_RESPONSE)
			break;
		stream_keep(stream, event, clock_now_ms());
	}
	if (stream->taken < after)
		stream_forget_to(stream, after);
	stream_forget_old(stream);
}

bool stream_attach(struct stream *stream, struct stream_reader *reader,
		   const struct stream_reader_ops *ops, uint64_t after)
{
	uint64_t behind = after == STREAM_FROM_HERE ? 0 : stream->taken - after;
	struct list *cursor = stream->kept.prev;

	stream_forget_old(stream);
	if (after != STREAM_FROM_HERE && (after > stream->taken || behind > stream->kept_count))
		return false;
	for (uint64_t i = 0; i < behind; i++)
		cursor = cursor->prev;
	if (stream->reader != NULL)
		stream_detach_reader(stream, REASON_TAKEN_OVER);
	CHECK(behind <= stream->kept_count);
	reader->ops = ops;
	reader->position = stream->taken - behind;
	reader->cursor = cursor;
	stream_set_reader(stream, reader);
	if (stream->count > 0 || stream_is_ended(stream) || behind > 0)
		task_schedule(stream->loop, &stream->wake);
	return true;
}

void stream_detach(struct stream_reader *reader)
{
	struct stream *stream = reader->stream;

	if (stream == NULL)
		return;
	CHECK(stream->reader == reader);
	stream_set_reader(stream, NULL);
}

struct msg *stream_take(struct stream_reader *reader, uint64_t *number_r)
{
	struct stream *stream = reader->stream;
	struct stream_event *event;
	struct msg *msg;

	if (stream == NULL || (stream->count == 0 && reader->position == stream->taken))
		return NULL;
	CHECK(reader->position <= stream->taken && stream->reader == reader);
	if (reader->position == stream->taken) {
		event = stream_find_oldest(stream);
		stream_keep(stream, event, clock_now_ms());
	} else {
		event = container_of(reader->cursor->next, struct stream_event, link);
	}
	reader->cursor = &event->link;
	*number_r = ++reader->position;
	msg = msg_ref(event->msg);
	stream_trim(stream);
	stream_update_rank(stream);
	return msg;
}

bool stream_is_ended(const struct stream *stream)
{
	return stream->state == STREAM_ENDED;
}

bool stream_is_drained(const struct stream *stream, uint64_t after)
{
	return stream_is_ended(stream) && stream->count == 0 && after == stream->taken;
}

bool stream_has_reader(const struct stream *stream)
{
	return stream->reader != NULL;
}

uint64_t stream_unread_ms(const struct stream *stream)
{
	return stream->left_at_ms > 0 ? clock_now_ms() - stream->left_at_ms : 0;
}

bool stream_is_full(const struct stream *stream)
{
	return stream->reader == NULL && stream->bytes > stream->conf->max_bytes;
}

/* ---- streams kept for a reconnect ---- */

/* One list per session. Budgets bound the bytes; what follows bounds the number and the age of ended streams. */

#define SWEEPS_PER_AGE 4 /* how often old messages of idle streams are looked for */

static void store_on_sweep(struct timer *timer)
{
	struct store *store = container_of(timer, struct store, sweep);

	for (int kind = 0; kind < STREAM_KINDS; kind++)
		LIST_EACH_SAFE(struct stream_share, share, &store->budget.streams[kind], link)
			stream_forget_old(share->stream);
	timer_start(store->loop, timer, store->conf->stream.replay_age_ms / SWEEPS_PER_AGE + 1);
}

void store_init(struct store *store, struct loop *loop, const struct store_conf *conf)
{
	*store = (struct store){ .loop = loop, .conf = conf };
	list_init(&store->replay_stores);
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

/* Returns a reference to the caller with this number (session/principal). */
static struct store_caller *store_get_caller(struct store *store, uint64_t number)
{
	struct store_caller *caller = map_find(&store->callers, number);

	if (caller == NULL) {
		caller = mem_zalloc(sizeof(*caller));
		caller->store = store;
		caller->number = number;
		stream_budget_init(&caller->budget, SIZE_MAX, &store->budget);
		stream_log_owner_init(&caller->logs);
		map_insert(&store->callers, number, caller);
	}
	caller->refs++;
	return caller;
}

static void store_caller_unref(struct store_caller **caller)
{
	struct store_caller *c = *caller;

	*caller = NULL;
	CHECK(c == NULL || c->refs > 0);
	if (c == NULL || --c->refs > 0)
		return;
	CHECK(c->budget.bytes == 0 && c->budget.ranked.class == 0);
	CHECK(list_is_empty(&c->logs.logs));
	map_remove(&c->store->callers, c->number);
	free(c);
}

void replay_store_init(struct replay_store *replay_store, struct store *store, uint64_t caller)
{
	*replay_store = (struct replay_store){ .store = store };
	list_append(&store->replay_stores, &replay_store->link);
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
	LIST_EACH(struct expired_stream, expired, &replay_store->expired, link)
		if (expired->number == number)
			return slice_of(expired->request_id, expired->request_id_length);
	return no_text;
}

/* Removes the stream from the replay store, which drops its reference. */
static void stored_stream_remove(struct stored_stream *stored)
{
	struct replay_store *replay_store = stored->replay_store;

	CHECK(replay_store != NULL);
	stream_log_free(&stored->stream.log); /* nobody can come back to it */
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
	LIST_DRAIN(struct stored_stream, stream, &replay_store->streams, link)
		stored_stream_remove(stream);
	while (!list_is_empty(&replay_store->expired))
		replay_store_forget_expired(replay_store);
	CHECK(replay_store->finished_count == 0 && replay_store->expired_count == 0);
	list_remove(&replay_store->link);
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

static void replay_store_renew(struct replay_store *replay_store, uint64_t was_age_ms)
{
	const struct store *store = replay_store->store;
	uint64_t now_ms = clock_now_ms();

	LIST_EACH(struct stored_stream, stored, &replay_store->streams, link) {
		struct timer *expiry = &stored->expiry;
		uint64_t left_ms = expiry->due_ms > now_ms ? expiry->due_ms - now_ms : 0;

		/* Each time it is a little later: not for nothing. */
		if (timer_is_running(expiry) && store->conf->stream.replay_age_ms != was_age_ms)
			timer_continue(store->loop, expiry, store->conf->stream.replay_age_ms,
				       left_ms < was_age_ms ? was_age_ms - left_ms : 0);
	}
	replay_store->budget.max_bytes = store->conf->session_bytes;
	stream_budget_shed(&replay_store->budget);
}

void store_renew(struct store *store, uint64_t was_age_ms)
{
	struct list to_do;

	store->budget.max_bytes = store->conf->total_bytes;
	store_on_sweep(&store->sweep);
	/* What a session has to give up may end it, and others with it. */
	list_init(&to_do);
	list_splice(&to_do, &store->replay_stores);
	LIST_DRAIN(struct replay_store, first, &to_do, link) {
		list_move(&store->replay_stores, &first->link);
		replay_store_renew(first, was_age_ms);
	}
	stream_budget_shed(&store->budget);
}

/* Takes ownership of the caller's reference. */
static struct stored_stream *stored_stream_make(struct store_caller *caller,
						struct stream_budget *budget,
						struct slice request_id)
{
	struct stored_stream *stored = mem_alloc(sizeof(*stored) + request_id.n);

	*stored = (struct stored_stream){ .caller = caller, .refs = 1 };
	stream_init(&stored->stream, caller->store->loop, &caller->store->conf->stream, budget);
	timer_init(&stored->expiry, stored_stream_on_expiry);
	stored->request_id_length = request_id.n;
	if (request_id.n > 0)
		memcpy(stored->request_id, request_id.p, request_id.n);
	return stored;
}

struct stored_stream *stored_stream_new(struct store *store, uint64_t caller)
{
	struct store_caller *of = store_get_caller(store, caller);
	struct stored_stream *stored = stored_stream_make(of, &of->budget, slice_of(NULL, 0));

	stream_keep_nothing(&stored->stream);
	return stored;
}

static struct slice stored_stream_request_id(const struct stored_stream *stored)
{
	return slice_of(stored->request_id, stored->request_id_length);
}

static void stored_stream_log(struct stored_stream *stored)
{
	const struct replay_store *replay_store = stored->replay_store;

	stream_start_log(&stored->stream, replay_store, stored->number, stored->is_known,
			 stored_stream_request_id(stored));
}

static struct stored_stream *open_stored(struct replay_store *replay_store, struct slice request_id,
					 bool is_known)
{
	struct stored_stream *stored =
		stored_stream_make(replay_store->caller, &replay_store->budget, request_id);

	stored->caller->refs++;
	stored->replay_store = replay_store;
	stored->refs++; /* the replay store's */
	stored->number = ++replay_store->last_number;
	stored->is_known = is_known;
	list_append(&replay_store->streams, &stored->link);
	return stored;
}

struct stored_stream *replay_store_open(struct replay_store *replay_store, struct slice request_id,
					bool is_known)
{
	struct stored_stream *stored = open_stored(replay_store, request_id, is_known);

	if (replay_store->name_length > 0)
		stored_stream_log(stored);
	return stored;
}

static struct stored_stream *find_stored(const struct replay_store *replay_store, uint64_t number)
{
	LIST_EACH(struct stored_stream, stored, &replay_store->streams, link)
		if (stored->number == number)
			return stored;
	return NULL;
}

struct stored_stream *replay_store_find(const struct replay_store *replay_store, uint64_t number)
{
	struct stored_stream *stored = find_stored(replay_store, number);

	if (stored != NULL)
		stored->refs++;
	return stored;
}

/* The stream that ended first of those without waiting messages, or, if all have some, of all. */
static struct stored_stream *replay_store_find_least(const struct replay_store *replay_store)
{
	struct stored_stream *first = NULL;

	LIST_EACH(struct stored_stream, stored, &replay_store->streams, link) {
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
	return stored->number > 0 && (stored->is_known || stored->stream.taken > 0);
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
	list_move(&replay_store->streams, &stored->link);
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

/* ---- for another gateway ---- */

static void set_name(struct replay_store *replay_store, struct slice name)
{
	CHECK(name.n > 0 && name.n <= sizeof(replay_store->name));
	memcpy(replay_store->name, name.p, name.n);
	replay_store->name_length = name.n;
}

void replay_store_log(struct replay_store *replay_store, struct stream *own, struct slice name)
{
	/* It was read, but for its own stream: no number of that is given twice. */
	if (replay_store->name_length > 0 && own->log == NULL && own->taken == 0)
		own->taken = replay_store->last_number;
	set_name(replay_store, name);
	own->logged_by = own->log == NULL ? replay_store : NULL;
	if (own->log == NULL && own->count + own->kept_count > 0)
		stream_start_log(own, replay_store, 0, true, no_text);
	LIST_EACH(struct stored_stream, stored, &replay_store->streams, link)
		if (stored->stream.log == NULL)
			stored_stream_log(stored);
}

/* A number, with the space behind it. */
static bool cut_number(struct slice *line, uint64_t max, uint64_t *number_r)
{
	struct slice word = slice_cut(line, ' ');

	return text_parse_u64(word, number_r) == 0 && *number_r <= max;
}

/* The stream that a log is of. NULL: none, or one that is there. */
static struct stream *open_logged(struct replay_store *replay_store, struct stream *own,
				  struct slice line, struct stored_stream **stored_r)
{
	uint64_t epoch, number, is_known;

	slice_cut(&line, ' ');
	slice_cut(&line, ' ');
	if (!cut_number(&line, UINT32_MAX, &epoch) ||
	    !cut_number(&line, clock_wall_ms() + AHEAD_MS, &number) ||
	    !cut_number(&line, 1, &is_known) || find_stored(replay_store, number) != NULL ||
	    line.n > REQUEST_ID_MAX ||
	    (replay_store->name_length > 0 && epoch != replay_store->epoch))
		return NULL;
	if (number == 0 && (own->log != NULL || own->last_number > 0 || own->taken > 0))
		return NULL;
	replay_store->epoch = (uint32_t)epoch;
	if (number == 0)
		return own;
	*stored_r = open_stored(replay_store, line, is_known != 0);
	(*stored_r)->number = number;
	if (replay_store->last_number < number)
		replay_store->last_number = number;
	return &(*stored_r)->stream;
}

static void read_taken(struct stream *stream, uint64_t sequence, uint64_t wall_ms)
{
	struct stream_event *event = stream->count > 0 ? stream_find_oldest(stream) : NULL;
	uint64_t now_ms = clock_now_ms(), now_wall_ms = clock_wall_ms();
	uint64_t age_ms = now_wall_ms > wall_ms ? now_wall_ms - wall_ms : 0;

	if (event == NULL || event->number != sequence) { /* the bounds here are other ones */
		stream_forget_to(stream, stream->taken + 1);
		return;
	}
	stream_keep(stream, event, age_ms < now_ms ? now_ms - age_ms : 0);
	stream_trim(stream);
	stream_update_rank(stream);
}

static void read_message(struct stream *stream, uint64_t sequence, uint64_t kind, struct slice text)
{
	at_end(msg_unref) struct msg *msg = msg_new(text);

	stream->last_number = sequence - 1;
	stream_push(stream, (enum stream_kind)kind, sequence, msg);
}

/* The sequence is the key of what waits, until all is read. Returns whether the stream has ended. */
static bool read_line(struct stream *stream, struct slice line)
{
	struct slice word = slice_cut(&line, ' ');
	uint64_t number, other;

	if (slice_is_equal(word, SLICE_LIT("ended")))
		return true;
	if (!cut_number(&line, INT64_MAX, &number))
		return false;
	if (slice_is_equal(word, SLICE_LIT("first")) && number > stream->taken)
		stream_forget_to(stream, number);
	else if (slice_is_equal(word, SLICE_LIT("gone")))
		stream_drop(stream, number);
	else if (!cut_number(&line, INT64_MAX, &other))
		return false;
	else if (slice_is_equal(word, SLICE_LIT("taken")))
		read_taken(stream, number, other);
	else if (slice_is_equal(word, SLICE_LIT("waits")) && number > stream->last_number &&
		 other < STREAM_KINDS && line.n > 0)
		read_message(stream, number, other, line);
	else if (slice_is_equal(word, SLICE_LIT("kept")) && stream->count == 0 &&
		 number < STREAM_KINDS && line.n > 0) {
		read_message(stream, stream->last_number + 1, number, line);
		read_taken(stream, stream->last_number, other);
	}
	return false;
}

/* What a server asked can only be answered by way of the gateway that has passed it on. */
static void settle_waiting(struct stream *stream)
{
	LIST_DRAIN(struct stream_event, event, &stream->events[STREAM_REQUEST], link)
		stream_remove(stream, event);
	map_fini(&stream->by_key);
	for (int kind = 0; kind < STREAM_KINDS; kind++)
		LIST_EACH(struct stream_event, event, &stream->events[kind], link)
			event->key = 0;
	stream_update_rank(stream);
}

/* The call has gone with its gateway. FRONT-RES-11 */
static void answer_lost_call(struct stored_stream *stored)
{
	const struct reason_row *reason = reason_get(REASON_GATEWAY_LOST);
	at_end(buf_fini) struct buf text = { 0 }, data = { 0 };
	at_end(msg_unref) struct msg *msg = NULL;

	if (stored->request_id_length == 0)
		return;
	buf_printf(&data, "{\"reason\":\"%s\"}", reason->data);
	write_error(&text, stored_stream_request_id(stored), reason->rpc_code,
		    slice_str(reason->message), buf_slice(&data));
	msg = msg_new(buf_slice(&text));
	stream_push(&stored->stream, STREAM_RESPONSE, 0, msg);
}

void replay_store_read(struct replay_store *replay_store, struct stream *own, struct slice text)
{
	struct slice name = stream_log_name(text);
	struct stored_stream *stored = NULL;
	bool is_ended = false;
	bool is_named = name.n > 0 && name.n <= sizeof(replay_store->name) &&
			memchr(text.p, '\r', text.n) == NULL;
	struct slice line = slice_cut(&text, '\n');
	struct stream *stream = is_named ? open_logged(replay_store, own, line, &stored) : NULL;

	if (stream == NULL)
		return;
	CHECK(stream->reader == NULL && stream->log == NULL);
	while (text.n > 0) /* what had ended may have been taken later */
		is_ended |= read_line(stream, slice_cut(&text, '\n'));
	settle_waiting(stream);
	set_name(replay_store, name);
	/* Behind all numbers that the gateway before may have given. */
	if (replay_store->last_number < clock_wall_ms())
		replay_store->last_number = clock_wall_ms();
	if (stored == NULL) {
		stream_start_log(own, replay_store, 0, true, no_text);
		return;
	}
	stored_stream_log(stored);
	if (!is_ended)
		answer_lost_call(stored);
	stored_stream_finish(stored, REASON_DONE);
	stored_stream_unref(&stored);
}
