/* SPDX-License-Identifier: Apache-2.0 */
/* Event streams as servers write them, whole and cut at every place. WHATWG HTML §9.2.6. */
#include "remote/event_reader.h"

#include "base/unit_test.h"

#define MOST 64

static struct event_reader new_reader(void)
{
	return (struct event_reader){ .most = MOST, .retry_ms = EVENT_RETRY_NONE };
}

static void note(const struct server_event *event, void *arg)
{
	struct buf *seen = arg;

	buf_append_slice(seen, event->name);
	buf_append_char(seen, '=');
	buf_append_slice(seen, event->data);
	buf_append_char(seen, ';');
}

/* In pieces of `size` bytes. */
static int feed(struct event_reader *reader, const char *text, size_t size, struct buf *seen)
{
	struct slice rest = slice_str(text);

	while (rest.n > 0) {
		size_t n = size < rest.n ? size : rest.n;

		if (event_reader_take(reader, slice_of(rest.p, n), note, seen) < 0)
			return -1;
		rest = slice_of(rest.p + n, rest.n - n);
	}
	return 0;
}

static void assert_read(const char *text, const char *want, const char *last_id)
{
	for (size_t size = 1; size <= strlen(text); size++) {
		struct event_reader reader = new_reader();
		struct buf seen = { 0 };

		assert_int_equal(feed(&reader, text, size, &seen), 0);
		assert_string_equal(buf_terminate(&seen), want);
		assert_string_equal(buf_terminate(&reader.last_id), last_id);
		buf_fini(&seen);
		event_reader_fini(&reader);
	}
}

static void events_are_read_however_they_are_cut(void **state)
{
	(void)state;
	assert_read("data: a\n\n", "message=a;", "");
	assert_read("data:a\r\rdata: b\r\n\r\n", "message=a;message=b;", "");
	assert_read("event: endpoint\ndata: /m?x=1\n\n", "endpoint=/m?x=1;", "");
	assert_read("data: {\ndata: }\n\n", "message={\n};", "");
	assert_read("\xef\xbb\xbf"
		    "data: a\n\n",
		    "message=a;", "");
	assert_read(": comment\nid\ndata\n\nother: x\ndata:  a\n\n", "message= a;", "");
}

/* What is not ended by an empty line never happened. */
static void an_id_counts_with_its_event(void **state)
{
	(void)state;
	assert_read("id: 1\ndata: a\n\nid: 2\ndata: b\n", "message=a;", "1");
	assert_read("id: 1\ndata:\n\n", "", "1");
	assert_read("id: 1\n\ndata: a\n\n", "message=a;", "1");
	assert_read("id: 1\ndata: a\n\nid\ndata: b\n\n", "message=a;message=b;", "");
	assert_read("id: 1\ndata: a\n\ndata: b\n\n", "message=a;message=b;", "1");
}

static void retry_is_a_number(void **state)
{
	struct event_reader reader = new_reader();
	struct buf seen = { 0 };

	(void)state;
	assert_int_equal(feed(&reader, "retry: 10x\n\n", 64, &seen), 0);
	assert_true(reader.retry_ms == EVENT_RETRY_NONE);
	assert_int_equal(feed(&reader, "retry: 250\nretry: -1\n\n", 64, &seen), 0);
	assert_int_equal(reader.retry_ms, 250);
	assert_int_equal(seen.len, 0);
	buf_fini(&seen);
	event_reader_fini(&reader);
}

/* At the bound and above it, in one line and in many. */
static void an_event_is_bounded(void **state)
{
	static const struct {
		size_t bytes, repeats;
		int result;
	} rows[] = { { MOST, 1, 0 },
		     { MOST + 1, 1, -1 },
		     { MOST / 4, 5, 0 },
		     { MOST / 4, 6, -1 },
		     { 6, MOST, -1 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct event_reader reader = new_reader();
		struct buf text = { 0 }, seen = { 0 };

		for (size_t j = 0; j < rows[i].repeats; j++) {
			buf_append_str(&text, "data:");
			while (text.len < (j + 1) * rows[i].bytes + j)
				buf_append_char(&text, 'x');
			buf_append_char(&text, '\n');
		}
		assert_int_equal(feed(&reader, buf_terminate(&text), 7, &seen), rows[i].result);
		buf_fini(&text);
		buf_fini(&seen);
		event_reader_fini(&reader);
	}
}

static void after_a_cut_it_begins_anew(void **state)
{
	struct event_reader reader = new_reader();
	struct buf seen = { 0 };

	(void)state;
	assert_int_equal(feed(&reader, "id: 7\ndata: a\n\nid: 8\nevent: x\ndata: b", 64, &seen), 0);
	event_reader_restart(&reader);
	assert_string_equal(buf_terminate(&reader.last_id), "7");
	assert_int_equal(feed(&reader, "data: c\n\n", 64, &seen), 0);
	assert_string_equal(buf_terminate(&seen), "message=a;message=c;");
	assert_string_equal(buf_terminate(&reader.last_id), "7");
	buf_fini(&seen);
	event_reader_fini(&reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_read_however_they_are_cut),
		cmocka_unit_test(an_id_counts_with_its_event),
		cmocka_unit_test(retry_is_a_number),
		cmocka_unit_test(an_event_is_bounded),
		cmocka_unit_test(after_a_cut_it_begins_anew),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
