/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Audit lines: each is one JSON object of bounded length, whatever it contains; what does not fit
 * is counted. SEC-63
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/unit_test.h"
#include "obs/audit.h"
#include "obs/counters.h"

static struct {
	struct audit audit;
	int in;
	char text[3 * TEXT_LINE_BYTES];
} pipe_;

static int begin(void **state)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	pipe_.audit = (struct audit){ .fd = fds[1] };
	pipe_.in = fds[0];
	clock_update();
	return 0;
}

static int end(void **state)
{
	close(pipe_.audit.fd);
	close(pipe_.in);
	return 0;
}

/* Everything written since the last call. */
static const char *written(void)
{
	ssize_t n = read(pipe_.in, pipe_.text, sizeof(pipe_.text) - 1);

	pipe_.text[n > 0 ? n : 0] = '\0';
	return pipe_.text;
}

/* Finishes the line and returns what follows its time. */
static const char *write_line(struct text_line *line)
{
	assert_true(audit_write(&pipe_.audit, AUDIT_CALLS, 1, line));
	assert_memory_equal(written(), "{\"time\":\"20", 11);
	return pipe_.text + strlen("{\"time\":\"2026-01-02T03:04:05.678Z\"");
}

static void a_record_has_its_fields(void **state)
{
	struct text_line line;

	audit_line_begin(&line, "end");
	assert_true(audit_put_text(&line, AUDIT_VERDICT, slice_str("allowed")));
	assert_true(audit_put_text(&line, AUDIT_TOOL, slice_of(NULL, 0)));
	audit_put_number(&line, AUDIT_BYTES_IN, 0);
	audit_put_number(&line, AUDIT_BYTES_OUT, UINT64_MAX);
	audit_put_true(&line, AUDIT_TRUNCATED);
	assert_string_equal(write_line(&line),
			    ",\"v\":1,\"event\":\"end\",\"verdict\":\"allowed\",\"bytes_in\":0,"
			    "\"bytes_out\":9223372036854775807,\"arguments_truncated\":true}\n");
}

/* REL-48 */
static void foreign_text_is_escaped(void **state)
{
	static const struct {
		struct slice text;
		const char *shown;
	} rows[] = {
		{ SLICE("a\n{\"v\":1}"), "a\\u000a{\\\"v\\\":1}" },
		{ SLICE("\0\x1f\x7f"), "\\u0000\\u001f\\u007f" },
		{ SLICE("\\u0000"), "\\\\u0000" },
		{ SLICE("\xE2\x80\xAE\xE2\x80\xA8"), "\\u202e\\u2028" },
		{ SLICE("\xF3\xA0\x81\x81"), "\\udb40\\udc41" },
		{ SLICE("\xFFx\xC3"), "\\u00ffx\\u00c3" },
		{ SLICE("\xC3\xBC\xF0\x9F\x98\x80"), "\xC3\xBC\xF0\x9F\x98\x80" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct text_line line;
		char wanted[200];

		audit_line_begin(&line, "x");
		assert_true(audit_put_text(&line, AUDIT_TOOL, rows[i].text));
		snprintf(wanted, sizeof(wanted), ",\"v\":1,\"event\":\"x\",\"tool\":\"%s\"}\n",
			 rows[i].shown);
		assert_string_equal(write_line(&line), wanted);
	}
}

static void long_text_is_cut(void **state)
{
	char text[8192];
	struct text_line line;
	const char *found;

	memset(text, 'a', sizeof(text));
	audit_line_begin(&line, "x");
	assert_true(audit_put_text(&line, AUDIT_TOOL, slice_of(text, 256)));
	assert_false(audit_put_text(&line, AUDIT_PROMPT, slice_of(text, 257)));
	found = strstr(write_line(&line), "\"prompt\":\"");
	assert_non_null(found);
	assert_int_equal(strcspn(found + 10, "\""), 256 + 3);
}

/* A minimal parser for one object of strings, numbers and true. */
static bool is_object(const char *at)
{
	if (*at++ != '{')
		return false;
	for (;;) {
		if (*at++ != '"')
			return false;
		at += strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789");
		if (strncmp(at, "\":", 2) != 0)
			return false;
		at += 2;
		if (*at == '"') {
			for (at++; *at != '"'; at++) {
				if ((unsigned char)*at < ' ')
					return false;
				if (*at != '\\')
					continue;
				at++;
				if (strchr("\"\\u", *at) == NULL ||
				    (*at == 'u' && strspn(at + 1, "0123456789abcdef") < 4))
					return false;
			}
			at++;
		} else if (strncmp(at, "true", 4) == 0) {
			at += 4;
		} else {
			size_t n = strspn(at, "0123456789");

			if (n == 0)
				return false;
			at += n;
		}
		if (strcmp(at, "}\n") == 0)
			return true;
		if (*at++ != ',')
			return false;
	}
}

/* Whatever is put into the line, and however much. */
static void every_line_is_one_object(void **state)
{
	static const char pieces[][5] = { "a",
					  "\"",
					  "\\",
					  "\n",
					  "\x80",
					  "\xC3\xBC",
					  "\xE2\x80\x8B",
					  "\x1b",
					  "\xF3\xA0\x81\x81",
					  "}",
					  "u0" };
	uint32_t seed = 1;

	for (int round = 0; round < 3000; round++) {
		struct text_line line;

		audit_line_begin(&line, "x");
		for (int i = 0; i < 40; i++) {
			char text[1500] = "";
			size_t wanted, length = 0;
			enum audit_field field;

			seed = seed * 1103515245 + 12345;
			wanted = (seed >> 16) % (round % 2 == 0 ? 1400 : 40);
			seed = seed * 1103515245 + 12345;
			field = (seed >> 16) % AUDIT_FIELD_COUNT;
			while (length < wanted) {
				const char *piece;

				seed = seed * 1103515245 + 12345;
				piece = pieces[(seed >> 16) % ARRAY_LEN(pieces)];
				length += (size_t)snprintf(text + length, sizeof(text) - length,
							   "%s", piece);
			}
			(void)audit_put_text(&line, field, slice_of(text, wanted));
			audit_put_number(&line, field, seed);
		}
		assert_true(audit_write(&pipe_.audit, AUDIT_CALLS, 1, &line));
		assert_in_range(strlen(written()), 1, TEXT_LINE_BYTES);
		if (!is_object(pipe_.text))
			fail_msg("%s", pipe_.text);
	}
}

static void what_is_lost_is_told(void **state)
{
	uint64_t before = counter_get(COUNTER_AUDIT_LOST), lost = 0;
	struct text_line line;
	size_t count = 0;

	audit_line_begin(&line, "full");
	while (audit_write(&pipe_.audit, AUDIT_CALLS, 1, &line)) {
		audit_line_begin(&line, "full");
		assert_in_range(++count, 1, 1 << 20);
	}
	for (lost = 1; lost < 5; lost++) {
		audit_line_begin(&line, "lost now");
		assert_false(audit_write(&pipe_.audit, AUDIT_CALLS, 1, &line));
	}
	assert_int_equal(counter_get(COUNTER_AUDIT_LOST) - before, lost);
	while (written()[0] != '\0') { /* only whole lines, and none about lost ones */
		assert_null(strstr(pipe_.text, "lost"));
		assert_int_equal(pipe_.text[strlen(pipe_.text) - 1] == '\n' ||
					 strlen(pipe_.text) == sizeof(pipe_.text) - 1,
				 true);
	}
	audit_line_begin(&line, "again");
	assert_true(audit_write(&pipe_.audit, AUDIT_CALLS, 1, &line));
	assert_non_null(strstr(written(), "\"event\":\"lost\",\"lines\":5}\n{\"time\""));
	assert_non_null(strstr(pipe_.text, "\"event\":\"again\"}\n"));
	audit_line_begin(&line, "again");
	assert_null(strstr(write_line(&line), "lost"));
}

static unsigned int waitings;

static void on_waiting(struct audit *audit)
{
	assert_ptr_equal(audit, &pipe_.audit);
	waitings++;
}

/* A record with this number, padded to between RECORD_LEAST and RECORD_MOST bytes. */
#define RECORD_LEAST 560
#define RECORD_MOST 620

static bool put(enum audit_share share, size_t number)
{
	struct text_line line;
	char uri[500];

	memset(uri, 'u', sizeof(uri));
	audit_line_begin(&line, share == AUDIT_CALLS ? "end" : "refusal");
	audit_put_number(&line, AUDIT_LINES, number);
	audit_put_text(&line, AUDIT_RESOURCE, slice_of(uri, sizeof(uri)));
	return audit_write(&pipe_.audit, share, 1, &line);
}

/*
 * Reads all lines. The numbers of each share must continue from next_r. Returns how many lines are
 * of another kind.
 */
static size_t take(size_t next_r[AUDIT_SHARES])
{
	static char text[1 << 16];
	static size_t length;
	size_t others = 0;
	ssize_t n;

	length = 0;
	while ((n = read(pipe_.in, text + length, sizeof(text) - length)) > 0) {
		struct slice rest = slice_of(text, length + (size_t)n);

		while (rest.n > 0 && memchr(rest.p, '\n', rest.n) != NULL) {
			struct slice line = slice_cut(&rest, '\n');
			bool is_call = memmem(line.p, line.n, "\"end\"", 5) != NULL;
			bool is_refusal = memmem(line.p, line.n, "\"refusal\"", 9) != NULL;
			const char *number = memmem(line.p, line.n, "\"lines\":", 8);

			if (!is_call && !is_refusal) {
				others++;
				continue;
			}
			assert_int_equal(strtoul(number + 8, NULL, 10),
					 next_r[is_call ? AUDIT_CALLS : AUDIT_REFUSALS]);
			next_r[is_call ? AUDIT_CALLS : AUDIT_REFUSALS]++;
		}
		length = rest.n;
		if (length > 0)
			memmove(text, rest.p, length);
	}
	return others;
}

/* Unlimited refusals get only their part of the pipe, whatever their size; calls have the rest. */
static void refusals_leave_room_for_calls(void **state)
{
	size_t next[AUDIT_SHARES] = { 0 }, refused = 0, calls = 0;
	struct text_line line;

	pipe_.audit.pipe_bytes = 65536;
	while (put(AUDIT_REFUSALS, refused))
		refused++;
	assert_in_range(refused, 65536 / 4 / RECORD_MOST, 65536 / 4 / RECORD_LEAST + 1);
	while (put(AUDIT_CALLS, calls))
		calls++;
	assert_true(calls > refused * 2);
	assert_int_equal(take(next), 1); /* the report of the lost refusal */
	assert_int_equal(next[AUDIT_REFUSALS], refused);
	assert_int_equal(next[AUDIT_CALLS], calls);
	/* Lines that take a page each. */
	pipe_.audit.lost = 0;
	for (refused = 0; refused < 1000; refused++) {
		audit_line_begin(&line, "refusal");
		while (line.length < 2100)
			audit_put_text(&line, AUDIT_RESOURCE, slice_str("some/uri/of/some/length"));
		if (!audit_write(&pipe_.audit, AUDIT_REFUSALS, 1, &line))
			break;
	}
	pipe_.audit.lost = 0;
	for (calls = 0; put(AUDIT_CALLS, calls);)
		calls++;
	assert_true(calls > 65536 / 2 / (RECORD_MOST + 64));
}

static void what_waits_is_written_in_turns(void **state)
{
	size_t next[AUDIT_SHARES] = { 0 }, put_r[AUDIT_SHARES] = { 0 };
	bool is_empty = false;

	waitings = 0;
	pipe_.audit.pipe_bytes = 65536;
	pipe_.audit.on_waiting = on_waiting;
	assert_true(audit_drain(&pipe_.audit));
	while (put_r[AUDIT_CALLS] < 1000) {
		assert_true(put(AUDIT_CALLS, put_r[AUDIT_CALLS]++));
		assert_true(put(AUDIT_REFUSALS, put_r[AUDIT_REFUSALS]++));
	}
	assert_int_equal(waitings, 1);
	assert_false(audit_drain(&pipe_.audit));
	while (!is_empty) {
		size_t before = next[AUDIT_REFUSALS];

		assert_int_equal(take(next), 0);
		/* The pipe has room, but earlier lines go first. */
		if (put_r[AUDIT_CALLS] < 1010)
			assert_true(put(AUDIT_CALLS, put_r[AUDIT_CALLS]++));
		is_empty = audit_drain(&pipe_.audit);
		/* Both shares make progress as long as both wait. */
		assert_true(next[AUDIT_REFUSALS] > before || before == put_r[AUDIT_REFUSALS]);
	}
	assert_int_equal(take(next), 0);
	assert_int_equal(next[AUDIT_CALLS], put_r[AUDIT_CALLS]);
	assert_int_equal(next[AUDIT_REFUSALS], put_r[AUDIT_REFUSALS]);
	assert_int_equal(pipe_.audit.written, put_r[AUDIT_CALLS] + put_r[AUDIT_REFUSALS]);
	assert_true(put(AUDIT_CALLS, 0));
	assert_int_equal(waitings, 1);
}

static void what_waits_is_bounded(void **state)
{
	size_t next[AUDIT_SHARES] = { 0 }, calls = 0, refused = 0, lost;
	struct text_line line;

	pipe_.audit.pipe_bytes = 65536;
	pipe_.audit.on_waiting = on_waiting;
	while (put(AUDIT_REFUSALS, refused))
		assert_in_range(++refused, 1, (AUDIT_REFUSALS_WAITING_MAX + 65536) / RECORD_LEAST);
	while (put(AUDIT_CALLS, calls))
		assert_in_range(++calls, 1, (AUDIT_CALLS_WAITING_MAX + 65536) / RECORD_LEAST);
	assert_true(calls >
		    AUDIT_CALLS_WAITING_MAX / (RECORD_MOST + 64)); /* with what each costs */
	assert_true(refused > AUDIT_REFUSALS_WAITING_MAX / (RECORD_MOST + 64));
	assert_false(put(AUDIT_REFUSALS, refused));
	assert_int_equal(pipe_.audit.lost, 2); /* the first loss is already reported in the pipe */
	/* A record that must be written at once is not queued. */
	audit_line_begin(&line, "begin");
	assert_false(audit_write_now(&pipe_.audit, AUDIT_CALLS, &line));
	assert_in_range(take(next), 1, 2);
	audit_line_begin(&line, "begin");
	assert_true(audit_write_now(&pipe_.audit, AUDIT_CALLS, &line));
	assert_false(audit_drain(&pipe_.audit));
	assert_int_equal(take(next), 2); /* `lost`, and that record */
	/* audit_finish does not wait forever. */
	lost = calls - next[AUDIT_CALLS] + refused - next[AUDIT_REFUSALS];
	while (write(pipe_.audit.fd, pipe_.text, 4096) > 0)
		;
	audit_finish(&pipe_.audit);
	assert_int_equal(pipe_.audit.lost, lost);
	assert_true(audit_drain(&pipe_.audit));
}

static bool put_of(enum audit_share share, uint64_t caller, const char *tool)
{
	struct text_line line;
	char uri[500];

	memset(uri, 'u', sizeof(uri));
	audit_line_begin(&line, "end");
	audit_put_text(&line, AUDIT_TOOL, slice_str(tool));
	audit_put_text(&line, AUDIT_RESOURCE, slice_of(uri, sizeof(uri)));
	return audit_write(&pipe_.audit, share, caller, &line);
}

/* Reads and drains until nothing waits. Returns how many lines have this tool. */
static size_t take_all_of(const char *tool)
{
	static char text[1 << 20];
	size_t length = 0, count = 0;
	bool is_empty = false;
	ssize_t n;

	while (!is_empty) {
		is_empty = audit_drain(&pipe_.audit);
		length = 0;
		while ((n = read(pipe_.in, text + length, sizeof(text) - 1 - length)) > 0)
			length += (size_t)n;
		text[length] = '\0';
		for (const char *at = text; (at = strstr(at, tool)) != NULL; at++)
			count++;
	}
	return count;
}

/* SEC-63: whoever fills the memory loses its own records, whatever it fills it with. */
static void nobody_displaces_the_records_of_others(void **state)
{
	for (enum audit_share share = 0; share < AUDIT_SHARES; share++) {
		size_t count = 0;

		pipe_.audit.pipe_bytes = 65536;
		pipe_.audit.on_waiting = on_waiting;
		while (put_of(share, 1, "many"))
			assert_in_range(++count, 1, 20000);
		for (int i = 0; i < 50; i++) {
			assert_false(put_of(share, 2, "one_of_few")); /* others are lost */
			(void)put_of(share, 1, "many");
			assert_true(put_of((share + 1) % AUDIT_SHARES, 3, "one_of_few"));
		}
		assert_int_equal(take_all_of("one_of_few"), 100);
		pipe_.audit.lost = 0;
	}
}

/* What costs nothing does not keep required records of calls out of the pipe. */
static void others_leave_room_for_required_records(void **state)
{
	struct text_line line;
	int count = 0;

	pipe_.audit.pipe_bytes = 65536;
	for (;; count++) {
		audit_line_begin(&line, "begin");
		while (line.length < 2100)
			audit_put_text(&line, AUDIT_RESOURCE, slice_str("some/uri/of/some/length"));
		if (!audit_write_now(&pipe_.audit, AUDIT_OTHERS, &line))
			break;
	}
	assert_in_range(count, 2, 16);
	audit_line_begin(&line, "begin");
	assert_true(audit_write_now(&pipe_.audit, AUDIT_CALLS, &line));
}

static unsigned int gatherings;

static void on_gathering(struct audit *audit)
{
	assert_ptr_equal(audit, &pipe_.audit);
	gatherings++;
}

static void gather(const char *event)
{
	struct text_line line;

	audit_line_begin(&line, event);
	assert_true(audit_write(&pipe_.audit, AUDIT_CALLS, 1, &line));
}

static void records_are_gathered_and_flushed(void **state)
{
	size_t lines = 0, longest = 0;
	struct text_line line;

	gatherings = 0;
	pipe_.audit.on_gathering = on_gathering;
	assert_true(audit_flush(&pipe_.audit));
	assert_string_equal(written(), "");
	gather("one");
	gather("two");
	assert_int_equal(gatherings, 1);
	assert_string_equal(written(), "");
	assert_int_equal(pipe_.audit.written, 0);
	assert_true(audit_flush(&pipe_.audit));
	assert_non_null(strstr(written(), "\"event\":\"one\"}\n{\"time\""));
	assert_non_null(strstr(pipe_.text, "\"event\":\"two\"}\n"));
	assert_int_equal(pipe_.audit.written, 2);
	gather("three");
	assert_int_equal(gatherings, 2);
	/*
	 * When another line has no room, all are written together: at most as much as a pipe takes
	 * atomically.
	 */
	while (written()[0] == '\0') {
		gather("many");
		lines++;
	}
	longest = strlen(pipe_.text);
	assert_in_range(longest, AUDIT_GATHERED_BYTES / 2, AUDIT_GATHERED_BYTES);
	assert_int_equal(pipe_.text[longest - 1], '\n');
	assert_int_equal(pipe_.audit.written, 2 + lines);
	assert_int_equal(pipe_.audit.gathered_lines, 1);
	assert_int_equal(gatherings, 3);
	/* The longest possible line after others. */
	line_init(&line, sizeof(line.bytes));
	memset(line.bytes, 'x', sizeof(line.bytes) - 2);
	line.length = sizeof(line.bytes) - 2;
	assert_true(audit_write(&pipe_.audit, AUDIT_CALLS, 1, &line));
	assert_non_null(strstr(written(), "\"event\":\"many\"}\n"));
	assert_true(audit_flush(&pipe_.audit));
	assert_int_equal(strlen(written()), TEXT_LINE_BYTES);
}

static void what_was_gathered_is_lost_together(void **state)
{
	struct text_line line;

	pipe_.audit.on_gathering = on_gathering;
	while (write(pipe_.audit.fd, pipe_.text, 4096) > 0)
		;
	for (int i = 0; i < 5; i++)
		gather("late");
	assert_int_equal(pipe_.audit.lost, 0);
	assert_false(audit_flush(&pipe_.audit));
	assert_int_equal(pipe_.audit.lost, 5);
	assert_int_equal(pipe_.audit.gathered_lines, 0);
	assert_true(audit_flush(&pipe_.audit)); /* nothing is gathered */
	while (read(pipe_.in, pipe_.text, sizeof(pipe_.text)) > 0)
		;
	audit_line_begin(&line, "again");
	assert_true(audit_write(&pipe_.audit, AUDIT_CALLS, 1, &line));
	assert_true(audit_flush(&pipe_.audit));
	assert_non_null(strstr(written(), "\"event\":\"lost\",\"lines\":5}\n{\"time\""));
	assert_non_null(strstr(pipe_.text, "\"event\":\"again\"}\n"));
	assert_int_equal(pipe_.audit.written, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_record_has_its_fields, begin, end),
		cmocka_unit_test_setup_teardown(foreign_text_is_escaped, begin, end),
		cmocka_unit_test_setup_teardown(long_text_is_cut, begin, end),
		cmocka_unit_test_setup_teardown(every_line_is_one_object, begin, end),
		cmocka_unit_test_setup_teardown(what_is_lost_is_told, begin, end),
		cmocka_unit_test_setup_teardown(refusals_leave_room_for_calls, begin, end),
		cmocka_unit_test_setup_teardown(what_waits_is_written_in_turns, begin, end),
		cmocka_unit_test_setup_teardown(what_waits_is_bounded, begin, end),
		cmocka_unit_test_setup_teardown(nobody_displaces_the_records_of_others, begin, end),
		cmocka_unit_test_setup_teardown(others_leave_room_for_required_records, begin, end),
		cmocka_unit_test_setup_teardown(records_are_gathered_and_flushed, begin, end),
		cmocka_unit_test_setup_teardown(what_was_gathered_is_lost_together, begin, end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
