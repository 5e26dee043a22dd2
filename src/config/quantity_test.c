/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and times: what is read, what is refused, and that writing gives what reading takes. */
#include "config/forms.h"

#include "base/unit_test.h"

typedef int parse_fn(struct slice text, uint64_t *value_r);

struct row {
	const char *text;
	uint64_t value;
};

static void assert_reads(parse_fn *parse, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = 77;

		print_message("# %s\n", rows[i].text);
		assert_int_equal(parse(slice_str(rows[i].text), &value), 0);
		assert_true(value == rows[i].value);
	}
}

static void assert_refuses(parse_fn *parse, const char *const *texts)
{
	for (; *texts != NULL; texts++) {
		uint64_t value;

		print_message("# %s\n", *texts);
		assert_int_equal(parse(slice_str(*texts), &value), -1);
	}
}

static void test_sizes(void **state)
{
	static const struct row good[] = {
		{ "0", 0 },
		{ "1", 1 },
		{ "16KiB", 16384 },
		{ "4MiB", 4194304 },
		{ "1GiB", 1073741824 },
		{ "18446744073709551615", UINT64_MAX },
	};
	static const char *const bad[] = { "",     "KiB",    "1 KiB", "-1",    "1KB",
					   "1kib", "1.5MiB", "0x10",  "1KiBx", "17179869184GiB",
					   NULL };

	assert_reads(quantity_parse_size, good, ARRAY_LEN(good));
	assert_refuses(quantity_parse_size, bad);
}

static void test_durations(void **state)
{
	static const struct row good[] = {
		{ "0", 0 },       { "0s", 0 },       { "500ms", 500 },   { "30s", 30000 },
		{ "5m", 300000 }, { "2h", 7200000 }, { "1d", 86400000 },
	};
	static const char *const bad[] = { "",     "5",    "s",     "5 s", "-5s",
					   "1.5s", "5sec", "1h30m", "5M",  "18446744073709551615d",
					   NULL };

	assert_reads(quantity_parse_duration, good, ARRAY_LEN(good));
	assert_refuses(quantity_parse_duration, bad);
}

static void test_percentages(void **state)
{
	static const struct row good[] = { { "0%", 0 }, { "7%", 7 }, { "250%", 250 } };
	static const char *const bad[] = { "", "5", "%", "5 %", "-5%", "1.5%", "5%%", NULL };

	assert_reads(quantity_parse_percent, good, ARRAY_LEN(good));
	assert_refuses(quantity_parse_percent, bad);
}

static void test_written_shortest_and_exact(void **state)
{
	static const struct row sizes[] = {
		{ "0", 0 },       { "1000", 1000 },       { "1KiB", 1024 },
		{ "1025", 1025 }, { "1536KiB", 1572864 }, { "3GiB", 3221225472 }
	};
	static const struct row times[] = { { "0", 0 },
					    { "1500ms", 1500 },
					    { "90s", 90000 },
					    { "2m", 120000 },
					    { "1d", 86400000 } };
	struct buf text = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		quantity_append_size(&text, sizes[i].value);
		assert_string_equal(buf_terminate(&text), sizes[i].text);
		text.len = 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		quantity_append_duration(&text, times[i].value);
		assert_string_equal(buf_terminate(&text), times[i].text);
		text.len = 0;
	}
	buf_fini(&text);
	assert_reads(quantity_parse_size, sizes, ARRAY_LEN(sizes));
	assert_reads(quantity_parse_duration, times, ARRAY_LEN(times));
}

static void test_dates(void **state)
{
	static const struct row good[] = {
		{ "1970-01-02", 86400000 },
		{ "2027-01-31", 1801353600000 },
		{ "2028-02-29", 1835395200000 },
		{ "2027-01-31T18:00:01Z", 1801418401000 },
	};
	static const char *const bad[] = { "",
					   "2027",
					   "2027-1-31",
					   "2027-02-29",
					   "2027-13-01",
					   "2027-01-31T18:00:01",
					   "2027-01-31T25:00:00Z",
					   "2027-01-31 ",
					   " 2027-01-31",
					   "27-01-31",
					   "2027-01-31T18:00:01+01:00",
					   "1969-12-31",
					   "99999999999-01-01",
					   NULL };
	char text[QUANTITY_TEXT_MAX];

	assert_reads(quantity_parse_date, good, ARRAY_LEN(good));
	assert_refuses(quantity_parse_date, bad);
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		quantity_format_date(good[i].value, text);
		assert_string_equal(text, good[i].text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_percentages),
		cmocka_unit_test(test_written_shortest_and_exact),
		cmocka_unit_test(test_dates),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
