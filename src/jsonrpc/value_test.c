/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of numbers and ids by their value. BACK-FRAME-05 */
#include "jsonrpc/scan.h"

#include "base/unit_test.h"

static long long integral(const char *text)
{
	long long number = 0;
	struct json value = { JSON_NUMBER, false, slice_str(text) };

	return value_read_integer(value, &number) == 0 ? number : -77;
}

static void integers_however_they_are_written(void **state)
{
	static const struct {
		const char *text;
		long long number; /* -77: none */
	} rows[] = {
		{ "7", 7 },         { "7.0", 7 },
		{ "-7.000", -7 },   { "7e0", 7 },
		{ "70E-1", 7 },     { "0.7e1", 7 },
		{ "0.7e+01", 7 },   { "0.0", 0 },
		{ "0e-5", 0 },      { "1e3", 1000 },
		{ "1.5e1", 15 },    { "9223372036854775807.0", INT64_MAX },
		{ "7.5", -77 },     { "5e-5", -77 },
		{ "10e-5", -77 },   { "1.05e1", -77 },
		{ "1e19", -77 },    { "1e99999999999999999999", -77 },
		{ "1e-9999", -77 }, { "9223372036854775808.0", -77 },
		{ "0.07e1", -77 },  { "1000000000000000000000e-20", 10 },
	};
	char zeros[100] = "1.";

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (integral(rows[i].text) != rows[i].number)
			fail_msg("%s is read as %lld", rows[i].text, integral(rows[i].text));
	}
	memset(zeros + 2, '0', sizeof(zeros) - 3);
	zeros[sizeof(zeros) - 1] = '\0';
	assert_int_equal(integral(zeros), -77);
}

static void own_ids_that_come_back(void **state)
{
	static const struct {
		const char *text;
		uint64_t id;
	} rows[] = {
		{ "7", 7 },       { "7.0", 7 },    { "\"7\"", 7 }, { "\"\\u0037\"", 7 },
		{ "\"7.0\"", 0 }, { "-7", 0 },     { "7.5", 0 },   { "null", 0 },
		{ "\"\"", 0 },    { "\"-7\"", 0 }, { "[7]", 0 },   { "\"\\ud800\"", 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct slice text = slice_str(rows[i].text);
		struct json value = scan_value(text);

		assert_int_equal(value_own_id(value), rows[i].id);
	}
}

static void ids_are_compared_by_value(void **state)
{
	static const struct {
		const char *left, *right;
		bool is_same;
	} rows[] = {
		{ "1", "1.0", true },
		{ "1", "1e0", true },
		{ "1", "\"1\"", false },
		{ "\"a/b\"", "\"a\\/b\"", true },
		{ "\"a\"", "\"b\"", false },
		{ "1", "2", false },
		{ "1", "", false },
		{ "\"1\"", "1", false },
		{ "\"\\ud800\"", "\"\\ud800\"", true },
		{ "1.5", "1.5", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(value_is_same_id(slice_str(rows[i].left),
						  slice_str(rows[i].right)),
				 rows[i].is_same);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_however_they_are_written),
		cmocka_unit_test(own_ids_that_come_back),
		cmocka_unit_test(ids_are_compared_by_value),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
