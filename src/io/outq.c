/* SPDX-License-Identifier: Apache-2.0 */
/* A list of segments, of which only the last one grows. */
#include "io/outq.h"

#include <stdlib.h>

#include "base/mem.h"

#define SEGMENT_BYTES (16 * 1024 - 64)
#define FIRST_BYTES (1024 - sizeof(struct segment)) /* served from malloc's per-thread cache */
#define PARTS_MAX 64
#define COPY_BYTES 4096 /* smaller pieces are copied even where the buffer could be taken over */

struct segment {
	struct list link;
	char *data; /* the waiting bytes are data[begin … end) */
	size_t begin;
	size_t end;
	size_t size; /* of data; the bytes after `end` are free */
	char *owned; /* data's allocation; NULL if it follows this struct */
	char bytes[];
};

void outq_init(struct outq *queue)
{
	list_init(&queue->segments);
	queue->bytes = 0;
}

static struct segment *segment_new(struct outq *queue, size_t size)
{
	struct segment *segment = mem_alloc(sizeof(*segment) + size);

	*segment = (struct segment){ .data = segment->bytes, .size = size };
	list_append(&queue->segments, &segment->link);
	return segment;
}

static void segment_free(struct segment *segment)
{
	list_remove(&segment->link);
	free(segment->owned);
	free(segment);
}

void outq_append(struct outq *queue, struct slice bytes)
{
	CHECK(list_is_empty(&queue->segments) == (queue->bytes == 0));
	queue->bytes += bytes.n;
	while (bytes.n > 0) {
		bool is_first = list_is_empty(&queue->segments);
		struct segment *tail = container_of(queue->segments.prev, struct segment, link);
		size_t n;

		/*
		 * The first piece of a queue gets a segment of its exact size: idle streams queue
		 * little.
		 */
		if (is_first || tail->end == tail->size)
			tail = segment_new(queue, is_first && bytes.n < FIRST_BYTES ?
							  FIRST_BYTES :
							  SEGMENT_BYTES);
		n = tail->size - tail->end < bytes.n ? tail->size - tail->end : bytes.n;
		memcpy(tail->data + tail->end, bytes.p, n);
		tail->end += n;
		bytes = slice_of(bytes.p + n, bytes.n - n);
	}
}

void outq_take(struct outq *queue, struct buf *buf, size_t offset)
{
	struct segment *segment;

	CHECK(offset <= buf->len);
	if (buf->len - offset < COPY_BYTES) {
		if (buf->len > offset)
			outq_append(queue, slice_of(buf->data + offset, buf->len - offset));
		buf_fini(buf);
		return;
	}
	segment = segment_new(queue, 0);
	segment->data = buf->data;
	segment->owned = buf->data;
	segment->begin = offset;
	segment->end = buf->len;
	segment->size = buf->len;
	queue->bytes += buf->len - offset;
	*buf = (struct buf){ NULL, 0, 0 };
}

/* Fills parts with at most `max` bytes; returns the number of parts. */
static int outq_gather(const struct outq *queue, size_t max, struct iovec *parts)
{
	int count = 0;

	LIST_EACH(struct segment, segment, &queue->segments, link) {
		size_t size = segment->end - segment->begin;

		size = size < max ? size : max;
		parts[count++] = (struct iovec){ segment->data + segment->begin, size };
		max -= size;
		if (count == PARTS_MAX || max == 0)
			break;
	}
	return count;
}

static void outq_drop(struct outq *queue, size_t size)
{
	CHECK(size <= queue->bytes);
	queue->bytes -= size;
	LIST_DRAIN(struct segment, first, &queue->segments, link) {
		size_t held = first->end - first->begin;

		if (size < held) {
			first->begin += size;
			return;
		}
		size -= held;
		segment_free(first);
	}
	CHECK(size == 0);
}

ssize_t outq_flush(struct outq *queue, struct wire *wire)
{
	struct iovec parts[PARTS_MAX];
	size_t total = 0;

	while (queue->bytes > 0 && total < OUTQ_TURN_BYTES) {
		int count = outq_gather(queue, OUTQ_TURN_BYTES - total, parts);
		ssize_t n = wire_write(wire, parts, count);

		CHECK(count > 0);
		if (n == WIRE_BROKEN)
			return WIRE_BROKEN;
		if (n == 0)
			break;
		outq_drop(queue, (size_t)n);
		total += (size_t)n;
	}
	return (ssize_t)total;
}

void outq_fini(struct outq *queue)
{
	LIST_DRAIN(struct segment, segment, &queue->segments, link)
		segment_free(segment);
	queue->bytes = 0;
}
