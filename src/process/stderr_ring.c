/* SPDX-License-Identifier: Apache-2.0 */
/* A list of copied lines. Readers are mostly near its end, so the search starts there. */
#include "process/stderr_ring.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

void stderr_ring_init(struct stderr_ring *stderr_ring)
{
	*stderr_ring = (struct stderr_ring){ .bytes = 0 };
	list_init(&stderr_ring->lines);
	list_init(&stderr_ring->readers);
}

static size_t cost_of(const struct stderr_line *line)
{
	return sizeof(*line) + line->length;
}

static void stderr_ring_drop_oldest(struct stderr_ring *stderr_ring)
{
	struct stderr_line *line = container_of(stderr_ring->lines.next, struct stderr_line, link);

	CHECK(stderr_ring->bytes >= cost_of(line));
	list_remove(&line->link);
	stderr_ring->bytes -= cost_of(line);
	free(line);
}

void stderr_ring_fini(struct stderr_ring *stderr_ring)
{
	while (!list_is_empty(&stderr_ring->lines))
		stderr_ring_drop_oldest(stderr_ring);
	CHECK(stderr_ring->bytes == 0);
	LIST_DRAIN(struct stderr_ring_reader, reader, &stderr_ring->readers, link) {
		stderr_ring_detach(reader);
		reader->on_end(reader);
	}
}

void stderr_ring_add(struct stderr_ring *stderr_ring, int pid, struct slice text)
{
	struct stderr_line *line = mem_alloc(sizeof(*line) + text.n);

	CHECK(text.n > 0 && sizeof(*line) + text.n <= STDERR_RING_BYTES_MAX);
	line->number = ++stderr_ring->last_number;
	line->at_ms = clock_wall_ms();
	line->pid = pid;
	line->length = text.n;
	memcpy(line->text, text.p, text.n);
	list_append(&stderr_ring->lines, &line->link);
	stderr_ring->bytes += cost_of(line);
	while (stderr_ring->bytes > STDERR_RING_BYTES_MAX)
		stderr_ring_drop_oldest(stderr_ring);
	LIST_EACH_SAFE(struct stderr_ring_reader, reader, &stderr_ring->readers, link)
		reader->on_line(reader);
}

const struct stderr_line *stderr_ring_next(const struct stderr_ring *stderr_ring, uint64_t after)
{
	const struct stderr_line *found = NULL;

	for (struct list *node = stderr_ring->lines.prev; node != &stderr_ring->lines;
	     node = node->prev) {
		const struct stderr_line *line = container_of(node, struct stderr_line, link);

		if (line->number <= after)
			break;
		found = line;
	}
	return found;
}

void stderr_ring_attach(struct stderr_ring *stderr_ring, struct stderr_ring_reader *reader)
{
	CHECK(reader->on_line != NULL && reader->on_end != NULL);
	list_append(&stderr_ring->readers, &reader->link);
}

void stderr_ring_detach(struct stderr_ring_reader *reader)
{
	list_remove(&reader->link);
}
