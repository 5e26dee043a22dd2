/* SPDX-License-Identifier: Apache-2.0 */
/* Which streams a client can come back to, and for how long. */
#include "session/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unit_test.h"
#include "obs/log.h"

static struct loop *loop;
static struct store_conf conf;
static struct store store;
static struct replay_store replay_store;

static void on_wake(struct stream_reader *reader)
{
}

static void on_detached(struct stream_reader *reader, enum reason reason)
{
}

static const struct stream_reader_ops ops = { on_wake, on_detached };

static int setup(void **state)
{
	struct error err;

	clock_freeze(1000000);
	log_set(-1, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	loop = loop_new(&err);
	conf = (struct store_conf){
		.stream = { .max_bytes = 65536, .replay_events = 100, .replay_age_ms = 60000 },
		.session_bytes = 65536,
		.total_bytes = 2 * 65536,
	};
	store_init(&store, loop, &conf);
	replay_store_init(&replay_store, &store, 1);
	return loop == NULL;
}

static int teardown(void **state)
{
	replay_store_fini(&replay_store);
	assert_int_equal(store.budget.bytes, 0);
	store_fini(&store);
	loop_free(&loop);
	return 0;
}

static void push(struct stream *stream, enum stream_kind kind, const char *text)
{
	struct msg *msg = msg_new(slice_str(text));

	stream_push(stream, kind, 0, msg);
	msg_unref(&msg);
}

/* A stream of which one message was seen. */
static struct stored_stream *open_seen(const char *id)
{
	struct stored_stream *stored = replay_store_open(&replay_store, slice_str(id), false);
	struct msg *msg = msg_new(SLICE_LIT("{}"));
	struct stream_reader reader;
	uint64_t number;

	stream_push(&stored->stream, STREAM_RESPONSE, 0, msg);
	msg_unref(&msg);
	assert_true(stream_attach(&stored->stream, &reader, &ops, STREAM_FROM_HERE));
	msg = stream_take(&reader, &number);
	msg_unref(&msg);
	stream_detach(&reader);
	return stored;
}

static bool is_found(uint64_t number)
{
	struct stored_stream *stored = replay_store_find(&replay_store, number);
	bool is_there = stored != NULL;

	stored_stream_unref(&stored);
	return is_there;
}

/* FRONT-RES-01, -02: each stream has a number of its own in its session. */
static void streams_are_found_by_number(void **state)
{
	struct stored_stream *a = open_seen("1");
	struct stored_stream *b = open_seen("\"x\"");
	struct stored_stream *found;

	assert_int_equal(a->number, 1);
	assert_int_equal(b->number, 2);
	found = replay_store_find(&replay_store, 2);
	assert_ptr_equal(found, b);
	assert_true(slice_is_equal(slice_of(found->request_id, found->request_id_length),
				   SLICE_LIT("\"x\"")));
	assert_false(is_found(3));
	assert_false(is_found(0));
	stored_stream_unref(&found);
	stored_stream_unref(&a);
	stored_stream_unref(&b);
	assert_null(a);
	assert_true(is_found(1)); /* still running: the replay store has it */
}

/* FRONT-RES-08: an ended stream stays for a while. */
static void ended_streams_expire(void **state)
{
	struct stored_stream *stored = open_seen("1");

	stored_stream_finish(stored, REASON_DONE);
	stored_stream_unref(&stored);
	assert_true(store.budget.bytes > 0);
	clock_freeze(clock_now_ms() + conf.stream.replay_age_ms - 1);
	loop_turn(loop, false);
	assert_true(is_found(1));
	clock_freeze(clock_now_ms() + 1);
	loop_turn(loop, false);
	assert_false(is_found(1));
	assert_true(slice_is_equal(replay_store_find_expired(&replay_store, 1),
				   SLICE_LIT("1"))); /* FRONT-RES-07 */
	assert_int_equal(replay_store_find_expired(&replay_store, 2).n, 0);
	for (size_t i = 1; i <= REPLAY_STORE_EXPIRED_MAX; i++) {
		assert_int_equal(replay_store_find_expired(&replay_store, 1).n, 1);
		stored = open_seen("2");
		stored_stream_finish(stored, REASON_DONE);
		stored_stream_unref(&stored);
		clock_freeze(clock_now_ms() + conf.stream.replay_age_ms);
		loop_turn(loop, false);
	}
	assert_int_equal(replay_store_find_expired(&replay_store, 1).n, 0);
	assert_int_equal(replay_store_find_expired(&replay_store, 2).n, 1);
}

/* CXL-01: nobody can come back to a stream of which he has seen nothing. */
static void unseen_streams_go_at_once(void **state)
{
	struct stored_stream *unseen = replay_store_open(&replay_store, SLICE_LIT("1"), false);
	struct stored_stream *primed = replay_store_open(&replay_store, SLICE_LIT("2"), true);

	stored_stream_finish(unseen, REASON_DONE);
	stored_stream_finish(primed, REASON_DONE);
	assert_false(is_found(1));
	assert_true(is_found(2));
	stored_stream_unref(&unseen);
	stored_stream_unref(&primed);
}

static void unseen_streams_stay_for_their_reader(void **state)
{
	struct stored_stream *stored = replay_store_open(&replay_store, SLICE_LIT("1"), false);
	struct stream_reader reader;

	assert_true(stream_attach(&stored->stream, &reader, &ops, STREAM_FROM_HERE));
	stored_stream_finish(stored, REASON_DONE);
	assert_true(is_found(1));
	stream_detach(&reader);
	stored_stream_unref(&stored);
}

/* Bounds: the stream that ended first goes first, one that runs stays. */
static void replay_store_is_bounded(void **state)
{
	struct stored_stream *running = open_seen("run");

	for (int i = 0; i < REPLAY_STORE_STREAMS_MAX + 5; i++) {
		struct stored_stream *stored = open_seen("1");

		stored_stream_finish(stored, REASON_DONE);
		stored_stream_unref(&stored);
	}
	assert_int_equal(replay_store.finished_count, REPLAY_STORE_STREAMS_MAX);
	assert_true(is_found(1));
	assert_false(is_found(6));
	assert_true(is_found(7));
	stored_stream_unref(&running);
}

static void finish(struct stored_stream *stored)
{
	stored_stream_finish(stored, REASON_DONE);
	stored_stream_unref(&stored);
}

/* FRONT-RES-08: what nobody has seen goes last; and the age of a stream counts from its end. */
static void unseen_answers_stay_longest(void **state)
{
	struct stored_stream *long_one = open_seen("long"), *unseen = open_seen("unseen");
	struct msg *msg = msg_new(SLICE_LIT("{}"));

	stream_push(&unseen->stream, STREAM_RESPONSE, 0, msg);
	msg_unref(&msg);
	finish(unseen);
	for (int i = 0; i < REPLAY_STORE_STREAMS_MAX + 5; i++)
		finish(open_seen("1"));
	finish(long_one);
	assert_int_equal(replay_store.finished_count, REPLAY_STORE_STREAMS_MAX);
	assert_true(is_found(1));
	assert_true(is_found(2));
	assert_false(is_found(9));
	assert_true(is_found(10));
}

/* FRONT-RES-08: if nothing else is left, the unseen ones are bounded, too. */
static void unseen_answers_are_bounded(void **state)
{
	for (int i = 0; i < REPLAY_STORE_STREAMS_MAX + 2; i++) {
		struct stored_stream *unseen = open_seen("1");
		struct msg *msg = msg_new(SLICE_LIT("{}"));

		stream_push(&unseen->stream, STREAM_RESPONSE, 0, msg);
		msg_unref(&msg);
		finish(unseen);
	}
	assert_int_equal(replay_store.finished_count, REPLAY_STORE_STREAMS_MAX);
	assert_false(is_found(2));
	assert_true(is_found(3));
}

/* An answer of this size, kept for a client that has lost its connection. */
static struct stored_stream *keep_answer(struct replay_store *of, size_t size)
{
	struct stored_stream *stored = replay_store_open(of, slice_str("1"), false);
	static char text[32768];
	struct msg *msg;

	memset(text, 'a', sizeof(text));
	msg = msg_new(slice_of(text, size));
	stored->is_known = true;
	stream_push(&stored->stream, STREAM_RESPONSE, 0, msg);
	msg_unref(&msg);
	stored_stream_finish(stored, REASON_DONE);
	return stored;
}

/* FRONT-RES-08, SEC-16: whoever has most of what is shared gives up its own, however old others' are. */
static void the_last_message_counts_for_its_caller(void **state)
{
	static char text[40000];
	struct replay_store other;
	struct stored_stream *large = keep_answer(&replay_store, 30000), *small;
	struct stored_stream *growing;

	memset(text, 'a', sizeof(text) - 1);
	replay_store_init(&other, &store, 2);
	growing = replay_store_open(&other, SLICE_LIT("1"), false);
	growing->is_known = true;
	push(&growing->stream, STREAM_NOTIFICATION, "{}");
	push(&growing->stream, STREAM_NOTIFICATION, text);
	store.budget.max_bytes = store.budget.bytes;
	small = keep_answer(&replay_store, 500);
	assert_int_equal(large->stream.count, 1);
	assert_int_equal(small->stream.count, 1);
	stored_stream_unref(&growing);
	replay_store_fini(&other);
	stored_stream_unref(&large);
	stored_stream_unref(&small);
}

static void the_largest_holder_pays(void **state)
{
	struct replay_store many[8];
	struct stored_stream *small = keep_answer(&replay_store, 500);

	for (size_t i = 0; i < ARRAY_LEN(many); i++) {
		struct stored_stream *large;

		replay_store_init(&many[i], &store, 2);
		large = keep_answer(&many[i], 30000);
		stored_stream_unref(&large);
	}
	assert_true(store.budget.bytes <= conf.total_bytes);
	assert_true(store.budget.bytes > conf.total_bytes / 2);
	assert_int_equal(small->stream.count, 1);
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		replay_store_fini(&many[i]);
	assert_int_equal(store.callers.count, 1);
	stored_stream_unref(&small);
}

/* FRONT-RES-03: with its session a stream is out of reach, but who still writes it may go on. */
static void session_takes_its_streams_along(void **state)
{
	struct stored_stream *stored = open_seen("1");

	replay_store_fini(&replay_store);
	assert_false(is_found(1));
	stored_stream_finish(stored, REASON_DONE);
	assert_true(stream_is_ended(&stored->stream));
	stored_stream_unref(&stored);
}

/* FRONT-RES-08: live streams count as well as ended ones, and what is old is found by itself. */
static void store_sweeps_what_is_old(void **state)
{
	struct stored_stream *running = open_seen("1");
	struct msg *msg = msg_new(SLICE_LIT("{}"));
	struct stream_reader reader;
	uint64_t number;
	size_t before;

	stream_push(&running->stream, STREAM_NOTIFICATION, 0, msg);
	msg_unref(&msg);
	assert_true(stream_attach(&running->stream, &reader, &ops, 1));
	msg = stream_take(&reader, &number);
	msg_unref(&msg);
	stream_detach(&reader);
	before = store.budget.bytes;
	assert_int_equal(running->stream.kept_count, 2);
	assert_int_equal(replay_store.budget.bytes, before);
	clock_freeze(clock_now_ms() + conf.stream.replay_age_ms * 2);
	loop_turn(loop, false);
	assert_int_equal(running->stream.kept_count, 1);
	assert_true(store.budget.bytes < before);
	stored_stream_unref(&running);
}

/* Another replay_age goes for streams that have ended, too. */
static void renewed_age_goes_for_ended_streams(void **state)
{
	struct stored_stream *stored = open_seen("1");

	stored_stream_finish(stored, REASON_DONE);
	stored_stream_unref(&stored);
	clock_freeze(clock_now_ms() + 30000);
	loop_turn(loop, false);
	conf.stream.replay_age_ms = 30001;
	store_renew(&store, 60000);
	loop_turn(loop, false);
	assert_true(is_found(1));
	conf.stream.replay_age_ms = 30000;
	store_renew(&store, 30001);
	loop_turn(loop, false);
	assert_true(is_found(1)); /* up to a 32nd longer */
	clock_freeze(clock_now_ms() + 1000);
	loop_turn(loop, false);
	assert_false(is_found(1));
}

/* ---- for another gateway ---- */

static struct stream_logs logs;
static struct stream own;

/* What the next gateway makes of the logs, with bounds of its own. */
static struct {
	struct store store;
	struct replay_store replay_store;
	struct stream own;
} next;

static struct stream_log_owner *on_found(void *arg, struct slice text)
{
	fail();
	return NULL;
}

static int setup_logs(void **state)
{
	int fd = memfd_create("logs", MFD_CLOEXEC);

	if (setup(state) != 0 || ftruncate(fd, (off_t)STREAM_LOG_FILE_BYTES) < 0)
		return -1;
	stream_logs_open(&logs, fd, on_found, NULL);
	close(fd);
	store.logs = &logs;
	stream_init(&own, loop, &conf.stream, &replay_store.budget);
	replay_store.epoch = 7;
	return 0;
}

static int teardown_logs(void **state)
{
	stream_fini(&own);
	if (teardown(state) != 0)
		return -1;
	assert_int_equal(logs.count, 0);
	stream_logs_fini(&logs);
	return 0;
}

static void next_begins(void)
{
	store_init(&next.store, loop, &conf);
	replay_store_init(&next.replay_store, &next.store, 1);
	stream_init(&next.own, loop, &conf.stream, &next.replay_store.budget);
}

static void next_reads_more(void)
{
	LIST_EACH(const struct stream_log, log, &replay_store.caller->logs.logs, link) {
		at_end(buf_fini) struct buf text = { 0 };

		stream_log_read(log, &text);
		assert_true(slice_is_equal(stream_log_name(buf_slice(&text)), SLICE_LIT("n")));
		replay_store_read(&next.replay_store, &next.own, buf_slice(&text));
	}
}

static void next_reads(void)
{
	next_begins();
	next_reads_more();
}

static void next_ends(void)
{
	stream_fini(&next.own);
	replay_store_fini(&next.replay_store);
	assert_int_equal(next.store.budget.bytes, 0);
	store_fini(&next.store);
}

/* All that a client could get of it, with the numbers of what it could get again; without questions that wait. */
static void describe(struct stream *stream, struct buf *out)
{
	const size_t kept_count = stream->kept_count;
	struct stream_reader reader;
	uint64_t number;
	struct msg *msg;

	out->len = 0;
	assert_true(stream_attach(stream, &reader, &ops, stream->taken - kept_count));
	for (size_t i = 0; (msg = stream_take(&reader, &number)) != NULL; i++) {
		if (i < kept_count)
			buf_printf(out, "%d:%.*s ", (int)number, SLICE_ARG(msg->text));
		else if (!slice_has_prefix(msg->text, SLICE_LIT("ask")))
			buf_printf(out, "%.*s ", SLICE_ARG(msg->text));
		msg_unref(&msg);
	}
	stream_detach(&reader);
}

static void take(struct stream *stream, size_t count)
{
	struct stream_reader reader;
	uint64_t number;

	assert_true(stream_attach(stream, &reader, &ops, STREAM_FROM_HERE));
	while (count-- > 0) {
		struct msg *msg = stream_take(&reader, &number);

		msg_unref(&msg);
	}
	stream_detach(&reader);
}

static void next_has(struct stream *stream, const char *expected)
{
	at_end(buf_fini) struct buf text = { 0 };

	assert_non_null(stream);
	describe(stream, &text);
	assert_string_equal(buf_terminate(&text), expected);
}

static void next_has_stored(uint64_t number, const char *expected)
{
	struct stored_stream *stored = replay_store_find(&next.replay_store, number);

	assert_non_null(stored);
	assert_true(stream_is_ended(&stored->stream));
	next_has(&stored->stream, expected);
	stored_stream_unref(&stored);
}

/* FRONT-RES-11: what a client has not got, and what it may ask for again; what ran ends with an error. */
static void another_gateway_goes_on(void **state)
{
	struct stored_stream *before = open_seen("0"), *ended, *running, *primed, *batch, *unseen;

	push(&before->stream, STREAM_RESPONSE, "late");
	stored_stream_finish(before, REASON_DONE);
	push(&own, STREAM_NOTIFICATION, "zero");
	replay_store_log(&replay_store, &own, SLICE_LIT("n"));
	ended = open_seen("1");
	running = open_seen("\"2\"");
	primed = replay_store_open(&replay_store, SLICE_LIT("3"), true);
	batch = open_seen("");
	unseen = replay_store_open(&replay_store, SLICE_LIT("5"), false);
	take(&own, 1);
	push(&own, STREAM_NOTIFICATION, "one");
	push(&own, STREAM_NOTIFICATION, "two");
	take(&own, 1);
	push(&own, STREAM_REQUEST, "ask");
	push(&own, STREAM_LOG, "three");
	push(&ended->stream, STREAM_RESPONSE, "answer");
	stored_stream_finish(ended, REASON_DONE);
	next_reads();
	assert_int_equal(next.replay_store.epoch, 7);
	assert_true(next.replay_store.last_number > 1000);
	next_has(&next.own, "1:zero 2:one two three ");
	next_has_stored(1, "1:{} late ");
	next_has_stored(2, "1:{} answer ");
#define LOST(id)                                                                                   \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":-32603,\"message\":\"The gateway " \
	"failed while the call was running; it may have been executed\",\"data\":{\"reason\":"     \
	"\"gateway_lost\"}}} "
	next_has_stored(3, "1:{} " LOST("\"2\""));
	next_has_stored(4, LOST("3"));
	next_has_stored(5, "1:{} ");
	assert_null(replay_store_find(&next.replay_store, 6)); /* nobody can name it */
	next_ends();
	stored_stream_unref(&before);
	stored_stream_unref(&ended);
	stored_stream_unref(&running);
	stored_stream_unref(&primed);
	stored_stream_unref(&batch);
	stored_stream_unref(&unseen);
}

/* Also what is taken of a stream that has ended; what was read is in logs again. */
static void what_has_ended_is_taken_later(void **state)
{
	struct stored_stream *stored;

	replay_store_log(&replay_store, &own, SLICE_LIT("n"));
	stored = open_seen("1");
	push(&stored->stream, STREAM_NOTIFICATION, "one");
	push(&stored->stream, STREAM_RESPONSE, "two");
	stored_stream_finish(stored, REASON_DONE);
	take(&stored->stream, 1);
	next_begins();
	next.store.logs = &logs;
	next_reads_more();
	replay_store_log(&next.replay_store, &next.own, SLICE_LIT("n"));
	assert_int_equal(logs.count, 2);
	next_has_stored(1, "1:{} 2:one two ");
	next_ends();
	assert_int_equal(logs.count, 1);
	stored_stream_unref(&stored);
}

/* If a stream's log was lost, none of its numbers is given again; nor is that of a stream. */
static void numbers_are_not_given_twice(void **state)
{
	struct stored_stream *stored, *later;

	replay_store_log(&replay_store, &own, SLICE_LIT("n"));
	push(&own, STREAM_NOTIFICATION, "one");
	take(&own, 1);
	stored = open_seen("1");
	stored_stream_finish(stored, REASON_DONE);
	stream_log_free(&own.log);
	next_reads();
	replay_store_log(&next.replay_store, &next.own, SLICE_LIT("n"));
	assert_true(next.own.taken > 1000);
	later = replay_store_open(&next.replay_store, SLICE_LIT("2"), true);
	assert_true(later->number > 1000);
	stored_stream_finish(later, REASON_DONE);
	stored_stream_unref(&later);
	next_ends();
	/* It is in a log again with the next occasion. */
	replay_store_log(&replay_store, &own, SLICE_LIT("n"));
	assert_non_null(own.log);
	next_reads();
	next_has(&next.own, "1:one ");
	next_ends();
	stored_stream_unref(&stored);
}

/* What is forgotten here, or was dropped, the next gateway does not have either; nobody finds a log then. */
static void logs_end_with_their_streams(void **state)
{
	struct stored_stream *stored;

	replay_store_log(&replay_store, &own, SLICE_LIT("n"));
	assert_int_equal(logs.count, 0); /* there is nothing yet */
	stored = open_seen("1");
	assert_int_equal(logs.count, 1);
	stored_stream_finish(stored, REASON_DONE);
	stored_stream_unref(&stored);
	assert_int_equal(logs.count, 1);
	clock_freeze(clock_now_ms() + 62000);
	loop_turn(loop, false);
	assert_int_equal(logs.count, 0);
	next_reads();
	assert_null(replay_store_find(&next.replay_store, 1));
	next_ends();
}

/* Whatever happens to a stream, another gateway reads from its log what it is now, and the log stays short. */
static void logs_say_what_is(void **state)
{
	unsigned int seed = 20261128;

	conf.stream = (struct stream_conf){ .max_bytes = 4096,
					    .replay_events = 9,
					    .replay_age_ms = 60000 };
	conf.session_bytes = conf.total_bytes = 1024 * 1024;
	replay_store.budget.max_bytes = conf.session_bytes;
	replay_store_log(&replay_store, &own, SLICE_LIT("n"));
	for (int round = 1; round <= 3000; round++) {
		char text[700];
		int kind = rand_r(&seed) % STREAM_KINDS;
		int n = rand_r(&seed) % 10 == 0 ? 600 : 5;
		at_end(msg_unref) struct msg *msg = NULL;

		snprintf(text, sizeof(text), "%s%0*d", kind == STREAM_REQUEST ? "ask" : "m", n,
			 round);
		msg = msg_new(slice_str(text));
		switch (rand_r(&seed) % 8) {
		case 0:
			take(&own, (size_t)rand_r(&seed) % 4);
			break;
		case 1:
			stream_drop(&own, 1 + (uint64_t)rand_r(&seed) % 5);
			break;
		case 2:
			stream_push(&own, (enum stream_kind)kind, 1 + (uint64_t)rand_r(&seed) % 5,
				    msg);
			break;
		default:
			stream_push(&own, (enum stream_kind)kind, 0, msg);
		}
		assert_true(own.log->size <= 4096 + 2 * 3 * 4096);
		if (round % 50 == 0) {
			at_end(buf_fini) struct buf here = { 0 }, there = { 0 };

			next_reads();
			describe(&next.own, &there);
			describe(&own, &here);
			assert_string_equal(buf_terminate(&here), buf_terminate(&there));
			assert_true(here.len > 0);
			next_ends();
		}
	}
}

/* With smaller bounds less is there, and no number means another message than before. */
static void other_bounds_make_no_holes(void **state)
{
	replay_store_log(&replay_store, &own, SLICE_LIT("n"));
	for (int i = 1; i <= 20; i++) {
		char text[128];

		snprintf(text, sizeof(text), "%0100d", i);
		push(&own, i % 3 == 0 ? STREAM_PROGRESS : STREAM_NOTIFICATION, text);
		take(&own, i % 4 == 0 ? 4 : 0);
	}
	for (size_t bytes = 100; bytes < 6000; bytes += 300) {
		at_end(buf_fini) struct buf text = { 0 };
		int last = 0, number, is;
		const char *at;

		conf.session_bytes = bytes;
		next_reads();
		assert_int_equal(next.own.taken, own.taken);
		describe(&next.own, &text);
		at = buf_terminate(&text);
		for (int n; sscanf(at, "%d:%d %n", &number, &is, &n) == 2; at += n) {
			assert_int_equal(number, is);
			assert_true(last == 0 || number == last + 1);
			last = number;
		}
		assert_true(last == 0 || last == 20);
		next_ends();
	}
	conf.session_bytes = 65536;
}

/* The other gateway may have been taken over: whatever it has left, the bounds hold. */
static void another_gateway_is_not_believed(void **state)
{
	static const char *const words[] = {
		"of n 7 0 1 \n",
		"of n 7 1 1 5\n",
		"of n 7 ",
		"first ",
		"kept ",
		"waits ",
		"taken ",
		"gone ",
		"first 9\n",
		"ended\n",
		"0 ",
		"1 ",
		"2 ",
		"3 ",
		"5 ",
		"4294967295 ",
		"9223372036854775807 ",
		"18446744073709551615 ",
		"x ",
		"\n",
		"\n",
		"m\n",
		"{\"a\":1}\n",
		"\n\n",
		"-1 ",
		" ",
	};
	unsigned int seed = 20260728;

	for (int round = 0; round < 3000; round++) {
		next_begins();
		for (int log = 0; log < 4; log++) {
			at_end(buf_fini) struct buf text = { 0 };

			buf_append_str(&text, words[(unsigned int)rand_r(&seed) % 3]);
			for (int i = 0; i < 40; i++)
				buf_append_str(&text, words[(unsigned int)rand_r(&seed) %
							    ARRAY_LEN(words)]);
			replay_store_read(&next.replay_store, &next.own, buf_slice(&text));
			(void)stream_log_name(buf_slice(&text));
		}
		assert_true(next.own.taken >= next.own.kept_count);
		assert_true(next.replay_store.finished_count <= REPLAY_STORE_STREAMS_MAX);
		next_ends();
	}
}

static void next_is_given(const char *text)
{
	replay_store_read(&next.replay_store, &next.own, slice_str(text));
}

/* Two logs of one stream, of another life of the session, of a number that no clock gives yet; a line end of SSE's. */
static void logs_that_do_not_fit_are_left(void **state)
{
	struct stored_stream *found;

	next_begins();
	next.store.logs = &logs;
	next_is_given("of n 7 0 1 \nfirst 0\n");
	next_is_given("of n 7 0 1 \nfirst 0\nwaits 1 2 twice\n");
	next_is_given("of n 8 3 1 5\nwaits 1 4 other\nended\n");
	next_is_given("of n 7 9000000000000000 1 5\nwaits 1 4 ahead\nended\n");
	next_is_given("of n 7 4 1 5\nwaits 1 4 a\rb\nended\n");
	next_is_given("of n 7 5 1 5\r6\nwaits 1 4 a\nended\n");
	next_is_given("of n 7 6 1 5\nwaits 1 4 fits\nended\n");
	next_has(&next.own, "");
	assert_int_equal(next.replay_store.epoch, 7);
	for (uint64_t number = 3; number <= 6; number++) {
		found = replay_store_find(&next.replay_store, number);
		assert_true((found != NULL) == (number == 6));
		stored_stream_unref(&found);
	}
	assert_null(replay_store_find(&next.replay_store, 9000000000000000));
	next_has_stored(6, "fits ");
	next_ends();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(streams_are_found_by_number, setup, teardown),
		cmocka_unit_test_setup_teardown(ended_streams_expire, setup, teardown),
		cmocka_unit_test_setup_teardown(unseen_streams_go_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(unseen_streams_stay_for_their_reader, setup,
						teardown),
		cmocka_unit_test_setup_teardown(replay_store_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(unseen_answers_stay_longest, setup, teardown),
		cmocka_unit_test_setup_teardown(unseen_answers_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(the_last_message_counts_for_its_caller, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_largest_holder_pays, setup, teardown),
		cmocka_unit_test_setup_teardown(session_takes_its_streams_along, setup, teardown),
		cmocka_unit_test_setup_teardown(store_sweeps_what_is_old, setup, teardown),
		cmocka_unit_test_setup_teardown(renewed_age_goes_for_ended_streams, setup,
						teardown),
		cmocka_unit_test_setup_teardown(another_gateway_goes_on, setup_logs, teardown_logs),
		cmocka_unit_test_setup_teardown(what_has_ended_is_taken_later, setup_logs,
						teardown_logs),
		cmocka_unit_test_setup_teardown(numbers_are_not_given_twice, setup_logs,
						teardown_logs),
		cmocka_unit_test_setup_teardown(logs_end_with_their_streams, setup_logs,
						teardown_logs),
		cmocka_unit_test_setup_teardown(logs_say_what_is, setup_logs, teardown_logs),
		cmocka_unit_test_setup_teardown(other_bounds_make_no_holes, setup_logs,
						teardown_logs),
		cmocka_unit_test_setup_teardown(another_gateway_is_not_believed, setup_logs,
						teardown_logs),
		cmocka_unit_test_setup_teardown(logs_that_do_not_fit_are_left, setup_logs,
						teardown_logs),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
