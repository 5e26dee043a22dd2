/* SPDX-License-Identifier: Apache-2.0 */
/* What spans are when they reach a collector: their ids, parents, times and attributes. */
#include "trace/span.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/unit_test.h"
#include "obs/log.h"
#include "trace/exporter.h"
#include "trace/fake_fetcher.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"
#define INTERVAL_MS 100

static struct {
	struct loop *loop;
	struct exporter *exporter;
	struct fetch_client *client;
	json_t *body;
} world;

static const struct trace_parent sampled = { SLICE(TRACE), SLICE(PARENT), true };
static const struct trace_parent not_sampled = { SLICE(TRACE), SLICE(PARENT), false };

static int setup(void **state)
{
	static char name[] = "s";
	const struct exporter_conf conf = { 100, INTERVAL_MS, name };
	struct error err;

	log_set(2, LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	world.loop = loop_new(&err);
	assert_non_null(world.loop);
	world.exporter = exporter_new(world.loop);
	world.client = fake_fetcher_start(world.loop);
	exporter_use(world.exporter, world.client, &conf);
	return 0;
}

static int teardown(void **state)
{
	json_decref(world.body);
	world.body = NULL;
	exporter_free(&world.exporter);
	fake_fetcher_stop();
	loop_free(&world.loop);
	return 0;
}

static struct span *begin(const struct trace_parent *parent, const char *state)
{
	struct span *span = span_new(world.exporter, parent, slice_str(state));

	assert_non_null(span);
	span_set_name(span, SLICE_LIT("tools/call"), SLICE_LIT("a\"b"));
	return span;
}

static const char *text_of(size_t number, const char *member)
{
	return json_string_value(json_object_get(fake_fetcher_span(world.body, number), member));
}

static uint64_t time_of(size_t number, const char *member)
{
	const char *text = text_of(number, member);

	assert_non_null(text);
	return strtoull(text, NULL, 10);
}

static int number_of(size_t number, const char *member)
{
	const json_t *value = json_object_get(fake_fetcher_span(world.body, number), member);

	return value != NULL ? (int)json_integer_value(value) : -1;
}

static void take(size_t count)
{
	world.body = fake_fetcher_take();
	assert_int_equal(fake_fetcher_count(world.body), count);
}

static void a_call_is_two_spans(void **state)
{
	uint64_t before_ns = clock_wall_ns();
	struct span *span = begin(&sampled, "a=1");
	char parent[TRACE_PARENT_DIGITS + 1];
	struct trace_parent read;

	span_format_parent(span, parent);
	assert_true(trace_parent_read(slice_str(parent), &read));
	assert_true(read.is_sampled);
	span_note_sent(span);
	span_end(&span, slice_of(NULL, 0));
	assert_null(span);
	take(2);
	for (size_t i = 0; i < 2; i++) {
		assert_string_equal(text_of(i, "traceId"), TRACE);
		assert_string_equal(text_of(i, "name"), "tools/call a\"b");
		assert_string_equal(text_of(i, "traceState"), "a=1");
		assert_null(json_object_get(fake_fetcher_span(world.body, i), "status"));
		assert_int_equal(strlen(text_of(i, "spanId")), TRACE_SPAN_DIGITS);
		assert_true(time_of(i, "startTimeUnixNano") <= time_of(i, "endTimeUnixNano"));
	}
	assert_true(time_of(0, "startTimeUnixNano") >= before_ns);
	assert_true(time_of(0, "endTimeUnixNano") <= clock_wall_ns());
	assert_true(time_of(0, "startTimeUnixNano") <= time_of(1, "startTimeUnixNano"));
	assert_int_equal(time_of(0, "endTimeUnixNano"), time_of(1, "endTimeUnixNano"));
	assert_string_equal(text_of(0, "parentSpanId"), PARENT);
	assert_string_equal(text_of(1, "parentSpanId"), text_of(0, "spanId"));
	assert_true(slice_is_equal(read.span_id, slice_str(text_of(1, "spanId"))));
	assert_true(slice_is_equal(read.trace_id, SLICE_LIT(TRACE)));
	assert_int_equal(number_of(0, "kind"), 2);
	assert_int_equal(number_of(1, "kind"), 3);
	assert_int_equal(number_of(0, "flags"), 0x301);
	assert_int_equal(number_of(1, "flags"), 0x101);
}

static void what_was_not_sent_is_one(void **state)
{
	struct span *span = begin(NULL, "");

	span_end(&span, SLICE_LIT("timeout"));
	take(1);
	assert_null(text_of(0, "parentSpanId"));
	assert_null(text_of(0, "traceState"));
	assert_int_equal(strlen(text_of(0, "traceId")), TRACE_ID_DIGITS);
	assert_int_equal(number_of(0, "flags"), 0x101);
	assert_int_equal(json_integer_value(
				 json_object_get(json_object_get(fake_fetcher_span(world.body, 0),
								 "status"),
						 "code")),
			 2);
	assert_string_equal(fake_fetcher_attribute(fake_fetcher_span(world.body, 0), "error.type"),
			    "timeout");
}

static void who_samples_decides(void **state)
{
	static char name[] = "s";
	const struct exporter_conf none = { 0, INTERVAL_MS, name };
	struct span *span;

	assert_null(span_new(world.exporter, &not_sampled, slice_of(NULL, 0)));
	exporter_use(world.exporter, world.client, &none);
	assert_null(span_new(world.exporter, NULL, slice_of(NULL, 0)));
	span = begin(&sampled, "");
	assert_true(slice_is_equal(span_trace_id(span), SLICE_LIT(TRACE)));
	span_end(&span, slice_of(NULL, 0));
	span_end(&span, slice_of(NULL, 0)); /* it has */
	take(1);
}

static void what_is_said_is_said_of_which(void **state)
{
	static const char hostile[] = "\xff\n\"\\\xe2\x80\xa8";
	struct span *span = begin(NULL, "");
	char large[4 * SPAN_TEXT_BYTES_MAX];
	const json_t *first, *second;

	memset(large, 'x', sizeof(large));
	span_say(span, SPAN_GATEWAY, "a", SLICE_LIT("1"));
	span_say(span, SPAN_PROCESS, "b", slice_of(hostile, sizeof(hostile) - 1));
	span_say(span, SPAN_BOTH, "c", slice_of(large, sizeof(large)));
	span_say(span, SPAN_BOTH, "d", slice_of(NULL, 0));
	span_note_sent(span);
	span_end(&span, slice_of(NULL, 0));
	take(2);
	first = fake_fetcher_span(world.body, 0);
	second = fake_fetcher_span(world.body, 1);
	assert_string_equal(fake_fetcher_attribute(first, "a"), "1");
	assert_null(fake_fetcher_attribute(second, "a"));
	assert_null(fake_fetcher_attribute(first, "b"));
	assert_string_equal(fake_fetcher_attribute(second, "b"), "\xef\xbf\xbd\n\"\\\xe2\x80\xa8");
	assert_int_equal(strlen(fake_fetcher_attribute(first, "c")), SPAN_TEXT_BYTES_MAX);
	assert_null(fake_fetcher_attribute(first, "d"));
}

static void names_are_bounded(void **state)
{
	struct span *span = begin(NULL, "");
	char large[4 * SPAN_TEXT_BYTES_MAX];

	memset(large, 'x', sizeof(large));
	span_set_name(span, SLICE_LIT("m"), slice_of(large, sizeof(large)));
	span_end(&span, slice_of(NULL, 0));
	take(1);
	assert_int_equal(strlen(text_of(0, "name")), 2 + SPAN_TEXT_BYTES_MAX);
}

/* What a process that has gone was sent, another one is sent again: its span begins where the first one did. */
static void a_call_is_sent_again(void **state)
{
	uint64_t before_ns = clock_monotonic_ns(), took_ns;
	struct span *span = begin(NULL, "");

	span_note_sent(span);
	took_ns = clock_monotonic_ns() - before_ns;
	while (clock_monotonic_ns() <= before_ns + 2 * took_ns)
		;
	span_note_sent(span);
	span_end(&span, slice_of(NULL, 0));
	take(2);
	assert_in_range(time_of(1, "startTimeUnixNano") - time_of(0, "startTimeUnixNano"), 0,
			took_ns);
}

/* The one who sends it may be later than the one who was asked. */
static void one_may_be_handed_on(void **state)
{
	struct span *span = begin(&sampled, "a=1"), *other;

	span_say(span, SPAN_BOTH, "a", SLICE_LIT("1"));
	other = span_hand_on(span);
	span_end(&span, slice_of(NULL, 0));
	span_note_sent(other);
	span_end(&other, SLICE_LIT("gone"));
	take(2);
	assert_int_equal(number_of(0, "kind"), 2);
	assert_int_equal(number_of(1, "kind"), 3);
	assert_string_equal(text_of(1, "parentSpanId"), text_of(0, "spanId"));
	assert_string_equal(text_of(1, "traceId"), TRACE);
	assert_string_equal(text_of(1, "name"), "tools/call a\"b");
	assert_string_equal(fake_fetcher_attribute(fake_fetcher_span(world.body, 1), "a"), "1");
	assert_null(fake_fetcher_attribute(fake_fetcher_span(world.body, 0), "error.type"));
	assert_non_null(fake_fetcher_attribute(fake_fetcher_span(world.body, 1), "error.type"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_call_is_two_spans),  TEST(what_was_not_sent_is_one),
		TEST(who_samples_decides),  TEST(what_is_said_is_said_of_which),
		TEST(one_may_be_handed_on), TEST(names_are_bounded),
		TEST(a_call_is_sent_again),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
