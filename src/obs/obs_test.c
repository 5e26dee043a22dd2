/* SPDX-License-Identifier: Apache-2.0 */
/* What the log writes for any input, and what it does when it cannot write. */
#include "obs/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/unit_test.h"
#include "obs/counters.h"
#include "obs/latency_histogram.h"
#include "obs/reason.h"

#define LINE_MAX_BYTES 4096

static int ends[2];
static char line[64 * 1024];

static int setup(void **state)
{
	if (pipe2(ends, O_CLOEXEC) != 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0)
		return -1;
	log_set(ends[1], LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	return 0;
}

static int teardown(void **state)
{
	log_set(STDERR_FILENO, LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

/* Everything written since the last call. */
static const char *written(int fd)
{
	size_t length = 0;
	ssize_t n;

	while ((n = read(fd, line + length, sizeof(line) - 1 - length)) > 0)
		length += (size_t)n;
	line[length] = '\0';
	return line;
}

/* The line without its timestamp, which is checked. */
static const char *after_stamp(const char *text)
{
	static const char shape[] = "dddd-dd-ddTdd:dd:dd.dddZ ";

	for (size_t i = 0; shape[i] != '\0'; i++) {
		if (shape[i] == 'd')
			assert_true(isdigit((unsigned char)text[i]));
		else
			assert_int_equal(text[i], shape[i]);
	}
	return text + sizeof(shape) - 1;
}

/* The end of the JSON string that begins at p. */
static const char *json_string_end(const char *p)
{
	assert_int_equal(*p++, '"');
	while (*p != '"') {
		assert_true((unsigned char)*p >= 0x20);
		if (*p++ != '\\')
			continue;
		assert_non_null(strchr("\"\\/bfnrtu", *p));
		for (int i = 0; *p == 'u' && i < 4; i++)
			assert_true(isxdigit((unsigned char)p[i + 1]));
		p++;
	}
	return p + 1;
}

/* Fails unless text is one line with a flat JSON object in UTF-8. Returns the number of members. */
static int check_json_line(const char *text)
{
	int members = 0;
	char separator = '{';

	assert_true(text_is_utf8(slice_str(text)));
	while (*text == separator) {
		text = json_string_end(text + 1);
		assert_int_equal(*text++, ':');
		text = *text == '"' ? json_string_end(text) : text + strspn(text, "-0123456789");
		separator = ',';
		members++;
	}
	assert_string_equal(text, "}\n");
	return members;
}

static void line_has_time_level_event_and_fields(void **state)
{
	LOG(GATEWAY_STOP, LOG_STR("server", "notes"), LOG_INT("pid", -4711),
	    LOG_SLICE("part", slice_of("abc", 2)), LOG_STR("empty", ""), LOG_STR("two", "a b"));
	assert_string_equal(
		after_stamp(written(ends[0])),
		"info gateway_stop server=notes pid=-4711 part=ab empty=\"\" two=\"a b\"\n");
	log_set_process("gateway");
	LOG(GATEWAY_EXIT, LOG_INT("pid", 1));
	assert_string_equal(after_stamp(written(ends[0])),
			    "warn gateway_exit process=gateway pid=1\n");
	log_set_process(NULL);
}

static void line_is_a_json_object(void **state)
{
	log_set(ends[1], LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	LOG(GATEWAY_STOP, LOG_STR("server", "notes"), LOG_INT("pid", 4711));
	assert_int_equal(check_json_line(written(ends[0])), 5);
	assert_non_null(strstr(line, "\"level\":\"info\",\"event\":\"gateway_stop\","
				     "\"server\":\"notes\",\"pid\":4711}"));
}

static void levels_are_a_threshold(void **state)
{
	LOG(CONN_END, LOG_STR("state", "idle")); /* debug */
	assert_string_equal(written(ends[0]), "");
	log_set(ends[1], LOG_LEVEL_DEBUG, LOG_FORMAT_TEXT);
	LOG(CONN_END, LOG_STR("state", "idle"));
	assert_string_not_equal(written(ends[0]), "");
	log_set(ends[1], LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	LOG(GATEWAY_EXIT, LOG_INT("pid", 1));
	assert_string_equal(written(ends[0]), "");
	LOG(LISTEN_FAILED, LOG_INT("port", 1));
	assert_string_not_equal(written(ends[0]), "");
}

/* REL-48 */
static void foreign_bytes_are_escaped(void **state)
{
	static const struct {
		const char *text;
		const char *shown;
	} rows[] = {
		{ "plain", "plain" },
		{ "a\r\nb", "\"a\\u000d\\u000ab\"" },
		{ "\x1b[31m", "\"\\u001b[31m\"" },
		{ "say \"x\" \\", "\"say \\\"x\\\" \\\\\"" },
		{ "\x7f", "\"\\u007f\"" },
		/* NEL, a line break to some programs */
		{ "\xc2\x85", "\"\\u0085\"" },
		{ "\xc3\xa4", "\"\xc3\xa4\"" },                  /* U+00E4 is kept */
		{ "\xe4", "\"\\u00e4\"" },                       /* not UTF-8 */
		{ "\xe2\x82", "\"\\u00e2\\u0082\"" },            /* a truncated sequence */
		{ "\xed\xa0\x80", "\"\\u00ed\\u00a0\\u0080\"" }, /* a surrogate */
		{ "event=fake", "\"event=fake\"" },
		{ "\u202eevil", "\"\\u202eevil\"" },              /* right-to-left override */
		{ "a\u2066b\u2069", "\"a\\u2066b\\u2069\"" },     /* an isolate */
		{ "a\u200bb\ufeff", "\"a\\u200bb\\ufeff\"" },     /* zero width */
		{ "a\u2028b", "\"a\\u2028b\"" },                  /* a line separator */
		{ "a\u00adb\u3164", "\"a\\u00adb\\u3164\"" },     /* a soft hyphen, a filler */
		{ "a\ufe0f", "\"a\\ufe0f\"" },                    /* a variation selector */
		{ "a\U000e0041", "\"a\\udb40\\udc41\"" },         /* a tag, beyond 16 bits */
		{ "\U000e0fff", "\"\\udb43\\udfff\"" },           /* reserved */
		{ "\U0001f600 \u05d0", "\"\U0001f600 \u05d0\"" }, /* visible characters are kept */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		log_set(ends[1], LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
		LOG(GATEWAY_START, LOG_STR("text", rows[i].text));
		written(ends[0]);
		line[strlen(line) - 1] = '\0';
		assert_string_equal(strstr(line, "text=") + 5, rows[i].shown);
		log_set(ends[1], LOG_LEVEL_INFO, LOG_FORMAT_JSON);
		LOG(GATEWAY_START, LOG_STR("text", rows[i].text));
		assert_int_equal(check_json_line(written(ends[0])), 4);
	}
	LOG(GATEWAY_START, LOG_SLICE("text", slice_of("a\0b", 3)));
	assert_non_null(strstr(written(ends[0]), "\"a\\u0000b\""));
}

/* REL-48: even the longest line is one complete line. */
static void long_lines_are_cut_and_stay_whole(void **state)
{
	static const char fillers[] = { 'x', '\x01', '"', '\xe4' };
	static char text[5000];

	for (size_t i = 0; i < sizeof(fillers); i++) {
		memset(text, fillers[i], sizeof(text) - 1);
		for (int format = LOG_FORMAT_TEXT; format <= LOG_FORMAT_JSON; format++) {
			log_set(ends[1], LOG_LEVEL_INFO, (enum log_format)format);
			for (size_t length = 1000; length < 1030; length++) {
				struct slice s = slice_of(text, length);

				LOG(GATEWAY_START, LOG_SLICE("a", s), LOG_SLICE("b", s),
				    LOG_SLICE("c", s), LOG_SLICE("d", s), LOG_SLICE("e", s),
				    LOG_INT("f", INT64_MIN));
				written(ends[0]);
				assert_in_range(strlen(line), 2000, LINE_MAX_BYTES);
				assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
				if (format == LOG_FORMAT_JSON)
					check_json_line(line);
			}
		}
	}
	memset(text, 'x', sizeof(text) - 1);
	LOG(GATEWAY_START, LOG_STR("a", text), LOG_STR("b", "behind"));
	assert_non_null(strstr(written(ends[0]), "...\",\"b\":\"behind\"}"));
	/* At a character boundary. */
	for (size_t i = 1; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa4", 2);
	LOG(GATEWAY_START, LOG_SLICE("a", slice_of(text, 1400)));
	assert_non_null(strstr(written(ends[0]), "\xc3\xa4...\""));
}

/* Whatever the parts, and where a character is cut: as the whole text, with its length. */
static void messages_are_shown_from_their_parts(void **state)
{
	static char text[2000];
	char whole[LINE_MAX_BYTES];

	for (size_t i = 0; i + 4 < sizeof(text); i += 4)
		memcpy(text + i, "\xf0\x9f\x98\x80", 4);
	for (size_t at = 0; at < 8; at++) {
		struct slice s = slice_of(text + 4 - at % 4, 1020 + at);
		struct slice parts[] = { slice_of(s.p, at), slice_of(NULL, 0),
					 slice_of(s.p + at, s.n - at) };

		LOG(PAYLOAD, LOG_STR("way", "to_client"), LOG_INT("bytes", s.n),
		    LOG_SLICE("text", s));
		snprintf(whole, sizeof(whole), "%s", after_stamp(written(ends[0])));
		log_write_payload("to_client", NULL, parts, ARRAY_LEN(parts));
		assert_string_equal(after_stamp(written(ends[0])), whole);
	}
	log_shows_payloads = false;
	log_payload("to_server", "s", &(struct slice){ text, 4 }, 1);
	assert_string_equal(written(ends[0]), "");
	log_shows_payloads = true;
	log_payload("to_server", "s", &(struct slice){ text, 4 }, 1);
	log_shows_payloads = false;
	assert_non_null(strstr(written(ends[0]), "payload way=to_server server=s bytes=4 text="));
}

static int log_messages(int count)
{
	int lines = 0;

	for (int i = 0; i < count; i++) {
		log_write_payload("from_client", "s", &(struct slice)SLICE("{}"), 1);
		lines += *written(ends[0]) != '\0';
	}
	return lines;
}

/* Lines about other things keep their place. */
static void messages_of_a_second_have_a_bound(void **state)
{
	clock_freeze(5000000);
	assert_int_equal(log_messages(LOG_PAYLOADS_PER_SECOND + 7), LOG_PAYLOADS_PER_SECOND);
	log_set(ends[1], LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	assert_int_equal(log_messages(3), 0); /* nor do they count */
	log_set(ends[1], LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	LOG(GATEWAY_START, LOG_INT("n", 1));
	assert_string_not_equal(written(ends[0]), "");
	clock_freeze(5001000);
	log_write_payload("from_client", "s", &(struct slice)SLICE("{}"), 1);
	assert_non_null(strstr(written(ends[0]), "info payloads_skipped messages=7\n"));
	assert_non_null(strstr(line, "info payload way=from_client server=s bytes=2 text={}\n"));
	assert_int_equal(log_messages(1), 1);
}

/*
 * Fills the pipe until the log would block, then logs `more` lines, which are lost; returns `more`.
 */
static int overfill(int more)
{
	static char text[900];
	int flags = fcntl(ends[1], F_GETFL);

	fcntl(ends[1], F_SETFL, flags | O_NONBLOCK);
	while (write(ends[1], text, sizeof(text)) > 0)
		continue;
	while (write(ends[1], text, 1) > 0)
		continue;
	fcntl(ends[1], F_SETFL, flags);
	for (int i = 0; i < more; i++)
		LOG(GATEWAY_START,
		    LOG_INT("n", i)); /* with a blocking descriptor this would hang */
	return more;
}

/* REL-47: the reader is stuck. */
static void full_pipe_drops_and_counts(void **state)
{
	assert_int_equal(overfill(7), 7);
	while (read(ends[0], line, sizeof(line)) > 0)
		continue;
	LOG(GATEWAY_START, LOG_INT("n", 100));
	written(ends[0]);
	assert_non_null(strstr(line, "warn log_dropped lines=7\n"));
	assert_non_null(strstr(line, "info gateway_start n=100\n"));
	LOG(GATEWAY_START, LOG_INT("n", 101));
	assert_null(strstr(written(ends[0]), "log_dropped"));
}

/* REL-47: the reader is gone; later another file is opened. */
static void gone_reader_loses_no_count(void **state)
{
	int others[2];

	close(ends[0]);
	for (int i = 0; i < 9; i++)
		LOG(GATEWAY_START, LOG_INT("n", i));
	assert_int_equal(pipe2(others, O_CLOEXEC), 0);
	log_set_fd(others[1]);
	close(ends[1]);
	ends[0] = others[0];
	ends[1] = others[1];
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	LOG(GATEWAY_START, LOG_INT("n", 100));
	assert_non_null(strstr(written(ends[0]), "warn log_dropped lines=9\n"));
	assert_non_null(strstr(line, "info gateway_start n=100\n"));
}

/* REL-47: the disk fills up in the middle of a line. The next line starts on a line of its own. */
static void torn_line_is_ended_before_the_next(void **state)
{
	struct rlimit before, low;
	FILE *file = tmpfile();
	int lines = 0;

	assert_non_null(file);
	getrlimit(RLIMIT_FSIZE, &before);
	low = (struct rlimit){ 120, before.rlim_max };
	log_set_fd(fileno(file));
	setrlimit(RLIMIT_FSIZE, &low);
	for (int i = 0; i < 4; i++)
		LOG(GATEWAY_START, LOG_INT("n", i), LOG_STR("text", "about forty bytes of text"));
	setrlimit(RLIMIT_FSIZE, &before);
	LOG(GATEWAY_START, LOG_INT("n", 100));
	lseek(fileno(file), 0, SEEK_SET);
	written(fileno(file));
	assert_non_null(strstr(line, " n=0 text="));
	assert_non_null(strstr(line, "Z warn log_dropped lines=3\n"));
	assert_non_null(strstr(line, "Z info gateway_start n=100\n"));
	for (char *at = line; *at != '\0'; at = strchr(at, '\n') + 1, lines++)
		after_stamp(at);
	assert_int_equal(lines, 4); /* the first, part of the second, and these two */
	fclose(file);
}

/* ---- counters ---- */

static void counters_count_and_are_logged(void **state)
{
	counters_log();
	assert_string_equal(after_stamp(written(ends[0])), "info counters\n");
	assert_int_equal(counter_get(COUNTER_CALLS), 0);
	counter_add(COUNTER_CALLS);
	counter_add(COUNTER_CALLS);
	counter_add(COUNTER_STREAM_DROPPED); /* the last row */
	assert_int_equal(counter_get(COUNTER_CALLS), 2);
	assert_int_equal(counter_get(COUNTER_REQUESTS), 0);
	counters_log();
	assert_string_equal(after_stamp(written(ends[0])),
			    "info counters calls=2 stream_dropped=1\n");
	log_set(ends[1], LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	counters_log();
	assert_string_equal(written(ends[0]), "");
}

/* ---- reasons ---- */

static void reasons_are_told_apart(void **state)
{
	for (int i = 0; i < REASON_COUNT; i++) {
		const struct reason_row *row = reason_get((enum reason)i);

		assert_true(strlen(row->text) > 0);
		assert_non_null(row->data);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(row->text, reason_get((enum reason)j)->text);
		/* A failure status always comes with an error in the body and its reason. */
		assert_true(row->http_status == 0 || row->http_status == 200 ||
			    (row->http_status >= 400 && row->http_status < 600));
		if (strlen(row->data) > 0)
			assert_true(row->rpc_code < 0);
		assert_int_equal(strlen(row->data) > 0, strlen(row->message) > 0);
	}
}

static void reasons_have_the_promised_rows(void **state)
{
	assert_int_equal(reason_get(REASON_TIMEOUT)->http_status, 200);
	assert_string_equal(reason_get(REASON_TIMEOUT)->data, "timeout");
	assert_int_equal(reason_get(REASON_OVER_LIMIT)->http_status, 503);
	assert_int_equal(reason_get(REASON_CHILD_EXITED)->rpc_code, -32603);
	assert_string_equal(reason_get(REASON_CHILD_EXITED)->data, "child_exited");
	assert_int_equal(reason_get(REASON_PEER_CLOSED)->http_status, 0);
}

/* Buckets, quantiles and the last minute of a latency histogram. */
static void latency_histogram_measures(void **state)
{
	static const uint64_t first_ms = 1000000;
	struct latency_histogram latency_histogram = { .count = 0 };

	assert_int_equal(latency_histogram_quantile_ms(&latency_histogram, 500), 0);
	assert_int_equal(latency_histogram_last_minute(&latency_histogram, first_ms), 0);
	for (int i = 0; i < 98; i++)
		latency_histogram_add(&latency_histogram, 0, first_ms);
	latency_histogram_add(&latency_histogram, 5, first_ms);
	latency_histogram_add(&latency_histogram, UINT64_C(1) << 40, first_ms);
	assert_int_equal(latency_histogram.count, 100);
	assert_int_equal(latency_histogram.buckets[0], 98);
	assert_int_equal(latency_histogram.buckets[3], 1); /* less than 8 ms */
	assert_int_equal(latency_histogram_quantile_ms(&latency_histogram, 500), 1);
	assert_int_equal(latency_histogram_quantile_ms(&latency_histogram, 990), 8);
	assert_true(latency_histogram_quantile_ms(&latency_histogram, 1000) == UINT64_MAX);
	/* The current slot is not complete yet. */
	assert_int_equal(latency_histogram_last_minute(&latency_histogram, first_ms), 0);
	assert_int_equal(latency_histogram_last_minute(&latency_histogram, first_ms + 10000), 100);
	assert_int_equal(latency_histogram_last_minute(&latency_histogram, first_ms + 60000), 100);
	assert_int_equal(latency_histogram_last_minute(&latency_histogram, first_ms + 70000), 0);
	latency_histogram_add(&latency_histogram, 1, first_ms + 30000);
	assert_int_equal(latency_histogram_last_minute(&latency_histogram, first_ms + 40000), 101);
	assert_int_equal(latency_histogram_last_minute(&latency_histogram, first_ms + 90000), 1);
	latency_histogram_add(&latency_histogram, 1, first_ms + 900000);
	assert_int_equal(latency_histogram_last_minute(&latency_histogram, first_ms + 910000), 1);
}

#define FRONT "2026-01-02T03:04:05.678Z info mine process=gateway"
#define FRONT_JSON                                                                                  \
	"{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"info\",\"event\":\"mine\",\"process\":" \
	"\"gateway\""

static void assert_relayed(const char *const *lines, size_t count, bool is_expected)
{
	for (size_t i = 0; i < count; i++)
		if (log_relay_line(slice_str(lines[i]), "gateway") != is_expected)
			fail_msg("line %zu: %s", i, lines[i]);
}

/*
 * SEC-61, REL-48: a line of another process is accepted only if log_write could have written it
 * there.
 */
static void line_of_another_process_has_the_form_of_ours(void **state)
{
	static const char *const good[] = {
		FRONT,
		FRONT " a=b pid=-1 x_2=...",
		FRONT " text=\"a b\\\"\\\\\\u001b\xc3\xa4\"",
	};
	static const char *const bad[] = {
		FRONT " ",
		FRONT " a",
		FRONT " a=",
		FRONT " a=\"b",
		FRONT " a=\"b\"c",
		FRONT " a=\"\\n\"",
		FRONT " a=\"\\u00zz\"",
		FRONT " A=b",
		FRONT " process=keeper",
		FRONT " event=forged",
		FRONT " a=\"\x1b[2J\"",
		/* the same as one 8-bit control, for terminals that accept those */
		FRONT " a=\"\xc2\x9b[2J\"",
		FRONT " a=\"\xe2\x80\xae\"", /* changes the writing direction */
		FRONT " a=\"\xff\"",
	};
	static const char *const good_json[] = {
		FRONT_JSON "}",
		FRONT_JSON ",\"a\":\"b\",\"pid\":-1,\"c\":\"\\u001b\\\"\"}",
	};
	static const char *const bad_json[] = {
		FRONT_JSON,
		FRONT_JSON ",}",
		FRONT_JSON ",\"a\":b}",
		FRONT_JSON ",\"a\":-}",
		FRONT_JSON ",\"a\":{}}",
		FRONT_JSON ",\"a\":\"b\"}}",
		FRONT_JSON ",\"process\":\"keeper\"}",
		FRONT_JSON ",\"level\":\"debug\"}",
		FRONT_JSON "}{\"process\":\"keeper\"}",
	};

	assert_relayed(good, ARRAY_LEN(good), true);
	assert_relayed(bad, ARRAY_LEN(bad), false);
	log_set(ends[1], LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	assert_relayed(good_json, ARRAY_LEN(good_json), true);
	assert_relayed(bad_json, ARRAY_LEN(bad_json), false);
}

/* A line that log_write writes in one process is accepted in another. */
static void own_line_is_relayed(void **state)
{
	static const enum log_format formats[] = { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };
	char all[256];

	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	log_set_process("gateway");
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		const char *text;

		log_set(ends[1], LOG_LEVEL_INFO, formats[i]);
		LOG(GATEWAY_OUTPUT, LOG_SLICE("text", slice_of(all, sizeof(all))), LOG_STR("a", ""),
		    LOG_STR("b", "plain"), LOG_INT("n", INT64_MIN));
		text = written(ends[0]);
		assert_true(log_relay_line(slice_of(text, strlen(text) - 1), "gateway"));
		written(ends[0]);
	}
	log_set_process(NULL);
}

/* What one caller causes is counted beyond its pace, and takes no lines from others. REL-47 */
static void lines_of_a_causer_have_a_pace(void **state)
{
	const char *text;

	clock_freeze(5000);
	for (int i = 0; i < 100; i++)
		LOG_BY(STATE_REFUSED, 7, LOG_INT("n", i));
	text = written(ends[0]);
	assert_non_null(strstr(text, "state_refused n=0\n"));
	assert_null(strstr(text, "n=1"));
	LOG_BY(STATE_REFUSED, 8, LOG_INT("n", 200));
	assert_non_null(strstr(written(ends[0]), "state_refused n=200 left_out=99\n"));
	LOG_BY(TASK_REFUSED, 7, LOG_INT("n", 300)); /* another event */
	assert_non_null(strstr(written(ends[0]), "task_refused n=300\n"));
	for (int i = 0; i < 1000; i++) /* many together */
		LOG_BY(STATE_REFUSED, 100 + i, LOG_INT("n", i));
	text = written(ends[0]);
	assert_non_null(strstr(text, "n=7\n"));
	assert_null(strstr(text, "n=8\n"));
	clock_advance(1000);
	LOG_BY(STATE_REFUSED, 7, LOG_INT("n", 400));
	assert_non_null(strstr(written(ends[0]), "n=400 left_out=992\n"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(line_has_time_level_event_and_fields),
		TEST(line_is_a_json_object),
		TEST(levels_are_a_threshold),
		TEST(foreign_bytes_are_escaped),
		TEST(long_lines_are_cut_and_stay_whole),
		TEST(messages_are_shown_from_their_parts),
		TEST(messages_of_a_second_have_a_bound),
		TEST(lines_of_a_causer_have_a_pace),
		TEST(full_pipe_drops_and_counts),
		TEST(gone_reader_loses_no_count),
		TEST(torn_line_is_ended_before_the_next),
		TEST(line_of_another_process_has_the_form_of_ours),
		TEST(own_line_is_relayed),
		TEST(counters_count_and_are_logged),
		TEST(latency_histogram_measures),
		TEST(reasons_are_told_apart),
		TEST(reasons_have_the_promised_rows),
	};

	signal(SIGPIPE, SIG_IGN);
	alarm(60);
	signal(SIGXFSZ, SIG_IGN);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
