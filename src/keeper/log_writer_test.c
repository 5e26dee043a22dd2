/* SPDX-License-Identifier: Apache-2.0 */
/* What another process writes to its log, cut into lines; how many there may be of them. */
#include "keeper/records.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unit_test.h"

#define STAMP "2026-01-02T03:04:05.678Z info event process=gateway"

static struct log_relay relay;
static int ends[2];
static uint64_t now_ms = 1000000;

static int setup(void **state)
{
	struct error err;

	clock_freeze(now_ms);
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
	log_set(ends[1], LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	return log_relay_open(&relay, "gateway", &err);
}

static int teardown(void **state)
{
	log_set(STDERR_FILENO, LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	records_pipe_close(&relay.pipe);
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static void write_text(const char *text)
{
	assert_int_equal(write(relay.pipe.out, text, strlen(text)), strlen(text));
}

/* What has come out since the last look. */
static const char *came(void)
{
	static char text[1 << 20];
	ssize_t n, length = 0;

	while ((n = read(ends[0], text + length, sizeof(text) - 1 - (size_t)length)) > 0)
		length += n;
	text[length] = '\0';
	return text;
}

static size_t count_lines(void)
{
	size_t count = 0;

	for (const char *at = came(); *at != '\0'; at++)
		count += *at == '\n';
	return count;
}

static void lines_may_come_in_parts(void **state)
{
	write_text(STAMP " a=1\n" STAMP " b");
	log_relay_read(&relay);
	assert_string_equal(came(), STAMP " a=1\n");
	write_text("=2\n\n");
	log_relay_read(&relay);
	assert_string_equal(came(), STAMP " b=2\n");
	write_text("what the C library says\n");
	log_relay_read(&relay);
	assert_non_null(strstr(came(), " gateway_output text=\"what the C library says\"\n"));
}

/* The rest of a line is no line, whatever it looks like and however it comes. */
static void rest_of_a_long_line_is_dropped(void **state)
{
	static char text[LOG_LINE_MAX + 100];

	memset(text, 'x', sizeof(text) - 1);
	for (size_t parts = 1; parts <= 2; parts++) {
		write_text(text);
		log_relay_read(&relay);
		assert_int_equal(count_lines(), 1);
		if (parts == 2)
			write_text("more of it");
		log_relay_read(&relay);
		write_text(STAMP " of=it\n" STAMP " of=another\n");
		log_relay_read(&relay);
		assert_string_equal(came(), STAMP " of=another\n");
	}
	write_text(text);
	log_relay_flush(&relay); /* the process has ended; the next one's lines are whole */
	assert_int_equal(count_lines(), 1);
	write_text(STAMP " of=another\n");
	log_relay_read(&relay);
	assert_string_equal(came(), STAMP " of=another\n");
}

static void what_was_begun_is_not_lost(void **state)
{
	write_text(STAMP " a=1\n" STAMP " b=2");
	log_relay_flush(&relay);
	assert_string_equal(came(), STAMP " a=1\n" STAMP " b=2\n");
	log_relay_flush(&relay);
	assert_string_equal(came(), "");
}

static void lines_of_the_other_format_are_taken_around_its_change(void **state)
{
	static const char json[] = "{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"info\","
				   "\"event\":\"event\",\"process\":\"gateway\",\"a\":1}\n";
	static const char text[] = STAMP " a=1\n";

	write_text(json);
	log_relay_read(&relay);
	assert_non_null(strstr(came(), " gateway_output text="));
	/* The gateway changes it before the keeper hears of that. */
	log_expect_format(LOG_FORMAT_JSON);
	write_text(json);
	log_relay_read(&relay);
	assert_string_equal(came(), json);
	log_set_level(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	write_text(text);
	write_text(json);
	log_relay_read(&relay);
	clock_freeze(now_ms + 60000);
	assert_int_equal(count_lines(), 2);
	write_text(text);
	log_relay_read(&relay);
	assert_non_null(strstr(came(), "\"event\":\"gateway_output\""));
}

static void write_lines(size_t count)
{
	for (size_t i = 0; i < count; i++)
		write_text(STAMP "\n");
}

/* Reads as the keeper does: for as long as it need not pause. Returns how many lines came. */
static size_t read_all(void)
{
	size_t count = 0, before;

	do {
		before = count;
		log_relay_read(&relay);
		count += count_lines();
	} while (count > before);
	return count;
}

static void lines_a_second_are_bounded(void **state)
{
	size_t count = 0;

	assert_int_equal(log_relay_pause_ms(&relay), 0);
	while (count < LOG_RELAY_LINES) {
		write_lines(100);
		count += read_all();
	}
	clock_freeze(now_ms += 400);
	assert_int_equal(log_relay_pause_ms(&relay), 600);
	write_lines(100);
	assert_int_equal(read_all(), 0);
	clock_freeze(now_ms += 599);
	assert_int_equal(read_all(), 0);
	clock_freeze(now_ms += 1);
	assert_int_equal(log_relay_pause_ms(&relay), 0);
	assert_int_equal(read_all(), 100);
	assert_int_equal(log_relay_pause_ms(&relay), 0);
}

/* Of a process that has ended the lines of one second are taken, and it is said that there were more. */
static void what_is_beyond_the_bound_is_discarded(void **state)
{
	size_t count = 0;

	while (count < LOG_RELAY_LINES) {
		write_lines(100);
		count += read_all();
	}
	log_relay_flush(&relay);
	assert_string_equal(came(), ""); /* there were none */
	write_lines(2000);
	log_relay_flush(&relay);
	assert_non_null(strstr(came(), "text=\"... there was more, which was discarded\"\n"));
	clock_freeze(now_ms += 1000);
	assert_int_equal(read_all(), 0);
}

/* ---- files ---- */

static void what_is_in_the_way_of_the_log_is_said(void **state)
{
	static char targets[][24] = { "stderr", "journal", "no/absolute/path", "/dev/null",
				      "/no/such/log" };
	struct error err = { ERROR_NONE, "" };

	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		const struct config config = { .log_target = targets[i] };
		bool is_lacking = i == 4 || (i == 1 && access(RECORDS_JOURNAL, F_OK) < 0);

		assert_int_equal(log_file_try(&config, &err), is_lacking ? -1 : 0);
		if (i < 2)
			assert_int_equal(log_file_open(&config, &err), STDERR_FILENO);
	}
	assert_string_equal(err.text, "its directory does not exist");
	assert_int_equal(log_file_open(&(struct config){ .log_target = targets[4] }, &err), -1);
	assert_non_null(strstr(err.text, "cannot open the log file /no/such/log: No such file"));
}

/* It is the same file until another one is there. */
static void a_renamed_log_is_left(void **state)
{
	char path[64], moved[64], text[512] = "";
	struct config config = { .log_target = path };
	struct error err;
	int fd, before;

	snprintf(path, sizeof(path), "/tmp/log.%d", getpid());
	snprintf(moved, sizeof(moved), "/tmp/log.%d.1", getpid());
	before = fd = log_file_open(&config, &err);
	assert_true(fd > STDERR_FILENO);
	log_set_fd(fd);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	log_file_reopen(&config, &fd);
	assert_int_equal(fd, before);
	assert_int_equal(rmdir(path), 0);
	log_file_reopen(&config, &fd);
	config.log_target = NULL; /* which is none to be opened again */
	log_file_reopen(&config, &fd);
	before = open(moved, O_RDONLY | O_CLOEXEC);
	assert_true(read(before, text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "log_reopen_failed error=\"cannot open the log file"));
	assert_null(strstr(text, "log_reopened"));
	close(before);
	before = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(before, text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "log_reopened file="));
	close(before);
	log_file_close(&fd);
	assert_int_equal(fd, -1);
	assert_int_equal(unlink(path) + unlink(moved), 0);
	fd = STDERR_FILENO;
	log_file_close(&fd); /* which stays open for whoever comes next */
	assert_int_equal(fd, -1);
	assert_true(fcntl(STDERR_FILENO, F_GETFD) >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines_may_come_in_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(rest_of_a_long_line_is_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_begun_is_not_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(
			lines_of_the_other_format_are_taken_around_its_change, setup, teardown),
		cmocka_unit_test_setup_teardown(lines_a_second_are_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_beyond_the_bound_is_discarded, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_in_the_way_of_the_log_is_said, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_renamed_log_is_left, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
