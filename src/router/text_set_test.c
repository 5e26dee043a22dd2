/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of texts: what is in them, however it was written, and how much. Nearly all texts have their hash in common here. */
#include "router/text_set.h"

#include "base/text.h"
#include "base/unit_test.h"

static uint64_t weak_hash(uint64_t hash, struct slice text)
{
	return text.n % 2;
}

#define text_hash weak_hash
#include "router/text_set.c"
#undef text_hash

static struct text_set set;

static int setup(void **state)
{
	text_set_init(&set);
	return 0;
}

static int teardown(void **state)
{
	text_set_fini(&set);
	assert_true(set.count == 0 && set.bytes == 0);
	return 0;
}

static bool has(const char *text)
{
	return text_set_has(&set, text_set_key(slice_str(text)), slice_str(text));
}

static void each_is_there_once(void **state)
{
	assert_false(has("aa"));
	assert_true(text_set_add(&set, SLICE_LIT("aa")));
	assert_true(text_set_add(&set, SLICE_LIT("bb")));
	assert_true(text_set_add(&set, SLICE_LIT("ccc")));
	assert_false(text_set_add(&set, SLICE_LIT("aa")));
	assert_true(set.count == 3 && set.bytes == 7);
	assert_true(has("aa") && has("bb") && has("ccc"));
	assert_false(has("ab"));
	assert_true(text_set_remove(&set, SLICE_LIT("aa")));
	assert_false(text_set_remove(&set, SLICE_LIT("aa")));
	assert_true(set.count == 2 && set.bytes == 5);
	assert_true(!has("aa") && has("bb") && has("ccc"));
}

/* Fills it with `count` texts of this size, "0…", "1…" and so on. */
static void fill(size_t count, size_t size)
{
	char *text = mem_zalloc(size + 1);

	for (size_t i = 0; i < count; i++) {
		memset(text, 'x', size);
		snprintf(text, size, "%zu", i);
		assert_true(text_set_add(&set, slice_of(text, size)));
	}
	free(text);
}

static void their_number_is_bounded(void **state)
{
	fill(TEXT_SET_MAX - 1, 16);
	assert_true(text_set_has_room(&set, 1));
	assert_true(text_set_add(&set, SLICE_LIT("last")));
	assert_false(text_set_has_room(&set, 0));
	assert_false(text_set_add(&set, SLICE_LIT("more")));
	assert_true(text_set_remove(&set, SLICE_LIT("last")));
	assert_true(text_set_add(&set, SLICE_LIT("more")));
}

static void their_bytes_are_bounded(void **state)
{
	const size_t most = TEXT_SET_TOTAL_MAX / TEXT_SET_BYTES_MAX;

	assert_true(text_set_has_room(&set, TEXT_SET_BYTES_MAX));
	assert_false(text_set_has_room(&set, TEXT_SET_BYTES_MAX + 1));
	fill(most - 1, TEXT_SET_BYTES_MAX);
	assert_true(text_set_add(&set, SLICE_LIT("a")));
	assert_true(text_set_has_room(&set, TEXT_SET_BYTES_MAX - 1));
	assert_false(text_set_has_room(&set, TEXT_SET_BYTES_MAX));
}

/* The oldest give way, no more of them than needed. */
static void new_ones_push_out_the_oldest(void **state)
{
	text_set_push(&set, SLICE_LIT("first"));
	text_set_push(&set, SLICE_LIT("second"));
	fill(TEXT_SET_MAX - 2, 16);
	text_set_push(&set, SLICE_LIT("third"));
	assert_true(!has("first") && has("second") && has("third"));
	assert_int_equal(set.count, TEXT_SET_MAX);
	text_set_push(&set, SLICE_LIT("third")); /* it makes room, but is there */
	assert_true(!has("second") && has("third"));
	assert_int_equal(set.count, TEXT_SET_MAX - 1);
	/* One that is too long, and so not read. */
	text_set_push(&set, slice_of("third", TEXT_SET_BYTES_MAX + 1));
	assert_int_equal(set.count, TEXT_SET_MAX - 1);
}

/* One spelling stands for all that JSON has; what is no string is the empty text. */
static void spellings_are_one(void **state)
{
	static const struct {
		enum json_type type;
		const char *written, *spelt;
	} rows[] = {
		{ JSON_STRING, "\"r:a\"", "r:a" },     { JSON_STRING, "\"r:\\u0061\"", "r:a" },
		{ JSON_STRING, "\"r:\\/a\"", "r:/a" }, { JSON_STRING, "\"\\\"\\n\"", "\\\"\\n" },
		{ JSON_STRING, "\"\"", "" },           { JSON_NUMBER, "1", "" },
		{ JSON_OBJECT, "{\"a\":1}", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct json written = { .type = rows[i].type,
					.has_escape = strchr(rows[i].written, '\\') != NULL,
					.text = slice_str(rows[i].written) };
		struct buf room = { 0 };
		struct slice spelt = text_set_spell(written, &room);

		if (!slice_is_equal(spelt, slice_str(rows[i].spelt)))
			fail_msg("%s: %.*s", rows[i].written, SLICE_ARG(spelt));
		buf_fini(&room);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_is_there_once),      TEST(their_number_is_bounded),
		TEST(their_bytes_are_bounded), TEST(new_ones_push_out_the_oldest),
		TEST(spellings_are_one),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
