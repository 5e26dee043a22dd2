/* SPDX-License-Identifier: Apache-2.0 */
/* Streams alone: order, joining, bounds, readers that come, go, are replaced, and come back. */
#include "session/stream.c"

#include "base/buf.h"
#include "base/clock.h"
#include "base/unit_test.h"
#include "obs/counters.h"
#include "obs/log.h"

struct reader {
	struct stream_reader reader;
	unsigned int wakes;
	unsigned int detached;
	enum reason reason;
	size_t room; /* so many messages are taken when it is woken */
};

static struct loop *loop;
static struct stream stream;
static struct stream_budget budget;
static struct stream_conf conf;
static struct reader first, second;

static uint64_t number; /* of the message taken last */

static void on_wake(struct stream_reader *reader)
{
	struct reader *r = container_of(reader, struct reader, reader);
	struct msg *msg;

	r->wakes++;
	for (; r->room > 0 && (msg = stream_take(reader, &number)) != NULL; r->room--)
		msg_unref(&msg);
}

static void on_detached(struct stream_reader *reader, enum reason reason)
{
	struct reader *r = container_of(reader, struct reader, reader);

	r->detached++;
	r->reason = reason;
}

static const struct stream_reader_ops ops = { .on_wake = on_wake, .on_detached = on_detached };

static int setup(void **state)
{
	struct error err;

	first = second = (struct reader){ .wakes = 0 };
	clock_freeze(1000000);
	log_set(-1, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	loop = loop_new(&err);
	conf.max_bytes = 64 * 1024;
	conf.replay_events = 1024;
	conf.replay_age_ms = 60000;
	stream_budget_init(&budget, SIZE_MAX, NULL);
	stream_init(&stream, loop, &conf, &budget);
	return loop == NULL;
}

static int teardown(void **state)
{
	stream_fini(&stream);
	loop_free(&loop);
	return 0;
}

static void push(enum stream_kind kind, uint64_t key, const char *text)
{
	struct msg *msg = msg_new(slice_str(text));

	stream_push(&stream, kind, key, msg);
	msg_unref(&msg);
}

/* A message of `size` bytes that begins with `text`. */
static void push_big(enum stream_kind kind, uint64_t key, const char *text, size_t size)
{
	char *bytes = calloc(1, size + 1);

	memset(bytes, '.', size);
	memcpy(bytes, text, strlen(text));
	push(kind, key, bytes);
	free(bytes);
}

/* Everything that waits, each up to its first dot, joined by spaces. */
static const char *take_all(struct reader *reader)
{
	static char text[4096];
	struct msg *msg;
	size_t n = 0;

	text[0] = '\0';
	while ((msg = stream_take(&reader->reader, &number)) != NULL) {
		struct slice rest = msg->text;
		struct slice word = slice_cut(&rest, '.');

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s", n > 0 ? " " : "",
				      SLICE_ARG(word));
		msg_unref(&msg);
	}
	return text;
}

/* FRONT-SSE-11: each message once, in the order it came, whatever its kind. */
static void messages_keep_their_order(void **state)
{
	push(STREAM_RESPONSE, 0, "a");
	push(STREAM_PROGRESS, 0, "b");
	push(STREAM_REQUEST, 7, "c");
	push(STREAM_PROGRESS, 0, "d");
	push(STREAM_LOG, 0, "e");
	push(STREAM_NOTIFICATION, 0, "f");
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	assert_string_equal(take_all(&first), "a b c d e f");
	assert_null(stream_take(&first.reader, &number));
	assert_int_equal(stream.bytes, 0);
}

/* One wake for all that a turn brings, at its end; none when nothing is there. */
static void reader_is_woken_once_a_turn(void **state)
{
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	loop_turn(loop, false);
	assert_int_equal(first.wakes, 0);
	push(STREAM_LOG, 0, "a");
	push(STREAM_LOG, 0, "b");
	assert_int_equal(first.wakes, 0);
	loop_turn(loop, false);
	assert_int_equal(first.wakes, 1);
	loop_turn(loop, false);
	assert_int_equal(first.wakes, 1);
}

/* FRONT-GET-04: what came before the reader wakes it; notifications of one key are told once. */
static void messages_wait_and_news_are_joined(void **state)
{
	push(STREAM_NOTIFICATION, 11, "tools");
	push(STREAM_NOTIFICATION, 12, "uri");
	push(STREAM_NOTIFICATION, 0, "x");
	push(STREAM_NOTIFICATION, 0, "x");
	push(STREAM_NOTIFICATION, 11, "tools-again");
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	loop_turn(loop, false);
	assert_int_equal(first.wakes, 1);
	assert_string_equal(take_all(&first), "uri x x tools-again");
	push(STREAM_NOTIFICATION, 11, "tools");
	assert_string_equal(take_all(&first), "tools");
}

static void waiting_message_is_taken_back(void **state)
{
	push(STREAM_REQUEST, 1000001, "ask");
	push(STREAM_LOG, 0, "log");
	assert_true(stream_drop(&stream, 1000001));
	assert_false(stream_drop(&stream, 1000001));
	assert_false(stream_drop(&stream, 1000002));
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	assert_string_equal(take_all(&first), "log");
}

/* FRONT-GET-03: the older reader hears that it was taken over; what waits goes to the newer. */
static void second_reader_takes_over(void **state)
{
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	push(STREAM_LOG, 0, "a");
	assert_true(stream_attach(&stream, &second.reader, &ops, STREAM_FROM_HERE));
	assert_int_equal(first.detached, 1);
	assert_int_equal(first.reason, REASON_TAKEN_OVER);
	assert_null(stream_take(&first.reader, &number));
	loop_turn(loop, false);
	assert_int_equal(first.wakes, 0);
	assert_int_equal(second.wakes, 1);
	stream_detach(&first.reader); /* late, and of no effect on the newer */
	assert_true(stream_has_reader(&stream));
	assert_string_equal(take_all(&second), "a");
}

static void reader_that_leaves_is_not_called(void **state)
{
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	push(STREAM_LOG, 0, "a");
	stream_detach(&first.reader);
	stream_detach(&first.reader);
	loop_turn(loop, false);
	assert_int_equal(first.wakes + first.detached, 0);
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	assert_string_equal(take_all(&first), "a");
}

/* FRONT-SSE-13: progress goes first, then logs, then other notifications; requests and responses stay. */
static void full_stream_drops_by_importance(void **state)
{
	conf.max_bytes = 5000;
	push_big(STREAM_REQUEST, 1, "request", 1000);
	push_big(STREAM_NOTIFICATION, 2, "news", 1000);
	push_big(STREAM_LOG, 0, "log", 1000);
	push_big(STREAM_PROGRESS, 0, "progress1", 500);
	push_big(STREAM_PROGRESS, 0, "progress2", 500);
	push_big(STREAM_RESPONSE, 0, "response", 1000);
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	assert_string_equal(take_all(&first), "request news log progress2 response");
	stream_detach(&first.reader);

	push_big(STREAM_REQUEST, 1, "request", 1000);
	push_big(STREAM_NOTIFICATION, 2, "news", 1000);
	push_big(STREAM_LOG, 0, "log", 1000);
	push_big(STREAM_RESPONSE, 0, "response", 3000);
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	assert_string_equal(take_all(&first), "request response");
	assert_int_equal(first.detached, 0);
}

/* FRONT-SSE-13: what may not be dropped and does not fit ends the reader, and stays. */
static void overflow_ends_the_reader(void **state)
{
	conf.max_bytes = 5000;
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	push_big(STREAM_REQUEST, 1, "a", 3000);
	assert_int_equal(first.detached, 0);
	push_big(STREAM_REQUEST, 2, "b", 3000);
	assert_int_equal(first.detached, 1);
	assert_int_equal(first.reason, REASON_SLOW_READER);
	assert_true(stream_attach(&stream, &second.reader, &ops, STREAM_FROM_HERE));
	assert_string_equal(take_all(&second), "a b");
}

/* A response larger than the bound passes, or it never could. */
static void one_large_message_is_taken(void **state)
{
	conf.max_bytes = 1024;
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	push_big(STREAM_LOG, 0, "log", 500);
	push_big(STREAM_RESPONSE, 0, "response", 100000);
	assert_int_equal(first.detached, 0);
	assert_string_equal(take_all(&first), "response");
	push_big(STREAM_LOG, 0, "log", 5000);
	assert_string_equal(take_all(&first), "log");
}

/*
 * FRONT-SSE-13: a reader that has room is not slow because one turn brings more than may wait; nor is anything
 * dropped that it has room for.
 */
static void much_in_one_turn_is_taken(void **state)
{
	conf.max_bytes = 5000;
	first.room = 5;
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	push_big(STREAM_RESPONSE, 0, "large", 100000);
	assert_int_equal(first.wakes, 0);
	push_big(STREAM_RESPONSE, 0, "small", 10);
	assert_int_equal(first.detached, 0);
	assert_int_equal(number, 2);
	for (int i = 0; i < 4; i++)
		push_big(STREAM_PROGRESS, 0, "progress", 2000);
	assert_int_equal(number, 5);
	assert_string_equal(take_all(&first), "progress");
	push_big(STREAM_RESPONSE, 0, "large", 100000);
	push_big(STREAM_RESPONSE, 0, "small", 10);
	assert_int_equal(first.reason, REASON_SLOW_READER);
}

/* FRONT-OLD-04: nobody comes back, so that not even the last message is kept. */
static void nothing_is_kept_for_nobody(void **state)
{
	stream_keep_nothing(&stream);
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	push(STREAM_RESPONSE, 0, "a");
	push(STREAM_RESPONSE, 0, "b");
	assert_string_equal(take_all(&first), "a b");
	assert_int_equal(budget.bytes, 0);
	push(STREAM_RESPONSE, 0, "c");
	assert_string_equal(take_all(&first), "c");
	assert_int_equal(number, 3);
	assert_int_equal(budget.bytes, 0);
}

/* REL-24: a flood of small messages is bounded by what they cost, and costs little time. */
static void flood_is_bounded(void **state)
{
	uint64_t dropped = counter_get(COUNTER_STREAM_DROPPED);

	for (uint64_t i = 0; i < 200000; i++) {
		push(STREAM_NOTIFICATION, i + 1, "{}");
		push(STREAM_LOG, 0, "{}");
	}
	assert_true(stream.bytes <= conf.max_bytes);
	assert_true(stream.count <= conf.max_bytes / 32);
	assert_int_equal(counter_get(COUNTER_STREAM_DROPPED) - dropped, 400000 - stream.count);
}

/* FRONT-SSE-09: the end comes after what waits; nothing comes after the end. */
static void end_comes_last(void **state)
{
	push(STREAM_RESPONSE, 0, "a");
	stream_end(&stream, REASON_DONE);
	push(STREAM_LOG, 0, "b");
	assert_false(stream_is_drained(&stream, stream.taken));
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	loop_turn(loop, false);
	assert_int_equal(first.wakes, 1);
	assert_string_equal(take_all(&first), "a");
	assert_true(stream_is_drained(&stream, stream.taken));
	stream_end(&stream, REASON_EXPIRED);
	assert_int_equal(stream.end_reason, REASON_DONE);
}

static void empty_end_wakes_the_reader(void **state)
{
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	stream_end(&stream, REASON_DONE);
	loop_turn(loop, false);
	assert_int_equal(first.wakes, 1);
	assert_true(stream_is_drained(&stream, stream.taken));
}

/* ---- going on after a lost connection ---- */

static void push_letters(const char *letters)
{
	for (; *letters != '\0'; letters++)
		push(STREAM_RESPONSE, 0, (const char[]){ *letters, '\0' });
}

static const char *take_after(uint64_t after)
{
	stream_detach(&first.reader);
	assert_true(stream_attach(&stream, &first.reader, &ops, after));
	return take_all(&first);
}

/* FRONT-RES-01: numbers are given when messages are taken; what was dropped before leaves no gap. */
static void numbers_have_no_gap(void **state)
{
	push(STREAM_NOTIFICATION, 9, "old");
	push(STREAM_LOG, 7, "gone");
	push(STREAM_NOTIFICATION, 9, "new");
	assert_true(stream_drop(&stream, 7));
	push(STREAM_RESPONSE, 0, "end");
	assert_string_equal(take_after(STREAM_FROM_HERE), "new end");
	assert_int_equal(number, 2);
}

/* FRONT-RES-02, -05: from every cut on, what is missing comes once, and then what is new. */
static void every_cut_is_continued(void **state)
{
	static const char letters[] = "abcdefghij";

	push_letters(letters);
	take_after(STREAM_FROM_HERE);
	for (uint64_t cut = 0; cut <= 10; cut++) {
		char expected[40] = "";

		for (const char *c = letters + cut; *c != '\0'; c++)
			sprintf(expected + strlen(expected), "%s%c", expected[0] ? " " : "", *c);
		assert_string_equal(take_after(cut), expected);
	}
	take_after(4);
	push_letters("k");
	assert_string_equal(take_all(&first), "k");
	assert_int_equal(number, 11);
	assert_string_equal(take_after(9), "j k");
}

/* What was not taken yet when the connection broke follows what was. */
static void waiting_messages_follow_the_kept_ones(void **state)
{
	push_letters("ab");
	take_after(STREAM_FROM_HERE);
	stream_detach(&first.reader);
	push_letters("cd");
	assert_string_equal(take_after(1), "b c d");
	assert_string_equal(take_after(STREAM_FROM_HERE), "");
}

/* FRONT-RES-07: what is gone, and what never was, is refused. */
static void positions_out_of_range_are_refused(void **state)
{
	conf.replay_events = 2;
	push_letters("abcde");
	take_after(STREAM_FROM_HERE);
	stream_detach(&first.reader);
	assert_false(stream_attach(&stream, &first.reader, &ops, 0));
	assert_false(stream_attach(&stream, &first.reader, &ops, 2));
	assert_false(stream_attach(&stream, &first.reader, &ops, 6));
	assert_string_equal(take_after(3), "d e");
	assert_string_equal(take_after(5), "");
}

/*
 * CLU-SESS-04: a client has more than the copy of its stream says: that is not sent again; an answer is, which it cannot have;
 * and numbers go on behind what it has.
 */
static void what_the_client_has_is_passed_over(void **state)
{
	push(STREAM_PROGRESS, 0, "a");
	push(STREAM_LOG, 0, "b");
	push(STREAM_PROGRESS, 0, "c");
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	first.room = 1;
	loop_turn(loop, false);
	assert_int_equal(number, 1);
	stream_skip_to(&stream, 1);
	stream_skip_to(&stream, UINT64_MAX - 1);
	assert_int_equal(first.detached, 0);
	stream_skip_to(&stream, 2);
	assert_int_equal(first.reason, REASON_TAKEN_OVER);
	assert_int_equal(stream.taken, 2);
	assert_true(stream_attach(&stream, &second.reader, &ops, 0));
	assert_string_equal(take_all(&second), "a b c");
	push(STREAM_PROGRESS, 0, "d");
	push(STREAM_RESPONSE, 0, "answer");
	stream_end(&stream, REASON_DONE);
	stream_skip_to(&stream, 9);
	assert_int_equal(stream.kept_count, 0);
	assert_false(stream_is_drained(&stream, 9));
	assert_false(stream_attach(&stream, &first.reader, &ops, 8));
	assert_true(stream_attach(&stream, &first.reader, &ops, 9));
	assert_string_equal(take_all(&first), "answer");
	assert_int_equal(number, 10);
}

static void old_messages_are_forgotten(void **state)
{
	push_letters("ab");
	take_after(STREAM_FROM_HERE);
	clock_freeze(clock_now_ms() + conf.replay_age_ms + 1);
	push_letters("c");
	take_all(&first);
	stream_detach(&first.reader);
	assert_false(stream_attach(&stream, &first.reader, &ops, 0));
	assert_string_equal(take_after(2), "c");
}

/* FRONT-RES-08: the last message is the response; no bound takes it. */
static void last_message_is_kept(void **state)
{
	conf.max_bytes = 1;
	push_letters("ab");
	take_after(STREAM_FROM_HERE);
	assert_string_equal(take_after(1), "b");
	assert_int_equal(stream.kept_count, 1);
}

/* A reader that is still being told the past does not lose it to the bounds. */
static void past_is_kept_for_its_reader(void **state)
{
	struct msg *msg;

	push_letters("abc");
	take_after(STREAM_FROM_HERE);
	stream_detach(&first.reader);
	assert_true(stream_attach(&stream, &first.reader, &ops, 0));
	conf.replay_events = 1;
	msg = stream_take(&first.reader, &number);
	assert_int_equal(number, 1);
	msg_unref(&msg);
	assert_string_equal(take_all(&first), "b c");
	assert_int_equal(stream.kept_count, 1);
}

/* The memory may go right after stream_fini, also with a wake under way. */
static void fini_leaves_nothing(void **state)
{
	struct stream *other = malloc(sizeof(*other));
	struct msg *msg = msg_new(SLICE_LIT("a"));

	stream_init(other, loop, &conf, &budget);
	assert_true(stream_attach(other, &first.reader, &ops, STREAM_FROM_HERE));
	stream_push(other, STREAM_LOG, 5, msg);
	stream_end(other, REASON_EXPIRED);
	stream_fini(other);
	assert_int_equal(first.detached, 1);
	assert_int_equal(first.reason, REASON_EXPIRED);
	assert_int_equal(first.wakes, 1);
	assert_int_equal(msg->refs, 1);
	free(other);
	loop_turn(loop, false);
	assert_int_equal(first.wakes, 1);
	msg_unref(&msg);
}

/* Pushes a message and takes it at once: it is kept. */
static void keep(struct stream *into, enum stream_kind kind, size_t size)
{
	char *bytes = calloc(1, size);
	struct msg *msg = msg_new(slice_of(bytes, size));

	free(bytes);
	stream_push(into, kind, 0, msg);
	msg_unref(&msg);
	assert_true(stream_attach(into, &first.reader, &ops, STREAM_FROM_HERE));
	msg = stream_take(&first.reader, &number);
	assert_non_null(msg);
	msg_unref(&msg);
	stream_detach(&first.reader);
}

static bool can_come_back(struct stream *to, uint64_t after)
{
	bool can = stream_attach(to, &second.reader, &ops, after);

	stream_detach(&second.reader);
	return can;
}

#define KILO 1024

/* FRONT-RES-08: over a shared ceiling progress goes first, whose stream it ever is, the answer last. */
static void budget_takes_what_matters_least(void **state)
{
	struct stream old;

	budget.max_bytes = 8 * KILO;
	stream_init(&old, loop, &conf, &budget);
	keep(&old, STREAM_RESPONSE, KILO);
	stream_end(&old, REASON_DONE);
	for (int i = 0; i < 4; i++)
		keep(&stream, STREAM_PROGRESS, KILO);
	keep(&stream, STREAM_LOG, KILO);
	assert_true(can_come_back(&stream, 0));
	keep(&stream, STREAM_NOTIFICATION, 3 * KILO);
	assert_true(budget.bytes <= budget.max_bytes);
	assert_false(can_come_back(&stream, 1)); /* progress went, from its beginning */
	assert_true(can_come_back(&stream, 4));
	assert_true(can_come_back(&old, 0));
	keep(&stream, STREAM_REQUEST, 5 * KILO);
	assert_false(can_come_back(&stream, 5)); /* then the log line and the notification */
	assert_true(can_come_back(&stream, 6));
	assert_true(can_come_back(&old, 0));
	keep(&stream, STREAM_REQUEST, 4 * KILO);
	assert_false(can_come_back(&stream, 6)); /* then requests, and there it ends: this fits */
	assert_true(can_come_back(&old, 0));
	keep(&stream, STREAM_RESPONSE, 8 * KILO);
	keep(&stream, STREAM_RESPONSE, 1);
	assert_false(can_come_back(&old, 0));
	assert_true(can_come_back(&old, 1));
	assert_true(budget.bytes <= budget.max_bytes);
	stream_fini(&old);
}

/* FRONT-RES-08, FRONT-SSE-13: messages that wait count as well, and are given up in the same order. */
static void budget_counts_what_waits(void **state)
{
	struct stream other;

	budget.max_bytes = 4 * KILO;
	stream_init(&other, loop, &conf, &budget);
	push_big(STREAM_PROGRESS, 0, "p", KILO);
	push_big(STREAM_RESPONSE, 0, "r", KILO);
	keep(&other, STREAM_LOG, KILO);
	keep(&other, STREAM_LOG, 2 * KILO);
	assert_true(stream_attach(&stream, &first.reader, &ops, STREAM_FROM_HERE));
	assert_string_equal(take_all(&first), "r");
	assert_false(can_come_back(&other, 0));
	assert_true(can_come_back(&other, 1));
	stream_detach(&first.reader);
	stream_fini(&other);
	stream_fini(&stream);
	assert_int_equal(budget.bytes, 0);
	stream_init(&stream, loop, &conf, &budget);
}

/* FRONT-RES-07: the answer that nobody came for is given up last, and who comes then is told so. */
static void budget_takes_unread_answers_last(void **state)
{
	struct stream other;

	budget.max_bytes = 3 * KILO;
	stream_init(&other, loop, &conf, &budget);
	push_big(STREAM_RESPONSE, 0, "r", KILO);
	stream_end(&stream, REASON_DONE);
	assert_true(can_come_back(&stream, 0));
	keep(&other, STREAM_REQUEST, KILO);
	keep(&other, STREAM_REQUEST, KILO);
	assert_true(can_come_back(&stream, 0));
	keep(&other, STREAM_RESPONSE, 2 * KILO);
	assert_false(can_come_back(&stream, 0));
	assert_false(stream_is_drained(&stream, 0));
	stream_fini(&other);
}

/* FRONT-SSE-13: a reader that comes too slowly for what it came back for is let go, with a reason. */
static void budget_ends_slow_readers(void **state)
{
	budget.max_bytes = 4 * KILO;
	keep(&stream, STREAM_NOTIFICATION, KILO);
	keep(&stream, STREAM_NOTIFICATION, KILO);
	assert_true(stream_attach(&stream, &second.reader, &ops, 0));
	push_big(STREAM_REQUEST, 0, "q", 3 * KILO);
	assert_int_equal(second.detached, 1);
	assert_int_equal(second.reason, REASON_SLOW_READER);
	assert_false(can_come_back(&stream, 0));
	assert_true(can_come_back(&stream, 2));
}

/* FRONT-SSE-13, FRONT-RES-08: kept answers fill the budget; who reads gets all that comes nevertheless. */
static void budget_drops_nothing_that_is_read(void **state)
{
	struct stream old;

	budget.max_bytes = 8 * KILO;
	stream_init(&old, loop, &conf, &budget);
	for (int i = 0; i < 6; i++)
		keep(&old, STREAM_RESPONSE, KILO);
	second.room = 3;
	assert_true(stream_attach(&stream, &second.reader, &ops, STREAM_FROM_HERE));
	push_big(STREAM_PROGRESS, 0, "a", KILO);
	assert_int_equal(second.wakes, 0); /* there is room for it */
	keep(&old, STREAM_RESPONSE, KILO);
	assert_int_equal(second.room, 2);
	push_big(STREAM_PROGRESS, 0, "b", 2 * KILO);
	push_big(STREAM_NOTIFICATION, 0, "c", 2 * KILO);
	assert_int_equal(second.room, 0);
	push_big(STREAM_NOTIFICATION, 0, "d", 3 * KILO);
	assert_int_equal(stream.count, 0); /* but who does not read loses it */
	assert_int_equal(second.detached, 0);
	assert_true(budget.bytes <= budget.max_bytes);
	stream_fini(&old);
}

/* FRONT-RES-08: the same for who comes back, and has not had his turn yet. */
static void budget_lets_resumed_readers_read(void **state)
{
	budget.max_bytes = 4 * KILO;
	keep(&stream, STREAM_NOTIFICATION, KILO);
	keep(&stream, STREAM_NOTIFICATION, KILO);
	second.room = 3;
	assert_true(stream_attach(&stream, &second.reader, &ops, 0));
	push_big(STREAM_REQUEST, 0, "q", 3 * KILO);
	assert_int_equal(second.detached, 0);
	assert_int_equal(number, 3);
	assert_true(budget.bytes <= budget.max_bytes);
}

/* FRONT-RES-08: a session's budget is a part of that of all. */
static void budgets_have_a_parent(void **state)
{
	struct stream_budget inner;
	struct stream own, sibling;

	budget.max_bytes = 4 * KILO;
	stream_budget_init(&inner, 2 * KILO, &budget);
	stream_init(&own, loop, &conf, &inner);
	stream_init(&sibling, loop, &conf, &inner);
	keep(&stream, STREAM_PROGRESS, KILO);
	keep(&own, STREAM_NOTIFICATION, KILO);
	keep(&sibling, STREAM_NOTIFICATION, KILO);
	assert_true(can_come_back(&stream, 0)); /* the inner one was full, not the outer */
	assert_false(can_come_back(&own, 0));
	assert_true(inner.bytes <= inner.max_bytes);
	assert_int_equal(budget.bytes, inner.bytes + stream.kept_bytes);
	stream_set_budget(&sibling, &budget);
	assert_int_equal(inner.bytes, 0);
	keep(&stream, STREAM_NOTIFICATION, 3 * KILO);
	assert_false(can_come_back(&stream, 0));
	assert_true(budget.bytes <= budget.max_bytes);
	stream_fini(&own);
	stream_fini(&sibling);
}

/* FRONT-RES-08: by age, also without anything happening on the stream. */
static void age_counts_without_new_messages(void **state)
{
	keep(&stream, STREAM_NOTIFICATION, 1);
	keep(&stream, STREAM_NOTIFICATION, 1);
	clock_freeze(clock_now_ms() + conf.replay_age_ms);
	assert_true(can_come_back(&stream, 0));
	clock_freeze(clock_now_ms() + 1);
	assert_false(can_come_back(&stream, 0));
	assert_true(can_come_back(&stream, 1)); /* the last one stays */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages_keep_their_order, setup, teardown),
		cmocka_unit_test_setup_teardown(reader_is_woken_once_a_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(messages_wait_and_news_are_joined, setup, teardown),
		cmocka_unit_test_setup_teardown(waiting_message_is_taken_back, setup, teardown),
		cmocka_unit_test_setup_teardown(second_reader_takes_over, setup, teardown),
		cmocka_unit_test_setup_teardown(reader_that_leaves_is_not_called, setup, teardown),
		cmocka_unit_test_setup_teardown(full_stream_drops_by_importance, setup, teardown),
		cmocka_unit_test_setup_teardown(overflow_ends_the_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(one_large_message_is_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(much_in_one_turn_is_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_kept_for_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(flood_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(end_comes_last, setup, teardown),
		cmocka_unit_test_setup_teardown(empty_end_wakes_the_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_have_no_gap, setup, teardown),
		cmocka_unit_test_setup_teardown(every_cut_is_continued, setup, teardown),
		cmocka_unit_test_setup_teardown(waiting_messages_follow_the_kept_ones, setup,
						teardown),
		cmocka_unit_test_setup_teardown(positions_out_of_range_are_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_the_client_has_is_passed_over, setup,
						teardown),
		cmocka_unit_test_setup_teardown(old_messages_are_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(last_message_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(past_is_kept_for_its_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(fini_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(budget_takes_what_matters_least, setup, teardown),
		cmocka_unit_test_setup_teardown(budget_counts_what_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(budget_takes_unread_answers_last, setup, teardown),
		cmocka_unit_test_setup_teardown(budget_ends_slow_readers, setup, teardown),
		cmocka_unit_test_setup_teardown(budget_drops_nothing_that_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(budget_lets_resumed_readers_read, setup, teardown),
		cmocka_unit_test_setup_teardown(budgets_have_a_parent, setup, teardown),
		cmocka_unit_test_setup_teardown(age_counts_without_new_messages, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
