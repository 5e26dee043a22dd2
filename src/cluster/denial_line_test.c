/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that nodes of a cluster tell each other, whoever wrote them. CLU-DENY-01 */
#include "cluster/denial_line.h"

#include "base/clock.h"
#include "base/unit_test.h"

#define ISSUER "https://id.example"
#define NEVER "18446744073709551615"
#define LINE(by, issuer, name) "0001700000000000 1 " NEVER "\t" by "\t" issuer "\t" name

static char longest[2048 + 1];

static bool is_read(const char *line)
{
	struct denial denial;

	return denial_line_read(slice_str(line), &denial);
}

static void what_is_written_is_read(void **state)
{
	static const struct denial rows[] = {
		{ .by = DENIAL_BY_SUB, .changed_ms = 1700000000000, .until_ms = UINT64_MAX },
		{ .by = DENIAL_BY_SID, .changed_ms = 7, .until_ms = INT64_MAX, .is_lifted = true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		at_end(buf_fini) struct buf line = { 0 };
		struct denial wanted = rows[i], denial;

		wanted.issuer = i == 0 ? SLICE_LIT(ISSUER) : slice_str(longest);
		wanted.name = i == 0 ? slice_str(longest) : SLICE_LIT("a name");
		assert_true(denial_line_append(&line, &wanted));
		assert_int_equal(line.data[--line.len], '\n');
		assert_true(denial_line_read(buf_slice(&line), &denial));
		assert_int_equal(denial.by, wanted.by);
		assert_int_equal(denial.changed_ms, wanted.changed_ms);
		assert_int_equal(denial.until_ms, wanted.until_ms);
		assert_int_equal(denial.is_lifted, wanted.is_lifted);
		assert_true(slice_is_equal(denial.issuer, wanted.issuer));
		assert_true(slice_is_equal(denial.name, wanted.name));
	}
}

/* Nothing that would be another line, or none. */
static void what_nobody_could_read_is_not_written(void **state)
{
	static char too_long[sizeof(longest) + 1];
	const char *const odd[] = { "", "a\tb", "a\nb", "\x1f", too_long };
	at_end(buf_fini) struct buf line = { 0 };

	memset(too_long, 'x', sizeof(longest));
	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		struct denial denial = { .issuer = slice_str(odd[i]), .name = SLICE_LIT("a") };

		assert_false(denial_line_append(&line, &denial));
		denial = (struct denial){ .issuer = SLICE_LIT("a"), .name = slice_str(odd[i]) };
		assert_false(denial_line_append(&line, &denial));
	}
	assert_int_equal(line.len, 0);
}

static void odd_lines_are_refused(void **state)
{
	static const char *const odd[] = {
		"",
		"\t\t\t",
		LINE("", ISSUER, "a"),
		LINE("su", ISSUER, "a"),
		LINE("sub", "", "a"),
		LINE("sub", ISSUER, ""),
		LINE("sub", "\x1f", "a"),
		LINE("sub", ISSUER, "a\tb"),
		"1700000000000 1 " NEVER "\tsub\t" ISSUER "\ta",
		"000170000000000x 1 " NEVER "\tsub\t" ISSUER "\ta",
		"0001700000000000 2 " NEVER "\tsub\t" ISSUER "\ta",
		"0001700000000000 " NEVER "\tsub\t" ISSUER "\ta",
		"0001700000000000 1 1\tsub\t" ISSUER "\ta",
		"0001700000000000 1 1844674407370955161x\tsub\t" ISSUER "\ta",
		"0001700000000000 1 09223372036854775808\tsub\t" ISSUER "\ta",
	};

	assert_true(is_read(LINE("sub", ISSUER, "a")));
	for (size_t i = 0; i < ARRAY_LEN(odd); i++)
		assert_false(is_read(odd[i]));
}

/* Of a clock that is further ahead nothing is believed. */
static void what_comes_from_the_future(void **state)
{
	at_end(buf_fini) struct buf line = { 0 };
	struct denial denial = { .issuer = SLICE_LIT("a"), .name = SLICE_LIT("b") };

	for (int i = 0; i < 2; i++) {
		struct denial read;

		line.len = 0;
		denial.changed_ms = clock_wall_ms() + DENIAL_AHEAD_MS + (i == 0 ? 0 : 60000);
		assert_true(denial_line_append(&line, &denial));
		line.len--;
		assert_int_equal(denial_line_read(buf_slice(&line), &read), i == 0);
	}
}

static int setup(void **state)
{
	memset(longest, 'x', sizeof(longest) - 1);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(what_nobody_could_read_is_not_written),
		cmocka_unit_test(odd_lines_are_refused),
		cmocka_unit_test(what_comes_from_the_future),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, NULL);
}
