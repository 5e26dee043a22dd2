/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of buf, map, list, slice, text and the other small parts of src/base. */

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/halves.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/tally.h"
#include "base/text.h"
#include "base/unit_test.h"

static void test_buf_keeps_what_it_is_given(void **state)
{
	struct buf buf = { 0 };

	for (int i = 0; i < 1000; i++)
		buf_printf(&buf, "%d,", i);
	assert_memory_equal(buf.data, "0,1,2,", 6);
	assert_int_equal(buf.len, 10 * 2 + 90 * 3 + 900 * 4);
	buf_consume(&buf, 20);
	assert_memory_equal(buf.data, "10,11,", 6);
	buf_consume(&buf, buf.len);
	assert_int_equal(buf.len, 0);
	buf_append_u64(&buf, UINT64_MAX);
	assert_string_equal(buf_terminate(&buf), "18446744073709551615");
	for (uint64_t value = 1; value < UINT64_MAX / 10; value *= 10) {
		char expected[64];

		buf.len = 0;
		buf_append_u64(&buf, value - 1);
		buf_append_char(&buf, ' ');
		buf_append_u64(&buf, value);
		snprintf(expected, sizeof(expected), "%llu %llu", (unsigned long long)value - 1,
			 (unsigned long long)value);
		assert_string_equal(buf_terminate(&buf), expected);
	}
	buf_fini(&buf);
	assert_null(buf.data);
}

static void test_buf_mends_utf8(void **state)
{
	struct buf buf = { 0 };

	buf_append_utf8(&buf, SLICE_LIT(""));
	assert_int_equal(buf.len, 0);
	buf_append_utf8(&buf, SLICE_LIT("a\0\xC3\xA4\xF0\x9F\x98\x80"));
	assert_int_equal(buf.len, 8);
	assert_memory_equal(buf.data, "a\0\xC3\xA4\xF0\x9F\x98\x80", 8);
	buf.len = 0;
	buf_append_utf8(&buf, SLICE_LIT("\xFFz\xC0\x80\xE2\x82"));
	assert_string_equal(buf_terminate(&buf), "\uFFFDz\uFFFD\uFFFD\uFFFD\uFFFD");
	buf_fini(&buf);
}

/* AUTH-DWN-01: no copy of the bytes is left behind. */
static void test_buf_moves_without_a_second_copy(void **state)
{
	struct buf buf = { 0 };
	char piece[100];

	for (int i = 0; i < 10; i++) {
		memset(piece, 'a' + i, sizeof(piece));
		buf_move(&buf, piece, sizeof(piece));
		for (size_t j = 0; j < sizeof(piece); j++)
			assert_int_equal(piece[j], 0);
	}
	assert_int_equal(buf.len, 1000);
	for (size_t i = 0; i < buf.len; i++)
		assert_int_equal(buf.data[i], 'a' + i / sizeof(piece));
	buf_fini(&buf);
}

static void test_slice_cut_and_trim(void **state)
{
	struct slice rest = SLICE("a,,bc");

	assert_true(slice_is_equal(slice_cut(&rest, ','), SLICE_LIT("a")));
	assert_int_equal(slice_cut(&rest, ',').n, 0);
	assert_non_null(rest.p);
	assert_true(slice_is_equal(slice_cut(&rest, ','), SLICE_LIT("bc")));
	assert_null(rest.p);
	assert_true(slice_is_equal(slice_trim(SLICE_LIT(" \tx y\t ")), SLICE_LIT("x y")));
	assert_int_equal(slice_trim(SLICE_LIT(" \t ")).n, 0);
}

/* Compares a map with a plain array through growth, shrinking and colliding probe sequences. */
static void test_map_agrees_with_an_array(void **state)
{
	enum { KEYS = 512 };
	static char values[KEYS];
	bool is_there[KEYS] = { false };
	struct map map = { 0 };
	size_t count = 0;

	for (int step = 0; step < 200000; step++) {
		uint64_t key = random_below(KEYS);
		/* long phases with mostly insertions, then mostly removals */
		bool adds = random_below(8) < (step / 20000 % 2 ? 3u : 5u);

		assert_ptr_equal(map_find(&map, key << 40), is_there[key] ? &values[key] : NULL);
		if (adds && !is_there[key]) {
			map_insert(&map, key << 40, &values[key]);
			is_there[key] = true;
			count++;
		} else if (!adds) {
			void *was = step % 2 == 0 ? map_remove(&map, key << 40) :
						    map_take(&map, key << 40);

			assert_ptr_equal(was, is_there[key] ? &values[key] : NULL);
			count -= is_there[key];
			is_there[key] = false;
		}
		assert_int_equal(map.count, count);
	}
	map_fini(&map);
}

/* Entries of a few keys in a map, checked against plain counts per key. */
static void test_map_keeps_entries_of_one_key(void **state)
{
	enum { ENTRIES = 64, KEYS = 5 };
	static struct map_link entries[ENTRIES];
	bool is_there[ENTRIES] = { false };
	struct map map = { 0 };

	for (int step = 0; step < 20000; step++) {
		uint64_t i = random_below(ENTRIES);
		size_t seen = 0;
		size_t expected = 0;

		if (is_there[i])
			map_remove_link(&map, &entries[i]);
		else
			map_insert_link(&map, i % KEYS, &entries[i]);
		is_there[i] = !is_there[i];
		for (size_t k = i % KEYS; k < ENTRIES; k += KEYS)
			expected += is_there[k];
		for (const struct map_link *at = map_find_link(&map, i % KEYS); at != NULL;
		     at = at->next) {
			assert_int_equal(at->key, i % KEYS);
			assert_true(is_there[at - entries]);
			seen++;
		}
		assert_int_equal(seen, expected);
	}
	for (size_t i = 0; i < ENTRIES; i++)
		if (is_there[i])
			map_remove_link(&map, &entries[i]);
	assert_null(map.slots);
}

static unsigned int counted;

static void on_counted(struct tally *tally)
{
	counted++;
}

static uint64_t told_amount;

static void on_told(struct tally *tally, uint64_t key, uint64_t amount)
{
	told_amount = amount;
}

static void test_tally_is_told_once(void **state)
{
	struct tally_count count;
	struct tally tally;

	tally_init(&tally, on_told);
	tally_add(&tally, 1, 5); /* nobody wants to know */
	assert_false(tally_take(&tally, &count));
	tally.on_counted = on_counted;
	tally_add(&tally, 1, 5);
	tally_add(&tally, 2, 7);
	tally_add(&tally, 1, 3);
	assert_int_equal(counted, 3);
	assert_true(tally_take(&tally, &count));
	assert_true(count.key == 1 && count.amount == 8 && !count.is_anew);
	tally_reset(&tally, 2);
	tally_add(&tally, 2, 1);
	assert_true(tally_take(&tally, &count));
	assert_true(count.key == 2 && count.amount == 1 && count.is_anew);
	assert_false(tally_take(&tally, &count));
	/* Nor is told what others have begun anew since. */
	tally_add(&tally, 3, 1);
	tally_hear(&tally, 3, 4);
	assert_int_equal(told_amount, 4);
	tally_hear(&tally, 3, 0);
	assert_int_equal(told_amount, 0);
	assert_false(tally_take(&tally, &count));
	for (uint64_t i = 0; i <= TALLY_KEYS_MAX; i++)
		tally_add(&tally, i, 1);
	tally_add(&tally, 0, 1);
	assert_true(tally_take(&tally, &count));
	assert_true(count.key == 0 && count.amount == 2);
	while (tally_take(&tally, &count))
		assert_int_not_equal(count.key, TALLY_KEYS_MAX);
	tally_add(&tally, 1, 1);
	tally_fini(&tally);
	assert_null(tally.by_key.slots);
}

static void test_list_order_and_splice(void **state)
{
	struct list a, b, n[4];

	list_init(&a);
	list_init(&b);
	for (int i = 0; i < 4; i++)
		list_append(i < 2 ? &a : &b, &n[i]);
	list_splice(&a, &b);
	assert_true(list_is_empty(&b));
	assert_ptr_equal(a.prev, &n[3]);
	list_remove(&n[1]);
	assert_ptr_equal(n[0].next, &n[2]);
	list_remove(&n[1]); /* removing twice is harmless */
}

static void test_numbers(void **state)
{
	static const char *const bad[] = {
		"", "-1", "+1", " 1", "1 ", "0x1", "18446744073709551616", "1.0"
	};
	uint64_t value = 7;

	assert_int_equal(text_parse_u64(SLICE_LIT("18446744073709551615"), &value), 0);
	assert_true(value == UINT64_MAX);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(text_parse_u64(slice_str(bad[i]), &value), -1);
}

static void test_hex_is_written(void **state)
{
	static const struct {
		uint64_t value;
		size_t least;
		const char *text;
	} rows[] = {
		{ 0, 1, "0" },
		{ 0, 8, "00000000" },
		{ 0xF, 1, "f" },
		{ 0x10, 1, "10" },
		{ 0xABC, 8, "00000abc" },
		{ 0x123456789, 8, "123456789" },
		{ UINT64_MAX, 1, "ffffffffffffffff" },
	};
	char text[16];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = text_format_hex(rows[i].value, rows[i].least, text);

		assert_true(slice_is_equal(slice_of(text, n), slice_str(rows[i].text)));
	}
}

static void test_ages_are_written(void **state)
{
	static const struct {
		uint64_t ms;
		const char *text;
	} rows[] = {
		{ 0, "0s" },           { 59999, "59s" },
		{ 60000, "1m00s" },    { 3599000, "59m59s" },
		{ 3600000, "1h00m" },  { 86399000, "23h59m" },
		{ 86400000, "1d00h" }, { UINT64_MAX, "213503982334d14h" },
	};
	char text[TEXT_AGE_BYTES];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(text_format_age(rows[i].ms, text), rows[i].text);
}

static void test_base64url(void **state)
{
	/* RFC 4648 §10 without padding, and the two characters that differ from plain base64 */
	static const struct {
		const char *in;
		const char *out;
	} rows[] = { { "", "" },        { "f", "Zg" },        { "fo", "Zm8" },
		     { "foo", "Zm9v" }, { "foob", "Zm9vYg" }, { "\xfb\xff", "-_8" } };
	char out[16];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = text_base64url(rows[i].in, strlen(rows[i].in), out);

		assert_int_equal(n, strlen(rows[i].out));
		assert_memory_equal(out, rows[i].out, n);
	}
}

/* RFC 4648 §3.3, §3.5: any bytes have exactly one encoding; nothing else is accepted. */
static void test_base64url_has_one_spelling(void **state)
{
	static const char *const bad[] = { "A",     "AB",   "Zh",   "Zm9=",  "Zm8=",    "Zm 8",
					   "Zm9v=", "Zm9+", "Zm9/", "AAAAA", "\xc3\xa9" };
	unsigned char out[64];
	size_t size;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(text_from_base64url(slice_str(bad[i]), out, &size), -1);
	for (size_t n = 0; n < 40; n++) {
		unsigned char bytes[40];
		char text[64];
		size_t length;

		random_bytes(bytes, sizeof(bytes));
		length = text_base64url(bytes, n, text);
		assert_int_equal(text_from_base64url(slice_of(text, length), out, &size), 0);
		assert_int_equal(size, n);
		assert_memory_equal(out, bytes, n);
	}
}

static void test_hex_is_read_whole(void **state)
{
	static const char *const bad[] = { "", "00ff7", "00ff7g", "00ff7F00", "0x00ff", " 0ff7f" };
	static const unsigned char expected[] = { 0x00, 0xff, 0x7e };
	unsigned char out[3];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(text_from_hex(slice_str(bad[i]), out, sizeof(out)), -1);
	assert_int_equal(text_from_hex(SLICE_LIT("00fF7e"), out, sizeof(out)), 0);
	assert_memory_equal(out, expected, sizeof(expected));
}

/* SEC-40 */
static void test_utf8(void **state)
{
	static const char *const good[] = { "a",
					    "\xC2\x80",
					    "\xDF\xBF",
					    "\xE0\xA0\x80",
					    "\xED\x9F\xBF",
					    "\xEE\x80\x80",
					    "\xF0\x90\x80\x80",
					    "\xF4\x8F\xBF\xBF" };
	static const char *const bad[] = { "\x80",
					   "\xC0\x80",
					   "\xC1\xBF",
					   "\xC2",
					   "\xC2 ",
					   "\xE0\x9F\xBF",
					   "\xED\xA0\x80",
					   "\xE1\x80",
					   "\xF0\x8F\xBF\xBF",
					   "\xF4\x90\x80\x80",
					   "\xF5\x80\x80\x80",
					   "\xFF" };

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(text_is_utf8(slice_str(good[i])));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(text_is_utf8(slice_str(bad[i])));
}

static void test_distance(void **state)
{
	assert_int_equal(text_distance(SLICE_LIT("isolaton"), SLICE_LIT("isolation"), 3), 1);
	assert_int_equal(text_distance(SLICE_LIT("kitten"), SLICE_LIT("sitting"), 5), 3);
	assert_int_equal(text_distance(SLICE_LIT(""), SLICE_LIT("abc"), 5), 3);
	assert_int_equal(text_distance(SLICE_LIT("abc"), SLICE_LIT("xyz"), 2), 3);
}

static void test_what_is_nearest(void **state)
{
	size_t distance = SIZE_MAX;

	assert_false(text_is_nearer(SLICE_LIT("status"), SLICE_LIT("streams"), &distance));
	assert_true(text_is_nearer(SLICE_LIT("stat"), SLICE_LIT("status"), &distance));
	assert_int_equal(distance, 1);
	assert_false(text_is_nearer(SLICE_LIT("stat"), SLICE_LIT("state"), &distance));
	distance = SIZE_MAX;
	assert_true(text_is_nearer(SLICE_LIT("relaod"), SLICE_LIT("reload"), &distance));
	assert_true(text_is_nearer(SLICE_LIT("relaod"), SLICE_LIT("relao"), &distance));
	distance = SIZE_MAX;
	assert_false(text_is_nearer(SLICE_LIT(""), SLICE_LIT("top"), &distance));
}

static void test_secrets_compare(void **state)
{
	assert_true(text_is_equal_secret(SLICE_LIT("abc"), SLICE_LIT("abc")));
	assert_false(text_is_equal_secret(SLICE_LIT("abc"), SLICE_LIT("abd")));
	assert_false(text_is_equal_secret(SLICE_LIT("abc"), SLICE_LIT("abcd")));
}

static void test_error_is_cut_not_overrun(void **state)
{
	struct error err;
	char *text = mem_alloc(1000);

	memset(text, 'x', 999);
	text[999] = '\0';
	assert_int_equal(error_set(&err, ERROR_INVALID, "%s", text), -1);
	assert_int_equal(error_set(NULL, ERROR_INVALID, "%s", text), -1);
	assert_int_equal(error_set_errno(NULL, "%s", text), -1);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	free(text);
}

static void test_random_is_in_range(void **state)
{
	unsigned int seen = 0;

	for (int i = 0; i < 1000; i++) {
		uint64_t n = random_below(3);

		assert_true(n < 3);
		seen |= 1u << n;
	}
	assert_int_equal(seen, 7);
}

static void test_clock_stands_when_frozen(void **state)
{
	clock_freeze(12345);
	clock_update();
	assert_int_equal(clock_now_ms(), 12345);
}

/* AUTH-SCP-02 */
static void test_patterns(void **state)
{
	static const struct {
		const char *text, *pattern;
		bool fits;
	} cases[] = {
		{ "", "", true },
		{ "", "*", true },
		{ "a", "", false },
		{ "a", "a", true },
		{ "a", "A", false },
		{ "ab", "a", false },
		{ "a", "ab", false },
		{ "delete_x", "delete_*", true },
		{ "delete_", "delete_*", true },
		{ "xdelete_", "delete_*", false },
		{ "abcabc", "*abc", true },
		{ "aXbYb", "a*b", true },
		{ "aXbYc", "a*b", false },
		{ "abc", "a**c*", true },
		{ "a.c", "a?c", false },
		{ "[a]", "[a]", true },
	};
	char many[20001];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(text_fits_pattern(slice_str(cases[i].text),
						   slice_str(cases[i].pattern)),
				 cases[i].fits);
	memset(many, 'a', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	/*
	 * SEC-14: one star per letter and no match, which takes exponential time in a naive matcher
	 */
	assert_false(text_fits_pattern(slice_str(many), SLICE_LIT("*a*a*a*a*a*a*a*a*a*a*a*a*a*b")));
}

/* Every length, and a stopping byte at every place around a block. */
static void test_plain_length(void **state)
{
	static const unsigned char others[] = { 0x00, 0x09, 0x1F, '\\', 0x7F, 0x80, 0xFF };
	char text[340];

	memset(text, 'a', sizeof(text));
	text[3] = ' ';
	text[5] = '~';
	assert_int_equal(text_plain_length(slice_of(NULL, 0)), 0);
	assert_int_equal(text_verbatim_length(slice_of(NULL, 0)), 0);
	for (size_t n = 0; n <= sizeof(text); n++) {
		assert_int_equal(text_plain_length(slice_of(text, n)), n);
		assert_int_equal(text_verbatim_length(slice_of(text, n)), n);
	}
	for (size_t at = 0; at < sizeof(text); at++) {
		char kept = text[at];

		for (size_t i = 0; i < ARRAY_LEN(others); i++) {
			text[at] = (char)others[i];
			for (size_t n = at + 1; n <= sizeof(text); n += n < at + 20 ? 1 : 7) {
				assert_int_equal(text_plain_length(slice_of(text, n)), at);
				assert_int_equal(text_verbatim_length(slice_of(text, n)), at);
			}
		}
		text[at] = '"';
		assert_int_equal(text_plain_length(slice_of(text, sizeof(text))), sizeof(text));
		assert_int_equal(text_verbatim_length(slice_of(text, sizeof(text))), at);
		text[at] = kept;
	}
}

#define ROOM 16

static void assert_left(const struct halves *halves, const char *expected)
{
	struct slice text;

	assert_true(halves_read(halves, ROOM, &text));
	assert_true(slice_is_equal(text, slice_str(expected)));
}

/* Whoever writes dies at every byte; the last of three texts is shorter than those before. */
static void test_halves_are_whole(void **state)
{
	static const char *const texts[] = { "", "the first text", "another", "3" };
	struct halves *halves = mem_zalloc(HALVES_BYTES(ROOM));
	struct slice text;

	(void)state;
	for (size_t i = 1; i < ARRAY_LEN(texts); i++) {
		char *at = halves_begin(halves, ROOM);

		assert_left(halves, texts[i - 1]);
		for (size_t n = 0; n < strlen(texts[i]); n++) {
			at[n] = texts[i][n];
			assert_left(halves, texts[i - 1]);
			assert_ptr_equal(halves_begin(halves, ROOM),
					 at); /* the next one begins again */
		}
		halves->bytes[!halves->half] = strlen(texts[i]);
		assert_left(halves, texts[i - 1]);
		halves_end(halves, ROOM, strlen(texts[i]));
		assert_left(halves, texts[i]);
		assert_true(halves_read(halves, ROOM, &text));
		assert_ptr_equal(text.p, (char *)halves + halves_find_text(halves, ROOM));
	}
	halves->bytes[halves->half] = ROOM + 1;
	assert_false(halves_read(halves, ROOM, &text));
	halves->half = 2;
	assert_false(halves_read(halves, ROOM, &text));
	halves_end(halves, ROOM,
		   (size_t)(stpcpy(halves_begin(halves, ROOM), "mended") -
			    halves_begin(halves, ROOM)));
	assert_left(halves, "mended");
	free(halves);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buf_keeps_what_it_is_given),
		cmocka_unit_test(test_plain_length),
		cmocka_unit_test(test_buf_mends_utf8),
		cmocka_unit_test(test_buf_moves_without_a_second_copy),
		cmocka_unit_test(test_slice_cut_and_trim),
		cmocka_unit_test(test_map_agrees_with_an_array),
		cmocka_unit_test(test_map_keeps_entries_of_one_key),
		cmocka_unit_test(test_tally_is_told_once),
		cmocka_unit_test(test_list_order_and_splice),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_hex_is_written),
		cmocka_unit_test(test_ages_are_written),
		cmocka_unit_test(test_base64url),
		cmocka_unit_test(test_base64url_has_one_spelling),
		cmocka_unit_test(test_hex_is_read_whole),
		cmocka_unit_test(test_halves_are_whole),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_what_is_nearest),
		cmocka_unit_test(test_secrets_compare),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_error_is_cut_not_overrun),
		cmocka_unit_test(test_random_is_in_range),
		cmocka_unit_test(test_clock_stands_when_frozen),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
