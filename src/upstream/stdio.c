/* SPDX-License-Identifier: Apache-2.0 */
/* Messages are copied into the child's queue; large ones are moved there. */
#include "upstream/stdio.h"

#include <string.h>

#include "base/mem.h"
#include "obs/log.h"
#include "process/child.h"
#include "upstream/lines.h"
#include "upstream/long_line.h"
#include "upstream/upstream.h"
#include "upstream/upstream_ops.h"

#define MOVE_BYTES (16 * 1024)

struct stdio {
	struct upstream upstream;
	struct child child;
	struct long_line long_line;
};

static struct stdio *stdio_of(struct upstream *upstream)
{
	return container_of(upstream, struct stdio, upstream);
}

struct upstream *stdio_of_child(struct child *child)
{
	return &container_of(child, struct stdio, child)->upstream;
}

/* ---- what the process does ---- */

static void stdio_on_started(struct child *child)
{
	upstream_on_started(stdio_of_child(child));
}

static void stdio_on_line(struct child *child, struct slice line)
{
	struct upstream *upstream = stdio_of_child(child);

	if (upstream->state == UPSTREAM_CLOSED)
		return;
	if (upstream->setup == NULL) {
		child_note_garbage(child, line, "nothing was asked yet");
		return;
	}
	upstream_on_sign_of_life(upstream);
	log_payload("from_server", upstream->server->conf.name, &line, 1);
	lines_take(upstream, line);
}

static void on_long_response(struct slice id, void *arg)
{
	struct upstream *upstream = arg;
	struct buf text = { 0 };

	if (memchr(id.p, '\\', id.n) != NULL)
		return; /* no id of ours, and nobody has looked at its escapes */
	buf_append_str(&text, "{\"id\":");
	buf_append_slice(&text, id);
	buf_append_char(&text, '}');
	if (upstream->state != UPSTREAM_CLOSED)
		upstream_on_malformed(upstream, scan_member(buf_slice(&text), SLICE_LIT("id")),
				      REASON_CHILD_LINE_TOO_LONG);
	buf_fini(&text);
}

static void stdio_on_long_line(struct child *child, struct slice part, bool is_end)
{
	struct upstream *upstream = stdio_of_child(child);
	struct long_line *line = &stdio_of(upstream)->long_line;

	if (upstream->state == UPSTREAM_CLOSED)
		return;
	upstream_on_sign_of_life(upstream);
	if (line->depth == 0 && part.n > 0)
		child_note_garbage(child, part, "it is longer than limits.response allows");
	long_line_take(line, part, is_end, on_long_response, upstream);
	if (is_end)
		*line = (struct long_line){ .depth = 0 };
}

static void stdio_on_lost(struct child *child, enum reason reason)
{
	upstream_on_lost(stdio_of_child(child), reason);
}

static void stdio_on_gone(struct child *child)
{
	struct upstream *upstream = stdio_of_child(child);

	upstream_on_gone(upstream);
	loop_defer_free(upstream->shared->loop, stdio_of(upstream));
}

static const struct child_ops stdio_child_ops = {
	.on_started = stdio_on_started,
	.on_line = stdio_on_line,
	.on_long_line = stdio_on_long_line,
	.on_lost = stdio_on_lost,
	.on_gone = stdio_on_gone,
};

/* ---- operations ---- */

static void stdio_start(struct upstream *upstream, int claims_fd)
{
	struct stdio *stdio = stdio_of(upstream);

	CHECK(upstream->child == NULL);
	upstream->child = &stdio->child;
	child_start(&stdio->child, upstream->server, claims_fd, &stdio_child_ops);
	stdio->child.is_disposable = upstream->is_disposable;
}

static bool stdio_has_room(const struct upstream *upstream, size_t size)
{
	return child_has_room(upstream->child, size);
}

static void stdio_write(struct upstream *upstream, struct buf *message)
{
	const struct slice text = buf_slice(message);

	CHECK(message->len > 0);
	log_payload("to_server", upstream->server->conf.name, &text, 1);
	buf_append_char(message, '\n');
	if (message->len < MOVE_BYTES)
		child_write(upstream->child, buf_slice(message));
	else
		child_write_take(upstream->child, message);
}

static void stdio_note_failure(struct upstream *upstream, const char *error)
{
	child_note_failure(upstream->child, error);
}

static void stdio_stop(struct upstream *upstream, enum reason reason, bool is_at_once)
{
	if (upstream->child == NULL)
		loop_defer_free(upstream->shared->loop, stdio_of(upstream)); /* never started */
	else if (is_at_once)
		child_kill(upstream->child, reason);
	else
		child_stop(upstream->child, reason);
}

static const struct upstream_ops stdio_ops = {
	.start = stdio_start,
	.has_room = stdio_has_room,
	.write = stdio_write,
	.note_failure = stdio_note_failure,
	.stop = stdio_stop,
};

struct upstream *stdio_new(struct upstream_shared *shared, struct server *server)
{
	struct stdio *stdio = mem_zalloc(sizeof(*stdio));

	upstream_init(&stdio->upstream, &stdio_ops, shared, server);
	return &stdio->upstream;
}
