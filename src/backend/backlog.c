/* SPDX-License-Identifier: Apache-2.0 */
/* A list of copies. Readers are mostly at its end: they seek from there. */
#include "backend/backlog.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

void backlog_init(struct backlog *backlog)
{
	*backlog = (struct backlog){ .bytes = 0 };
	list_init(&backlog->lines);
	list_init(&backlog->readers);
}

static size_t cost_of(const struct backlog_line *line)
{
	return sizeof(*line) + line->length;
}

static void backlog_drop_oldest(struct backlog *backlog)
{
	struct backlog_line *line = container_of(backlog->lines.next, struct backlog_line, link);

	list_remove(&line->link);
	backlog->bytes -= cost_of(line);
	free(line);
}

void backlog_fini(struct backlog *backlog)
{
	while (!list_is_empty(&backlog->lines))
		backlog_drop_oldest(backlog);
	list_remove(&backlog->readers);
}

void backlog_add(struct backlog *backlog, int pid, struct slice text)
{
	struct backlog_line *line = mem_alloc(sizeof(*line) + text.n);

	line->number = ++backlog->last_number;
	line->at_ms = clock_wall_ms();
	line->pid = pid;
	line->length = text.n;
	memcpy(line->text, text.p, text.n);
	list_append(&backlog->lines, &line->link);
	backlog->bytes += cost_of(line);
	while (backlog->bytes > BACKLOG_BYTES_MAX)
		backlog_drop_oldest(backlog);
	LIST_FOREACH_SAFE(node, &backlog->readers) {
		struct backlog_reader *reader = container_of(node, struct backlog_reader, link);

		reader->on_line(reader);
	}
}

const struct backlog_line *backlog_next(const struct backlog *backlog, uint64_t after)
{
	const struct backlog_line *found = NULL;

	for (struct list *node = backlog->lines.prev; node != &backlog->lines; node = node->prev) {
		const struct backlog_line *line = container_of(node, struct backlog_line, link);

		if (line->number <= after)
			break;
		found = line;
	}
	return found;
}

void backlog_attach(struct backlog *backlog, struct backlog_reader *reader)
{
	list_append(&backlog->readers, &reader->link);
}

void backlog_detach(struct backlog_reader *reader)
{
	list_remove(&reader->link);
}
