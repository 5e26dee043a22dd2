/* SPDX-License-Identifier: Apache-2.0 */
/* A list of references to messages. */
#include "session/stream.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "obs/counters.h"
#include "obs/log.h"

#define TELL_EVERY_MS 1000

struct stream_event {
	struct list link;
	enum stream_kind kind;
	uint64_t key;
	struct msg *msg;
};

static void stream_remove(struct stream *stream, struct stream_event *event)
{
	list_remove(&event->link);
	stream->bytes -= event->msg->text.n;
	stream->waiting[event->kind]--;
	msg_unref(&event->msg);
	free(event);
}

static void stream_detach_reader(struct stream *stream, enum reason reason)
{
	struct stream_reader *reader = stream->reader;

	stream->reader = NULL;
	reader->stream = NULL;
	reader->ops->on_detached(reader, reason);
}

static void stream_on_wake(struct task *task)
{
	struct stream *stream = container_of(task, struct stream, wake);

	if (stream->reader != NULL)
		stream->reader->ops->on_wake(stream->reader);
}

void stream_init(struct stream *stream, struct loop *loop, const struct stream_conf *conf)
{
	*stream = (struct stream){ .loop = loop, .conf = conf };
	list_init(&stream->events);
	task_init(&stream->wake, stream_on_wake);
}

void stream_fini(struct stream *stream)
{
	if (stream->reader != NULL)
		stream_detach_reader(stream, stream->end_reason);
	task_cancel(&stream->wake);
	while (!list_is_empty(&stream->events))
		stream_remove(stream, container_of(stream->events.next, struct stream_event, link));
}

static struct stream_event *stream_find(const struct stream *stream, uint64_t key)
{
	LIST_FOREACH(node, &stream->events) {
		struct stream_event *event = container_of(node, struct stream_event, link);

		if (event->key == key)
			return event;
	}
	return NULL;
}

/* Once a second is enough: a flood of messages must not become one of lines. */
static void stream_tell_dropped(struct stream *stream)
{
	uint64_t now_ms = clock_now_ms();

	if (stream->dropped == 0 || (stream->told_at_ms != 0 && now_ms - stream->told_at_ms < TELL_EVERY_MS))
		return;
	LOG(STREAM_OVERFLOW, LOG_INT("messages", stream->dropped), LOG_INT("bytes", stream->bytes));
	stream->dropped = 0;
	stream->told_at_ms = now_ms;
}

/* Drops waiting messages of one kind, oldest first, until the rest fits. */
static void stream_shed_kind(struct stream *stream, enum stream_kind kind)
{
	LIST_FOREACH_SAFE(node, &stream->events) {
		struct stream_event *event = container_of(node, struct stream_event, link);

		if (stream->bytes <= stream->conf->max_bytes || stream->waiting[kind] == 0)
			return;
		if (event->kind != kind)
			continue;
		stream_remove(stream, event);
		counter_add(COUNTER_STREAM_DROPPED);
		stream->dropped++;
	}
}

static void stream_shed(struct stream *stream)
{
	for (enum stream_kind kind = STREAM_PROGRESS; kind <= STREAM_NEWS; kind++) {
		if (stream->bytes > stream->conf->max_bytes)
			stream_shed_kind(stream, kind);
	}
	stream_tell_dropped(stream);
	if (stream->bytes > stream->conf->max_bytes && stream->reader != NULL)
		stream_detach_reader(stream, REASON_SLOW_READER);
}

void stream_push(struct stream *stream, enum stream_kind kind, uint64_t key, struct msg *msg)
{
	struct stream_event *event = kind == STREAM_NEWS && key != 0 ? stream_find(stream, key) : NULL;

	if (stream->is_ended)
		return;
	if (event != NULL)
		stream_remove(stream, event);
	event = mem_alloc(sizeof(*event));
	event->kind = kind;
	event->key = key;
	event->msg = msg_ref(msg);
	list_append(&stream->events, &event->link);
	stream->bytes += msg->text.n;
	stream->waiting[kind]++;
	if (stream->reader != NULL)
		task_schedule(stream->loop, &stream->wake);
	/* One message alone may be larger than the bound: it is taken, or nothing could pass. */
	if (stream->bytes > stream->conf->max_bytes && stream->events.next != &event->link)
		stream_shed(stream);
}

void stream_drop(struct stream *stream, uint64_t key)
{
	struct stream_event *event = stream_find(stream, key);

	if (event != NULL)
		stream_remove(stream, event);
}

void stream_end(struct stream *stream, enum reason reason)
{
	if (stream->is_ended)
		return;
	stream->is_ended = true;
	stream->end_reason = reason;
	if (stream->reader != NULL)
		task_schedule(stream->loop, &stream->wake);
}

void stream_attach(struct stream *stream, struct stream_reader *reader, const struct stream_reader_ops *ops)
{
	if (stream->reader != NULL)
		stream_detach_reader(stream, REASON_TAKEN_OVER);
	reader->ops = ops;
	reader->stream = stream;
	stream->reader = reader;
	if (!list_is_empty(&stream->events) || stream->is_ended)
		task_schedule(stream->loop, &stream->wake);
}

void stream_detach(struct stream_reader *reader)
{
	if (reader->stream != NULL)
		reader->stream->reader = NULL;
	reader->stream = NULL;
}

struct msg *stream_take(struct stream_reader *reader)
{
	struct stream *stream = reader->stream;
	struct stream_event *event;
	struct msg *msg;

	if (stream == NULL || list_is_empty(&stream->events))
		return NULL;
	event = container_of(stream->events.next, struct stream_event, link);
	msg = msg_ref(event->msg);
	stream_remove(stream, event);
	return msg;
}

bool stream_is_drained(const struct stream *stream)
{
	return stream->is_ended && list_is_empty(&stream->events);
}

bool stream_has_reader(const struct stream *stream)
{
	return stream->reader != NULL;
}
