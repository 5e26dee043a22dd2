/* SPDX-License-Identifier: Apache-2.0 */
/* The exact output, which no foreign name can break. */
#include "obs/metric.h"

#include <ctype.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unit_test.h"
#include "obs/latency_histogram.h"
#include "obs/process_usage.h"

static struct buf out;
static struct metric_writer writer;

static int setup(void **state)
{
	writer = (struct metric_writer){ .out = &out };
	return 0;
}

static int teardown(void **state)
{
	buf_fini(&out);
	return 0;
}

static void assert_written(const char *text)
{
	assert_string_equal(buf_terminate(&out), text);
	out.len = 0;
}

static void samples_are_exact(void **state)
{
	static const struct slice name = SLICE("main");

	metric_begin(&writer, METRIC_DRAINING);
	metric_put(&writer, NULL, UINT64_MAX);
	assert_written("# HELP mcpgated_draining 1 from the moment the daemon begins to stop\n"
		       "# TYPE mcpgated_draining gauge\nmcpgated_draining 18446744073709551615\n");
	metric_begin(&writer, METRIC_PROCESS_CPU);
	out.len = 0;
	metric_put_ms(&writer, &name, 1005);
	assert_written("process_cpu_seconds_total{process=\"main\"} 1.005\n");
	metric_end(&writer);
	assert_written("");
}

/* OpenMetrics 1.0.0: the name of a family has no suffix; that of its samples does. */
static void open_metrics_differ(void **state)
{
	static const struct slice version = SLICE("1");

	writer.is_open = true;
	metric_begin(&writer, METRIC_COUNTED_CALLS);
	metric_put(&writer, NULL, 3);
	assert_written("# HELP mcpgated_calls requests forwarded to a child\n"
		       "# TYPE mcpgated_calls counter\nmcpgated_calls_total 3\n");
	metric_begin(&writer, METRIC_BUILD_INFO);
	metric_put(&writer, &version, 1);
	assert_written("# HELP mcpgated_build 1; the label is the version\n"
		       "# TYPE mcpgated_build info\nmcpgated_build_info{version=\"1\"} 1\n");
	metric_end(&writer);
	assert_written("# EOF\n");
	writer.is_open = false;
	metric_begin(&writer, METRIC_BUILD_INFO);
	assert_written("# HELP mcpgated_build_info 1; the label is the version\n"
		       "# TYPE mcpgated_build_info gauge\n");
}

static void labels_are_escaped_or_left_out(void **state)
{
	static const struct {
		const char *value;
		const char *text;
	} rows[] = {
		{ "a\"b\\c", "a\\\"b\\\\c" },
		{ "\n\x1b[1m", "\\\\u{a}\\\\u{1b}[1m" },
		{ "\xE2\x80\xAE\xC3\xA9", "\\\\u{202e}\xC3\xA9" },
		{ "\xFF", "\xEF\xBF\xBD" },
		{ "},x=\"", "},x=\\\"" },
	};
	char expected[200];

	metric_begin(&writer, METRIC_CALLS_ENDED);
	out.len = 0;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct slice values[] = { SLICE("s"), SLICE("m"), slice_str(rows[i].value),
						SLICE(""), SLICE("r") };

		metric_put(&writer, values, i);
		snprintf(expected, sizeof(expected),
			 "mcpgated_calls_ended_total{server=\"s\",method=\"m\",tool=\"%s\","
			 "reason=\"r\"} %zu\n",
			 rows[i].text, i);
		assert_written(expected);
	}
}

static void histograms_are_cumulative(void **state)
{
	static const struct slice name = SLICE("a");
	struct latency_histogram histogram = { .count = 0 };

	latency_histogram_add(&histogram, 0, 1);
	latency_histogram_add(&histogram, 1500, 1);
	latency_histogram_add(&histogram, 1000000, 1);
	metric_begin(&writer, METRIC_CALL_WAIT);
	metric_put_histogram(&writer, &name, &histogram);
	buf_terminate(&out);
	assert_non_null(strstr(out.data, "_bucket{server=\"a\",le=\"0.001\"} 1\n"));
	assert_non_null(strstr(out.data, "_bucket{server=\"a\",le=\"1.024\"} 1\n"));
	assert_non_null(strstr(out.data, "_bucket{server=\"a\",le=\"2.048\"} 2\n"));
	assert_non_null(strstr(out.data, "_bucket{server=\"a\",le=\"+Inf\"} 3\n"
					 "mcpgated_call_wait_seconds_sum{server=\"a\"} 1001.500\n"
					 "mcpgated_call_wait_seconds_count{server=\"a\"} 3\n"));
}

/* The Prometheus data model, the suffix of counters, and the maximum number of labels. */
static void rows_keep_the_rules(void **state)
{
	for (enum metric m = 0; m < METRIC_COUNT; m++) {
		struct metric_row row = metric_get(m);
		size_t length = strlen(row.name), labels = row.labels[0] != '\0';
		bool is_total = length > 6 && strcmp(row.name + length - 6, "_total") == 0;

		for (const char *c = row.name; *c != '\0'; c++)
			assert_true(islower((unsigned char)*c) || *c == '_');
		for (const char *c = row.labels; *c != '\0'; c++) {
			assert_true(islower((unsigned char)*c) || *c == ',');
			labels += *c == ',';
		}
		assert_true(labels <= METRIC_LABELS_MAX);
		if (is_total != (strcmp(row.type, "counter") == 0))
			fail_msg("%s is a %s", row.name, row.type);
		if (row.help[0] == '\0' || strpbrk(row.help, "\\\n\"") != NULL)
			fail_msg("the help of %s", row.name);
		for (enum metric other = 0; other < m; other++)
			assert_string_not_equal(row.name, metric_get(other).name);
	}
}

/* proc(5): a process name may contain anything. */
static void usage_is_read(void **state)
{
	struct process_usage usage;

	assert_true(process_usage_parse(
		"7 (a) 1 (b) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 1 0 300 4096 2 184467 1",
		&usage));
	assert_int_equal(usage.cpu_ms, 200 * 1000 / sysconf(_SC_CLK_TCK));
	assert_int_equal(usage.began_at_ms, 300 * 1000 / sysconf(_SC_CLK_TCK));
	assert_int_equal(usage.virtual_bytes, 4096);
	assert_int_equal(usage.resident_bytes, 2 * sysconf(_SC_PAGESIZE));
	assert_false(process_usage_parse("7 (a) S 1 7 7 0 -1", &usage));
	assert_false(process_usage_parse("", &usage));
}

static void this_process_is_seen(void **state)
{
	struct process_view view, nobody;
	struct process_usage usage;
	uint64_t before;
	int fd;

	process_view_open(&view, getpid());
	process_view_open(&nobody, 0);
	assert_true(process_view_read(&view, &usage));
	assert_true(usage.resident_bytes > 0 && usage.virtual_bytes >= usage.resident_bytes);
	assert_in_range(usage.began_at_ms, clock_wall_ms() - 600 * 1000, clock_wall_ms() + 2000);
	assert_false(process_view_read(&nobody, &usage));
	assert_int_equal(process_view_count_descriptors(&nobody), 0);
	before = process_view_count_descriptors(&view);
	fd = dup(STDERR_FILENO);
	assert_int_equal(process_view_count_descriptors(&view), before + 1);
	close(fd);
	close(view.stat_fd);
	close(view.status_fd);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(samples_are_exact),
		TEST(open_metrics_differ),
		TEST(labels_are_escaped_or_left_out),
		TEST(histograms_are_cumulative),
		TEST(rows_keep_the_rules),
		TEST(usage_is_read),
		TEST(this_process_is_seen),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
