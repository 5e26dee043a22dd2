/* SPDX-License-Identifier: Apache-2.0 */
/* How spans are gathered, sent, tried again and lost, by a clock that stands until a test moves it. */
#include "trace/exporter.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/unit_test.h"
#include "obs/counters.h"
#include "obs/log.h"
#include "trace/fake_fetcher.h"

#define INTERVAL_MS 5000
#define LONG_MS (2 * EXPORTER_PAUSE_MAX_MS)

static struct {
	struct loop *loop;
	struct fetch_client *client;
	struct exporter *exporter;
	uint64_t now_ms;
	uint64_t exported, lost; /* before the test */
} world;

static char service_name[] = "a \"name\"";
static const struct exporter_conf conf = { .sample_percent = 100,
					   .interval_ms = INTERVAL_MS,
					   .service_name = service_name };

static int setup(void **state)
{
	struct error err;

	log_set(2, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	world.now_ms += LONG_MS;
	clock_freeze(world.now_ms);
	world.loop = loop_new(&err);
	assert_non_null(world.loop);
	world.client = fake_fetcher_start(world.loop);
	world.exporter = exporter_new(world.loop);
	exporter_use(world.exporter, world.client, &conf);
	world.exported = counter_get(COUNTER_SPANS_EXPORTED);
	world.lost = counter_get(COUNTER_SPANS_LOST);
	return 0;
}

static int teardown(void **state)
{
	exporter_free(&world.exporter);
	fake_fetcher_stop();
	loop_free(&world.loop);
	return 0;
}

static void pass(uint64_t ms)
{
	world.now_ms += ms;
	clock_freeze(world.now_ms);
	loop_turn(world.loop, false);
}

static void add(size_t count)
{
	for (size_t i = 0; i < count; i++)
		exporter_add(world.exporter, SLICE_LIT("{\"name\":\"n\"}"));
}

static void takes(size_t count)
{
	json_t *body;

	assert_true(fake_fetcher_is_asked());
	body = fake_fetcher_take();
	assert_int_equal(fake_fetcher_count(body), count);
	json_decref(body);
}

static void counted(uint64_t exported, uint64_t lost)
{
	assert_int_equal(counter_get(COUNTER_SPANS_EXPORTED) - world.exported, exported);
	assert_int_equal(counter_get(COUNTER_SPANS_LOST) - world.lost, lost);
}

static void spans_wait_for_others(void **state)
{
	json_t *body;
	const json_t *resource;

	add(2);
	assert_true(exporter_is_busy(world.exporter));
	pass(INTERVAL_MS - 1);
	assert_false(fake_fetcher_is_asked());
	add(1);
	pass(1);
	assert_true(fake_fetcher_is_asked());
	body = fake_fetcher_take();
	assert_int_equal(fake_fetcher_count(body), 3);
	resource = json_object_get(json_array_get(json_object_get(body, "resourceSpans"), 0),
				   "resource");
	assert_string_equal(fake_fetcher_attribute(resource, "service.name"), service_name);
	assert_int_equal(strlen(fake_fetcher_attribute(resource, "service.instance.id")), 32);
	assert_non_null(fake_fetcher_attribute(resource, "service.version"));
	json_decref(body);
	counted(0, 0);
	fake_fetcher_answer(200, 0, "{}");
	counted(3, 0);
	assert_false(exporter_is_busy(world.exporter));
	pass(INTERVAL_MS);
	assert_false(fake_fetcher_is_asked());
}

static void a_full_batch_does_not_wait(void **state)
{
	add(EXPORTER_BATCH_SPANS + 1);
	takes(EXPORTER_BATCH_SPANS);
	add(3); /* one batch is under way: no other goes */
	fake_fetcher_answer(200, 0, "");
	assert_false(fake_fetcher_is_asked());
	pass(INTERVAL_MS);
	takes(4);
	fake_fetcher_answer(200, 0, "");
	counted(EXPORTER_BATCH_SPANS + 4, 0);
}

/* What comes while a batch is under way is no part of it. */
static void what_comes_meanwhile_goes_next(void **state)
{
	add(2);
	pass(INTERVAL_MS);
	takes(2);
	add(1);
	fake_fetcher_answer(200, 0, "");
	counted(2, 0);
	pass(INTERVAL_MS);
	takes(1);
	fake_fetcher_answer(200, 0, "");
	counted(3, 0);
}

static size_t count_lines(int fd)
{
	char text[4096];
	ssize_t n = pread(fd, text, sizeof(text), 0);
	size_t count = 0;

	assert_in_range(n, 0, sizeof(text) - 1);
	for (ssize_t i = 0; i < n; i++)
		count += text[i] == '\n';
	return count;
}

/* One line a minute, with how many there were until then. */
static void losses_are_told_of_now_and_then(void **state)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	log_set(fd, LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	exporter_use(world.exporter, NULL, &conf);
	add(3);
	assert_int_equal(count_lines(fd), 1);
	pass(60 * 1000);
	add(3);
	assert_int_equal(count_lines(fd), 2);
	counted(0, 6);
	log_set(2, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	close(fd);
}

static void what_waits_is_bounded(void **state)
{
	struct buf large = { 0 };

	add(EXPORTER_SPANS_MAX + 5);
	counted(0, 5);
	exporter_use(world.exporter, NULL, &conf);
	counted(0, EXPORTER_SPANS_MAX + 5);
	exporter_use(world.exporter, world.client, &conf);
	buf_append_char(&large, '"');
	for (size_t i = 0; i < EXPORTER_BATCH_BYTES / 2; i++)
		buf_append_char(&large, 'x');
	buf_append_char(&large, '"');
	for (int i = 0; i < 20; i++)
		exporter_add(world.exporter, buf_slice(&large));
	assert_in_range(counter_get(COUNTER_SPANS_LOST) - world.lost, EXPORTER_SPANS_MAX + 5 + 4,
			EXPORTER_SPANS_MAX + 5 + 6);
	takes(2); /* of so large ones few fit into one */
	buf_fini(&large);
}

static void a_collector_that_wants_a_pause_gets_it(void **state)
{
	add(1);
	pass(INTERVAL_MS);
	takes(1);
	fake_fetcher_answer(503, 20, "");
	add(2); /* they wait behind it */
	pass(19 * 1000);
	assert_false(fake_fetcher_is_asked());
	pass(2 * 1000);
	takes(1);
	fake_fetcher_answer(200, 0, "");
	pass(INTERVAL_MS);
	takes(2);
	fake_fetcher_answer(429, UINT32_MAX, ""); /* for ever */
	pass(EXPORTER_PAUSE_MAX_MS + 1000);
	takes(2);
	fake_fetcher_answer(200, 0, "");
	counted(3, 0);
}

static void what_is_not_taken_is_tried_again_for_a_while(void **state)
{
	uint64_t before_ms = 0, waited_ms;

	add(1);
	pass(INTERVAL_MS);
	for (int i = 0; i < EXPORTER_TRIES_MAX; i++) {
		takes(1);
		assert_true(exporter_is_failing(world.exporter) == (i > 0));
		fake_fetcher_answer(0, 0, "");
		for (waited_ms = 0; i < EXPORTER_TRIES_MAX - 1 && !fake_fetcher_is_asked();
		     waited_ms += 500)
			pass(500);
		assert_true(i == EXPORTER_TRIES_MAX - 1 || waited_ms > before_ms);
		assert_in_range(waited_ms, 0, EXPORTER_PAUSE_MAX_MS);
		before_ms = waited_ms;
	}
	counted(0, 1);
	assert_false(exporter_is_busy(world.exporter));
	add(1); /* no sooner than the next try would have been */
	pass(INTERVAL_MS);
	assert_false(fake_fetcher_is_asked());
	pass(LONG_MS);
	pass(INTERVAL_MS);
	takes(1);
}

static void what_is_refused_is_lost(void **state)
{
	static const int statuses[] = { 400, 401, 404, 413, 500, 301, 204 };

	for (size_t i = 0; i < 7; i++) {
		add(2);
		pass(INTERVAL_MS);
		takes(2);
		fake_fetcher_answer(statuses[i], 0, "");
		assert_false(exporter_is_busy(world.exporter));
	}
	counted(2, 12); /* 204 is a success */
}

/* Up to a bound, whole characters, and in one line. */
static void the_words_of_a_refusal_are_logged(void **state)
{
	static const struct {
		int status;
		const char *body;
		const char *said; /* as the log writes it */
	} rows[] = {
		{ 400, "{\"code\":3,\"message\":\"no  good\\nat all \"}", "\"no good at all\"\n" },
		{ 401, " who\r\n\tare you\n", "\"who are you\"\n" },
		{ 404, "{\"detail\":1}", "\"{\\\"detail\\\":1}\"\n" },
		{ 500, "", "\"\"\n" },
		{ 200, "{\"partialSuccess\":{\"rejectedSpans\":\"1\",\"errorMessage\":\"full\"}}",
		  "full\n" },
		{ 200, "{\"partialSuccess\":{\"rejectedSpans\":1}}", "\"\"\n" },
	};
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	log_set(ends[1], LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	for (size_t i = 0; i <= ARRAY_LEN(rows); i++) {
		static char text[4096];
		struct buf body = { 0 };
		const char *said;

		for (int n = 0; i == ARRAY_LEN(rows) && n < 400; n++)
			buf_append_str(&body, "\u00e4");
		add(1);
		pass(INTERVAL_MS);
		takes(1);
		fake_fetcher_answer(i < ARRAY_LEN(rows) ? rows[i].status : 400, 0,
				    i < ARRAY_LEN(rows) ? rows[i].body : buf_terminate(&body));
		text[read(ends[0], text, sizeof(text) - 1)] = '\0';
		said = strstr(text, "said=");
		assert_non_null(said);
		if (i < ARRAY_LEN(rows))
			assert_memory_equal(said + 5, rows[i].said, strlen(rows[i].said));
		else
			assert_in_range(strcspn(said + 5, "\n"), 190, 200);
		buf_fini(&body);
		world.now_ms += 60000; /* what is lost is told again */
	}
	log_set(2, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	close(ends[0]);
	close(ends[1]);
}

static void what_is_rejected_is_lost(void **state)
{
	static const struct {
		const char *body;
		int lost;
	} rows[] = {
		{ "{}", 0 },
		{ "{\"partialSuccess\":{}}", 0 },
		{ "{\"partialSuccess\":{\"rejectedSpans\":\"2\",\"errorMessage\":\"no\"}}", 2 },
		{ "{\"partialSuccess\":{\"rejectedSpans\":1}}", 1 },
		{ "{\"partialSuccess\":{\"rejectedSpans\":\"99999999999999999999\"}}", 3 },
		{ "{\"partialSuccess\":{\"rejectedSpans\":-1}}", 0 },
		{ "{\"partialSuccess\":{\"rejectedSpans\":[]}}", 0 },
		{ "{\"partialSuccess\":[1]}", 0 },
		{ "<html>", 0 },
	};
	uint64_t lost = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		add(3);
		pass(INTERVAL_MS);
		takes(3);
		fake_fetcher_answer(200, 0, rows[i].body);
		lost += (uint64_t)rows[i].lost;
		counted((i + 1) * 3 - lost, lost);
	}
}

/* As a reload does: what is on its way to the one before goes to the one that is in use now. */
static void another_collector_gets_what_waits(void **state)
{
	add(2);
	pass(INTERVAL_MS);
	takes(2);
	exporter_use(world.exporter, NULL, &conf);
	counted(0, 2);
	assert_false(exporter_samples(world.exporter));
	add(1);
	counted(0, 3);
	fake_fetcher_stop();
	world.client = fake_fetcher_start(world.loop);
	exporter_use(world.exporter, world.client, &conf);
	add(1);
	pass(INTERVAL_MS);
	takes(1);
}

/* What the one before has asked for, and how often it was tried there, is nothing to the next. */
static void another_collector_begins_anew(void **state)
{
	struct fetch_client *other = fetch_client_new(world.loop);

	add(1);
	pass(INTERVAL_MS);
	takes(1);
	fake_fetcher_answer(503, EXPORTER_PAUSE_MAX_MS / 1000, "");
	exporter_use(world.exporter, other, &conf);
	exporter_use(world.exporter, world.client, &conf);
	assert_false(fake_fetcher_is_asked());
	pass(INTERVAL_MS);
	for (int i = 1; i < EXPORTER_TRIES_MAX; i++) {
		takes(1);
		fake_fetcher_answer(0, 0, "");
		pass(EXPORTER_PAUSE_MAX_MS);
	}
	takes(1);
	counted(0, 0);
	fake_fetcher_answer(200, 0, "");
	counted(1, 0);
	fetch_client_free(&other);
}

static void at_the_end_nothing_waits(void **state)
{
	add(EXPORTER_BATCH_SPANS + 1);
	takes(EXPORTER_BATCH_SPANS);
	exporter_finish(world.exporter);
	fake_fetcher_answer(200, 0, "");
	takes(1);
	fake_fetcher_answer(503, 9, "");
	assert_false(exporter_is_busy(world.exporter));
	counted(EXPORTER_BATCH_SPANS, 1);
}

static void samples_are_as_many_as_wanted(void **state)
{
	struct exporter_conf part = conf;
	int count = 0;

	part.sample_percent = 0;
	exporter_use(world.exporter, world.client, &part);
	for (int i = 0; i < 1000; i++)
		assert_false(exporter_samples(world.exporter));
	part.sample_percent = 20;
	exporter_use(world.exporter, world.client, &part);
	for (int i = 0; i < 10000; i++)
		count += exporter_samples(world.exporter);
	assert_in_range(count, 1500, 2500);
	exporter_use(world.exporter, world.client, &conf);
	for (int i = 0; i < 1000; i++)
		assert_true(exporter_samples(world.exporter));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(spans_wait_for_others),
		TEST(a_full_batch_does_not_wait),
		TEST(what_comes_meanwhile_goes_next),
		TEST(losses_are_told_of_now_and_then),
		TEST(what_waits_is_bounded),
		TEST(a_collector_that_wants_a_pause_gets_it),
		TEST(what_is_not_taken_is_tried_again_for_a_while),
		TEST(what_is_refused_is_lost),
		TEST(the_words_of_a_refusal_are_logged),
		TEST(what_is_rejected_is_lost),
		TEST(another_collector_gets_what_waits),
		TEST(another_collector_begins_anew),
		TEST(at_the_end_nothing_waits),
		TEST(samples_are_as_many_as_wanted),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
