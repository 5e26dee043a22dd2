/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipes and the process of one child. Its stdout is always read, whatever clients do; its stdin
 * is written once per turn; its stderr is logged line by line, at a bounded rate, and never
 * interpreted.
 *
 * The output and the process end in either order. The child is lost when its output ends, or
 * DRAIN_MS after the process has exited; it is gone once the process has been reaped and its output
 * has ended.
 */
#include "process/child.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "obs/counters.h"
#include "obs/log.h"

#define LONG_LINES_MAX 16 /* a longer line, in limits.response, is taken for one without an end */
#define READS_PER_TURN 4
#define STDERR_LINE_BYTES (8 * 1024)
#define STDERR_READ_BYTES (16 * 1024) /* READS_PER_TURN of them empty a full pipe */
#define STDERR_LINES_PER_SECOND 50
#define LAST_WORDS_BYTES 2048
#define WORDS_BAR " | "
#define LAST_WORDS_LOGGED 700
#define GARBAGE_LOGGED 200
#define FAILURE_BYTES 512
#define OWN_BYTES_MAX (16 * 1024 * 1024) /* of the stdin queue, for what no client sent */
#define DRAIN_MS 500 /* how long to read on after the exit if a grandchild keeps stdout open */

#define TO(state) (1u << CHILD_##state)
static const struct state_row states[] = {
	[CHILD_STARTING] = { "starting", TO(RUNNING) | TO(STOPPING) | TO(GONE) },
	[CHILD_RUNNING] = { "running", TO(STOPPING) | TO(GONE) },
	[CHILD_STOPPING] = { "stopping", TO(GONE) },
	[CHILD_GONE] = { "gone", 0 },
};
#undef TO

static void child_set_state(struct child *child, enum child_state state)
{
	CHECK(states[child->state].next & 1u << state);
	LOG(CHILD_STATE, LOG_STR("server", child->server->conf.name), LOG_INT("pid", child->pid),
	    LOG_STR("from", states[child->state].name), LOG_STR("to", states[state].name));
	child->state = state;
}

/* ---- stderr ---- */

static struct slice line_strip(struct slice line)
{
	while (line.n > 0 && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' ' ||
			      line.p[line.n - 1] == '\t'))
		line.n--;
	if (slice_has_prefix(line, SLICE_LIT("\xEF\xBB\xBF")))
		line = slice_of(line.p + 3, line.n - 3);
	while (line.n > 0 && (line.p[0] == '\r' || line.p[0] == ' ' || line.p[0] == '\t'))
		line = slice_of(line.p + 1, line.n - 1);
	return line;
}

static bool child_may_log(struct child *child)
{
	uint64_t second = clock_now_ms() / 1000;

	if (child->stderr_second != second) {
		if (child->stderr_lines > STDERR_LINES_PER_SECOND)
			LOG_BY(CHILD_STDERR_SKIPPED, (uintptr_t)child->server,
			       LOG_STR("server", child->server->conf.name),
			       LOG_INT("pid", child->pid),
			       LOG_INT("lines", child->stderr_lines - STDERR_LINES_PER_SECOND));
		child->stderr_second = second;
		child->stderr_lines = 0;
	}
	return ++child->stderr_lines <= STDERR_LINES_PER_SECOND;
}

/*
 * Of the last words the end matters most: if they are too long, the beginning is dropped.
 * BACK-PROC-01
 */
static void child_keep_words(struct child *child, struct slice words)
{
	struct buf *kept = &child->last_words;

	if (words.n > LAST_WORDS_LOGGED)
		words.n = LAST_WORDS_LOGGED;
	if (kept->len + words.n > LAST_WORDS_BYTES)
		buf_consume(kept, kept->len - LAST_WORDS_LOGGED);
	if (kept->len > 0)
		buf_append_str(kept, WORDS_BAR);
	buf_append_slice(kept, words);
}

struct slice child_last_words(const struct child *child)
{
	struct slice words = buf_slice(&child->last_words);
	const char *end = words.p + words.n;
	const char *bar;

	if (words.n <= LAST_WORDS_LOGGED)
		return words;
	words = slice_between(end - LAST_WORDS_LOGGED, end);
	bar = memmem(words.p, words.n, WORDS_BAR, strlen(WORDS_BAR));
	return bar != NULL ? slice_between(bar + strlen(WORDS_BAR), end) : words;
}

static void child_set_away(struct child *child, bool is_away)
{
	if (child->is_away == is_away)
		return;
	CHECK(is_away || child->server->away > 0);
	child->is_away = is_away;
	child->server->away += is_away ? 1 : (size_t)-1;
}

/* The server works: what its other processes last heard of it is out of date. */
static void child_set_back(struct server *server)
{
	if (server->away == 0)
		return;
	LIST_EACH(struct child, child, &server->children, link)
		child_set_away(child, false);
	CHECK(server->away == 0);
	LOG_BY(SERVER_RECOVERED, (uintptr_t)server, LOG_STR("server", server->conf.name));
}

/* Each caller has his own credential there: what is wrong with it is his matter alone. */
static bool is_of_caller(const struct server *server)
{
	return server->conf.claims.count > 0 || server->conf.for_caller;
}

/* Returns whether the line was about that, of one that has not started: its last words say it again. */
static bool child_note_refused(struct child *child, struct slice line)
{
	if (!slice_has_prefix(line, SLICE_LIT(CHILD_REFUSED_MARK)))
		return false;
	child->was_refused = true;
	if (child->is_ready && child->state == CHILD_RUNNING && child->ops->on_refused != NULL)
		child->ops->on_refused(child);
	return !child->is_ready;
}

/* Returns whether the line has been logged. BACK-URL-09 */
static bool child_take_away(struct child *child, struct slice line)
{
	const struct slice away = SLICE_LIT(CHILD_AWAY_MARK),
			   refused = SLICE_LIT(CHILD_REFUSED_MARK);
	struct server *server = child->server;
	bool is_refused = slice_has_prefix(line, refused);
	size_t length = slice_has_prefix(line, away)               ? away.n :
			is_refused && !is_of_caller(child->server) ? refused.n :
								     0;

	if (length > 0 && !child->is_away) {
		line = slice_of(line.p + length, line.n - length);
		server_note_away(server, line);
		LOG_BY(SERVER_AWAY, (uintptr_t)server, LOG_STR("server", server->conf.name),
		       LOG_INT("pid", child->pid), LOG_SLICE("error", line));
		child_set_away(child, true);
		return true;
	}
	if (!child->is_away || !slice_is_equal(line, SLICE_LIT(CHILD_BACK_LINE)))
		return false;
	child_set_back(server);
	return true;
}

static void child_log_stderr(struct child *child, struct slice line)
{
	const struct slice mark = SLICE_LIT(CHILD_REPORT_MARK);
	bool is_indented = line.n > 0 && (line.p[0] == ' ' || line.p[0] == '\t');

	line = line_strip(line);
	if (line.n == 0 || child_note_refused(child, line))
		return;
	/* A JavaScript or Java stack trace would leave no room for the error itself. */
	if (!is_indented || !slice_has_prefix(line, SLICE_LIT("at ")))
		child_keep_words(child, line);
	stderr_ring_add(&child->server->stats->stderr_ring, child->pid, line);
	child->is_forgotten =
		child->is_ready && slice_is_equal(line, SLICE_LIT(CHILD_FORGOTTEN_LINE));
	if (child->is_ready && child_take_away(child, line))
		return;
	if (child->server->conf.confinement.only_reports && slice_has_prefix(line, mark))
		LOG_BY(SANDBOX_WOULD_REFUSE, (uintptr_t)child->server,
		       LOG_STR("server", child->server->conf.name), LOG_INT("pid", child->pid),
		       LOG_SLICE("allow", slice_of(line.p + mark.n, line.n - mark.n)));
	else if (!child->is_ready)
		LOG(CHILD_STDERR_EARLY, LOG_STR("server", child->server->conf.name),
		    LOG_INT("pid", child->pid), LOG_SLICE("text", line));
	else if (child_may_log(child))
		LOG_BY(CHILD_STDERR, (uintptr_t)child->server,
		       LOG_STR("server", child->server->conf.name), LOG_INT("pid", child->pid),
		       LOG_SLICE("text", line));
}

static void child_on_stderr_bytes(struct child *child, struct slice data)
{
	while (data.n > 0) {
		const char *stop = memchr(data.p, '\n', data.n);
		size_t n = stop != NULL ? (size_t)(stop - data.p) : data.n;
		size_t room = STDERR_LINE_BYTES - child->error_line.len;

		CHECK(child->error_line.len <= STDERR_LINE_BYTES);
		buf_append(&child->error_line, data.p, n < room ? n : room);
		if (stop == NULL)
			return;
		child_log_stderr(child, buf_slice(&child->error_line));
		child->error_line.len = 0;
		data = slice_of(stop + 1, data.n - n - 1);
	}
}

/*
 * Returns whether there may be more to read. The loop's buffer is not used, because this may run
 * while a line of stdout or a request in that buffer is being processed.
 */
static bool child_read_stderr(struct child *child)
{
	char buffer[STDERR_READ_BYTES];
	ssize_t n = wire_read(&child->err, buffer, sizeof(buffer));

	if (n == WIRE_AGAIN)
		return false;
	if (n > 0) {
		child_on_stderr_bytes(child, slice_of(buffer, (size_t)n));
		return true;
	}
	child_log_stderr(child, buf_slice(&child->error_line));
	buf_fini(&child->error_line);
	wire_close(&child->err);
	return false;
}

static void child_on_stderr(struct wire *wire)
{
	(void)child_read_stderr(container_of(wire, struct child, err));
}

/* Reads the last lines of stderr, which often say why the process ended. BACK-PROC-06 */
static void child_drain_stderr(struct child *child)
{
	for (int i = 0; i < READS_PER_TURN && wire_is_open(&child->err); i++) {
		if (!child_read_stderr(child))
			break;
	}
	child_log_stderr(child, buf_slice(&child->error_line));
	child->error_line.len = 0;
}

void child_note_failure(struct child *child, const char *error)
{
	struct slice text = slice_str(error);

	CHECK(text.n > 0);
	if (child->is_disposable || child->failure.len > 0)
		return;
	server_note_failure(child->server, error, child->exit[0] != '\0' ? child->exit : NULL);
	child->failure_number = child->server->stats->failures;
	child->ran_ms = clock_now_ms() - child->started_at_ms;
	buf_append(&child->failure, text.p, text.n < FAILURE_BYTES ? text.n : FAILURE_BYTES);
	if (child->garbage.len > 0)
		buf_printf(&child->failure, "; its stdout has lines that are no messages: %.*s",
			   SLICE_ARG(buf_slice(&child->garbage)));
}

/* The operator gets one line of it, if no other process has failed since. */
static void child_add_last_line(const struct child *child)
{
	struct slice words = child_last_words(child), rest = words;
	const char *bar;

	CHECK(child->failure.len > 0);
	while (rest.n > 0 && (bar = memmem(rest.p, rest.n, WORDS_BAR, strlen(WORDS_BAR))) != NULL)
		rest = slice_between(bar + strlen(WORDS_BAR), words.p + words.n);
	if (rest.n > 0 && child->failure_number == child->server->stats->failures)
		server_note_last_line(child->server, rest);
}

/* The one log line of a failed attempt to start the server, or of a running process that failed. */
static void child_log_failure(const struct child *child)
{
	const char *server = child->server->conf.name;
	const char *reason = reason_get(child->end_reason)->text;
	const char *exit = child->exit[0] != '\0' ? child->exit : "-";
	struct slice error = buf_slice(&child->failure), words = child_last_words(child);

	CHECK(child->state == CHILD_GONE && error.n > 0);
	if (child->failed_try > 0)
		LOG_BY(SERVER_FAILING, (uintptr_t)child->server, LOG_STR("server", server),
		       LOG_INT("try", child->failed_try), LOG_INT("pid", child->pid),
		       LOG_STR("reason", reason), LOG_SLICE("error", error), LOG_STR("exit", exit),
		       LOG_INT("ran_ms", child->ran_ms), LOG_SLICE("stderr", words),
		       LOG_INT("next_try_ms", backoff_wait_ms(&child->server->backoff)));
	else
		LOG_BY(CHILD_FAILED, (uintptr_t)child->server, LOG_STR("server", server),
		       LOG_INT("pid", child->pid), LOG_STR("reason", reason),
		       LOG_SLICE("error", error), LOG_STR("exit", exit),
		       LOG_INT("ran_ms", child->ran_ms), LOG_SLICE("stderr", words));
}

/* ---- the end ---- */

static void child_check_gone(struct child *child)
{
	if (!child->is_exited || wire_is_open(&child->out) || child->state == CHILD_GONE)
		return;
	CHECK(!aside_is_pending(&child->taking));
	child_set_state(child, CHILD_GONE);
	child_drain_stderr(child);
	child_set_away(child, false);
	if (child->failure.len > 0) {
		child_add_last_line(child);
		child_log_failure(child);
	}
	wire_close(&child->in);
	wire_close(&child->out);
	wire_close(&child->err);
	timer_stop(&child->stall);
	timer_stop(&child->stop_sequence);
	timer_stop(&child->drain);
	task_cancel(&child->flush);
	outq_fini(&child->queue);
	loop_defer_free(child->server->loop, child->line.data); /* a callback may be using it */
	child->line = (struct buf){ NULL, 0, 0 };
	buf_fini(&child->error_line);
	buf_fini(&child->last_words);
	buf_fini(&child->failure);
	buf_fini(&child->garbage);
	CHECK(!list_is_empty(&child->link));
	list_remove(&child->link);
	server_count_child(child->server, false);
	child->ops->on_gone(child);
}

static ssize_t child_write_out(struct child *child)
{
	ssize_t n;

	/* So much is written whole, or not at all: pipe(7). */
	child->pipe->is_busy |= child->queue.bytes > PIPE_BUF;
	n = outq_flush(&child->queue, &child->in);
	child->pipe->is_busy = child->queue.bytes > 0;
	return n;
}

/*
 * Closes our end of its stdin, which asks the process to end. What does not fit into the pipe is
 * dropped.
 */
static void child_close_stdin(struct child *child)
{
	if (wire_is_open(&child->in) && child_write_out(child) == WIRE_BROKEN)
		outq_fini(&child->queue);
	outq_fini(&child->queue);
	outq_init(&child->queue);
	timer_stop(&child->stall);
	task_cancel(&child->flush);
	if (wire_is_open(&child->in))
		spawned_close(&child->spawned);
	wire_close(&child->in);
}

static void child_begin_stop(struct child *child, enum reason reason)
{
	bool has_failed = child->lost_reason != REASON_NONE || child->failure.len > 0;

	child->end_reason = reason;
	child->server->stats->ends[reason]++;
	/*
	 * A failure gets a log line of its own, once everything about it is known. Of one that was there to be looked at, what was found
	 * has been said.
	 */
	if (!has_failed && reason != REASON_DONE)
		LOG_BY(CHILD_END, (uintptr_t)child->server,
		       LOG_STR("server", child->server->conf.name), LOG_INT("pid", child->pid),
		       LOG_STR("reason", reason_get(reason)->text));
	child_set_state(child, CHILD_STOPPING);
	child_close_stdin(child);
	if (child->is_held)
		wire_watch_reading(&child->out, true);
	if (!child->is_exited)
		timer_start(child->server->loop, &child->stop_sequence,
			    child->server->conf.stop_grace_ms);
}

/* Tells the owner of the failure, once, and stops the process in the usual way. */
static void child_lose(struct child *child, enum reason reason)
{
	CHECK(reason != REASON_NONE);
	if (child->state == CHILD_STOPPING || child->state == CHILD_GONE)
		return;
	child->lost_reason = reason;
	child_begin_stop(child, reason);
	child->ops->on_lost(child, reason);
}

/* The process cannot be used any longer, so it gets no time to end by itself. */
static void child_refuse(struct child *child, enum reason reason, const char *error)
{
	child_note_failure(child, error);
	child_lose(child, reason);
	spawned_signal(&child->spawned, SIGKILL);
}

void child_lack_credential(struct child *child)
{
	child_lose(child, REASON_CREDENTIAL_MISSING);
	spawned_signal(&child->spawned, SIGKILL);
}

void child_stop(struct child *child, enum reason reason)
{
	if (child->state == CHILD_STOPPING || child->state == CHILD_GONE)
		return;
	child_begin_stop(child, reason);
}

void child_kill(struct child *child, enum reason reason)
{
	child_stop(child, reason);
	if (child->state != CHILD_STOPPING || child->is_exited)
		return;
	timer_stop(&child->stop_sequence);
	spawned_signal(&child->spawned, SIGKILL);
}

void child_kill_all(struct server *server, enum reason reason)
{
	LIST_EACH_SAFE(struct child, child, &server->children, link)
		child_kill(child, reason);
}

static void child_on_stop_sequence(struct timer *timer)
{
	struct child *child = container_of(timer, struct child, stop_sequence);
	static const int steps[] = { SIGTERM, SIGKILL };
	bool is_first = child->stop_sequence_step == 0;

	CHECK(child->state == CHILD_STOPPING && !child->is_exited);
	spawned_signal(&child->spawned, steps[is_first ? 0 : 1]);
	child->stop_sequence_step = 1;
	if (is_first)
		timer_start(child->server->loop, timer, child->server->conf.stop_term_ms);
}

static void child_on_drain(struct timer *timer)
{
	struct child *child = container_of(timer, struct child, drain);

	if (aside_is_pending(&child->taking)) {
		timer_start(child->server->loop, timer, DRAIN_MS);
		return;
	}
	wire_close(&child->out);
	child_lose(child, REASON_CHILD_EXITED);
	child_check_gone(child);
}

/* ---- stdout ---- */

static bool may_be_message(struct slice line)
{
	while (line.n > 0 && strchr(" \t\r", *line.p) != NULL)
		line = slice_of(line.p + 1, line.n - 1);
	return line.n > 0 && (*line.p == '{' || *line.p == '[');
}

/*
 * Of a line that is too long, what it was is found out in passing (on_long_line): the others that
 * use the process have no part in it. One that is no JSON, without an end, or before the process was
 * ready, is a failure.
 */
static void child_take_long(struct child *child, struct slice part, bool is_end)
{
	bool is_begin = child->long_bytes == 0;

	if (child->state != CHILD_RUNNING)
		return;
	if (!child->is_ready || (is_begin && !may_be_message(part)) ||
	    child->long_bytes + part.n > child->server->conf.line_max * LONG_LINES_MAX) {
		child_refuse(child, REASON_CHILD_LINE_TOO_LONG,
			     "a line on stdout is longer than limits.response allows");
		return;
	}
	child->long_bytes = is_end ? 0 : child->long_bytes + part.n;
	child->ops->on_long_line(child, part, is_end);
}

/* Passes on what of data still belongs to a line that is too long. Returns its length. */
static size_t child_take_long_rest(struct child *child, struct slice data)
{
	const char *stop;
	size_t n;

	if (child->long_bytes == 0)
		return 0;
	stop = memchr(data.p, '\n', data.n);
	n = stop != NULL ? (size_t)(stop - data.p) : data.n;
	child_take_long(child, slice_of(data.p, n), stop != NULL);
	return stop != NULL ? n + 1 : n;
}

static void child_take_line(struct child *child, struct slice line)
{
	if (child->state != CHILD_RUNNING)
		return;
	if (line.n > child->server->conf.line_max) {
		child_take_long(child, line, true);
		return;
	}
	line = line_strip(line);
	if (line.n > 0)
		child->ops->on_line(child, line);
}

/*
 * Passes on the complete lines in data, whose first `sought` bytes contain no line end. Returns the
 * number of bytes used.
 */
static size_t child_take_lines(struct child *child, struct slice data, size_t sought)
{
	const char *begin = data.p;
	const char *end = data.p + data.n;
	const char *from = data.p + sought;

	CHECK(sought <= data.n);
	for (;;) {
		const char *stop = memchr(from, '\n', (size_t)(end - from));

		if (stop == NULL)
			return (size_t)(begin - data.p);
		child_take_line(child, slice_between(begin, stop));
		begin = from = stop + 1;
	}
}

/*
 * No line has begun: complete lines are taken straight from the shared buffer, and only an
 * incomplete last one is copied.
 */
static ssize_t child_read_fresh(struct child *child)
{
	char *buffer = loop_buffer(child->server->loop);
	ssize_t n = wire_read(&child->out, buffer, LOOP_BUFFER_BYTES);
	size_t used;

	if (n <= 0)
		return n;
	used = child_take_long_rest(child, slice_of(buffer, (size_t)n));
	used += child_take_lines(child, slice_of(buffer + used, (size_t)n - used), 0);
	if (child->state == CHILD_RUNNING)
		buf_append(&child->line, buffer + used, (size_t)n - used);
	return n;
}

/* ---- long lines ---- */

/* Takes the complete lines of those that have been read; the first `sought` bytes contain no line end. */
static void child_take_read(struct child *child, size_t sought)
{
	size_t used = child_take_lines(child, buf_slice(&child->line), sought);

	buf_consume(&child->line, child->state == CHILD_RUNNING ? used : child->line.len);
	if (child->line.len == 0)
		buf_fini(&child->line);
}

/*
 * The line of that length is taken, as far as that goes without a long turn. Until it has been, nothing more is read: what is
 * behind it, and the room, stay for the next.
 */
static void child_take_aside(struct child *child, size_t length)
{
	child->taking_bytes = length;
	wire_watch_reading(&child->out, false);
	aside_start(child->server->loop, &child->taking, (uintptr_t)child->server);
}

static void child_on_taking(struct aside *aside)
{
	struct child *child = container_of(aside, struct child, taking);

	child_take_read(child, child->taking_bytes);
	wire_watch_reading(&child->out, true);
}

/*
 * A line has begun: its rest is read behind it, but no more than it takes to see that the line is
 * too long.
 */
static ssize_t child_read_on(struct child *child)
{
	size_t sought = child->line.len;
	size_t allowed = child->server->conf.line_max + 1 - sought;
	char *into = buf_reserve(&child->line, LOOP_BUFFER_BYTES);
	size_t room = child->line.cap - sought;
	ssize_t n = wire_read(&child->out, into, room < allowed ? room : allowed);
	const char *stop;

	CHECK(sought <= child->server->conf.line_max);
	if (n <= 0)
		return n;
	child->line.len += (size_t)n;
	stop = memchr(into, '\n', (size_t)n);
	if (stop != NULL && (size_t)(stop - child->line.data) >= ASIDE_BYTES) {
		child_take_aside(child, (size_t)(stop - child->line.data));
		return n;
	}
	child_take_read(child, sought);
	return n;
}

/* Of one that has ended by itself. */
static enum reason end_reason(const struct child *child)
{
	if (child->is_forgotten)
		return REASON_SESSION_FORGOTTEN;
	return !child->is_ready && child->was_refused && is_of_caller(child->server) ?
		       REASON_CREDENTIAL_MISSING :
		       REASON_CHILD_EXITED;
}

static void child_on_stdout(struct wire *wire)
{
	struct child *child = container_of(wire, struct child, out);

	for (int i = 0; i < READS_PER_TURN && wire_is_open(&child->out); i++) {
		ssize_t n = child->line.len > 0 ? child_read_on(child) : child_read_fresh(child);

		if (n == WIRE_AGAIN || aside_is_pending(&child->taking))
			return;
		if (n <= 0 && child->line.len >= ASIDE_BYTES) {
			buf_append_char(&child->line, '\n');
			child_take_aside(child, child->line.len - 1); /* then it ends */
			return;
		}
		if (n <= 0) {
			wire_close(&child->out);
			/* The last line may lack its line end. BACK-FRAME-06 */
			if (child->long_bytes > 0)
				child_take_long(child, slice_of(NULL, 0), true);
			child_take_line(child, buf_slice(&child->line));
			if (wire_is_open(&child->err))
				(void)child_read_stderr(child);
			child_lose(child, end_reason(child));
			child_check_gone(child);
			return;
		}
		if (child->line.len > child->server->conf.line_max) {
			child_take_long(child, buf_slice(&child->line), false);
			buf_fini(&child->line);
		}
		if (n < LOOP_BUFFER_BYTES / 2 || loop_turn_is_long(child->server->loop))
			return;
	}
}

/* ---- stdin ---- */

static void child_flush(struct child *child)
{
	const struct server_conf *conf = &child->server->conf;
	ssize_t n;

	if (!wire_is_open(&child->in))
		return;
	n = child_write_out(child);
	if (n == WIRE_BROKEN) {
		/* The process closed its stdin. Its output is read before we give it up. */
		child_close_stdin(child);
		timer_start(child->server->loop, &child->drain, DRAIN_MS);
		return;
	}
	/*
	 * Clients' requests are only sent if child_has_room; responses to requests of the process
	 * itself are always sent, and it could ask forever without reading them.
	 */
	if (child->queue.bytes > 2 * conf->queue_max + OWN_BYTES_MAX) {
		child_refuse(child, REASON_CHILD_HUNG,
			     "the process asks and does not read the answers");
		return;
	}
	wire_watch_writing(&child->in, child->queue.bytes > 0);
	if (child->queue.bytes == 0)
		timer_stop(&child->stall);
	else if (n > 0 || !timer_is_running(&child->stall))
		timer_start(child->server->loop, &child->stall, conf->stall_ms);
}

static void child_on_stdin(struct wire *wire)
{
	child_flush(container_of(wire, struct child, in));
}

static void child_on_flush(struct task *task)
{
	child_flush(container_of(task, struct child, flush));
}

static void child_on_stall(struct timer *timer)
{
	child_refuse(container_of(timer, struct child, stall), REASON_CHILD_HUNG,
		     "the process does not read its stdin");
}

void child_write(struct child *child, struct slice bytes)
{
	if (child->state != CHILD_RUNNING || !wire_is_open(&child->in))
		return;
	CHECK(bytes.n > 0);
	outq_append(&child->queue, bytes);
	task_schedule(child->server->loop, &child->flush);
}

void child_write_take(struct child *child, struct buf *buf)
{
	CHECK(buf->len > 0);
	if (child->state == CHILD_RUNNING && wire_is_open(&child->in)) {
		outq_take(&child->queue, buf, 0);
		task_schedule(child->server->loop, &child->flush);
	}
	buf_fini(buf);
}

bool child_is_quiet(const struct child *child)
{
	return child->state != CHILD_RUNNING ||
	       (!child->holds && child->queue.bytes == 0 && child->line.len == 0 &&
		child->long_bytes == 0 && !aside_is_pending(&child->taking));
}

bool child_has_room(const struct child *child, size_t size)
{
	return child->queue.bytes == 0 ||
	       child->queue.bytes + size <= child->server->conf.queue_max;
}

void child_note_garbage(struct child *child, struct slice line, const char *why)
{
	counter_add(COUNTER_CHILD_GARBAGE);
	if (line.n > GARBAGE_LOGGED)
		line.n = GARBAGE_LOGGED;
	if (!child->is_ready) {
		if (child->garbage.len == 0)
			buf_append_slice(&child->garbage, line);
		return;
	}
	if (!child_may_log(child))
		return;
	LOG_BY(CHILD_GARBAGE, (uintptr_t)child->server, LOG_STR("server", child->server->conf.name),
	       LOG_INT("pid", child->pid), LOG_STR("error", why), LOG_SLICE("line", line));
}

void child_note_ready(struct child *child)
{
	CHECK(child->state == CHILD_RUNNING);
	child->is_ready = true;
	child->server->stats->has_worked = true;
	child_set_back(child->server);
	LOG_BY(CHILD_START, (uintptr_t)child->server, LOG_STR("server", child->server->conf.name),
	       LOG_INT("pid", child->pid),
	       LOG_INT("start_ms", clock_now_ms() - child->started_at_ms));
	if (child->garbage.len > 0)
		child_note_garbage(child, buf_slice(&child->garbage),
				   "it is no message; maybe there were more before the handshake");
	buf_fini(&child->garbage);
}

/* ---- the process ---- */

static const struct wire_ops stdin_ops = { .on_writable = child_on_stdin };
static const struct wire_ops stdout_ops = { .on_readable = child_on_stdout };
static const struct wire_ops stderr_ops = { .on_readable = child_on_stderr };

static void child_open(struct child *child, int pid, const int fds[3])
{
	struct loop *loop = child->server->loop;

	CHECK(child->pid == 0 && !child->is_exited);
	child->pid = pid;
	child->pipe = spawner_pipe_state(child->server->spawner, pid);
	child->started_at_ms = clock_now_ms();
	wire_init(&child->in, loop, fds[0], &stdin_ops);
	wire_init(&child->out, loop, fds[1], &stdout_ops);
	wire_init(&child->err, loop, fds[2], &stderr_ops);
	wire_watch_reading(&child->out, !child->is_held);
	wire_watch_reading(&child->err, true);
}

static void child_on_started(struct spawned *spawned, int pid, const int fds[3])
{
	struct child *child = container_of(spawned, struct child, spawned);

	child_open(child, pid, fds);
	*child->pipe = (struct pipe_state){ 0 };
	if (child->state != CHILD_STARTING) {
		child_close_stdin(child); /* it was stopped before it ran */
		return;
	}
	child_set_state(child, CHILD_RUNNING);
	child->ops->on_started(child);
}

static void child_on_failed(struct spawned *spawned, int error)
{
	struct child *child = container_of(spawned, struct child, spawned);
	char text[128];

	/* Nothing is wrong with the server: this caller has no file. The keeper has logged which. */
	if (error == IPC_NO_CREDENTIAL) {
		child->is_exited = true;
		child_lose(child, REASON_CREDENTIAL_MISSING);
		child_check_gone(child);
		return;
	}
	/* The keeper logs the details: the gateway does not know the command. */
	snprintf(text, sizeof(text),
		 "it could not be started: %s; child_spawn_failed in the log says more",
		 strerror(error));
	child_note_failure(child, text);
	child->is_exited = true;
	child_lose(child, REASON_START_FAILED);
	child_check_gone(child);
}

static void child_describe_exit(struct child *child, int status)
{
	const char *name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;

	if (!WIFSIGNALED(status))
		snprintf(child->exit, sizeof(child->exit), "status %d", WEXITSTATUS(status));
	else
		snprintf(child->exit, sizeof(child->exit), "signal %d (%s)", WTERMSIG(status),
			 name != NULL ? name : "?");
}

static void child_on_exited(struct spawned *spawned, int status)
{
	struct child *child = container_of(spawned, struct child, spawned);

	CHECK(!child->is_exited);
	child->is_exited = true;
	timer_stop(&child->stop_sequence);
	/* If its output ended first, the exit status says why. */
	if (child->state == CHILD_RUNNING || child->lost_reason == REASON_CHILD_EXITED ||
	    child->lost_reason == REASON_SESSION_FORGOTTEN) {
		child_describe_exit(child, status);
		child_note_failure(child,
				   child->is_ready ?
					   "the process ended by itself" :
					   "the process ended before it answered the handshake");
	}
	if (wire_is_open(&child->out) && !aside_is_pending(&child->taking))
		child_on_stdout(&child->out); /* what it wrote before it exited counts */
	if (wire_is_open(&child->out))
		timer_start(child->server->loop, &child->drain, DRAIN_MS);
	child_check_gone(child);
}

static const struct spawned_ops child_spawned_ops = {
	.on_started = child_on_started,
	.on_failed = child_on_failed,
	.on_exited = child_on_exited,
};

static void child_init(struct child *child, struct server *server, const struct child_ops *ops)
{
	CHECK(ops->on_started != NULL && ops->on_line != NULL && ops->on_lost != NULL &&
	      ops->on_gone != NULL);
	*child = (struct child){ .ops = ops, .server = server, .state = CHILD_STARTING };
	child->in.fd = child->out.fd = child->err.fd = -1;
	outq_init(&child->queue);
	task_init(&child->flush, child_on_flush);
	aside_init(&child->taking, child_on_taking);
	timer_init(&child->stall, child_on_stall);
	timer_init(&child->stop_sequence, child_on_stop_sequence);
	timer_init(&child->drain, child_on_drain);
	list_append(&server->children, &child->link);
	server_count_child(server, true);
	child->started_at_ms = clock_now_ms();
}

void child_start(struct child *child, struct server *server, struct slice claims,
		 const struct child_ops *ops)
{
	child_init(child, server, ops);
	server->stats->starts++;
	counter_add(COUNTER_CHILDREN);
	spawned_start(&child->spawned, server->spawner, server->conf.server, claims,
		      &child_spawned_ops);
}

void child_inherit(struct child *child, struct server *server, uint64_t number, int pid,
		   const int fds[3], const struct child_ops *ops)
{
	child_init(child, server, ops);
	counter_add(COUNTER_CHILDREN_INHERITED);
	child->is_held = child->is_ready = true;
	spawned_inherit(&child->spawned, server->spawner, number, &child_spawned_ops);
	child_open(child, pid, fds);
	child_set_state(child, CHILD_RUNNING);
}

void child_resume(struct child *child)
{
	CHECK(child->is_held && child->state == CHILD_RUNNING);
	child->is_held = false;
	wire_watch_reading(&child->out, true);
	if (child->pipe->is_busy != 0)
		child_write(child, SLICE_LIT("\n"));
}
