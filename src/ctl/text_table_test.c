/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of strangers on a terminal, and columns that stay straight whatever is in them. */
#include "ctl/output.h"

#include <locale.h>

#include "base/text.h"
#include "base/unit_test.h"

static void assert_clean(struct slice text, const char *keep, const char *expected)
{
	struct buf out = { 0 };

	escape_append(&out, text, keep);
	assert_string_equal(buf_terminate(&out), expected);
	buf_fini(&out);
}

static void texts_cannot_act(void **state)
{
	assert_clean(SLICE_LIT("plain, äöü 日本"), "", "plain, äöü 日本");
	assert_clean(SLICE_LIT("\x1b[31m\a\r\n\t\x7f"), "", "\\x1b[31m\\x07\\x0d\\x0a\\x09\\x7f");
	assert_clean(SLICE_LIT("a\tb\nc\r"), "\t\n", "a\tb\nc\\x0d");
	assert_clean(SLICE_LIT("a\0b"), "\t\n", "a\\x00b");
	assert_clean(SLICE_LIT("\xC2\x9B"
			       "31m"),
		     "", "\\u009b31m");
	assert_clean(SLICE_LIT("\xE2\x80\xAE"
			       "evil\xE2\x80\x8B"),
		     "", "\\u202eevil\\u200b");
	assert_clean(SLICE_LIT("\xF3\xA0\x80\xA1"), "", "\\ue0021"); /* a tag character */
	assert_clean(SLICE_LIT("a\u034f\u115f\u3164\ufe0f\u2066"), "",
		     "a\\u034f\\u115f\\u3164\\ufe0f\\u2066");
	assert_clean(SLICE_LIT("\xFF"
			       "a\xC3"),
		     "",
		     "\xEF\xBF\xBD"
		     "a\xEF\xBF\xBD");
}

/* Whatever bytes come, what goes out is UTF-8 without controls. */
static void all_bytes_are_tamed(void **state)
{
	char text[256 * 2];
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * 7 + i / 256);
	escape_append(&out, slice_of(text, sizeof(text)), "");
	assert_true(text_is_utf8(buf_slice(&out)));
	for (size_t i = 0; i < out.len; i++)
		assert_false((unsigned char)out.data[i] < 0x20 || out.data[i] == 0x7F);
	buf_fini(&out);
}

static char *printed(const struct text_table *text_table)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	text_table_print(text_table, out);
	fclose(out);
	return text;
}

static void columns_are_aligned(void **state)
{
	static const struct text_table_column columns[] = { { "NAME", false },
							    { "COUNT", true },
							    { "NOTE", false } };
	struct text_table text_table;
	char *text;

	text_table_init(&text_table, columns, 3);
	text = printed(&text_table);
	assert_string_equal(text, "NAME  COUNT  NOTE\n");
	free(text);
	text_table_add(&text_table, SLICE_LIT("日本"));
	text_table_add(&text_table, SLICE_LIT("7"));
	text_table_add(&text_table, SLICE_LIT(""));
	text_table_add(&text_table, SLICE_LIT("a\nb"));
	text_table_add(&text_table, SLICE_LIT("1234567"));
	text_table_add(&text_table, SLICE_LIT("x y"));
	text_table_add(&text_table, SLICE_LIT("é"));
	text_table_add(&text_table, SLICE_LIT("-"));
	text_table_add(&text_table, SLICE_LIT("z"));
	text = printed(&text_table);
	assert_string_equal(text, "NAME      COUNT  NOTE\n"
				  "日本          7  \n"
				  "a\\x0ab  1234567  x y\n"
				  "é             -  z\n");
	free(text);
	text_table_fini(&text_table);
}

static void many_rows_are_kept(void **state)
{
	static const struct text_table_column column[] = { { "N", true } };
	struct text_table text_table;
	char *text;

	text_table_init(&text_table, column, 1);
	for (int i = 0; i < 5000; i++)
		text_table_add(&text_table, SLICE_LIT("1"));
	text = printed(&text_table);
	assert_int_equal(strlen(text), 5001 * 2);
	free(text);
	text_table_fini(&text_table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_cannot_act),
		cmocka_unit_test(all_bytes_are_tamed),
		cmocka_unit_test(columns_are_aligned),
		cmocka_unit_test(many_rows_are_kept),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
