/* SPDX-License-Identifier: Apache-2.0 */
/* One process, played byte by byte by the test. */
#include "process/child.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pause.h"
#include "process/stage.h"

#define LINE_MAX_BYTES 100000
#define QUEUE_MAX_BYTES 200000
#define GRACE_MS 5000 /* the stage's, as are the next two */
#define TERM_MS 3000
#define STALL_MS 30000
#define DRAIN_MS 500

/* What the child told its owner. */
static struct child *child;
static char lines[4096]; /* each followed by a bar; long ones as their length */
static unsigned int started;
static unsigned int lost;
static unsigned int gone;
static enum reason lost_reason;
static bool stops_in_line;
static bool gives_way; /* a long line, as long as this is so */

/* Each turn is a long one. */
static void give_way(void)
{
	aside_open();
	while (gives_way) {
		now_ms += 10;
		clock_freeze(now_ms);
		for (int i = 0; i < 1000; i++)
			pause_point();
	}
	aside_close();
}

static void on_started(struct child *c)
{
	assert_ptr_equal(c, child);
	started++;
}

static void on_line(struct child *c, struct slice line)
{
	size_t n;

	assert_int_equal(lost + gone, 0);
	if (line.n >= ASIDE_BYTES)
		give_way();
	n = strlen(lines);
	if (line.n > 200)
		snprintf(lines + n, sizeof(lines) - n, "%zu|", line.n);
	else
		snprintf(lines + n, sizeof(lines) - n, "%.*s|", SLICE_ARG(line));
	if (stops_in_line)
		child_stop(c, REASON_SESSION_END);
}

static void on_lost(struct child *c, enum reason reason)
{
	lost++;
	lost_reason = reason;
}

static void on_gone(struct child *c)
{
	gone++;
	loop_defer_free(loop, c);
	child = NULL;
}

static size_t long_bytes, long_lines;

static void on_long_line(struct child *of, struct slice part, bool is_end)
{
	assert_ptr_equal(of, child);
	long_bytes += part.n;
	long_lines += is_end;
}

static const struct child_ops ops = {
	.on_started = on_started,
	.on_line = on_line,
	.on_long_line = on_long_line,
	.on_lost = on_lost,
	.on_gone = on_gone,
};

static int setup(void **state)
{
	struct server_conf *conf = &servers[0].conf;

	stage_open();
	conf->server = 3;
	conf->pool_max = 2;
	conf->line_max = LINE_MAX_BYTES;
	conf->queue_max = QUEUE_MAX_BYTES;
	conf->start_timeout_ms = 60000;
	lines[0] = '\0';
	started = lost = gone = 0;
	lost_reason = REASON_NONE;
	stops_in_line = gives_way = false;
	long_bytes = long_lines = 0;
	return 0;
}

static int teardown(void **state)
{
	stage_end_processes();
	pass(DRAIN_MS);
	assert_null(child);
	return stage_close(state);
}

static struct fake_process *begin(void)
{
	child = malloc(sizeof(*child));
	child_start(child, &servers[0], slice_of(NULL, 0), &ops);
	settle();
	if (child != NULL && child->state == CHILD_RUNNING)
		child_note_ready(child);
	return keeper.count > 0 ? &keeper.processes[keeper.count - 1] : NULL;
}

static void write_fill(struct fake_process *p, size_t size, char c)
{
	static char block[32768];

	memset(block, c, sizeof(block));
	while (size > 0) {
		ssize_t n = write(p->out, block, size < sizeof(block) ? size : sizeof(block));

		if (n > 0)
			size -= (size_t)n;
		loop_turn(loop, false);
	}
}

/* ---- starting ---- */

static void runs_when_the_keeper_says(void **state)
{
	struct fake_process *p;

	keeper.holds = true;
	p = begin();
	assert_int_equal(started, 0);
	assert_int_equal(p->server, 3);
	assert_int_equal(servers[0].count, 1);
	fake_keeper_start(&keeper, p);
	settle();
	assert_int_equal(started, 1);
}

/* BACK-PROC-06: the reason is told at once. */
static void failed_start_is_told(void **state)
{
	keeper.refuses = ENOENT;
	begin();
	assert_int_equal(started, 0);
	assert_int_equal(lost, 1);
	assert_int_equal(lost_reason, REASON_START_FAILED);
	assert_int_equal(gone, 1);
	assert_true(is_logged("No such file or directory"));
}

static void stopped_before_it_runs(void **state)
{
	struct fake_process *p;

	keeper.holds = true;
	p = begin();
	child_stop(child, REASON_SESSION_END);
	fake_keeper_start(&keeper, p);
	settle();
	assert_int_equal(started, 0);
	assert_null(fake_process_read(p));
	assert_true(p->is_eof);
	fake_process_write(p, "late\n");
	exits(p, 0);
	assert_string_equal(lines, "");
	assert_int_equal(lost, 0);
	assert_int_equal(gone, 1);
}

/* ---- lines ---- */

/* BACK-FRAME-03: split at LF; CR, BOM, blanks and blank lines go. */
static void lines_are_cut_and_stripped(void **state)
{
	struct fake_process *p = begin();

	fake_process_write(p, "{\"a\":1}\n\n  \t\r\n\xEF\xBB\xBF{\"b\":2}\r\n \t{\"c\"");
	settle();
	assert_string_equal(lines, "{\"a\":1}|{\"b\":2}|");
	fake_process_write(p, ":3} ");
	settle();
	fake_process_write(p, "\n{");
	settle();
	assert_string_equal(lines, "{\"a\":1}|{\"b\":2}|{\"c\":3}|");
}

/* BACK-FRAME-06: a line as long as allowed, byte by byte or not, passes. */
static void longest_line_passes(void **state)
{
	struct fake_process *p = begin();

	write_fill(p, LINE_MAX_BYTES, 'x');
	fake_process_write(p, "\nnext\n");
	settle();
	assert_string_equal(lines, "100000|next|");
	assert_int_equal(lost, 0);
}

/* REL-44: its pipes cannot be taken: that start has failed, nothing else. */
static void descriptors_may_run_out(void **state)
{
	int taken[256];
	size_t count = 0;
	struct rlimit before, low = { ARRAY_LEN(taken), 0 };

	keeper.holds = true;
	begin();
	fake_keeper_start(&keeper, &keeper.processes[0]);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	while (count < ARRAY_LEN(taken) && (taken[count] = dup(keeper.fd)) >= 0)
		count++;
	close(taken[--count]); /* one is left, and three would be needed */
	settle();
	while (count > 0)
		close(taken[--count]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(lost_reason, REASON_START_FAILED);
	assert_int_equal(gone, 1);
	assert_true(is_logged("Too many open files"));
	keeper.holds = false;
	begin();
	assert_int_equal(started, 1);
}

/* BACK-FRAME-06: a longer line is handed on in parts, and the process stays. */
static void longer_line_comes_in_parts(void **state)
{
	struct fake_process *p = begin();

	fake_process_write(p, "{");
	write_fill(p, LINE_MAX_BYTES, 'x');
	settle();
	assert_true(long_bytes > 0);
	assert_int_equal(child->line.len, 0); /* nothing is kept */
	write_fill(p, LINE_MAX_BYTES, 'y');
	fake_process_write(p, "z\nnext\n");
	settle();
	assert_int_equal(long_bytes, 2 * LINE_MAX_BYTES + 2);
	assert_int_equal(long_lines, 1);
	assert_string_equal(lines, "next|");
	assert_int_equal(lost, 0);
	fake_process_write(p, " [");
	write_fill(p, LINE_MAX_BYTES, 'x');
	exits(p, 0);
	assert_int_equal(long_lines, 2);
	assert_int_equal(lost_reason, REASON_CHILD_EXITED);
}

/* BACK-FRAME-06, REL-22: it answers nobody. */
static void endless_line_kills(void **state)
{
	struct fake_process *p = begin();

	fake_process_write(p, "{");
	for (int i = 0; i < 16; i++) {
		assert_int_equal(lost, 0);
		write_fill(p, LINE_MAX_BYTES, 'x');
		settle();
	}
	assert_int_equal(lost_reason, REASON_CHILD_LINE_TOO_LONG);
	assert_int_equal(p->last_signal, SIGKILL);
}

/* BACK-FRAME-06, REL-22: one that is no JSON ends it, with a named reason, by SIGKILL. */
static void longer_line_kills(void **state)
{
	struct fake_process *p = begin();

	write_fill(p, LINE_MAX_BYTES + 1, 'x');
	settle();
	assert_string_equal(lines, "");
	assert_int_equal(lost, 1);
	assert_int_equal(lost_reason, REASON_CHILD_LINE_TOO_LONG);
	assert_int_equal(p->last_signal, SIGKILL);
	write_fill(p, LINE_MAX_BYTES * 2, 'y'); /* it is still read, and forgotten */
	fake_process_write(p, "\nlate\n");
	settle();
	assert_string_equal(lines, "");
	assert_int_equal(lost, 1);
	exits(p, SIGKILL);
	assert_true(is_logged("limits.response"));
	assert_non_null(
		strstr(servers[0].stats->failure, "limits.response")); /* not how we ended it */
	assert_int_equal(servers[0].stats->failures, 1);
}

/* The same before it is ready, as soon as the line is too long. */
static void longer_line_at_the_start_kills(void **state)
{
	struct fake_process *p = begin();

	child->is_ready = false;
	write_fill(p, LINE_MAX_BYTES + 1, 'x');
	settle();
	assert_int_equal(lost_reason, REASON_CHILD_LINE_TOO_LONG);
	assert_int_equal(p->last_signal, SIGKILL);
}

/* Where the whole line comes in one piece. */
static void longer_line_in_one_piece(void **state)
{
	struct fake_process *p = begin();

	servers[0].conf.line_max = 10;
	fake_process_write(p, "0123456789\n{123456789a\nnext\n");
	settle();
	assert_string_equal(lines, "0123456789|next|");
	assert_int_equal(long_bytes, 11);
	assert_int_equal(long_lines, 1);
	assert_int_equal(lost, 0);
}

/* BACK-FRAME-06: the last line counts without its end. */
static void last_line_needs_no_end(void **state)
{
	struct fake_process *p = begin();

	fake_process_write(p, "one\ntwo");
	exits(p, 0);
	assert_string_equal(lines, "one|two|");
	assert_int_equal(lost, 1);
	assert_int_equal(lost_reason, REASON_CHILD_EXITED);
	assert_int_equal(gone, 1);
}

/* Its owner may let go of it inside a line: the rest of what was read is not handed out. */
static void stopped_inside_a_line(void **state)
{
	struct fake_process *p = begin();

	stops_in_line = true;
	fake_process_write(p, "one\ntwo\nthr");
	settle();
	fake_process_write(p, "ee\nfour\n");
	exits(p, 0);
	assert_string_equal(lines, "one|");
	assert_int_equal(lost, 0);
	assert_int_equal(gone, 1);
}

/* ---- stdin ---- */

/* Everything of a turn leaves together, in order. */
static void writes_leave_at_the_end_of_the_turn(void **state)
{
	struct fake_process *p = begin();
	struct buf large = { 0 };

	child_write(child, SLICE_LIT("one\n"));
	for (int i = 0; i < 20000; i++)
		buf_append_char(&large, 'l');
	buf_append_char(&large, '\n');
	child_write_take(child, &large);
	assert_null(large.data);
	child_write(child, SLICE_LIT("three\n"));
	assert_null(fake_process_read(p));
	loop_turn(loop, false);
	assert_string_equal(fake_process_read(p), "one");
	assert_int_equal(strlen(fake_process_read(p)), 20000);
	assert_string_equal(fake_process_read(p), "three");
}

/* BACK-FRAME-07, REL-26: the queue is bounded; who reads nothing for so long is hung. */
static void hung_process_is_given_up(void **state)
{
	struct fake_process *p = begin();
	static char text[QUEUE_MAX_BYTES];

	memset(text, 'x', sizeof(text));
	assert_true(child_has_room(child, 10 * QUEUE_MAX_BYTES)); /* one alone may be larger */
	child_write(child, slice_of(text, sizeof(text)));
	assert_false(child_has_room(child, 1));
	pass(0);
	assert_true(child_has_room(child, 60000)); /* the pipe took some */
	pass(STALL_MS - 1);
	assert_int_equal(lost, 0);
	assert_null(fake_process_read(p)); /* it takes some: the time begins anew */
	pass(0);
	pass(STALL_MS - 1);
	assert_int_equal(lost, 0);
	pass(1);
	assert_int_equal(lost, 1);
	assert_int_equal(lost_reason, REASON_CHILD_HUNG);
	assert_int_equal(p->last_signal, SIGKILL);
}

/* BACK-FRAME-07: nor is there more without a bound for one that asks and does not read the answers. */
static void flood_of_answers_is_bounded(void **state)
{
	struct fake_process *p = begin();
	static char text[QUEUE_MAX_BYTES];

	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 80; i++)
		child_write(child, slice_of(text, sizeof(text)));
	loop_turn(loop, false);
	assert_int_equal(lost, 0);
	for (int i = 0; i < 10; i++)
		child_write(child, slice_of(text, sizeof(text)));
	loop_turn(loop, false);
	assert_int_equal(lost, 1);
	assert_int_equal(lost_reason, REASON_CHILD_HUNG);
	settle();
	assert_int_equal(p->last_signal, SIGKILL);
	exits(p, SIGKILL);
	assert_true(is_logged("does not read the answers"));
}

/* REL-27: it closes its stdin, or its stdout, but lives. What it wrote before counts. */
static void closed_stdin_is_the_end(void **state)
{
	struct fake_process *p = begin();

	fake_process_close(&p->in);
	child_write(child, SLICE_LIT("anybody?\n"));
	pass(0);
	assert_int_equal(lost, 0);
	child_write(child, SLICE_LIT("hello?\n")); /* into the void */
	fake_process_write(p, "last words\n");
	pass(DRAIN_MS);
	assert_string_equal(lines, "last words|");
	assert_int_equal(lost, 1);
	assert_int_equal(lost_reason, REASON_CHILD_EXITED);
	pass(GRACE_MS);
	assert_int_equal(p->last_signal, SIGTERM);
}

static void closed_stdout_is_the_end(void **state)
{
	struct fake_process *p = begin();

	fake_process_write(p, "last words");
	fake_process_close(&p->out);
	pass(0);
	assert_string_equal(lines, "last words|");
	assert_int_equal(lost_reason, REASON_CHILD_EXITED);
	assert_int_equal(gone, 0);
	assert_null(fake_process_read(p));
	assert_true(p->is_eof);
	pass(GRACE_MS);
	assert_int_equal(p->last_signal, SIGTERM);
	exits(p, 0);
	assert_int_equal(gone, 1);
	assert_int_equal(lost, 1);
}

/* ---- the end ---- */

/* BACK-PROC-02: stdin closes after what was queued; SIGTERM after the grace, then SIGKILL. */
static void stop_goes_step_by_step(void **state)
{
	struct fake_process *p = begin();

	child_write(child, SLICE_LIT("goodbye\n"));
	child_stop(child, REASON_SESSION_END);
	child_stop(child, REASON_SESSION_END); /* nothing more */
	assert_string_equal(fake_process_read(p), "goodbye");
	assert_null(fake_process_read(p));
	assert_true(p->is_eof);
	pass(GRACE_MS - 1);
	assert_int_equal(p->signals, 0);
	pass(1);
	assert_int_equal(p->last_signal, SIGTERM);
	pass(TERM_MS - 1);
	assert_int_equal(p->signals, 1);
	pass(1);
	assert_int_equal(p->last_signal, SIGKILL);
	exits(p, SIGKILL);
	assert_int_equal(gone, 1);
	assert_int_equal(lost, 0);
	assert_int_equal(p->signals, 2);
}

/* BACK-PROC-02: its output is drained meanwhile, however much it is and wherever a line was cut. */
static void output_is_drained_while_stopping(void **state)
{
	struct fake_process *p = begin();

	fake_process_write(p, "half a li");
	pass(0);
	child_stop(child, REASON_SESSION_END);
	write_fill(p, LINE_MAX_BYTES * 3, 'z');
	pass(0);
	assert_int_equal(p->signals, 0);
	assert_int_equal(child->line.len, 0);
	exits(p, 0);
	assert_int_equal(gone, 1);
	assert_string_equal(lines, "");
}

static void kill_is_one_step(void **state)
{
	struct fake_process *p = begin();

	child_kill(child, REASON_CHILD_HUNG);
	pass(GRACE_MS + TERM_MS);
	assert_int_equal(p->signals, 1);
	assert_int_equal(p->last_signal, SIGKILL);
	assert_int_equal(lost, 0);
}

/* REL-28: the keeper's word comes first; what was written before is read before. */
static void exit_before_the_end_of_output(void **state)
{
	struct fake_process *p = begin();

	fake_process_write(p, "answer\n");
	fake_process_tell_exit(&keeper, p, 256);
	fake_process_close(&p->out);
	pass(0);
	assert_string_equal(lines, "answer|");
	assert_int_equal(lost_reason, REASON_CHILD_EXITED);
	assert_int_equal(gone, 1);
	assert_true(is_logged("status 1"));
}

/* REL-28: a grandchild that holds the pipe does not hold the calls. */
static void grandchild_may_keep_the_pipe(void **state)
{
	struct fake_process *p = begin();

	fake_process_write(p, "answer\nhalf");
	fake_process_tell_exit(&keeper, p, SIGSEGV);
	pass(0);
	pass(DRAIN_MS - 1);
	assert_string_equal(lines, "answer|");
	assert_int_equal(lost, 0);
	pass(1);
	assert_int_equal(lost, 1);
	assert_int_equal(gone, 1);
	assert_true(is_logged("exit=\"signal 11 (SEGV)\""));
}

static void stopped_and_then_exited(void **state)
{
	struct fake_process *p = begin();

	child_stop(child, REASON_SESSION_END);
	fake_process_tell_exit(&keeper, p, 0); /* its stdout is still open */
	pass(0);
	assert_int_equal(gone, 0);
	pass(DRAIN_MS);
	assert_int_equal(gone, 1);
	assert_int_equal(p->signals, 0);
}

/* ---- stderr ---- */

/* BACK-PROC-01, BACK-PROC-06: logged by lines, never judged; the last words without an end, too. */
static void stderr_is_logged(void **state)
{
	struct fake_process *p = begin();

	fake_process_write_err(p, "first\r\n\nsec");
	pass(0);
	assert_true(is_logged("first"));
	assert_false(is_logged("sec"));
	fake_process_write_err(p, "ond\nlast words");
	exits(p, 0);
	assert_true(is_logged("second"));
	assert_true(is_logged("last words"));
	assert_int_equal(lost, 1); /* by the exit */
}

/* BACK-PROC-06: also if the end is heard of before its last words are. */
static void last_words_are_read_at_the_end(void **state)
{
	struct fake_process *p = begin();

	wire_watch_reading(&child->err, false); /* as if its turn had not come yet */
	fake_process_write_err(p, "cannot open the database\nbecause");
	fake_process_close(&p->out);
	fake_process_tell_exit(&keeper, p, 256);
	pass(0);
	assert_int_equal(gone, 1);
	assert_true(is_logged("cannot open the database"));
	assert_true(is_logged("because"));
}

/* REL-31: a flood costs a bounded number of lines, long lines are cut. */
struct listener {
	struct stderr_ring_reader reader;
	int heard, ended;
};

static void on_stderr_line(struct stderr_ring_reader *reader)
{
	container_of(reader, struct listener, reader)->heard++;
}

static void on_stderr_end(struct stderr_ring_reader *reader)
{
	container_of(reader, struct listener, reader)->ended++;
}

static struct slice text_of(const struct stderr_line *line)
{
	assert_non_null(line);
	return slice_of(line->text, line->length);
}

/* The oldest lines go, numbers go on, readers are told of each, and of the end. */
static void stderr_ring_is_bounded(void **state)
{
	struct listener listener = { .reader = { .on_line = on_stderr_line,
						 .on_end = on_stderr_end } };
	struct stderr_ring stderr_ring;
	char text[1000];

	memset(text, 'x', sizeof(text));
	stderr_ring_init(&stderr_ring);
	assert_null(stderr_ring_next(&stderr_ring, 0));
	stderr_ring_attach(&stderr_ring, &listener.reader);
	stderr_ring_add(&stderr_ring, 7, SLICE_LIT("first"));
	assert_true(slice_is_equal(text_of(stderr_ring_next(&stderr_ring, 0)), SLICE_LIT("first")));
	assert_int_equal(stderr_ring_next(&stderr_ring, 0)->pid, 7);
	assert_null(stderr_ring_next(&stderr_ring, 1));
	for (int i = 0; i < 200; i++)
		stderr_ring_add(&stderr_ring, 8, slice_of(text, sizeof(text)));
	assert_int_equal(listener.heard, 201);
	stderr_ring_detach(&listener.reader);
	stderr_ring_add(&stderr_ring, 9, SLICE_LIT("last"));
	assert_int_equal(listener.heard, 201);
	assert_in_range(stderr_ring.bytes, STDERR_RING_BYTES_MAX / 2, STDERR_RING_BYTES_MAX);
	assert_int_equal(stderr_ring_next(&stderr_ring, 0)->pid, 8);
	assert_true(stderr_ring_next(&stderr_ring, 0)->number > 100);
	assert_true(
		slice_is_equal(text_of(stderr_ring_next(&stderr_ring, 201)), SLICE_LIT("last")));
	stderr_ring_attach(&stderr_ring, &listener.reader);
	stderr_ring_fini(&stderr_ring);
	assert_int_equal(listener.ended, 1);
}

static void stderr_is_bounded(void **state)
{
	struct fake_process *p = begin();

	for (int i = 0; i < 500; i++)
		fake_process_write_err(p, "noise\n");
	pass(0);
	assert_int_equal(count_logged("noise"), 50);
	pass(1000);
	for (int i = 0; i < 60; i++) {
		char block[1024];

		memset(block, 'E', sizeof(block));
		assert_int_equal(write(p->err, block, sizeof(block)), sizeof(block));
		pass(0);
	}
	assert_true(child->error_line.len <= 8192);
	fake_process_write_err(p, "\nafter\n");
	pass(0);
	assert_true(is_logged("lines=450"));
	assert_true(is_logged("after"));
	assert_int_equal(lost, 0);
}

/* BACK-PROC-06: what a start that failed leaves in the log is one line; what it wrote until then is in it. */
static void failed_start_is_one_line(void **state)
{
	struct fake_process *p = begin();

	child->is_ready = false;
	child->failed_try = 3;
	servers[0].backoff.retry_at_ms = now_ms + 4100;
	fake_process_write_err(p,
			       "starting\nError: API_KEY is not set\n    at main (index.js:3:9)\n");
	child_note_garbage(child, SLICE_LIT("Usage: me\x1b"), "not JSON");
	child_note_garbage(child, SLICE_LIT("second"), "not JSON");
	pass(100);
	exits(p, 256);
	assert_int_equal(count_logged(" warn "), 1);
	assert_true(is_logged("warn server_failing server=test try=3 "));
	assert_true(is_logged(
		" reason=child_exited error=\"the process ended before it answered the "
		"handshake; its stdout has lines that are no messages: Usage: me\\u001b\" "));
	assert_true(is_logged(" exit=\"status 1\" ran_ms=100 stderr=\"starting | Error: API_KEY is "
			      "not set\" next_try_ms=4000\n"));
	assert_false(is_logged("second"));
	assert_int_equal(count_logged("child_stderr_early"), 3);
	assert_false(is_logged("child_end"));
	assert_int_equal(servers[0].stats->failures, 1);
	assert_string_equal(servers[0].stats->failure,
			    "the process ended before it answered the handshake: status 1; its "
			    "stderr ends with: Error: API_KEY is not set");
}

/* Behind a URL there is no process to speak of; of a long line the beginning is enough. */
static void failed_start_behind_a_url(void **state)
{
	char line[1024], *end = line;
	struct fake_process *p = begin();

	child->is_ready = false;
	end += sprintf(line, "mcpgated-remote: the server at a \x1b[31mcannot be reached: ");
	memset(end, 'x', 800);
	memcpy(end + 800, "\n", 2);
	fake_process_write_err(p, line);
	exits(p, 256);
	assert_int_equal(strncmp(servers[0].stats->failure,
				 "the server at a  [31mcannot be reached: xxx", 42),
			 0);
	assert_in_range(strlen(servers[0].stats->failure), 150, 250);
}

/* BACK-URL-09 */
static void server_that_is_away(void **state)
{
	struct fake_process *p = begin();

	fake_process_write_err(p, "mcpgated-remote: back\nmcpgated-remote: away: no route\n"
				  "mcpgated-remote: away: no way\n");
	pass(0);
	assert_true(server_is_failing(&servers[0]));
	assert_string_equal(servers[0].stats->failure, "no route");
	assert_int_equal(count_logged("warn server_away server=test "), 1);
	assert_int_equal(servers[0].stats->failures, 0);
	fake_process_write_err(p, "mcpgated-remote: back\n");
	pass(0);
	assert_false(server_is_failing(&servers[0]));
	assert_int_equal(count_logged("server_recovered"), 1);
	fake_process_write_err(p, "mcpgated-remote: away: no route\n");
	pass(0);
	assert_int_equal(servers[0].away, 1);
	exits(p, 0); /* the next one will tell */
	assert_int_equal(servers[0].away, 0);
}

/* A server may have left no cause: the line is the first that is said. */
static void last_line_may_be_all(void **state)
{
	char *alone = strndup("x", 1);

	server_note_away(&servers[0], slice_of("\0", 1));
	assert_string_equal(servers[0].stats->failure, "");
	server_note_last_line(&servers[0], slice_str(alone));
	assert_string_equal(servers[0].stats->failure, "x");
	free(alone);
}

/* BACK-URL-09: what one has not heard yet, another knows. */
static void another_process_finds_it_back(void **state)
{
	struct fake_process *first = begin(), *second = begin();

	fake_process_write_err(first, "mcpgated-remote: away: no route\n");
	pass(0);
	fake_process_write_err(second, "mcpgated-remote: away: \xC3\xA9\x1b[31m\n");
	pass(0);
	assert_int_equal(servers[0].away, 2);
	assert_null(strchr(servers[0].stats->failure, '\x1b'));
	fake_process_write_err(second, "mcpgated-remote: back\n");
	pass(0);
	assert_int_equal(servers[0].away, 0);
	exits(first, 0);
	exits(second, 0);
}

/* BACK-URL-09 */
static void refused_credential_may_be_one_callers(void **state)
{
	static const struct slice claim = SLICE("sub");

	for (size_t claims = 0; claims < 2; claims++) {
		struct fake_process *p = begin();

		servers[0].conf.claims = (struct slices){ &claim, claims };
		fake_process_write_err(p, "mcpgated-remote: refused: status 401\n");
		pass(0);
		assert_int_equal(servers[0].away, 1 - claims);
		exits(p, 0);
	}
}

/* The first reason is the one; what the gateway did then is none. */
static void first_reason_counts(void **state)
{
	struct fake_process *p = begin();

	child_note_failure(child, "it is of no use");
	child_note_failure(child, "it was refused");
	child_kill(child, REASON_HANDSHAKE_REFUSED);
	settle();
	assert_int_equal(p->last_signal, SIGKILL);
	exits(p, SIGKILL);
	assert_true(is_logged("child_failed server=test "));
	assert_true(is_logged(" error=\"it is of no use\" exit=- "));
	assert_false(is_logged("it was refused"));
	assert_int_equal(servers[0].stats->failures, 1);
}

/* Long last words begin with a whole line. */
static void last_words_are_whole_lines(void **state)
{
	struct fake_process *p = begin();
	struct slice words;

	for (int i = 0; i < 200; i++) {
		char line[32];

		snprintf(line, sizeof(line), "line %03d of many\n", i);
		fake_process_write_err(p, line);
	}
	pass(0);
	words = child_last_words(child);
	assert_in_range(words.n, 600, 700);
	assert_true(slice_has_prefix(words, SLICE_LIT("line 1")));
	assert_memory_equal(words.p + words.n - 16, "line 199 of many", 16);
}

/* What comes before the handshake is no failure: it is said when there is one, or a slow start. */
static void early_garbage_is_said_once_ready(void **state)
{
	begin();
	child->is_ready = false;
	child_note_garbage(child, SLICE_LIT("banner"), "not JSON");
	child_note_garbage(child, SLICE_LIT("more"), "not JSON");
	assert_false(is_logged("child_garbage"));
	child_note_ready(child);
	assert_int_equal(count_logged("child_garbage"), 1);
	assert_true(is_logged("line=banner"));
	assert_int_equal(child->garbage.len, 0);
}

static void garbage_is_logged_at_a_bounded_rate(void **state)
{
	begin();
	for (int i = 0; i < 200; i++)
		child_note_garbage(child, SLICE_LIT("banner"), "not JSON");
	assert_int_equal(count_logged("banner"), 50);
}

static void kill_all_reaches_every_child(void **state)
{
	struct fake_process *p = begin();

	child_kill_all(&servers[0], REASON_DRAINING);
	pass(0);
	assert_int_equal(p->last_signal, SIGKILL);
	exits(p, SIGKILL);
	assert_int_equal(gone, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- long lines ---- */

/* A long line is being taken, and another one has come behind it. */
static struct fake_process *begin_long(void)
{
	struct fake_process *p = begin();

	gives_way = true;
	write_fill(p, ASIDE_BYTES, 'x');
	fake_process_write(p, "\nnext\n");
	for (int i = 0; i < 10; i++)
		loop_turn(loop, false);
	assert_string_equal(lines, "");
	assert_true(aside_is_pending(&child->taking));
	assert_false(child_is_quiet(child));
	return p;
}

/* BACK-MSG-01: the order stays. */
static void long_line_keeps_others_waiting(void **state)
{
	struct fake_process *p = begin_long();

	fake_process_write(p, "last\n");
	loop_turn(loop, false);
	assert_string_equal(lines, "");
	gives_way = false;
	settle();
	assert_string_equal(lines, "65536|next|last|");
	assert_true(child_is_quiet(child));
}

static void process_ends_while_a_long_line_is_taken(void **state)
{
	struct fake_process *p = begin_long();

	fake_process_write(p, "last\n");
	fake_process_exit(&keeper, p, 0);
	for (int i = 0; i < 10; i++)
		loop_turn(loop, false);
	now_ms += 3 * DRAIN_MS;
	clock_freeze(now_ms);
	loop_turn(loop, false);
	assert_int_equal(lost + gone, 0);
	gives_way = false;
	settle();
	assert_string_equal(lines, "65536|next|last|");
	assert_int_equal(lost, 1);
	assert_int_equal(gone, 1);
}

static void stopped_while_a_long_line_is_taken(void **state)
{
	struct fake_process *p = begin_long();

	child_kill(child, REASON_SESSION_END);
	fake_process_exit(&keeper, p, 0);
	for (int i = 0; i < 10; i++)
		loop_turn(loop, false);
	assert_int_equal(gone, 0);
	gives_way = false;
	settle();
	assert_string_equal(lines, "65536|");
	assert_int_equal(lost, 0);
	assert_int_equal(gone, 1);
}

static void long_last_line_may_lack_its_end(void **state)
{
	struct fake_process *p = begin();

	write_fill(p, ASIDE_BYTES, 'x');
	exits(p, 0);
	assert_string_equal(lines, "65536|");
	assert_int_equal(gone, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(runs_when_the_keeper_says),
		TEST(failed_start_is_told),
		TEST(stopped_before_it_runs),
		TEST(lines_are_cut_and_stripped),
		TEST(longest_line_passes),
		TEST(longer_line_comes_in_parts),
		TEST(longer_line_kills),
		TEST(endless_line_kills),
		TEST(longer_line_at_the_start_kills),
		TEST(longer_line_in_one_piece),
		TEST(last_line_needs_no_end),
		TEST(stopped_inside_a_line),
		TEST(writes_leave_at_the_end_of_the_turn),
		TEST(descriptors_may_run_out),
		TEST(hung_process_is_given_up),
		TEST(flood_of_answers_is_bounded),
		TEST(closed_stdin_is_the_end),
		TEST(closed_stdout_is_the_end),
		TEST(stop_goes_step_by_step),
		TEST(output_is_drained_while_stopping),
		TEST(kill_is_one_step),
		TEST(exit_before_the_end_of_output),
		TEST(grandchild_may_keep_the_pipe),
		TEST(stopped_and_then_exited),
		TEST(stderr_is_logged),
		TEST(last_words_are_read_at_the_end),
		TEST(stderr_is_bounded),
		TEST(stderr_ring_is_bounded),
		TEST(failed_start_is_one_line),
		TEST(failed_start_behind_a_url),
		TEST(server_that_is_away),
		TEST(last_line_may_be_all),
		TEST(another_process_finds_it_back),
		TEST(refused_credential_may_be_one_callers),
		TEST(first_reason_counts),
		TEST(last_words_are_whole_lines),
		TEST(early_garbage_is_said_once_ready),
		TEST(garbage_is_logged_at_a_bounded_rate),
		TEST(kill_all_reaches_every_child),
		TEST(long_line_keeps_others_waiting),
		TEST(process_ends_while_a_long_line_is_taken),
		TEST(stopped_while_a_long_line_is_taken),
		TEST(long_last_line_may_lack_its_end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
