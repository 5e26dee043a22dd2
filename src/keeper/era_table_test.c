/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the file: what we write we read, and nothing else. BACK-ERA-06 */
#include "keeper/era_store.h"

#include "base/unit_test.h"

#define ZEROS "00000000000000000000000000000000000000000000000000000000000000"
#define FIRST "mcpgated eras 1\n"

static struct era_table table;

static struct era_entry entry_of(unsigned char first, enum era era, uint64_t noted_at_ms)
{
	return (struct era_entry){ .digest = { .bytes = { first } },
				   .memory = { .era = era, .probed_at_ms = 7000 },
				   .noted_at_ms = noted_at_ms };
}

static int read_text(const char *text)
{
	struct error err;

	return era_table_read(&table, slice_str(text), &err);
}

static void what_is_written_is_read(void **state)
{
	struct era_entry one = entry_of(1, ERA_LEGACY, 5000), two = entry_of(2, ERA_MODERN, 6000);
	const struct era_entry *found;
	struct buf text = { 0 };

	table.count = 0;
	era_table_set(&table, &one);
	era_table_set(&table, &two);
	era_table_write(&table, &text);
	assert_string_equal(buf_terminate(&text), FIRST "01" ZEROS " legacy 5 7\n"
							"02" ZEROS " modern 6 7\n");
	table.count = 0;
	assert_int_equal(read_text(buf_terminate(&text)), 0);
	assert_int_equal(table.count, 2);
	found = era_table_find(&table, &two.digest);
	assert_int_equal(found->memory.era, ERA_MODERN);
	assert_int_equal(found->memory.probed_at_ms, 7000);
	assert_int_equal(found->noted_at_ms, 6000);
	assert_int_equal(read_text(FIRST), 0);
	assert_int_equal(table.count, 0);
	buf_fini(&text);
}

static void anything_else_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		"mcpgated eras 1",
		"mcpgated eras 2\n",
		FIRST "\n",
		FIRST "01" ZEROS " legacy 5 7",
		FIRST "01" ZEROS " legacy 5 7\n\n",
		FIRST "01" ZEROS " legacy 5 7 \n",
		FIRST "01" ZEROS " legacy 5\n",
		FIRST "01" ZEROS "  legacy 5 7\n",
		FIRST "01" ZEROS " other 5 7\n",
		FIRST "01" ZEROS " legacy -5 7\n",
		FIRST "01" ZEROS " legacy 5 18446744073709551615\n",
		FIRST "01" ZEROS " legacy 5 18446744073709551616\n",
		FIRST "1" ZEROS " legacy 5 7\n",
		FIRST "0x" ZEROS " legacy 5 7\n",
		FIRST "01" ZEROS " legacy 5 7\nx\n",
		FIRST "01" ZEROS " legacy 5 1767225600",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(read_text(texts[i]), -1);
		assert_int_equal(table.count, 0);
	}
}

static void a_nul_is_no_end(void **state)
{
	static const char text[] = FIRST "01" ZEROS " legacy 5 7\n\0\n";
	struct error err;

	assert_int_equal(era_table_read(&table, slice_of(text, sizeof(text) - 1), &err), -1);
}

/* As many as there may be; of more, what was noted first gives way, and a file with more is none of ours. */
static void entries_are_bounded(void **state)
{
	struct era_entry entry;
	struct buf text = { 0 };

	table.count = 0;
	for (unsigned int i = 0; i < ERA_TABLE_MAX + 1; i++) {
		entry = entry_of(3, ERA_LEGACY, i == 5 ? 999000 : 1000000 + 1000 * i);
		entry.digest.bytes[1] = (unsigned char)(i >> 8);
		entry.digest.bytes[2] = (unsigned char)i;
		era_table_set(&table, &entry);
	}
	assert_int_equal(table.count, ERA_TABLE_MAX);
	assert_non_null(era_table_find(&table, &entry.digest));
	entry.digest.bytes[1] = 0;
	entry.digest.bytes[2] = 5;
	assert_null(era_table_find(&table, &entry.digest));
	entry.digest.bytes[2] = 4;
	assert_non_null(era_table_find(&table, &entry.digest));
	era_table_write(&table, &text);
	assert_true(text.len < ERA_TABLE_TEXT_MAX);
	assert_int_equal(read_text(buf_terminate(&text)), 0);
	assert_int_equal(table.count, ERA_TABLE_MAX);
	buf_append_str(&text, "ff" ZEROS " legacy 5 7\n");
	assert_int_equal(read_text(buf_terminate(&text)), -1);
	buf_fini(&text);
}

static void the_last_word_counts(void **state)
{
	struct era_entry entry = entry_of(1, ERA_LEGACY, 5000);

	table.count = 0;
	era_table_set(&table, &entry);
	entry.memory.era = ERA_MODERN;
	era_table_set(&table, &entry);
	assert_int_equal(table.count, 1);
	assert_int_equal(era_table_find(&table, &entry.digest)->memory.era, ERA_MODERN);
	entry.digest.bytes[sizeof(entry.digest.bytes) - 1] = 1; /* of another program */
	assert_null(era_table_find(&table, &entry.digest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(anything_else_is_refused),
		cmocka_unit_test(a_nul_is_no_end),
		cmocka_unit_test(entries_are_bounded),
		cmocka_unit_test(the_last_word_counts),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
