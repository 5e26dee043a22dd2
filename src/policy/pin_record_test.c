/* SPDX-License-Identifier: Apache-2.0 */
/* What was remembered comes back; what others may have written is no harm. SEC-68 */
#include "policy/pins.h"

#include "base/unit_test.h"

#define D1 "3131313131313131313131313131313131313131313131313131313131313131"
#define D2 "3232323232323232323232323232323232323232323232323232323232323232"

static struct pins pins;

static int begin(void **state)
{
	pins_init(&pins);
	return 0;
}

static int end(void **state)
{
	pins_fini(&pins);
	return 0;
}

static int read(const char *line)
{
	return pin_record_read(&pins, slice_str(line));
}

static void assert_written(bool with_texts, const char *text)
{
	struct buf out = { 0 };

	pin_record_write(&pins, "a", with_texts, &out);
	assert_string_equal(buf_terminate(&out), text);
	buf_fini(&out);
}

static void what_is_written_is_read(void **state)
{
	assert_int_equal(read("known\ttool"), 0);
	assert_int_equal(read("tool\tapproved\t41\t" D1 "\t{}\t\t"), 0);
	assert_int_equal(read("tool\tchanged\t42\t" D1 "\t{1}\t" D2 "\t{2}"), 0);
	assert_int_equal(read("prompt\tnew\t41\t\t\t" D2 "\t"), 0);
	assert_true(pins.is_known[PERMISSION_TOOL]);
	assert_false(pins.is_known[PERMISSION_PROMPT]);
	assert_int_equal(pins.waiting, 2);
	assert_written(true, "a\tknown\ttool\n"
			     "a\ttool\tapproved\t41\t" D1 "\t{}\t\t\n"
			     "a\ttool\tchanged\t42\t" D1 "\t{1}\t" D2 "\t{2}\n"
			     "a\tprompt\tnew\t41\t\t\t" D2 "\t\n");
	assert_written(false, "a\tknown\ttool\n"
			      "a\ttool\tapproved\t41\t" D1 "\t\t\t\n"
			      "a\ttool\tchanged\t42\t" D1 "\t\t" D2 "\t\n"
			      "a\tprompt\tnew\t41\t\t\t" D2 "\t\n");
	/* What the server says of itself; files without it are older. */
	assert_false(pins.is_known[PIN_SERVER]);
	assert_int_equal(read("known\tserver"), 0);
	assert_int_equal(read("server\tapproved\t696e737472756374696f6e73\t" D1 "\t\"x\"\t\t"), 0);
	assert_true(pins.is_known[PIN_SERVER]);
	assert_non_null(pins_find(&pins, PIN_SERVER, SLICE_LIT("instructions")));
	/* It is found by what its name means. */
	assert_non_null(pins_find(&pins, PERMISSION_TOOL, SLICE_LIT("b")));
}

static void what_is_none_is_refused(void **state)
{
	static const char *const lines[] = {
		"",
		"known",
		"known\t",
		"known\ttools",
		"known\ttool\t",
		"tool",
		"tools\tapproved\t41\t" D1 "\t{}\t\t",
		"tool\tunseen\t41\t\t\t\t",
		"tool\tapprove\t41\t" D1 "\t{}\t\t",
		"tool\tapproved\t\t" D1 "\t{}\t\t",
		"tool\tapproved\t4\t" D1 "\t{}\t\t",
		"tool\tapproved\t4g\t" D1 "\t{}\t\t",
		"tool\tapproved\t00\t" D1 "\t{}\t\t",
		"tool\tapproved\t41\t3131\t{}\t\t",
		"tool\tapproved\t41\t\t{}\t\t",
		"tool\tapproved\t41\t" D1 "\t{}\t" D2 "\t",
		"tool\tapproved\t41\t" D1 "\t{}\t\t{}",
		"tool\tapproved\t41\t" D1 "\t{}\t\t\t",
		"tool\tnew\t41\t" D1 "\t{}\t" D2 "\t",
	};

	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		assert_int_equal(read(lines[i]), -1);
	assert_int_equal(pins.count, 0);
	assert_int_equal(read("tool\tapproved\t41\t" D1 "\t\t\t"), 0);
	assert_int_equal(read("tool\tapproved\t61\t" D1 "\t\t\t"), -1); /* the same name */
}

static void names_are_bounded(void **state)
{
	struct buf line = { 0 };

	buf_append_str(&line, "resource\tapproved\t");
	for (size_t i = 0; i <= PIN_NAME_BYTES_MAX; i++)
		buf_append_str(&line, "61");
	buf_append_str(&line, "\t" D1 "\t\t\t");
	assert_int_equal(pin_record_read(&pins, buf_slice(&line)), -1);
	buf_fini(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_written_is_read, begin, end),
		cmocka_unit_test_setup_teardown(what_is_none_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(names_are_bounded, begin, end),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
